// The part of the CUDA driver's binary interface that the runtime uses, in declarations of our own,
// so that the runtime is built, and tested on a fake driver, where there is no CUDA.
// abi_test.cc compares all of it with cuda.h.
//
// Enumerations of the driver are ints here; pointers to its opaque objects have types of our own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mscclc::cuda::abi {

using Ordinal = int;                 ///< CUdevice
using Address = unsigned long long;  ///< CUdeviceptr
using Handle = unsigned long long;   ///< CUmemGenericAllocationHandle
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Pool = struct PoolObject*;
using Graph = struct GraphObject*;
using GreenContext = struct GreenContextObject*;
using GraphNode = struct GraphNodeObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using UserObject = struct UserObjectObject*;
using HostFunction = void (*)(void* argument);  ///< CUhostFn

/// CUresult.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kMapFailed = 205,
  kAlreadyMapped = 208,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kLossyQuery = 402,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kPeerAccessAlreadyEnabled = 704,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureImplicit = 906,
  kUnknown = 999,
};

/// CUdevice_attribute.
enum Attribute : int {
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kVirtualMemoryManagementSupported = 102,
  kPosixFdSupported = 103,
  kRdmaOfMappingsSupported = 110,  ///< ..._GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
  kCanUse64BitStreamMemOps = 122,
  kDmaBufSupported = 124,
  kFabricSupported = 128,
  kMulticastSupported = 132,
};

/// CUfunction_attribute.
enum FunctionAttribute : int {
  kRequiredClusterWidth = 11,  ///< 0: it is not compiled for clusters
};

/// CUdevice_P2PAttribute.
enum P2PAttribute : int { kAccessSupported = 2, kNativeAtomicSupported = 3 };

/// CUuuid.
struct Uuid {
  unsigned char bytes[16];
  bool operator==(const Uuid&) const = default;
};

/// CUpointer_attribute.
enum PointerAttribute : int {
  kMemoryType = 2,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsLegacyIpcCapable = 10,
  kMempoolHandle = 17,
  kMappingSize = 18,
  kMappingBaseAddress = 19,
};
/// CUmemorytype.
enum MemoryType : unsigned { kHostMemory = 1, kDeviceMemory = 2 };

/// CUmemAllocationHandleType: bits.
enum HandleType : int { kNoHandle = 0, kPosixFd = 1, kFabric = 8 };

/// CUmemRangeHandleType.
enum RangeHandleType : int { kDmaBufFd = 1 };
/// CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE: not by a link between processor and GPU.
enum : unsigned long long { kDmaBufByPci = 1 };

enum : int { kLocationDevice = 1 };      ///< CUmemLocationType
enum : int { kAllocationPinned = 1 };    ///< CUmemAllocationType
enum : int { kAccessReadWrite = 3 };     ///< CUmemAccess_flags
enum : int { kMinimumGranularity = 0 };  ///< CU_MEM_ALLOC_..., CU_MULTICAST_GRANULARITY_MINIMUM
/// CUstreamCaptureMode.
enum : int { kCaptureModeGlobal = 0, kCaptureModeThreadLocal = 1, kCaptureModeRelaxed = 2 };
enum : unsigned { kHostPortable = 1, kHostDeviceMap = 2 };  ///< CU_MEMHOSTALLOC_
enum : unsigned { kStreamNonBlocking = 1 };
enum : unsigned { kEventDisableTiming = 2 };
enum : unsigned { kRecordExternal = 1 };  ///< CU_EVENT_RECORD_EXTERNAL: each replay records
/// CUstreamCaptureStatus.
enum : int { kCaptureStatusNone = 0, kCaptureStatusActive = 1, kCaptureStatusInvalidated = 2 };
enum : unsigned {
  kNoDestructorSync = 1
};  ///< CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, which must be given
enum : unsigned {
  kMoveReferences = 1
};  ///< CU_GRAPH_USER_OBJECT_MOVE: the caller's become the graph's
enum : unsigned { kIpcLazyEnablePeerAccess = 1 };
enum : unsigned { kWriteValueDefault = 0 };  ///< after a fence of system scope
enum : unsigned { kWaitValueAtLeast = 0 };   ///< CU_STREAM_WAIT_VALUE_GEQ: of counts that wrap
enum : unsigned { kAddDependencies = 0 };    ///< CU_STREAM_ADD_CAPTURE_DEPENDENCIES
enum : uint64_t { kLegacyStream = 1 };       ///< cuGetProcAddress: stream 0 is the legacy one

enum : int { kProgrammaticStreamSerialization = 6 };  ///< CU_LAUNCH_ATTRIBUTE_

/// CUlaunchAttribute.
struct LaunchAttribute {
  int id;
  char padding[4];
  alignas(8) int value[16];  ///< a union; kProgrammaticStreamSerialization: the first, 1: allowed
};

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

/// CUmemLocation.
struct Location {
  int type;
  int id;
};

/// CUmemAllocationProp.
struct AllocationProperties {
  int type;
  int handle_types;  ///< HandleType bits
  Location location;
  void* windows_meta_data;
  unsigned char compression;
  unsigned char gpu_direct_rdma;
  unsigned short usage;
  unsigned char reserved[4];
};

/// CUmemAccessDesc.
struct Access {
  Location location;
  int flags;
};

enum : int { kMultiprocessors = 1 };  ///< CU_DEV_RESOURCE_TYPE_SM

/// CUdevResource of that type.
struct DeviceResource {
  int type;
  unsigned char padding[92];
  unsigned multiprocessors;
  unsigned char rest[44];
};

/// CUmulticastObjectProp.
struct MulticastProperties {
  unsigned devices;
  size_t size;
  unsigned long long handle_types;  ///< HandleType bits
  unsigned long long flags;
};

/// CUmemFabricHandle.
struct FabricHandle {
  unsigned char data[64];
};

/// CUipcMemHandle.
struct IpcHandle {
  char data[64];
};

}  // namespace mscclc::cuda::abi
