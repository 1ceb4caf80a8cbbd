#include <algorithm>
#include <map>

#include "executor/cuda/kernel.h"
#include "executor/cuda/testing/memory.h"
#include "executor/cuda/testing/ranks_apart.h"
#include "executor/short_program.h"

namespace mscclc::cuda {

using device::LaunchPlan;

void RanksApart::add(uint32_t rank, uint32_t in_call, const LaunchPlan& plan, Start start) {
  launches_.push_back({rank, in_call, plan, nullptr, std::move(start)});
}

bool RanksApart::add_short(uint32_t rank, uint32_t in_call, const LaunchPlan& plan,
                           const uint8_t* programs) {
  auto made = std::make_unique<device::ShortProgram>();
  LaunchPlan own = plan;
  own.programs = programs;
  own.in_short = made.get();
  if (!make_short(own, *made) || !has_fast_kernel(own)) return false;
  launches_.push_back({rank, in_call, own, std::move(made), {}});
  return true;
}

bool RanksApart::all_short() const {
  return !empty() &&
         std::ranges::all_of(launches_, [](const Launch& l) { return l.in_short != nullptr; });
}

bool RanksApart::run(uint32_t silent, Diagnostics& d) const {
  std::vector<const Launch*> in_order;
  for (const Launch& launch : launches_) in_order.push_back(&launch);
  std::ranges::stable_sort(in_order, {}, &Launch::in_call);
  std::map<uint32_t, cudaStream_t> streams;
  bool good = true;
  for (const Launch* launch : in_order) {
    if (!good || launch->rank == silent || launch->plan.blocks == 0) continue;
    const auto [stream, fresh] = streams.emplace(launch->rank, nullptr);
    good = !fresh || succeeded(cudaStreamCreateWithFlags(&stream->second, cudaStreamNonBlocking),
                               "make a stream", d);
    if (!good) continue;
    const int error = launch->start ? launch->start(launch->plan, stream->second)
                                    : cuda::launch(launch->plan, stream->second);
    good = succeeded(static_cast<cudaError_t>(error), "launch a rank", d);
  }
  good = succeeded(cudaDeviceSynchronize(), "run the ranks", d) && good;
  for (const auto& [rank, stream] : streams) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  return good;
}

}  // namespace mscclc::cuda
