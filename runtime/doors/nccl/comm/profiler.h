// NCCL_PROFILER_PLUGIN: calls that plans serve, as events of NCCL's profiler interface, so that
// viewers of NCCL's calls show them, with the plan's name in the place of the algorithm. What NCCL
// serves it shows itself.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/doors/nccl/abi/profiler.h"

namespace mscclc::nccl {

/// What a plug-in learns of a communicator.
struct ProfiledComm {
  uint64_t id = 0;  ///< the same on all ranks
  std::string name;
  int nodes = 1, ranks = 1, rank = 0, ordinal = 0;
};

/// What it learns of a call; the texts must live as long as its events.
struct ProfiledCall {
  const char* function = "";  ///< "AllReduce"
  bool is_message = false;
  size_t kind = 0;  ///< calls of one kind are numbered; below Profiler::kKinds
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  const char* datatype = "";  ///< "ncclFloat32"
  int root = 0;               ///< or the peer
  void* stream = nullptr;
  bool captured = false;
  const char* plan = "";
  uint64_t tag = 0;  ///< the caller's userProfilerTag; 0: it has none
};

/// The plug-in, for one communicator. Thread safety: one thread at a time.
class Profiler {
 public:
  static constexpr size_t kKinds = 16;

  /// nullptr: none is asked for, or it cannot be used, which NCCL_DEBUG=INFO says.
  static std::unique_ptr<Profiler> create(const ProfiledComm& comm);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

 private:
  friend class GroupEvents;
  friend class CallEvents;
  Profiler() = default;
  bool wants(uint64_t bits) const;
  /// nullptr: the plug-in wants no such events, or takes none.
  void* start(profiler_abi::Event& event, uint64_t wanted_for);
  void stop(void* handle);

  profiler_abi::Plugin plugin_{};
  bool knows_api_ = false;  ///< from version 5 on
  int rank_ = 0;
  void* context_ = nullptr;
  int mask_ = 0;  ///< the plug-in may change it at any time
  std::array<uint64_t, kKinds> numbers_{};
};

/// A communicator's calls of one group, while it lives.
class GroupEvents {
 public:
  GroupEvents(Profiler& profiler, bool captured);
  ~GroupEvents();
  GroupEvents(const GroupEvents&) = delete;
  GroupEvents& operator=(const GroupEvents&) = delete;

 private:
  friend class CallEvents;
  Profiler& profiler_;
  void* api_ = nullptr;
  void* group_ = nullptr;
};

/// A call, while it is launched.
class CallEvents {
 public:
  CallEvents(GroupEvents& group, const ProfiledCall& call);
  ~CallEvents();
  CallEvents(const CallEvents&) = delete;
  CallEvents& operator=(const CallEvents&) = delete;

 private:
  Profiler& profiler_;
  void* api_ = nullptr;
  void* call_ = nullptr;
  void* launch_ = nullptr;
};

}  // namespace mscclc::nccl
