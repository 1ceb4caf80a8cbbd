// A collective, then GEMMs; or GEMMs, then a collective: by this library's plans, or another
// library's. One rank only multiplies.
#include "runtime/core/overlap/library_calls.h"

namespace mscclc::overlap {
namespace {

class Sequence final : public Backend {
 public:
  explicit Sequence(const Job& job)
      : job_(job),
        tiles_(make_tiles(job.config.kind, job.config.m, job.ranks, job.rank, job.choice.chunks)),
        own_(job) {}

  uint64_t workspace_bytes() const override {
    const bool in_out = job_.ranks == 1 || job_.config.kind == OverlapKind::gemm_allreduce;
    return in_out ? 0 : message_bytes(job_.config);
  }
  const std::vector<Tile>& tiles() const override { return tiles_; }
  bool prepare(Diagnostics& diagnostics) override {
    if (job_.ranks == 1 || job_.choice.backend != kSerial) return true;
    return own_.prepare(call_of(nullptr, nullptr), offsets(), diagnostics);
  }

  bool connect(Diagnostics& diagnostics) override {
    if (job_.ranks == 1) return true;
    if (job_.choice.backend == kSerial) return own_.load(diagnostics);
    other_ = job_.options.nccl.make(*job_.owner.communicator, diagnostics);
    return other_ != nullptr;  // or all ranks have none
  }
  void abort() override {
    if (other_ != nullptr) other_->abort();
  }

  bool run(const RunPlace& place, Diagnostics& diagnostics) override {
    if (job_.ranks == 1) return run_alone(place, diagnostics);
    return job_.kind().sums ? add_up(place, diagnostics) : gather(place, diagnostics);
  }

 private:
  /// The same number of chunks gives the same bits as plans with flags do, which add up in the
  /// order of the ranks.
  std::optional<SumOrder> order() const {
    const SumOrder asked = job_.config.order.value_or(kDefaultOrder);
    return job_.config.chunks != 0 && serves(SumOrder::ranks, asked) ? SumOrder::ranks : asked;
  }

  /// The message, in place or beside it the other buffer: a part, where not all is exchanged.
  LibraryCalls::Offsets offsets() const {
    const uint64_t message = message_bytes(job_.config), part = message / job_.ranks;
    switch (job_.config.kind) {
      case OverlapKind::allgather_gemm:
        return {.input = message, .output = 0, .bytes = message + part};
      case OverlapKind::gemm_reducescatter:
        return {.input = 0, .output = message, .bytes = message + part};
      case OverlapKind::gemm_allreduce:
        return {.input = 0, .output = 0, .bytes = message};
      default:
        return {.input = 0, .output = message, .bytes = 2 * message};
    }
  }

  CollectiveCall call_of(const void* input, void* output) const {
    const bool whole = job_.config.kind == OverlapKind::gemm_allreduce;
    CollectiveCall call;
    call.kind = job_.kind().collective;
    call.count = whole ? job_.config.m * row_elements(job_.config) : job_.part_elements();
    call.dtype = message_dtype(job_.config);
    if (job_.kind().sums) call.order = order();
    call.input = input;
    call.output = output;
    return call;
  }

  bool exchange(const CollectiveCall& call, StreamHandle stream, Diagnostics& diagnostics) {
    if (other_ != nullptr) return other_->call(call, stream, diagnostics);
    return own_.call(call, stream, diagnostics);
  }

  bool multiply(const RunPlace& place, const void* a, const std::vector<void*>& d,
                Diagnostics& diagnostics) {
    for (const Tile& tile : tiles_) {
      if (!job_.products.run(tile, place.call, a, d, place.gemm, place.stream, diagnostics)) {
        return false;
      }
    }
    return true;
  }

  bool run_alone(const RunPlace& place, Diagnostics& diagnostics) {
    const OverlapCall& call = place.call;
    const uint64_t bytes = message_bytes(job_.config);
    return multiply(place, call.a, call.out, diagnostics) &&
           (call.gathered == nullptr ||
            job_.device.copy(call.gathered, call.a, bytes, place.stream, diagnostics));
  }

  bool gather(const RunPlace& place, Diagnostics& diagnostics) {
    void* const gathered = place.call.gathered != nullptr ? place.call.gathered : place.rest;
    return exchange(call_of(place.call.a, gathered), place.stream, diagnostics) &&
           multiply(place, gathered, place.call.out, diagnostics);
  }

  bool add_up(const RunPlace& place, Diagnostics& diagnostics) {
    void* const out = place.call.out.front();
    const bool in_place = job_.config.kind == OverlapKind::gemm_allreduce;
    void* const partial = in_place ? out : place.rest;
    return multiply(place, place.call.a, {partial}, diagnostics) &&
           exchange(call_of(partial, out), place.stream, diagnostics);
  }

  const Job& job_;
  const std::vector<Tile> tiles_;
  LibraryCalls own_;
  std::unique_ptr<OtherCollectives> other_;  ///< nullptr: this library's
};

}  // namespace

std::unique_ptr<Backend> make_sequence(const Job& job) { return std::make_unique<Sequence>(job); }

const void* own_rows(const Job& job, const void* a) {
  if (job.config.kind == OverlapKind::alltoall_gemm) return a;
  const uint64_t before = job.rank * job.part_elements() * mscclc::info(job.config.a_dtype).bytes;
  return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(a) - before);
}

}  // namespace mscclc::overlap
