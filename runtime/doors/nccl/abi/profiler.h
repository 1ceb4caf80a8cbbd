// The binary interface of NCCL's profiler plug-ins, versions 4 to 7, as far as we call it, in
// declarations of our own. Version 7's events have more at their ends. Version 4's event has a type
// of one byte at the same place, and knows neither calls of the API nor launches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mscclc::nccl::profiler_abi {

/// Bits of a plug-in's mask, and types of events.
enum : uint64_t {
  kGroup = 1u << 0,
  kColl = 1u << 1,
  kP2p = 1u << 2,
  kGroupApi = 1u << 8,
  kCollApi = 1u << 9,
  kP2pApi = 1u << 10,
  kKernelLaunch = 1u << 11,
};
/// States of a group's event.
enum : int { kGroupStartApiStop = 23, kGroupEndApiStart = 24 };

struct Event {
  uint64_t type;
  void* parent;
  int rank;
  union {
    struct {
      bool captured;
      int depth;
    } group_api;
    struct {
      const char* function;
      size_t count;
      const char* datatype;
      int root;
      void* stream;
      bool captured;
      uint64_t tag;  ///< from version 7 on: the call's userProfilerTag; 0: it has none
    } coll_api;
    struct {
      const char* function;
      size_t count;
      const char* datatype;
      void* stream;
      bool captured;
      uint64_t tag;
    } p2p_api;
    struct {
      void* stream;
    } kernel_launch;
    struct {
      uint64_t number;
      const char* function;
      const void* send;
      void* receive;
      size_t count;
      int root;
      const char* datatype;
      uint8_t channels, warps;
      const char* algorithm;
      const char* protocol;
      void* parent_group;
      const char* kernel;  ///< from version 7 on, as the next two: a variant's name, or nullptr
      bool symmetric;
      uint64_t tag;
    } coll;
    struct {
      const char* function;
      void* buffer;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t channels;
      void* parent_group;
      uint64_t tag;
    } p2p;
  };
};
static_assert(sizeof(Event) == 136 && offsetof(Event, coll.parent_group) == 104 &&
              offsetof(Event, coll.tag) == 128 && offsetof(Event, coll_api.tag) == 72 &&
              offsetof(Event, p2p_api.tag) == 64 && offsetof(Event, p2p.tag) == 72);

using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

/// What the symbols ncclProfiler_v5, ncclProfiler_v6 and ncclProfiler_v7 are.
struct Plugin {
  const char* name;
  int (*init)(void** context, uint64_t comm, int* mask, const char* comm_name, int nodes, int ranks,
              int rank, Logger logger);
  int (*start_event)(void* context, void** handle, Event* event);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};
/// ncclProfiler_v4: the parameters of init have another order.
struct PluginV4 {
  const char* name;
  int (*init)(void** context, int* mask, const char* comm_name, uint64_t comm, int nodes, int ranks,
              int rank, Logger logger);
  int (*start_event)(void* context, void** handle, Event* event);
  int (*stop_event)(void* handle);
  int (*record_event_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};

}  // namespace mscclc::nccl::profiler_abi
