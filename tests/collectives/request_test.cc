// What a choice of a plan knows of the GPUs: the same on all ranks, whatever each of them has.
#include <thread>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "tests/fakes/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

/// Has no plans, and keeps what it was asked for.
class Asked final : public PlanProvider {
 public:
  std::shared_ptr<const PickedPlan> pick(const PlanRequest& request, std::vector<PassedOver>*,
                                         Diagnostics&) override {
    last = request;
    return nullptr;
  }
  PlanRequest last;
};

/// What the ranks on these devices ask for, by rank. Each is a process of its own, which closes its
/// device.
std::vector<PlanRequest> requests(std::vector<std::shared_ptr<Device>> devices,
                                  const CollectivesOptions& options = {},
                                  uint32_t most_of_call = 0) {
  const auto ranks = static_cast<uint32_t>(devices.size());
  auto bootstraps = make_in_process_bootstraps(ranks, std::chrono::seconds(300));
  std::vector<PlanRequest> asked(ranks);
  std::vector<std::string> said(ranks);
  const auto ask = [&](uint32_t rank, std::unique_ptr<Bootstrap> bootstrap) {
    FakeDriver::enter(static_cast<int>(rank));
    const std::shared_ptr<Device> device = std::move(devices[rank]);
    Diagnostics diagnostics;
    const auto provider = std::make_shared<Asked>();
    const auto communicator = Communicator::create(std::move(bootstrap), device, {}, diagnostics);
    if (communicator != nullptr) {
      const auto made = Collectives::create(*communicator, provider, options, diagnostics);
      if (made != nullptr) {
        (void)made->choose(
            {.kind = CollectiveKind::allreduce, .count = 8, .most_blocks = most_of_call}, false,
            nullptr, diagnostics);
      }
    }
    asked[rank] = provider->last;
    said[rank] = text_of(diagnostics);
  };
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) threads.emplace_back(ask, r, std::move(bootstraps[r]));
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : said) CHECK(one == "");
  return asked;
}

/// GPUs with so many multiprocessors, and of these major capabilities.
std::vector<std::shared_ptr<Device>> gpus(World& world, const std::vector<int>& multiprocessors,
                                          const std::vector<int>& capabilities) {
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < static_cast<int>(multiprocessors.size()); ++i) {
    world.fake.options().multiprocessors = multiprocessors[static_cast<size_t>(i)];
    world.fake.options().capability = capabilities[static_cast<size_t>(i)];
    devices.push_back(world.open(i, i));
  }
  return devices;
}

TEST_CASE("choices know the GPUs' architecture and multiprocessors") {
  World world({.devices = 2});
  const auto asked = requests(gpus(world, {132, 132}, {9, 9}));
  CHECK(asked[0].architecture == 90);
  CHECK(asked[0].multiprocessors == 132);
  CHECK(asked[0] == asked[1]);
}

TEST_CASE("GPUs that differ: no architecture, and the fewest multiprocessors") {
  World world({.devices = 3});
  const auto asked = requests(gpus(world, {132, 78, 108}, {9, 9, 8}));
  CHECK(asked[0].architecture == 0);
  CHECK(asked[0].multiprocessors == 78);
  CHECK(asked[0] == asked[1]);
  CHECK(asked[0] == asked[2]);
}

TEST_CASE("calls of communicators that ranks order differently have room beside one another") {
  const auto most_blocks = [](const CollectivesOptions& options) {
    World world({.devices = 2});
    const auto asked = requests(gpus(world, {132, 100}, {9, 9}), options);
    CHECK(asked[0] == asked[1]);
    return asked[0].most_blocks;
  };
  CHECK(most_blocks({}) == 0);
  CHECK(most_blocks({.beside = 0}) == 0);
  CHECK(most_blocks({.beside = 2}) == 50);
  CHECK(most_blocks({.most_blocks = 60, .beside = 2}) == 50);
  CHECK(most_blocks({.most_blocks = 8, .beside = 2}) == 8);
  CHECK(most_blocks({.beside = 1000}) == 4);  // what there are plans for
}

TEST_CASE("a call allows no more blocks than its communicator") {
  const auto most_blocks = [](uint32_t communicator, uint32_t call) {
    World world({.devices = 2});
    return requests(gpus(world, {132, 100}, {9, 9}), {.most_blocks = communicator}, call)[0]
        .most_blocks;
  };
  CHECK(most_blocks(0, 6) == 6);
  CHECK(most_blocks(8, 6) == 6);
  CHECK(most_blocks(8, 16) == 8);
  CHECK(most_blocks(8, 0) == 8);
}

TEST_CASE("choices know of multicast where all ranks may use it") {
  const auto may = [](bool first, bool second) {
    World world({.devices = 2, .multicast = true});
    Diagnostics diagnostics;
    std::vector<std::shared_ptr<Device>> devices;
    for (const bool one : {first, second}) {
      const int i = static_cast<int>(devices.size());
      devices.push_back(world.open(i, i, diagnostics, one));
    }
    const auto asked = requests(std::move(devices));
    CHECK(asked[0] == asked[1]);
    return asked[0].multicast;
  };
  CHECK(may(true, true));
  CHECK_FALSE(may(true, false));
  CHECK_FALSE(may(false, true));
  CHECK_FALSE(may(false, false));
}

TEST_CASE("the host device has neither") {
  Diagnostics diagnostics;
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < 2; ++i) devices.push_back(make_host_device(diagnostics));
  const auto asked = requests(devices, {.beside = 2});
  CHECK(asked[0].most_blocks == 0);
  CHECK(asked[0].architecture == 0);
  CHECK(asked[0].multiprocessors == 0);
  CHECK(asked[0] == asked[1]);
}

}  // namespace
}  // namespace mscclc::cuda
