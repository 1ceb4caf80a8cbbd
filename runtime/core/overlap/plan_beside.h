// A plan with flags on a stream of its own, beside the GEMMs of tiles on the caller's:
//
//   gathers   plan's stream   kernel: parts arrive, flags are raised ──────── ended │ copy of A
//             caller's        GEMM own │ await f │ GEMM │ await f │ GEMM … │ join
//   sums      plan's stream   kernel: awaits flags, sends … ──────────────────────────┐
//             caller's        GEMM │ raise f │ GEMM │ raise f … GEMM own │ raise f │ join
//
// Streams may share one hardware queue (CUDA_DEVICE_MAX_CONNECTIONS=1), where what waits for a
// kernel holds up all that is put on streams later. So nothing follows the kernel of sums that
// waits for it, before all flags are on the caller's stream. That of gathers ends without the
// caller's stream, and is followed by its end, for awaits of a run that has given up: in one queue
// the GEMMs come after it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/overlap/backend.h"

namespace mscclc::overlap {

/// What a backend with a plan has of it. The job outlives it. Thread safety: one thread at a time.
class PlanBeside {
 public:
  /// `program`: of plans/overlap.
  PlanBeside(const Job& job, std::string program);
  ~PlanBeside();

  const std::vector<Tile>& tiles() const { return tiles_; }
  /// What other ranks reach: the plan's output at least, where `allocates`.
  uint8_t* reached() const { return reached_->data(); }

  /// What it has taken of the device.
  uint64_t held_bytes() const;

  /// Compiles and allocates. `reaches`: peers reach memory of the object's own. False: reported.
  [[nodiscard]] bool prepare(uint32_t instances, bool reaches, Diagnostics& diagnostics);
  /// Loads and registers; collective. False: reported.
  [[nodiscard]] bool connect(Diagnostics& diagnostics);

  /// Puts the plan on its stream, after what is on the caller's. False: reported.
  [[nodiscard]] bool launch(const void* input, void* output, const RunPlace& place,
                            Diagnostics& diagnostics);
  /// Products of what is gathered, each when its flags are raised; and a copy of it to where the
  /// run wants it, if it does. `own`: where the rank's own part lies, as own_rows(). False:
  /// reported.
  [[nodiscard]] bool multiply_after(const void* own, const RunPlace& place,
                                    Diagnostics& diagnostics);
  /// Products that the plan waits for, and their flags. `partial`, `own`: row 0 of [m, n], where
  /// those for others go, and the rank's own. False: reported.
  [[nodiscard]] bool multiply_for(void* partial, void* own, const RunPlace& place,
                                  Diagnostics& diagnostics);
  /// After a run that failed: the caller's stream waits for the plan, if that has begun.
  void join_failed(StreamHandle stream) {
    Diagnostics ignored;  // the run has reported
    (void)join(stream, ignored);
  }

 private:
  static constexpr uint32_t kOwnWords = 2;  ///< after the flags: ended, runs; of gathers

  uint32_t* word(uint32_t i) const { return reinterpret_cast<uint32_t*>(words_->data()) + i; }
  uint32_t* ended() const { return word(plan_->flags[0].count); }
  uint32_t* runs() const { return word(plan_->flags[0].count + 1); }
  bool bind(const void* input, void* output, Diagnostics& diagnostics);
  bool give_gathered(const OverlapCall& call, Diagnostics& diagnostics);
  bool join(StreamHandle stream, Diagnostics& diagnostics);
  LoadOptions load_options() const;

  const Job& job_;
  const std::string program_;
  std::vector<Tile> tiles_;
  std::shared_ptr<const Program> plan_;
  std::unique_ptr<Memory> words_;
  std::unique_ptr<Memory> reached_;
  std::unique_ptr<RegisteredBuffer> registered_;
  std::unique_ptr<Executable> executable_;
  StreamHandle side_ = nullptr;  ///< the plan's
  bool is_beside_ = false;       ///< a run's plan is on it, which nothing has joined
  BoundCall bound_;              ///< of the last run
  std::pair<const void*, void*> bound_to_;
};

}  // namespace mscclc::overlap
