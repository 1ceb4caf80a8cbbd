// A program that brings its plan ready made, and links of the runtime //runtime:ready_plans only:
// two ranks add up by the plan of a file, once by the communicator and once by name.
//
//   ready_plans PLAN    an allreduce of 2 ranks
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "runtime/api/plan.h"
#include "runtime/api/plan_registry.h"

namespace mscclc {
namespace {

constexpr uint32_t kRanks = 2;
constexpr size_t kElements = 1024;

bool adds_up(const std::vector<float>& output) {
  for (const float element : output) {
    if (element != 3) return false;
  }
  return true;
}

/// The plan as it is.
bool add_by_plan(Communicator& communicator, Device& device, const std::string& json,
                 const std::vector<float>& input, Diagnostics& diagnostics) {
  std::vector<float> output(kElements);
  const auto plan = load_plan(json, "the plan", diagnostics);
  const auto executable = plan ? communicator.load(plan, {}, diagnostics) : nullptr;
  if (executable == nullptr) return false;
  const BoundCall call = executable->bind(
      {.bytes = sizeof(float) * kElements, .input = input.data(), .output = output.data()},
      diagnostics);
  const StreamHandle stream = device.create_stream(diagnostics);
  return call && executable->launch(call, stream, diagnostics) &&
         device.synchronize(stream, diagnostics) && adds_up(output);
}

/// The plan that a registry picks.
bool add_by_name(Communicator& communicator, Device& device, const std::string& json,
                 const std::vector<float>& input, Diagnostics& diagnostics) {
  std::vector<float> output(kElements);
  const auto registry = PlanRegistry::create({}, diagnostics);
  if (registry == nullptr || !registry->register_plan(json, "mine", diagnostics)) return false;
  const auto collectives = Collectives::create(communicator, registry, {}, diagnostics);
  const StreamHandle stream = device.create_stream(diagnostics);
  return collectives != nullptr &&
         collectives->call({.kind = CollectiveKind::allreduce,
                            .count = kElements,
                            .input = input.data(),
                            .output = output.data()},
                           stream, diagnostics) &&
         device.synchronize(stream, diagnostics) && adds_up(output);
}

/// Rank 0 adds 1, rank 1 adds 2.
bool run_rank(uint32_t rank, std::unique_ptr<Bootstrap> bootstrap, const std::string& json,
              Diagnostics& diagnostics) {
  const std::shared_ptr<Device> device = make_host_device(diagnostics);
  if (device == nullptr) return false;
  const auto communicator = Communicator::create(std::move(bootstrap), device, {}, diagnostics);
  const std::vector<float> input(kElements, static_cast<float>(rank + 1));
  return communicator != nullptr && add_by_plan(*communicator, *device, json, input, diagnostics) &&
         add_by_name(*communicator, *device, json, input, diagnostics);
}

int run(const std::string& json) {
  auto bootstraps = make_in_process_bootstraps(kRanks, std::chrono::seconds(60));
  std::vector<Diagnostics> diagnostics(kRanks);
  std::vector<char> right(kRanks);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kRanks; ++r) {
    threads.emplace_back(
        [&, r] { right[r] = run_rank(r, std::move(bootstraps[r]), json, diagnostics[r]); });
  }
  int wrong = 0;
  for (uint32_t r = 0; r < kRanks; ++r) {
    threads[r].join();
    wrong += right[r] ? 0 : 1;
    std::fputs(render_text(diagnostics[r], Sources(), 100).c_str(), stderr);
  }
  if (wrong == 0) std::puts("added up");
  return wrong;
}

}  // namespace
}  // namespace mscclc

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::ifstream file(arguments[1]);
  return mscclc::run({std::istreambuf_iterator<char>(file), {}});
}
