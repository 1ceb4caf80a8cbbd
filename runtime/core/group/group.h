// The ranks of a communicator, and what it shares with all that it has made: bootstrap, device,
// failure, and exchanges in which every rank learns whether every rank could do its part.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/api/bootstrap.h"
#include "runtime/api/device.h"
#include "runtime/core/calls/compared_calls.h"
#include "runtime/core/group/call_records.h"
#include "runtime/core/group/failure.h"
#include "runtime/core/group/import.h"
#include "runtime/core/group/neighbours.h"
#include "runtime/core/group/running_calls.h"
#include "runtime/core/group/shared_buffers.h"
#include "runtime/support/observe/one_thread.h"

namespace mscclc {

/// Ranks that were not able to do their part of a step, and say the same of it.
struct Unable {
  std::string text;
  std::vector<uint32_t> ranks;
};

/// Thread safety: one thread at a time, the communicator's; fail() and rank() from any.
struct RankGroup {
  /// `device` and `failure` are nullptr on a rank that was not able to make them: it only
  /// reports that to the others.
  RankGroup(std::unique_ptr<Bootstrap> of, std::shared_ptr<Device> on,
            std::chrono::milliseconds patience, std::shared_ptr<Failure> reason)
      : bootstrap(std::move(of)),
        device(std::move(on)),
        timeout(patience),
        failure(std::move(reason)) {}

  const std::unique_ptr<Bootstrap> bootstrap;
  const std::shared_ptr<Device> device;
  const std::chrono::milliseconds timeout;
  const std::shared_ptr<Failure> failure;

  Neighbours neighbours;
  GroupMemory memory;
  SharedBuffers buffers;
  ComparedCalls compared;
  RunningCalls running{device, bootstrap->rank()};
  CallRecords records;
  OneThread one_thread;

  uint32_t rank() const { return bootstrap->rank(); }
  uint32_t size() const { return bootstrap->size(); }

  /// Collective: gives every rank the messages of all. `able`: this rank could make its message;
  /// otherwise the others learn the last error of `diagnostics`. False if any rank was not able:
  /// reported (peer-failed) by the others, once for those that say the same.
  [[nodiscard]] bool exchange(bool able, std::span<const uint8_t> own, std::string_view what,
                              std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics);
  /// Adds what call by name of this rank a step belongs to, where ranks have made different calls.
  void note_call(const std::string& call, Diagnostics& diagnostics) const;
  /// Collective: true on all ranks if it is on all.
  [[nodiscard]] bool agree(bool able, std::string_view what, Diagnostics& diagnostics);
  /// Blocks of this rank have given up, or were made to: learns, with the other ranks, which rank
  /// did not answer. `awaited`: ranks that they waited for. `wait`: some seconds at most for the
  /// other ranks; otherwise failure->is_open() until they have spoken and it is asked again.
  void report_hang(const std::set<uint32_t>& awaited, const std::string& why, bool wait);
  /// Ends everything, here and on the other ranks.
  void fail(const std::string& code, const std::string& why);
  /// The same, for the last error of these, which the program gets.
  void fail(const Diagnostics& diagnostics);

 private:
  /// An exchange did not come about, as the bootstrap says. `able`: this rank could do its part;
  /// otherwise `diagnostics` hold why not.
  void report_broken(bool able, Diagnostics said, Diagnostics& diagnostics) const;
  void report_unable(const std::vector<Unable>& unable, std::string_view what,
                     Diagnostics& diagnostics) const;

  std::atomic<bool> others_wait_{false};  ///< to hear of a failure
};

}  // namespace mscclc
