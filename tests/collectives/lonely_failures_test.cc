// What fails on one rank alone before a call: the others do not wait for it until their time is
// over.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/in_process.h"
#include "tests/collectives/compiled_in_library.h"
#include "tests/helpers/runtime/short_of_memory.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

/// The library's plans, of which the first pick cannot be read.
class UnreadableOnce final : public PlanProvider {
 public:
  std::shared_ptr<const PickedPlan> pick(const PlanRequest& request,
                                         std::vector<PassedOver>* passed_over,
                                         Diagnostics& diagnostics) override {
    if (++picks_ > picks_that_fail) return library_->pick(request, passed_over, diagnostics);
    diagnostics.error("cannot-read", {}, "cannot read 'a plan': No such file or directory (2)");
    return nullptr;
  }
  int picks_that_fail = 1;

 private:
  const std::shared_ptr<PlanProvider> library_ = testing::compiled_in_library();
  std::atomic<int> picks_{0};
};

/// What a rank hears of a call, and "" if it was well.
std::string barrier_of(Collectives& collectives) {
  Communicator& communicator = collectives.communicator();
  Diagnostics diagnostics;
  const StreamHandle stream = communicator.device().create_stream(diagnostics);
  const bool done = collectives.call({.kind = CollectiveKind::barrier}, stream, diagnostics) &&
                    communicator.synchronize(stream, diagnostics);
  communicator.device().destroy_stream(stream);
  return done ? "" : testing::text(diagnostics);
}

std::string two_barriers(Communicator& communicator, std::shared_ptr<PlanProvider> plans) {
  Diagnostics diagnostics;
  const auto made = Collectives::create(communicator, std::move(plans), {}, diagnostics);
  if (made == nullptr) return testing::text(diagnostics);
  const std::string first = barrier_of(*made);
  return first + barrier_of(*made);
}

TEST_CASE("a rank that cannot read its plan says so to those that wait to load theirs") {
  const auto said = testing::threads(3, [](Communicator& c) {
    return two_barriers(
        c, c.rank() == 1 ? std::make_shared<UnreadableOnce>() : testing::compiled_in_library());
  });
  const std::string why = "cannot read 'a plan': No such file or directory (2)\n";
  CHECK(said[0] == "error: rank 1 cannot take the plan: " + why);
  CHECK(said[1] == "error: " + why);
  CHECK(said[2] == said[0]);
}

TEST_CASE("where no rank can read its plan, each says so, and the next call is made") {
  const auto said = testing::threads(
      2, [](Communicator& c) { return two_barriers(c, std::make_shared<UnreadableOnce>()); });
  CHECK(said[0] ==
        "error: cannot read 'a plan': No such file or directory (2)\n"
        "note: so ranks 0 and 1 cannot take the plan\n");
  CHECK(said[1] == said[0]);
}

TEST_CASE("one thread that drives ranks without plans waits for none of them") {
  auto bootstraps = make_in_process_bootstraps(2, testing::kPatience);
  std::vector<std::unique_ptr<Communicator>> communicators(2);
  std::vector<std::unique_ptr<Collectives>> collectives(2);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Diagnostics diagnostics;
      communicators[r] = Communicator::create(std::move(bootstraps[r]),
                                              testing::open_host(r, diagnostics), {}, diagnostics);
      auto plans = std::make_shared<UnreadableOnce>();
      plans->picks_that_fail = 2;  // it is asked whether it waits, too
      collectives[r] = Collectives::create(*communicators[r], std::move(plans), {}, diagnostics);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<RankCall> calls;
  for (const auto& rank : collectives) {
    calls.push_back({rank.get(), {.kind = CollectiveKind::barrier}, nullptr});
  }
  Diagnostics diagnostics;
  CHECK_FALSE(call_together(calls, diagnostics));
  CHECK_THAT(testing::text(diagnostics), Catch::Contains("so ranks 0 and 1 cannot take the plan"));
}

TEST_CASE("a rank without memory for a call ends the call on all ranks") {
  const auto open = [](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
    auto device = testing::open_host(rank, diagnostics);
    if (rank == 0) return device;
    return std::make_unique<testing::ShortOfMemory>(std::move(device), "buffers of collectives");
  };
  const auto body = [](Communicator& c) { return two_barriers(c, testing::compiled_in_library()); };
  const auto said = testing::threads(2, body, {}, open);
  const std::string why = "there is no memory for buffers of collectives\n";
  CHECK_THAT(said[0], Catch::StartsWith("error: rank 1 has given up: " + why));
  CHECK_THAT(said[1], Catch::StartsWith("error: " + why));
}

CollectiveCall sum_of(int32_t* at) {
  return {.kind = CollectiveKind::allreduce,
          .count = 1,
          .dtype = Dtype::i32,
          .input = at,
          .output = at};
}

/// What a rank hears of a sum, and "" if it was well.
std::string add_up(Collectives& collectives) {
  Communicator& communicator = collectives.communicator();
  Diagnostics diagnostics;
  int32_t number = 1;
  const StreamHandle stream = communicator.device().create_stream(diagnostics);
  const bool done = collectives.call(sum_of(&number), stream, diagnostics) &&
                    communicator.synchronize(stream, diagnostics);
  communicator.device().destroy_stream(stream);
  return done ? "" : testing::text(diagnostics);
}

/// Prepares sums, all of which it keeps, until there is no memory for one of them.
std::string prepare_too_many(Collectives& collectives) {
  constexpr size_t kMost = 1 << 20;
  const auto numbers = std::make_unique<int32_t[]>(kMost);
  std::vector<ReadyCall> all;
  Diagnostics diagnostics;
  do {
    all.push_back(collectives.prepare(sum_of(&numbers[all.size()]), nullptr, diagnostics));
  } while (all.back() && all.size() < kMost);
  return testing::text(diagnostics);
}

TEST_CASE("a rank without memory for a call's program ends the call on all ranks") {
  const auto open = [](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
    auto device = testing::open_host(rank, diagnostics);
    if (rank == 0) return device;
    return std::make_unique<testing::ShortOfMemory>(std::move(device), "programs of calls");
  };
  const auto body = [](Communicator& c) -> std::string {
    Diagnostics diagnostics;
    const auto made = Collectives::create(c, testing::compiled_in_library(), {}, diagnostics);
    if (made == nullptr) return testing::text(diagnostics);
    const std::string first = add_up(*made);  // the plan is loaded
    return first + (c.rank() == 0 ? add_up(*made) : prepare_too_many(*made));
  };
  const auto said = testing::threads(2, body, {}, open);
  const std::string why = "there is no memory for programs of calls\n";
  CHECK_THAT(said[0], Catch::StartsWith("error: rank 1 has given up: " + why));
  CHECK_THAT(said[1], Catch::StartsWith("error: " + why));
}

}  // namespace
}  // namespace mscclc
