#include "runtime/core/overlap/plan_beside.h"

#include <algorithm>
#include <utility>

namespace mscclc::overlap {

PlanBeside::PlanBeside(const Job& job, std::string program)
    : job_(job),
      program_(std::move(program)),
      tiles_(make_tiles(job.config.kind, job.config.m, job.ranks, job.rank, job.choice.chunks)) {}

PlanBeside::~PlanBeside() {
  if (side_ != nullptr) job_.device.destroy_stream(side_);
}

bool PlanBeside::prepare(uint32_t instances, bool reaches, Diagnostics& diagnostics) {
  if (job_.options.programs == nullptr) {
    diagnostics.error("no-plan", {}, "there are no programs for GEMMs (OverlapOptions::programs)");
    return false;
  }
  plan_ = job_.options.programs->program(
      {.name = program_, .ranks = job_.ranks, .chunks = job_.choice.chunks, .instances = instances},
      diagnostics);
  if (plan_ == nullptr) return false;
  assign_flags(*plan_, job_.rank, job_.config, tiles_);
  side_ = job_.streams.create_urgent_stream(diagnostics);
  words_ = job_.device.allocate((plan_->flags[0].count + kOwnWords) * sizeof(uint32_t),
                                "flags of a GEMM", diagnostics);
  if (side_ == nullptr || words_ == nullptr) return false;
  if (!reaches) return true;
  reached_ =
      job_.device.allocate(message_bytes(job_.config), "what a GEMM's peers write", diagnostics);
  return reached_ != nullptr;
}

LoadOptions PlanBeside::load_options() const {
  return {.max_bytes = message_bytes(job_.config),
          .dtype = message_dtype(job_.config),
          .zero_copy = true,
          .in_order = true,
          .keeps_order = false};
}

uint64_t PlanBeside::held_bytes() const {
  const auto of_plan = memory_of(*plan_, load_options());
  return (of_plan ? of_plan->scratch : 0) + words_->bytes() +
         (reached_ != nullptr ? reached_->bytes() : 0);
}

bool PlanBeside::connect(Diagnostics& diagnostics) {
  Communicator& communicator = *job_.owner.communicator;
  executable_ = communicator.load(plan_, load_options(), diagnostics);
  if (executable_ == nullptr) return false;
  if (reached_ == nullptr) return true;
  registered_ = communicator.register_buffer(reached_->data(), reached_->bytes(), diagnostics);
  return registered_ != nullptr;
}

/// Fits the plan to a run's buffers; those of the run before need not be fitted again.
bool PlanBeside::bind(const void* input, void* output, Diagnostics& diagnostics) {
  if (bound_ && std::pair<const void*, void*>(input, output) == bound_to_) return true;
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

bool PlanBeside::launch(const void* input, void* output, const RunPlace& place,
                        Diagnostics& diagnostics) {
  if (!bind(input, output, diagnostics)) return false;
  is_beside_ = true;
  return job_.streams.order(place.stream, side_, diagnostics) &&
         executable_->launch(bound_, side_, diagnostics);
}

/// What comes on the caller's stream follows the plan.
bool PlanBeside::join(StreamHandle stream, Diagnostics& diagnostics) {
  return !std::exchange(is_beside_, false) || job_.streams.order(side_, stream, diagnostics);
}

bool PlanBeside::multiply_after(const void* own, const RunPlace& place, Diagnostics& diagnostics) {
  if (!job_.streams.raise(ended(), 1, side_, diagnostics)) return false;
  const auto waits_last = std::ranges::find_if(
      tiles_.rbegin(), tiles_.rend(), [](const Tile& tile) { return !tile.await.empty(); });
  for (const Tile& tile : tiles_) {
    for (const uint32_t& flag : tile.await) {
      const FlagWait wait{word(flag), ended(), runs(), plan_->flags[0].raises,
                          &flag == &waits_last->await.back()};
      if (!job_.streams.await(wait, place.stream, diagnostics)) return false;
    }
    if (!job_.products.run(tile, place.call, tile.own ? own : reached(), place.call.out, place.gemm,
                           place.stream, diagnostics)) {
      return false;
    }
  }
  return give_gathered(place.call, diagnostics) && join(place.stream, diagnostics);
}

bool PlanBeside::multiply_for(void* partial, void* own, const RunPlace& place,
                              Diagnostics& diagnostics) {
  for (const Tile& tile : tiles_) {
    if (!job_.products.run(tile, place.call, place.call.a, {tile.own ? own : partial}, place.gemm,
                           place.stream, diagnostics)) {
      return false;
    }
    for (const uint32_t flag : tile.raise) {
      if (!job_.streams.raise(word(flag), plan_->flags[0].raises, place.stream, diagnostics)) {
        return false;
      }
    }
  }
  return join(place.stream, diagnostics);
}

/// After the plan, so beside the last products. It is put on its stream after all that waits for
/// flags, which in one hardware queue would come after the copy, too.
bool PlanBeside::give_gathered(const OverlapCall& call, Diagnostics& diagnostics) {
  return call.gathered == nullptr ||
         job_.device.copy(call.gathered, reached(), message_bytes(job_.config), side_, diagnostics);
}

}  // namespace mscclc::overlap
