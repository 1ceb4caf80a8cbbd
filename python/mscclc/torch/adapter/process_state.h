// What a process has one of. torch calls functions that it knows by their names, lets go of events
// and ends workers without an object of ours that could hold it.
#pragma once

#include <mscclc.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "python/mscclc/torch/adapter/queues/event_pool.h"
#include "python/mscclc/torch/adapter/queues/worker.h"

namespace mscclc::torch_adapter {

/// From any thread.
struct ProcessState {
  /// Never destroyed: Python, or the driver, may end before what is left here.
  static ProcessState& get();

  /// What the bits of sums keep to in calls that are made now (mscclc_order_t), whatever the
  /// thread: the autograd engine makes calls in threads of its own.
  std::atomic<int32_t> order{MSCCLC_ORDER_DEFAULT};
  EventPool events;
  Worker::All workers;

  std::mutex mutex;  ///< guards what follows
  /// Groups that were made, by name: the registry of torch holds none.
  std::map<std::string, c10::intrusive_ptr<c10d::ProcessGroup>> groups;
  std::set<std::string> said;  ///< what is said once
  /// Of symmetric memory (symmetric_memory.h), which may be freed when the process ends.
  std::map<c10::DeviceType, c10::intrusive_ptr<c10::intrusive_ptr_target>> symmetric_allocators;
};

}  // namespace mscclc::torch_adapter
