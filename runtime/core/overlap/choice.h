// Which backends there are, and which one serves an object, with what, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/choice/overlap/measured.h"
#include "runtime/core/overlap/config.h"

namespace mscclc::overlap {

/// Do two choices make the same runs?
inline bool serves_the_same(const OverlapChoice& one, const OverlapChoice& other) {
  return std::tie(one.backend, one.chunks, one.budget) ==
         std::tie(other.backend, other.chunks, other.budget);
}

/// Flops of a rank's GEMMs over bytes of its message.
double intensity_of(const OverlapConfig& config);

/// What `auto`, and 0 chunks or budget, may depend on.
struct ChoiceFacts {
  uint32_t ranks = 1;
  RunMode mode = RunMode::eager;
  uint32_t multiprocessors = 0;  ///< of the device; 0: any number of blocks run at once
  std::string nccl = {};         ///< OtherLibrary::missing
  std::string cublasmp = {};     ///< OtherGemmLibrary::missing
  bool given_gemm = false;       ///< the caller multiplies
  bool one_queue = false;        ///< all streams share one hardware queue (has_one_queue())
  std::span<const MeasuredTable> own = {};  ///< asked first
  std::span<const MeasuredChoice> rows = measured_choices();
};

/// Has the user given a GPU's streams one hardware queue? By CUDA_DEVICE_MAX_CONNECTIONS=1, as
/// frameworks do.
bool has_one_queue();

/// nullopt: reported (bad-call): an unknown backend, with all that there are; one that is not
/// there, and why; an order or a budget that it cannot keep. REQUIRES: check_config().
std::optional<OverlapChoice> choose(const OverlapConfig& config, const ChoiceFacts& facts,
                                    Diagnostics& diagnostics);

/// The same of a checked config, as on GPUs that have room, and all libraries. `own`: tables that
/// are asked before what is compiled in. nullopt: reported.
std::optional<OverlapChoice> choose_on_gpus(const OverlapConfig& config, uint32_t ranks,
                                            RunMode mode, std::span<const MeasuredTable> own,
                                            Diagnostics& diagnostics);

/// "copy_engine, chunks 2, budget 1"
std::string text_of(const OverlapChoice& choice);

/// Runs of plans with flags that may be under way at once on a device: each leaves room for the
/// others' blocks, and all for GEMMs.
inline constexpr uint32_t kAtOnce = 3;
/// The most multiprocessors that a plan may hold; 0: any number.
constexpr uint32_t most_budget(uint32_t multiprocessors) { return multiprocessors / (kAtOnce + 1); }

/// `launch instances` of kFlagged's plan that holds at most `budget` blocks. REQUIRES: it has room
/// for one.
uint32_t instances_for(OverlapKind kind, uint32_t chunks, uint32_t budget);

}  // namespace mscclc::overlap
