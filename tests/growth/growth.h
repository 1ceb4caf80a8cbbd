// What a job does again and again, to see that nothing grows: the test does it some times, the
// recorded run a million (docs/records/recorded_runs_jobs.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ir/program/program.h"

namespace mscclc::testing {

/// Called now and then, on one rank, when all that was done so far has ended.
using Look = std::function<void(uint64_t done)>;

/// Launches one bound call of two ranks so often; looks after every `every` launches. "": all well.
std::string launch_again(const std::shared_ptr<const Program>& plan, uint64_t launches,
                         uint64_t every, const Look& look);
/// Registers a buffer, binds a call to it and drops both, so often.
std::string register_again(const std::shared_ptr<const Program>& plan, uint64_t buffers,
                           uint64_t every, const Look& look);
/// Makes a communicator of two ranks, loads, binds, launches and ends it, so often.
std::string communicate_again(const std::shared_ptr<const Program>& plan, uint64_t communicators,
                              uint64_t every, const Look& look);

}  // namespace mscclc::testing
