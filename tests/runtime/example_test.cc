// The example in runtime/api/communicator.h: the text of the header, compiled and run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "runtime/api/communicator.h"
#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "runtime/api/plan.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

#include "tests/runtime/example.inc"

constexpr uint32_t kExampleRanks = 2;
constexpr size_t kElements = 4096 / sizeof(uint16_t);
constexpr uint16_t kOne = 0x3c00, kTwo = 0x4000;  // of f16

/// What every rank's all_reduce() says, and its output.
struct ExampleRanks {
  std::vector<std::string> said{kExampleRanks};
  std::vector<std::vector<uint16_t>> out{kExampleRanks};
};

ExampleRanks run(const std::string& json) {
  ExampleRanks ranks;
  ranks.said.resize(kExampleRanks);
  ranks.out.assign(kExampleRanks, std::vector<uint16_t>(kElements));
  auto bootstraps = make_in_process_bootstraps(kExampleRanks, std::chrono::seconds(60));
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kExampleRanks; ++r) {
    threads.emplace_back([&, r] {
      Diagnostics diagnostics;
      const std::shared_ptr<Device> device = make_host_device(diagnostics);
      const StreamHandle stream = device == nullptr ? nullptr : device->create_stream(diagnostics);
      const std::vector<uint16_t> in(kElements, kOne);
      ranks.said[r] = stream == nullptr ? "no device"
                                        : all_reduce(std::move(bootstraps[r]), device, json,
                                                     in.data(), ranks.out[r].data(), stream);
      if (stream != nullptr) device->destroy_stream(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

TEST_CASE("the example of communicator.h adds up") {
  const CompiledWorld world("allreduce_ring", {{"R", "2"}});
  REQUIRE(world.errors() == "");
  Diagnostics diagnostics;
  const auto target = find_target("host", diagnostics);
  REQUIRE(target.has_value());
  const auto json = write_plan(world.program(), *target, diagnostics);
  REQUIRE(json.has_value());
  const ExampleRanks ranks = run(*json);
  for (uint32_t r = 0; r < kExampleRanks; ++r) {
    CHECK(ranks.said[r] == "");
    CHECK(ranks.out[r] == std::vector<uint16_t>(kElements, kTwo));
  }
}

TEST_CASE("the example of communicator.h says what has gone wrong") {
  for (const std::string& said : run("{").said) CHECK_THAT(said, Catch::Contains("allreduce.json"));
}

}  // namespace
}  // namespace mscclc
