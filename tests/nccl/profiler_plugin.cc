// A profiler plug-in for tests, which records what it gets. PLUGIN_VERSION: 7, 6 or 4.
#include <fmt/format.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/doors/nccl/abi/profiler.h"

namespace {

using mscclc::nccl::profiler_abi::Event;
using namespace mscclc::nccl::profiler_abi;

std::mutex mutex;
std::vector<uint64_t> types;  // of events, by handle - 1
std::string lines;

void* handle_of(size_t number) { return reinterpret_cast<void*>(number); }
size_t number_of(void* handle) { return reinterpret_cast<size_t>(handle); }

void say(const std::string& line) { lines += line + '\n'; }

/// Version 7's events have a tag.
std::string tag_text(uint64_t tag) { return PLUGIN_VERSION < 7 ? "" : fmt::format(" tag {}", tag); }

std::string text_of(const Event& e) {
  switch (PLUGIN_VERSION == 4 ? e.type & 0xff : e.type) {
    case kGroupApi:
      return fmt::format("GroupApi captured {} depth {}", e.group_api.captured, e.group_api.depth);
    case kCollApi:
      return fmt::format("CollApi {} count {} {} root {} captured {}{}", e.coll_api.function,
                         e.coll_api.count, e.coll_api.datatype, e.coll_api.root,
                         e.coll_api.captured, tag_text(e.coll_api.tag));
    case kP2pApi:
      return fmt::format("P2pApi {} count {} {}{}", e.p2p_api.function, e.p2p_api.count,
                         e.p2p_api.datatype, tag_text(e.p2p_api.tag));
    case kKernelLaunch:
      return "KernelLaunch";
    case kGroup:
      return "Group";
    case kColl:
      return fmt::format("Coll {} #{} {} {} of {} in {}{}", e.coll.function, e.coll.number,
                         e.coll.datatype, e.coll.protocol, e.coll.algorithm,
                         PLUGIN_VERSION == 4 ? 0 : number_of(e.coll.parent_group),
                         tag_text(e.coll.tag));
    case kP2p:
      return fmt::format("P2p {} peer {} count {}{}", e.p2p.function, e.p2p.peer, e.p2p.count,
                         tag_text(e.p2p.tag));
  }
  return "unknown";
}

[[maybe_unused]] int init(void** context, uint64_t, int* mask, const char* name, int nodes,
                          int ranks, int rank, Logger logger) {
  const std::lock_guard lock(mutex);
  *mask = 0xfff;
  *context = handle_of(static_cast<size_t>(rank) + 1);
  say(fmt::format("init '{}' nodes {} ranks {} rank {}", name, nodes, ranks, rank));
  logger(3, 1, __FILE__, __LINE__, "rank %d is profiled", rank);
  return ranks == 3 ? 1 : 0;  // it refuses one
}
[[maybe_unused]] int init_v4(void** context, int* mask, const char* name, uint64_t comm, int nodes,
                             int ranks, int rank, Logger logger) {
  return init(context, comm, mask, name, nodes, ranks, rank, logger);
}
int start_event(void* context, void** handle, Event* event) {
  const std::lock_guard lock(mutex);
  types.push_back(event->type);
  *handle = handle_of(types.size());
  say(fmt::format("{}: start {} in {}: {}", number_of(context) - 1, types.size(),
                  number_of(event->parent), text_of(*event)));
  return 0;
}
int stop_event(void* handle) {
  const std::lock_guard lock(mutex);
  say(fmt::format("stop {}", number_of(handle)));
  return 0;
}
int record_event_state(void* handle, int state, void*) {
  const std::lock_guard lock(mutex);
  say(fmt::format("state {} of {}", state, number_of(handle)));
  return 0;
}
int finalize(void* context) {
  const std::lock_guard lock(mutex);
  say(fmt::format("finalize {}", number_of(context) - 1));
  return 0;
}

}  // namespace

extern "C" {
#if PLUGIN_VERSION == 4
extern const PluginV4 ncclProfiler_v4;
const PluginV4 ncclProfiler_v4 = {"test",  init_v4, start_event, stop_event, record_event_state,
                                  finalize};
#elif PLUGIN_VERSION == 7
extern const Plugin ncclProfiler_v7;
const Plugin ncclProfiler_v7 = {"test",  init, start_event, stop_event, record_event_state,
                                finalize};
#else
extern const Plugin ncclProfiler_v6;
const Plugin ncclProfiler_v6 = {"test",  init, start_event, stop_event, record_event_state,
                                finalize};
#endif
/// What it has recorded, which it forgets.
const char* recordedLines();
const char* recordedLines() {
  static std::string given;
  const std::lock_guard lock(mutex);
  given = std::exchange(lines, "");
  types.clear();
  return given.c_str();
}
}
