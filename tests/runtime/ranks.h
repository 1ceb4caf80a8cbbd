// Ranks of a plan, on the host device unless said otherwise, for tests: as threads of this process
// or as processes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/bootstrap.h"
#include "runtime/api/device.h"
#include "runtime/bootstrap/tcp/times.h"
#include "runtime/core/runner/rank_runner.h"

namespace mscclc::testing {

/// Far beyond what is needed, also under load.
inline constexpr std::chrono::milliseconds kPatience{300'000};

struct Timeouts {
  Timeouts(std::chrono::milliseconds both = kPatience) : bootstrap(both), waits(both) {}
  Timeouts(std::chrono::milliseconds bootstrap, std::chrono::milliseconds waits)
      : bootstrap(bootstrap), waits(waits) {}
  std::chrono::milliseconds bootstrap;           ///< of each step in which ranks meet
  std::chrono::milliseconds waits;               ///< of each wait of a call
  std::chrono::milliseconds silence = kSilence;  ///< of processes: then a rank counts as dead
  /// A rank that stops itself, and is killed when all others have ended: processes() only.
  std::optional<uint32_t> stopped = {};
  bool ends_process = false;  ///< CommunicatorOptions::ends_process: processes() only
};

/// What a rank does with its communicator; "" if all was well.
using RankBody = std::function<std::string(Communicator&)>;
/// The device of a rank; nullptr: reported.
using OpenDevice = std::function<std::unique_ptr<Device>(uint32_t rank, Diagnostics&)>;
/// Every rank on this machine's processor.
[[nodiscard]] std::unique_ptr<Device> open_host(uint32_t rank, Diagnostics& diagnostics);

/// How a rank that is a process has ended.
struct Outcome {
  std::string said;
  int signal = 0;  ///< that killed it
};

/// Puts something between a communicator and its bootstrap.
using Wrap = std::function<std::unique_ptr<Bootstrap>(std::unique_ptr<Bootstrap>)>;

/// Runs `body` on ranks that are threads, or processes that meet over TCP.
std::vector<std::string> threads(uint32_t ranks, const RankBody& body,
                                 const Timeouts& timeouts = {}, const OpenDevice& open = open_host);
std::vector<Outcome> processes(uint32_t ranks, const RankBody& body, const Timeouts& timeouts = {},
                               const Wrap& wrap = {}, const OpenDevice& open = open_host);
/// The same; "" if every rank said "".
std::string run_threads(uint32_t ranks, const RankBody& body, const Timeouts& timeouts = {},
                        const OpenDevice& open = open_host);
std::string run_processes(uint32_t ranks, const RankBody& body, const Timeouts& timeouts = {},
                          const OpenDevice& open = open_host);

/// Whether all others have ended by themselves and name the victim. Mostly: a rank that ends
/// because of it is gone, too, and one that hears of the victim late may miss that one first.
bool all_name(const std::vector<Outcome>& ended, uint32_t victim);

std::string text(const Diagnostics& diagnostics);

}  // namespace mscclc::testing
