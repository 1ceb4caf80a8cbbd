#include "runtime/core/overlap/way.h"

namespace mscclc::overlap {
namespace {

/// Multiprocessors that the budget leaves to GEMMs; 0: all.
uint32_t left_by(const OverlapChoice& choice, const Device& device) {
  const uint32_t all = device.multiprocessors();
  return choice.budget == 0 || all <= choice.budget ? 0 : all - choice.budget;
}

std::unique_ptr<Backend> backend_of(const Job& job) {
  if (job.ranks == 1) return make_sequence(job);
  if (job.choice.backend == kCublasMp) return make_other_gemms(job);
  if (job.choice.backend == kCopyEngine) return make_copy_engine(job);
  return job.choice.backend == kFlagged ? make_flagged(job) : make_sequence(job);
}

}  // namespace

Way::Way(const WayOf& of, const OverlapChoice& choice)
    : products_(of.config, of.streams, of.provider, left_by(choice, *of.owner.device), of.failed),
      job_{of.config,  choice,    of.options, of.owner, *of.owner.device,
           of.streams, products_, of.rank,    of.ranks},
      backend_(backend_of(job_)) {}

}  // namespace mscclc::overlap
