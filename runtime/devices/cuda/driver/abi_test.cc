// Our declarations of the driver's binary interface against NVIDIA's own. Everything is checked
// when this is compiled; it needs the CUDA headers but no GPU.
#include "runtime/devices/cuda/driver/abi.h"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

namespace mscclc::cuda {
namespace {

/// Types that are passed in the same way.
template <class A, class B>
constexpr bool alike() {
  if constexpr (std::is_class_v<A> && std::is_class_v<B>) {
    return sizeof(A) == sizeof(B) && alignof(A) <= alignof(B);
  } else {
    return std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B) &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
  }
}

/// What pointers point to, too: sizes of what the driver writes.
template <class A, class B>
constexpr bool alike_parameter() {
  using PointedA = std::remove_const_t<std::remove_pointer_t<A>>;
  using PointedB = std::remove_const_t<std::remove_pointer_t<B>>;
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B> && !std::is_void_v<PointedA> &&
                !std::is_void_v<PointedB> &&
                (std::is_arithmetic_v<PointedA> || std::is_enum_v<PointedA> ||
                 std::is_pointer_v<PointedA>)) {
    return alike<PointedA, PointedB>();
  } else {
    return alike<A, B>();
  }
}

template <class Ours, class Theirs>
struct SameFunction : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct SameFunction<R (*)(A...), S (*)(B...)>
    : std::bool_constant<alike<R, S>() && (alike_parameter<A, B>() && ...)> {
};

#define FUNCTION(name, version, need, parameters)                                          \
  static_assert(SameFunction<abi::Result(*) parameters, PFN_cu##name##_v##version>::value, \
                "cu" #name " has other parameters");
#include "runtime/devices/cuda/driver/functions.def"
#undef FUNCTION

#define SAME_VALUE(ours, theirs) static_assert(static_cast<long long>(ours) == (theirs))
SAME_VALUE(abi::kRequiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
SAME_VALUE(abi::kAccessSupported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED);
SAME_VALUE(abi::kNativeAtomicSupported, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);
SAME_VALUE(abi::kNoDestructorSync, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
SAME_VALUE(abi::kMoveReferences, CU_GRAPH_USER_OBJECT_MOVE);
SAME_VALUE(abi::kSuccess, CUDA_SUCCESS);
SAME_VALUE(abi::kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME_VALUE(abi::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(abi::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SAME_VALUE(abi::kDeinitialized, CUDA_ERROR_DEINITIALIZED);
SAME_VALUE(abi::kNoDevice, CUDA_ERROR_NO_DEVICE);
SAME_VALUE(abi::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SAME_VALUE(abi::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME_VALUE(abi::kMapFailed, CUDA_ERROR_MAP_FAILED);
SAME_VALUE(abi::kAlreadyMapped, CUDA_ERROR_ALREADY_MAPPED);
SAME_VALUE(abi::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SAME_VALUE(abi::kIllegalState, CUDA_ERROR_ILLEGAL_STATE);
SAME_VALUE(abi::kLossyQuery, CUDA_ERROR_LOSSY_QUERY);
SAME_VALUE(abi::kNotFound, CUDA_ERROR_NOT_FOUND);
SAME_VALUE(abi::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_VALUE(abi::kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME_VALUE(abi::kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
SAME_VALUE(abi::kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME_VALUE(abi::kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
SAME_VALUE(abi::kNotReady, CUDA_ERROR_NOT_READY);
SAME_VALUE(abi::kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME_VALUE(abi::kStreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME_VALUE(abi::kStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME_VALUE(abi::kUnknown, CUDA_ERROR_UNKNOWN);

SAME_VALUE(abi::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(abi::kVirtualMemoryManagementSupported,
           CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_VALUE(abi::kPosixFdSupported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME_VALUE(abi::kCanUse64BitStreamMemOps, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
SAME_VALUE(abi::kDmaBufSupported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SAME_VALUE(abi::kDmaBufFd, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
SAME_VALUE(abi::kRdmaOfMappingsSupported,
           CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
#if CUDA_VERSION >= 12080
SAME_VALUE(abi::kDmaBufByPci, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
#endif
SAME_VALUE(abi::kFabricSupported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
SAME_VALUE(abi::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(abi::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(abi::kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
SAME_VALUE(abi::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME_VALUE(abi::kProgrammaticStreamSerialization,
           CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME_VALUE(abi::kMulticastSupported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);

SAME_VALUE(abi::kMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(abi::kBufferId, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME_VALUE(abi::kIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_VALUE(abi::kDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(abi::kIsLegacyIpcCapable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME_VALUE(abi::kMempoolHandle, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME_VALUE(abi::kMappingSize, CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
SAME_VALUE(abi::kMappingBaseAddress, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
SAME_VALUE(abi::kHostMemory, CU_MEMORYTYPE_HOST);
SAME_VALUE(abi::kDeviceMemory, CU_MEMORYTYPE_DEVICE);

SAME_VALUE(abi::kNoHandle, CU_MEM_HANDLE_TYPE_NONE);
SAME_VALUE(abi::kPosixFd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_VALUE(abi::kFabric, CU_MEM_HANDLE_TYPE_FABRIC);
SAME_VALUE(abi::kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(abi::kAllocationPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(abi::kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_VALUE(abi::kMinimumGranularity, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME_VALUE(abi::kMinimumGranularity, CU_MULTICAST_GRANULARITY_MINIMUM);
SAME_VALUE(abi::kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(abi::kCaptureStatusNone, CU_STREAM_CAPTURE_STATUS_NONE);
SAME_VALUE(abi::kCaptureStatusActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_VALUE(abi::kCaptureStatusInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME_VALUE(abi::kCaptureModeGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME_VALUE(abi::kCaptureModeThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_VALUE(abi::kCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_VALUE(abi::kHostPortable, CU_MEMHOSTALLOC_PORTABLE);
SAME_VALUE(abi::kHostDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP);
SAME_VALUE(abi::kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME_VALUE(abi::kIpcLazyEnablePeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME_VALUE(abi::kWriteValueDefault, CU_STREAM_WRITE_VALUE_DEFAULT);
SAME_VALUE(abi::kWaitValueAtLeast, CU_STREAM_WAIT_VALUE_GEQ);
SAME_VALUE(abi::kAddDependencies, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
SAME_VALUE(abi::kMultiprocessors, CU_DEV_RESOURCE_TYPE_SM);
SAME_VALUE(abi::kLegacyStream, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
#undef SAME_VALUE

#define SAME_FIELD(ours, field, theirs, their_field)                           \
  static_assert(offsetof(abi::ours, field) == offsetof(theirs, their_field) && \
                sizeof(abi::ours::field) == sizeof(theirs::their_field) &&     \
                sizeof(abi::ours) == sizeof(theirs))
SAME_FIELD(Location, type, CUmemLocation, type);
SAME_FIELD(Location, id, CUmemLocation, id);
SAME_FIELD(AllocationProperties, type, CUmemAllocationProp, type);
SAME_FIELD(AllocationProperties, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(AllocationProperties, location, CUmemAllocationProp, location);
SAME_FIELD(AllocationProperties, windows_meta_data, CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(AllocationProperties, compression, CUmemAllocationProp, allocFlags.compressionType);
SAME_FIELD(AllocationProperties, gpu_direct_rdma, CUmemAllocationProp,
           allocFlags.gpuDirectRDMACapable);
SAME_FIELD(AllocationProperties, usage, CUmemAllocationProp, allocFlags.usage);
SAME_FIELD(Access, location, CUmemAccessDesc, location);
SAME_FIELD(Access, flags, CUmemAccessDesc, flags);
SAME_FIELD(DeviceResource, type, CUdevResource, type);
SAME_FIELD(DeviceResource, multiprocessors, CUdevResource, sm.smCount);
SAME_FIELD(MulticastProperties, devices, CUmulticastObjectProp, numDevices);
SAME_FIELD(MulticastProperties, size, CUmulticastObjectProp, size);
SAME_FIELD(MulticastProperties, handle_types, CUmulticastObjectProp, handleTypes);
SAME_FIELD(MulticastProperties, flags, CUmulticastObjectProp, flags);
SAME_FIELD(LaunchAttribute, id, CUlaunchAttribute, id);
SAME_FIELD(LaunchAttribute, value, CUlaunchAttribute, value);
SAME_FIELD(LaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(LaunchConfig, stream, CUlaunchConfig, hStream);
SAME_FIELD(LaunchConfig, attributes, CUlaunchConfig, attrs);
SAME_FIELD(LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
static_assert(offsetof(abi::LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
SAME_FIELD(FabricHandle, data, CUmemFabricHandle, data);
SAME_FIELD(IpcHandle, data, CUipcMemHandle, reserved);
#undef SAME_FIELD

}  // namespace
}  // namespace mscclc::cuda

int main() { return 0; }
