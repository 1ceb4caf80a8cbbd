// Runs the ranks of a part of gpu_check: as processes, one a GPU, or as threads of one process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/api/device.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {

struct StageOptions {
  uint32_t ranks = 2;
  uint32_t gpus = 0;        ///< rank r runs on GPU r % gpus
  bool threads = false;     ///< ranks are threads of one process
  bool host = false;        ///< no GPUs, but this machine's processor: tries the parts themselves
  std::string filter;       ///< plans whose name contains it
  std::string folder;       ///< kernels: of plans, as 'mscclc library --kernels' writes it
  uint64_t most = 1 << 20;  ///< plans, bits: bytes of the largest message
  bool graph = false;       ///< plans, bits: calls are launched by graphs
  uint64_t calls = 0;       ///< soak
  uint64_t queued = 100;    ///< soak: calls whose copies the host makes that are queued at most
  uint64_t cycles = 0;      ///< cycles: of graphs, and of memory handles
  uint64_t seconds = 0;     ///< begin nothing new after about so long; 0: as long as it takes
  uint64_t seed = 1;        ///< soak, bits
  std::chrono::seconds patience{20};  ///< of ranks that wait for each other
};

/// Runs `body` on all ranks, each with its GPU; "" if all was well at every rank. Timeouts: those
/// of the options, unless given.
std::string run_ranks(const StageOptions& options, const RankBody& body,
                      std::optional<Timeouts> timeouts = {});
/// The device of a rank.
[[nodiscard]] std::unique_ptr<Device> open_device(const StageOptions& options, uint32_t rank,
                                                  Diagnostics& diagnostics);

/// What ends a part that has run long enough, at the same place on all ranks.
class TimeLimit {
 public:
  explicit TimeLimit(uint64_t seconds) : seconds_(seconds) {}
  /// For a process that runs ranks, and is none itself.
  bool over() const { return seconds_ != 0 && seconds() > static_cast<double>(seconds_); }
  /// Collective: sets `over` on all ranks if it is on one. False: the ranks could not talk.
  [[nodiscard]] bool ask(Communicator& communicator, bool& over, Diagnostics& diagnostics);
  double seconds() const;  ///< since the begin

 private:
  const uint64_t seconds_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// How many of a part's items came out right, came out wrong, or were left out for the time.
struct Tally {
  uint64_t right = 0, wrong = 0, late = 0;
};

/// Tries items 0 to count − 1, `body` for each on all ranks. Ranks serve one item after the other
/// until one goes wrong: that leaves a communicator that is of no use, and new ranks continue after
/// it. `failed`, in this process, is called for each such item. Begins none after options.seconds.
Tally run_series(const StageOptions& options, size_t count,
                 const std::function<std::string(Communicator&, size_t item)>& body,
                 const std::function<void(size_t item, const std::string& fault)>& failed);

/// "2 ranks as processes", for the last line of a part.
std::string text(const StageOptions& options);
/// What the last line of a part adds if it has left out some; "".
std::string left_out(uint64_t count);

}  // namespace mscclc::testing
