#include <algorithm>
#include <deque>

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

std::map<uint32_t, std::vector<const RanksApart::Launch*>> RanksApart::by_rank() const {
  std::map<uint32_t, std::vector<const Launch*>> all;
  for (const Launch& launch : launches_) all[launch.rank].push_back(&launch);
  for (auto& [rank, own] : all) std::ranges::stable_sort(own, {}, &Launch::in_call);
  return all;
}

namespace {

struct HookCall {
  const RanksApart::Hook* hook;
  uint32_t rank, i;
  static void run(void* self) {
    const auto* own = static_cast<HookCall*>(self);
    (*own->hook)(own->rank, own->i);
  }
};

}  // namespace

bool RanksApart::run(uint32_t times, uint32_t silent, const Hook& before, const Hook& after,
                     Diagnostics& d) const {
  std::vector<cudaStream_t> streams;
  std::deque<HookCall> hooks;
  bool good = true;
  const auto ask = [&](const Hook& hook, uint32_t rank, uint32_t i) {
    if (!hook || !good) return;
    hooks.push_back({&hook, rank, i});
    good = succeeded(cudaLaunchHostFunc(streams.back(), HookCall::run, &hooks.back()),
                     "call the host", d);
  };
  for (const auto& [rank, own] : by_rank()) {
    if (!good || rank == silent) continue;
    streams.push_back(nullptr);
    good = succeeded(cudaStreamCreateWithFlags(&streams.back(), cudaStreamNonBlocking),
                     "make a stream", d);
    for (uint32_t i = 0; good && i < times; ++i) {
      ask(before, rank, i);
      for (const Launch* launch : own) {
        if (!good || launch->plan.blocks == 0) continue;
        const int error = launch->start ? launch->start(launch->plan, streams.back())
                                        : cuda::launch(launch->plan, streams.back());
        good = succeeded(static_cast<cudaError_t>(error), "launch a rank", d);
      }
      ask(after, rank, i);
    }
  }
  good = succeeded(cudaDeviceSynchronize(), "run the ranks", d) && good;
  for (const cudaStream_t stream : streams) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  return good;
}

}  // namespace mscclc::cuda
