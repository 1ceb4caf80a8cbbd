// GEMMs beside a plan whose thread blocks carry and add up; see plan_beside.h.
#include "runtime/core/overlap/plan_beside.h"

namespace mscclc::overlap {
namespace {

class Flagged final : public Backend {
 public:
  explicit Flagged(const Job& job) : job_(job), plan_(job, std::string(name(job.config.kind))) {}

  /// The partial sums of a ReduceScatter: what others reach is the object's own.
  uint64_t workspace_bytes() const override { return scatters() ? message_bytes(job_.config) : 0; }
  uint64_t held_bytes() const override { return plan_.held_bytes(); }
  const std::vector<Tile>& tiles() const override { return plan_.tiles(); }
  const void* sum_place() const override {
    return job_.config.kind == OverlapKind::gemm_allreduce ? plan_.reached() : nullptr;
  }

  bool prepare(Diagnostics& diagnostics) override {
    const uint32_t instances =
        instances_for(job_.config.kind, job_.choice.chunks, job_.choice.budget);
    return plan_.prepare(instances, !scatters(), diagnostics);
  }
  bool connect(Diagnostics& diagnostics) override { return plan_.connect(diagnostics); }

  bool run(const RunPlace& place, Diagnostics& diagnostics) override {
    if (job_.kind().sums) {
      uint8_t* const partial = scatters() ? place.rest : plan_.reached();
      void* const sum = scatters() ? place.call.out.front() : plan_.reached();
      return plan_.launch(partial, sum, place, diagnostics) &&
             plan_.multiply_for(partial, partial, place, diagnostics);
    }
    return plan_.launch(place.call.a, plan_.reached(), place, diagnostics) &&
           plan_.multiply_after(own_rows(job_, place.call.a), place, diagnostics);
  }
  void join(StreamHandle stream) override { plan_.join_failed(stream); }

 private:
  bool scatters() const { return job_.config.kind == OverlapKind::gemm_reducescatter; }

  const Job& job_;
  PlanBeside plan_;
};

}  // namespace

std::unique_ptr<Backend> make_flagged(const Job& job) { return std::make_unique<Flagged>(job); }

}  // namespace mscclc::overlap
