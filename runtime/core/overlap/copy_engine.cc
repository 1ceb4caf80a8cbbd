// GEMMs beside copy engines, which a plan of one thread block gives orders to; see plan_beside.h.
//
//   gathers   caller's   copy own part │ GEMM own │ await f │ GEMM …
//   sums      caller's   GEMM │ raise f │ GEMM │ raise f … GEMM own │ join │ sum of parts
//
// The rank's own part is never the plan's: a copy puts it where the others' are gathered, and a
// GEMM where the others' are to be added. The sum has the whole GPU, as the GEMMs have ended.
#include "runtime/core/overlap/library_calls.h"
#include "runtime/core/overlap/plan_beside.h"

namespace mscclc::overlap {
namespace {

const char* program_of(OverlapKind kind) {
  switch (kind) {
    case OverlapKind::allgather_gemm:
      return "allgather_gemm_copy_engine";
    case OverlapKind::alltoall_gemm:
      return "alltoall_gemm_copy_engine";
    default:
      return "gemm_exchange_copy_engine";
  }
}

class CopyEngine final : public Backend {
 public:
  explicit CopyEngine(const Job& job)
      : job_(job), plan_(job, program_of(job.config.kind)), calls_(job) {}

  /// The partial sums for others.
  uint64_t workspace_bytes() const override {
    return job_.kind().sums ? message_bytes(job_.config) : 0;
  }
  uint64_t held_bytes() const override { return plan_.held_bytes(); }
  const std::vector<Tile>& tiles() const override { return plan_.tiles(); }
  bool prepare(Diagnostics& diagnostics) override {
    return plan_.prepare(1, true, diagnostics) &&
           (!to_all() || calls_.prepare(sums_of_all(),
                                        {.input = part_bytes() * job_.rank,
                                         .output = 0,
                                         .bytes = message_bytes(job_.config)},
                                        diagnostics));
  }
  bool connect(Diagnostics& diagnostics) override {
    return plan_.connect(diagnostics) && (!to_all() || calls_.load(diagnostics));
  }

  bool run(const RunPlace& place, Diagnostics& diagnostics) override {
    return job_.kind().sums ? add_up(place, diagnostics) : gather(place, diagnostics);
  }
  void join(StreamHandle stream) override { plan_.join_failed(stream); }

 private:
  bool to_all() const { return job_.config.kind == OverlapKind::gemm_allreduce; }
  uint64_t part_bytes() const { return message_bytes(job_.config) / job_.ranks; }
  uint8_t* own_place() const { return plan_.reached() + job_.rank * part_bytes(); }

  bool gather(const RunPlace& place, Diagnostics& diagnostics) {
    const bool exchanges = job_.config.kind == OverlapKind::alltoall_gemm;
    const void* const own_part =
        static_cast<const uint8_t*>(place.call.a) + (exchanges ? job_.rank * part_bytes() : 0);
    return job_.device.copy(own_place(), own_part, part_bytes(), place.stream, diagnostics) &&
           plan_.launch(exchanges ? place.call.a : own_place(), plan_.reached(), place,
                        diagnostics) &&
           plan_.multiply_after(own_rows(job_, place.call.a), place, diagnostics);
  }

  /// Of owners' sums, in place.
  CollectiveCall sums_of_all() const {
    CollectiveCall call;
    call.kind = CollectiveKind::allgather;
    call.count = job_.part_elements();
    call.dtype = message_dtype(job_.config);
    return call;
  }

  bool give_sums(uint8_t* out, StreamHandle stream, Diagnostics& diagnostics) {
    CollectiveCall call = sums_of_all();
    call.input = out + job_.rank * part_bytes();
    call.output = out;
    return calls_.call(call, stream, diagnostics);
  }

  bool add_up(const RunPlace& place, Diagnostics& diagnostics) {
    auto* const out = static_cast<uint8_t*>(place.call.out.front());
    const PartSum sum{.to = out + (to_all() ? job_.rank * part_bytes() : 0),
                      .from = plan_.reached(),
                      .parts = job_.ranks,
                      .rows = job_.config.m / job_.ranks,
                      .columns = job_.config.n.front(),
                      .dtype = job_.config.out_dtype};
    return plan_.launch(place.rest, plan_.reached(), place, diagnostics) &&
           plan_.multiply_for(place.rest, plan_.reached(), place, diagnostics) &&
           job_.streams.add_parts(sum, place.stream, diagnostics) &&
           (!to_all() || give_sums(out, place.stream, diagnostics));
  }

  const Job& job_;
  PlanBeside plan_;
  LibraryCalls calls_;
};

}  // namespace

std::unique_ptr<Backend> make_copy_engine(const Job& job) {
  return std::make_unique<CopyEngine>(job);
}

}  // namespace mscclc::overlap
