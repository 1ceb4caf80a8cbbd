// A plan with flags on a stream of its own, beside the GEMMs of tiles on the caller's:
//
//   gathers   plan's stream   kernel: parts arrive, flags are raised ──────── ended
//             caller's        GEMM own │ await f │ GEMM │ await f │ GEMM … │ join
//   sums      plan's stream   kernel: awaits flags, sends, adds up ──────────────────┐
//             caller's        GEMM │ raise f │ GEMM │ raise f … GEMM own │ raise f │ join
//
// Streams may share one hardware queue (CUDA_DEVICE_MAX_CONNECTIONS=1), where what waits for a
// kernel holds up all that is put on streams later. So nothing follows the kernel of sums that
// waits for it, before all flags are on the caller's stream. That of gathers ends without the
// caller's stream, and is followed by its end, for awaits of a run that has given up: in one queue
// the GEMMs come after it.
#include <algorithm>

#include "runtime/core/overlap/backend.h"

namespace mscclc::overlap {
namespace {

class Flagged final : public Backend {
 public:
  explicit Flagged(const Job& job)
      : job_(job),
        tiles_(make_tiles(job.config.kind, job.config.m, job.ranks, job.rank, job.choice.chunks)) {}
  ~Flagged() override {
    if (side_ != nullptr) job_.device.destroy_stream(side_);
  }

  /// The partial sums of a ReduceScatter: what others reach is the object's own.
  uint64_t workspace_bytes() const override {
    return job_.config.kind == OverlapKind::gemm_reducescatter ? message_bytes(job_.config) : 0;
  }
  const std::vector<Tile>& tiles() const override { return tiles_; }
  const void* sum_place() const override {
    return job_.config.kind == OverlapKind::gemm_allreduce ? reached_->data() : nullptr;
  }

  bool prepare(Diagnostics& diagnostics) override {
    const uint32_t instances =
        instances_for(job_.config.kind, job_.choice.chunks, job_.choice.budget);
    if (job_.options.programs == nullptr) {
      diagnostics.error("no-plan", {},
                        "there are no programs for GEMMs (OverlapOptions::programs)");
      return false;
    }
    plan_ = job_.options.programs->program(job_.config.kind, job_.ranks, job_.choice.chunks,
                                           instances, diagnostics);
    if (plan_ == nullptr) return false;
    assign_flags(*plan_, job_.rank, job_.config, tiles_);
    side_ = job_.streams.create_urgent_stream(diagnostics);
    words_ = job_.device.allocate((plan_->flags[0].count + kOwnWords) * sizeof(uint32_t),
                                  "flags of a GEMM", diagnostics);
    if (side_ == nullptr || words_ == nullptr) return false;
    if (job_.config.kind == OverlapKind::gemm_reducescatter) return true;
    reached_ =
        job_.device.allocate(message_bytes(job_.config), "what a GEMM's peers write", diagnostics);
    return reached_ != nullptr;
  }

  bool connect(Diagnostics& diagnostics) override {
    Communicator& communicator = *job_.owner.communicator;
    executable_ = communicator.load(plan_,
                                    {.max_bytes = message_bytes(job_.config),
                                     .dtype = message_dtype(job_.config),
                                     .zero_copy = true},
                                    diagnostics);
    if (executable_ == nullptr) return false;
    if (reached_ == nullptr) return true;
    registered_ = communicator.register_buffer(reached_->data(), reached_->bytes(), diagnostics);
    return registered_ != nullptr;
  }

  bool run(const RunPlace& place, Diagnostics& diagnostics) override {
    return bind(place, diagnostics) && job_.streams.order(place.stream, side_, diagnostics) &&
           executable_->launch(bound_, side_, diagnostics) &&
           (job_.kind().sums ? multiply_for(place, diagnostics)
                             : multiply_after(place, diagnostics)) &&
           give_gathered(place, diagnostics);
  }

 private:
  static constexpr uint32_t kOwnWords = 2;  ///< after the flags: ended, runs; of gathers

  uint32_t* word(uint32_t i) const { return reinterpret_cast<uint32_t*>(words_->data()) + i; }
  uint32_t* ended() const { return word(plan_->flags[0].count); }
  uint32_t* runs() const { return word(plan_->flags[0].count + 1); }

  /// The plan's buffers in a run: input, then output.
  std::pair<const void*, void*> buffers(const RunPlace& place) const {
    switch (job_.config.kind) {
      case OverlapKind::gemm_reducescatter:
        return {place.rest, place.call.out.front()};
      case OverlapKind::gemm_allreduce:
        return {reached_->data(), reached_->data()};
      default:
        return {place.call.a, reached_->data()};
    }
  }

  /// Fits the plan to a run's buffers; those of the run before need not be fitted again.
  bool bind(const RunPlace& place, Diagnostics& diagnostics) {
    const auto [input, output] = buffers(place);
    if (bound_ && std::pair(input, output) == bound_to_) return true;
    const FlagArray& array = plan_->flags[0];
    const CallFlags flags[] = {{.name = array.name, .words = word(0), .count = array.count}};
    bound_ = executable_->bind({.bytes = message_bytes(job_.config),
                                .dtype = message_dtype(job_.config),
                                .input = input,
                                .output = output,
                                .registered = true,
                                .flags = flags,
                                .budget = job_.choice.budget},
                               diagnostics);
    bound_to_ = {input, output};
    return static_cast<bool>(bound_);
  }

  bool multiply_after(const RunPlace& place, Diagnostics& diagnostics) {
    const void* const own = own_rows(job_, place.call.a);
    if (!job_.streams.raise(ended(), 1, side_, diagnostics)) return false;
    for (const Tile& tile : tiles_) {
      for (const uint32_t flag : tile.await) {
        const FlagWait wait{word(flag), ended(), runs(), plan_->flags[0].raises};
        if (!job_.streams.await(wait, place.stream, diagnostics)) return false;
      }
      const void* const a = tile.own ? own : reached_->data();
      if (!job_.products.run(tile, place.call, a, place.call.out, place.gemm, place.stream,
                             diagnostics)) {
        return false;
      }
    }
    return job_.streams.order(side_, place.stream, diagnostics) &&
           job_.streams.raise(runs(), 1, place.stream, diagnostics);
  }

  bool multiply_for(const RunPlace& place, Diagnostics& diagnostics) {
    void* const partial = const_cast<void*>(buffers(place).first);
    for (const Tile& tile : tiles_) {
      if (!job_.products.run(tile, place.call, place.call.a, {partial}, place.gemm, place.stream,
                             diagnostics)) {
        return false;
      }
      for (const uint32_t flag : tile.raise) {
        if (!job_.streams.raise(word(flag), plan_->flags[0].raises, place.stream, diagnostics)) {
          return false;
        }
      }
    }
    return job_.streams.order(side_, place.stream, diagnostics);
  }

  bool give_gathered(const RunPlace& place, Diagnostics& diagnostics) {
    return place.call.gathered == nullptr ||
           job_.device.copy(place.call.gathered, reached_->data(), message_bytes(job_.config),
                            place.stream, diagnostics);
  }

  const Job& job_;
  std::vector<Tile> tiles_;
  std::shared_ptr<const Program> plan_;
  std::unique_ptr<Memory> words_;
  std::unique_ptr<Memory> reached_;  ///< by peers: what is gathered, or summed up
  std::unique_ptr<RegisteredBuffer> registered_;
  std::unique_ptr<Executable> executable_;
  StreamHandle side_ = nullptr;  ///< the plan's
  BoundCall bound_;              ///< of the last run
  std::pair<const void*, void*> bound_to_;
};

}  // namespace

std::unique_ptr<Backend> make_flagged(const Job& job) { return std::make_unique<Flagged>(job); }

}  // namespace mscclc::overlap
