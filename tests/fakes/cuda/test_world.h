// A fake driver with processes and devices on it, for tests of the CUDA device.
//
//   World world({.devices = 2});
//   auto a = world.open(0, 0);   // process 0, cuda:0
//   auto b = world.open(1, 1);   // process 1, cuda:1
//   world.fake.enter(0); ...
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/launch.h"
#include "runtime/devices/cuda/device.h"
#include "tests/fakes/cuda/fake_driver.h"
#include "tests/fakes/cuda/fake_fds.h"

namespace mscclc::cuda {

/// A launch of so many blocks, which do nothing.
inline device::LaunchPlan launch_of(uint32_t blocks, uint32_t threads, uint32_t most_blocks = 0,
                                    uint32_t ranks_here = 1) {
  device::LaunchPlan plan;
  plan.blocks = blocks;
  plan.threads = threads;
  plan.most_blocks = most_blocks;
  plan.ranks_here = ranks_here;
  return plan;
}

struct World {
  explicit World(FakeOptions options = {}) : fake(options) {}

  /// Opens a GPU in a process, in which the calling thread then is.
  [[nodiscard]] std::unique_ptr<CudaDevice> open(int process, int ordinal, Diagnostics& diagnostics,
                                                 bool multicast = false) {
    fake.enter(process);
    Exchange exchange = {.process = {}, .server = fds, .fetch = {}};
    exchange.process[0] = static_cast<uint8_t>(process + 1);
    exchange.fetch = [fds = fds](const std::vector<uint8_t>& ticket, const MemoryRange& wanted,
                                 const FetchWait&,
                                 Diagnostics& d) { return fds->fetch(ticket, wanted, d); };
    const KernelLauncher launcher = {
        .load =
            [this](EarlyLaunch* able) {
              ++loads;
              *able = loaded;
              return load_error;
            },
        .keep_stack =
            [this] {
              ++stacks_kept;
              int least = 0, greatest = 0;  // a call that captures forbid, as that of the limit is
              const int refused = fake.driver().CtxGetStreamPriorityRange(&least, &greatest);
              return refused != 0 ? refused : stack_error;
            },
        .launch =
            [this](const device::LaunchPlan& plan, void* stream) {
              const std::lock_guard lock(launching);
              if (on_launch) on_launch(plan);
              launched.push_back(stream);
              if (launch_error == 0) {
                nodes.push_back(fake.launch(stream, address_of(plan.begun), plan.blocks));
              }
              return launch_error;
            },
        .most_resident_blocks =
            [this](const device::LaunchPlan& plan, int* error) {
              *error = launch_error;
              if (on_ask) on_ask(plan);
              if (plan.threads > most_threads) return 0u;
              return (plan.uses & device::kUsesUneven) != 0 ? most_uneven_blocks : most_blocks;
            },
        .scale =
            [this](const Scaling& what, void* stream) {
              const std::lock_guard lock(launching);
              if (launch_error == 0) {
                nodes.push_back(fake.launch(stream, 0, 1));
                scaled.push_back(what);
              }
              return launch_error;
            },
        .gemm = {.raise = [this](uint32_t*, uint32_t, void* stream) { return step(stream); },
                 .await = [this](const FlagWait&, void* stream) { return step(stream); },
                 .add_parts = [this](const PartSum&, void* stream) { return step(stream); },
                 .make_provider = [this](const SharedContext&,
                                         Diagnostics& d) -> std::unique_ptr<GemmProvider> {
                   if (make_products) return make_products();
                   d.error("bad-call", {}, "the fake driver has no cuBLASLt");
                   return nullptr;
                 }},
        .error_text = [](int error) { return fmt::format("launch error {}", error); }};
    return CudaDevice::open(fake.driver(),
                            {.ordinal = ordinal,
                             .multicast = multicast,
                             .early = early,
                             .early_after_any = early_after_any,
                             .node = node,
                             .nvml = nvml,
                             .fabric = fabric,
                             .kernels = kernels},
                            launcher, std::move(exchange), diagnostics);
  }
  std::unique_ptr<CudaDevice> open(int process, int ordinal) {
    Diagnostics diagnostics;
    auto device = open(process, ordinal, diagnostics);
    REQUIRE(device != nullptr);
    return device;
  }
  /// A kernel of one block on a stream, which does nothing; an error of cudaError_t.
  int step(void* stream) {
    const std::lock_guard lock(launching);
    if (launch_error == 0) {
      nodes.push_back(fake.launch(stream, 0, 1));
      steps.push_back(stream);
    }
    return launch_error;
  }
  /// Nothing that is forbidden was done, and all was given back.
  void check_clean() {
    CHECK(fake.misuses() == std::vector<std::string>{});
    CHECK(fake.leaks() == std::vector<std::string>{});
    CHECK(fds->offers() == 0);
  }

  FakeDriver fake;
  std::shared_ptr<FakeFds> fds = std::make_shared<FakeFds>();
  std::mutex launching;
  std::function<void(const device::LaunchPlan&)> on_launch;  ///< one launch at a time
  std::function<void(const device::LaunchPlan&)> on_ask;     ///< how many blocks there are at once
  std::function<std::unique_ptr<GemmProvider>()> make_products;  ///< none: there is no cuBLASLt
  std::vector<void*> launched;
  std::vector<Scaling> scaled;
  std::vector<void*> steps;           ///< streams of step()
  std::vector<abi::GraphNode> nodes;  ///< of launches; nullptr: not captured
  EarlyLaunch loaded = {true, true};  ///< what kernels can do
  std::atomic<int> loads{0};          ///< devices of several threads may be opened at once
  int load_error = 0, stack_error = 0;
  std::atomic<uint32_t> stacks_kept{0};  ///< lanes of several threads, too
  int launch_error = 0;
  uint32_t most_blocks = 264, most_threads = 512;
  bool early = true;
  bool early_after_any = false;
  uint32_t node = GpuName::kWhole;  ///< of devices that are opened
  AskNvml nvml = [](const abi::Uuid&, const abi::Uuid&) { return std::nullopt; };
  AskFabric fabric = [](const abi::Uuid&) { return std::nullopt; };
  KernelMaker* kernels = nullptr;
  uint32_t most_uneven_blocks = 264;  ///< of launches that use device::kUsesUneven
};

/// The calling thread belongs to another process until the scope's end.
struct Inside {
  explicit Inside(int process) : before(FakeDriver::entered()) { FakeDriver::enter(process); }
  ~Inside() { FakeDriver::enter(before); }
  const int before;
};

/// All messages and notes, one a line.
inline std::string text_of(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.all()) {
    text += fmt::format("{}: {}\n", d.code, d.message);
    for (const Note& note : d.notes) text += "  " + note.text + "\n";
  }
  return text;
}

inline bool has_code(const Diagnostics& diagnostics, const std::string& code) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.code == code) return true;
  }
  return false;
}

}  // namespace mscclc::cuda
