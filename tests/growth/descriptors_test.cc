// How many descriptors a communicator more takes of each process, and that plans take none.
#include "tests/helpers/runtime/descriptors.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "runtime/api/job.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint32_t kRanks = 3;
constexpr size_t kMore = 4;  ///< communicators
/// Of a communicator: its connection, what wakes the thread of that, and memory of which it has two
/// blocks, which are files on the host (on GPUs they are none).
constexpr size_t kOfRank = 4;
/// Of the process that runs the hub besides: a connection to each rank, and what waits for them.
constexpr size_t kOfHub = kRanks + 1;

std::vector<std::shared_ptr<const Program>> plans() {
  std::vector<std::shared_ptr<const Program>> all;
  for (const char* name : {"allgather_direct", "allreduce_allpairs", "allreduce_ring"}) {
    const CompiledWorld world(name, {{"R", std::to_string(kRanks)}});
    REQUIRE(world.errors() == "");
    all.push_back(std::make_shared<const Program>(world.program()));
  }
  return all;
}

/// A communicator of the same ranks, as a split makes it.
std::unique_ptr<Communicator> split(Communicator& parent, Diagnostics& diagnostics) {
  std::string text;
  std::shared_ptr<Hub> hub;
  if (parent.rank() == 0) {
    auto job =
        host_job({.size = kRanks, .rank = 0, .interface = "=lo", .timeout = testing::kPatience},
                 diagnostics);
    if (!job) return nullptr;
    text = job->id.text();
    hub = std::move(job->hub);
  }
  std::vector<std::vector<uint8_t>> all;
  const std::vector<uint8_t> own(text.begin(), text.end());
  if (!parent.bootstrap().all_gather(own, "id", all, diagnostics)) return nullptr;
  const auto id = UniqueId::parse(std::string(all[0].begin(), all[0].end()), diagnostics);
  if (!id) return nullptr;
  auto bootstrap =
      join_job(*id, parent.rank(), kRanks, testing::kPatience, std::move(hub), diagnostics);
  if (bootstrap == nullptr) return nullptr;
  return Communicator::create(std::move(bootstrap), make_host_device(diagnostics),
                              {.timeout = testing::kPatience}, diagnostics);
}

/// "": descriptors are as many as they may be.
std::string count(Communicator& parent, const std::vector<std::shared_ptr<const Program>>& plans) {
  Diagnostics diagnostics;
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<std::unique_ptr<Executable>> executables;
  const auto add = [&](size_t loaded) {
    communicators.push_back(split(parent, diagnostics));
    if (communicators.back() == nullptr) return false;
    for (size_t i = 0; i < loaded; ++i) {
      executables.push_back(communicators.back()->load(
          plans[i], {.max_bytes = 4096, .proof = ProofPolicy::skip}, diagnostics));
      if (executables.back() == nullptr) return false;
    }
    return parent.bootstrap().barrier("all have loaded", diagnostics);
  };
  // What all communicators share comes with the first.
  if (!add(1)) return testing::text(diagnostics);
  const size_t before = testing::open_descriptors();
  for (size_t i = 0; i < kMore; ++i) {
    if (!add(i % 2 == 0 ? 1 : plans.size())) return testing::text(diagnostics);
  }
  const size_t each = kOfRank + (parent.rank() == 0 ? kOfHub : 0);
  const bool few = testing::descriptors_come_down_to(before + kMore * each);
  const size_t more = testing::open_descriptors() - before;
  (void)parent.bootstrap().barrier("all have counted", diagnostics);
  return few ? ""
             : fmt::format("rank {}: {} communicators took {} descriptors\n", parent.rank(), kMore,
                           more);
}

TEST_CASE("a communicator more takes its sockets, and no descriptors for its plans") {
  const auto all = plans();
  CHECK(testing::run_processes(kRanks, [&](Communicator& c) { return count(c, all); }) == "");
}

}  // namespace
}  // namespace mscclc
