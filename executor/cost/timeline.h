// When each step of a plan begins and ends on a machine: a simulation of events in virtual time.
//
// It walks over the same lowered steps as the simulator's blocks (executor/simulator), but moves no
// data, so that a call of a gigabyte costs as little as one of a kilobyte: what a step takes
// follows from its operands (work.h). Nor does it use the simulator's fibers: these run in any
// order that a schedule allows, and here the order is that of virtual time.
//
//  - A block does its steps one after the other. A step takes what its threads take, or what its
//    share of links and memories takes, whichever ends last.
//  - What is sent arrives a latency after it has left. A step that polls packets goes on as soon as
//    the first have come, and ends when the last have.
//  - A rank begins its next call when all its blocks have ended the last one.
//  - Requests to a rank's proxy are served one after the other; so are copies by copy engines.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/lower.h"
#include "ir/diagnostics/diagnostic.h"
#include "plans/format/machines/machine.h"

namespace mscclc::cost {

/// What time on the critical path is spent on.
enum class Cause : uint8_t { launch, latency, link, block, sync, proxy };
inline constexpr std::string_view kCauseNames[] = {"launch", "latency", "link",
                                                   "block",  "sync",    "proxy"};
inline constexpr size_t kCauses = std::size(kCauseNames);

inline constexpr uint32_t kNoRecord = 0xffffffffu;

/// One step of a block in the first call, in a round if it is in a pipeline. Times in nanoseconds
/// since the launch.
struct StepRecord {
  uint32_t rank = 0, block = 0;
  uint32_t source = 0;  ///< the op's index among the rank's ops in the IR
  uint32_t round = 0;
  uint32_t hops = 0;            ///< messages on the longest way to its end
  uint32_t before = kNoRecord;  ///< the block's last step
  uint32_t waited = kNoRecord;  ///< whose message it has waited for before its work; none: no wait
  uint32_t last = kNoRecord;    ///< polls: whose packets came last, after all else was done
  Cause cause = Cause::sync;    ///< what its work was spent on
  device::StepKind kind = device::StepKind::sync;
  uint64_t bytes = 0;      ///< that it stores, at all destinations together
  double begin = 0;        ///< the step before has ended
  double waited_sent = 0;  ///< when the message left that it has waited for
  double work = 0;         ///< what it waits for is there
  double done = 0;         ///< its own work is done
  double last_sent = 0;    ///< when the last packets left
  double arrived = 0;      ///< when they came
  double end = 0;
};

/// A message between two steps of the first call, or a semaphore that one frees for the other:
/// whether the receiver had to wait for it or not. Times in nanoseconds since the launch.
struct Arrow {
  uint32_t from = kNoRecord, to = kNoRecord;  ///< records
  bool packets = false;                       ///< else a signal or a semaphore
  double sent = 0, came = 0;
};

/// What is in the timeline beside the records. Arrows cost time and memory.
enum class Detail : uint8_t { steps, arrows };

struct Timeline {
  double alone_ns = 0;                ///< of a call before which nothing ran
  double back_to_back_ns = 0;         ///< of each further call, when calls follow one another
  uint32_t hops = 0;                  ///< messages on the longest way through a call
  uint64_t events = 0;                ///< of the simulation: what it costs, on any computer
  uint32_t final_record = kNoRecord;  ///< the step of the first call that ends last
  std::vector<StepRecord> records;    ///< of the first call
  std::vector<uint64_t> loads;        ///< by shared_index(): bytes of one call
  // With Detail::arrows.
  std::vector<Arrow> arrows;
  std::vector<std::vector<uint32_t>> meetings;  ///< the steps that met at a barrier
};

/// Runs calls of a plan. Errors: plan-hangs. REQUIRES: `device` is lowered and fitted to `call`,
/// `machine` has as many GPUs as the plan has ranks.
[[nodiscard]] std::optional<Timeline> run_timeline(const Program& program,
                                                   const DeviceProgram& device, const Call& call,
                                                   const Machine& machine, uint32_t calls,
                                                   Diagnostics& diagnostics,
                                                   Detail detail = Detail::steps);

}  // namespace mscclc::cost
