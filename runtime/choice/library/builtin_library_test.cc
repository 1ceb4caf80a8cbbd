// The compiled-in library: what it picks is the table's, compiled and proved, the same each time.
#include "runtime/api/builtin_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ir/program/program.h"
#include "ir/support/read_file.h"
#include "plans/format/embedded_library.h"
#include "plans/format/library_table.h"
#include "runtime/choice/proofs/known_plans.h"
#include "runtime/choice/proofs/plan_digest.h"
#include "tests/helpers/files/made_up_folder.h"
#include "tests/helpers/runtime/log_file.h"

namespace mscclc {
namespace {

std::shared_ptr<PlanProvider> library() {
  Diagnostics diagnostics;
  auto made = builtin_library({}, diagnostics);
  REQUIRE(made != nullptr);
  return made;
}

std::shared_ptr<const PickedPlan> picked(PlanProvider& library, const PlanRequest& request) {
  Diagnostics diagnostics;
  auto plan = library.pick(request, nullptr, diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(plan != nullptr);
  CHECK_FALSE(diagnostics.has_errors());
  return plan;
}

TEST_CASE("MSCCLC_LIBRARY is for commands: jobs have what is compiled in") {
  ::setenv("MSCCLC_LIBRARY", "/nowhere", 1);
  CHECK(library() != nullptr);
  ::unsetenv("MSCCLC_LIBRARY");
}

const LibraryCall kSmall{.kind = CollectiveKind::allreduce, .ranks = 4, .bytes = 4096};

}  // namespace

TEST_CASE("what is compiled in is what lies in the folder") {
  size_t programs = 0;
  for (const LibraryFile& file : embedded_library()) {
    CHECK(read_file("plans/" + std::string(file.name)) == std::string(file.text));
    programs += file.name.ends_with(".mscl") ? 1 : 0;
  }
  const auto is_program = [](const auto& entry) { return entry.path().extension() == ".mscl"; };
  CHECK(programs == static_cast<size_t>(std::ranges::count_if(
                        std::filesystem::directory_iterator("plans"), is_program)));
}

TEST_CASE("a pick is the table's choice, proved, and one pointer") {
  const auto all = library();
  const auto plan = picked(*all, {.call = kSmall});
  CHECK(plan->name == "allreduce_1shot_ordered:R=4,F=LL16,B=8,T=128");
  CHECK(plan->max_bytes == 4096);
  CHECK(plan->plan->contract.ranks == 4);
  REQUIRE(plan->proof);
  CHECK(plan->proof->out_of_place);
  CHECK(picked(*all, {.call = kSmall}) == plan);
  LibraryCall other = kSmall;
  other.bytes = 2048;
  CHECK(picked(*all, {.call = other}) == plan);
}

TEST_CASE("how much a plan is for does not depend on who asked first") {
  // 4 ranks: up to 512 KiB of 4 nodes, and of any size where nodes are uneven, by one program.
  const LibraryCall four{.kind = CollectiveKind::allgather, .ranks = 4, .bytes = 1024, .nodes = 4};
  LibraryCall uneven = four;
  uneven.nodes = 0;
  uneven.bytes = 2 << 20;
  for (const bool four_first : {true, false}) {
    const auto all = library();
    if (four_first) CHECK(picked(*all, {.call = four})->max_bytes == 512 << 10);
    CHECK(picked(*all, {.call = uneven})->max_bytes >= uneven.bytes);
    CHECK(picked(*all, {.call = four})->max_bytes == 512 << 10);
  }
}

TEST_CASE("kernels for plans of the library lie where MSCCLC_KERNEL_PATH says") {
  ::setenv("MSCCLC_KERNEL_PATH", "/opt/kernels/", 1);
  const auto all = library();
  CHECK(picked(*all, {.call = kSmall})->file == "");  // of no GPUs
  CHECK(picked(*all, {.call = kSmall, .architecture = 90})->file ==
        "/opt/kernels/sm_90/allreduce_1shot_ordered-R4-FLL16-B8-T128.json");
  CHECK(picked(*all, {.call = kSmall, .architecture = 103})->file ==
        "/opt/kernels/sm_103/allreduce_1shot_ordered-R4-FLL16-B8-T128.json");
  // With the blocks that it has been given.
  const auto narrow = picked(*all, {.call = kSmall, .architecture = 90, .multiprocessors = 4});
  CHECK(narrow->file == "/opt/kernels/sm_90/allreduce_1shot_ordered-R4-FLL16-B4-T128.json");
  ::setenv("MSCCLC_KERNEL_PATH", "none", 1);
  CHECK(picked(*library(), {.call = kSmall, .architecture = 90})->file == "");
  ::unsetenv("MSCCLC_KERNEL_PATH");
}

TEST_CASE("a path of kernels that is not a folder is reported") {
  const testing::LogFile log(Environment::Values{{"MSCCLC_DEBUG", "WARN"}});
  for (const char* folder : {"/nowhere", "/", "none"}) {
    ::setenv("MSCCLC_KERNEL_PATH", folder, 1);
    (void)library();
  }
  ::unsetenv("MSCCLC_KERNEL_PATH");
  CHECK(log.lines("") == 1);
  CHECK_THAT(
      log.text(),
      Catch::EndsWith(
          "MSCCLC_KERNEL_PATH is '/nowhere', which is not a folder: no kernels are loaded\n"));
}

TEST_CASE("another library gives the same plan, and one that the build has proved") {
  Diagnostics diagnostics;
  for (const CollectiveKind kind : {CollectiveKind::allreduce, CollectiveKind::sendrecv}) {
    const PlanRequest request{.call = {.kind = kind, .ranks = 2, .bytes = 100000}};
    const auto digest = plan_digest(picked(*library(), request)->plan, diagnostics);
    REQUIRE(digest);
    CHECK(digest == plan_digest(picked(*library(), request)->plan, diagnostics));
    CHECK(known_proof(*digest));
  }
}

TEST_CASE("threads that pick the same at once get the same") {
  const auto all = library();
  std::vector<std::shared_ptr<const PickedPlan>> plans(8);
  std::vector<std::thread> threads;
  for (auto& plan : plans) {
    threads.emplace_back([&] {
      Diagnostics diagnostics;
      plan = all->pick({.call = {CollectiveKind::allgather, 3, 300000}}, nullptr, diagnostics);
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(plans[0] != nullptr);
  for (const auto& plan : plans) CHECK(plan == plans[0]);
}

TEST_CASE("roots, shifts and nodes are the call's") {
  const auto all = library();
  const auto broadcast =
      picked(*all, {.call = {CollectiveKind::broadcast, 4, 4096, Dtype::f32, false, /*root=*/3}});
  CHECK(broadcast->plan->contract.root == 3);
  const auto back =
      picked(*all, {.call = {CollectiveKind::sendrecv, 4, 4096, Dtype::f32, false, 0, -1}});
  CHECK(back->plan->contract.shift == 3);
  CHECK(picked(*all, {.call = {CollectiveKind::sendrecv, 4, 4096, Dtype::f32, false, 7, 3}}) ==
        back);
  LibraryCall far = kSmall;
  far.nodes = 2;
  CHECK(picked(*all, {.call = far})->name == "allreduce_hier_packets:world=4,gpus=2");
  far.kind = CollectiveKind::sendrecv;
  far.nodes = 0;
  CHECK(picked(*all, {.call = far})->name == "sendrecv_port:R=4,shift=1,B=2");
}

TEST_CASE("a GPU with few multiprocessors, or a caller that allows few, gets plans of few blocks") {
  const auto all = library();
  const LibraryCall call{.kind = CollectiveKind::allreduce, .ranks = 2, .bytes = 16 << 20};
  const auto blocks = [](const PickedPlan& plan) {
    uint32_t most = 0;
    for (const Rank& rank : plan.plan->ranks) most = std::max(most, rank.blocks);
    return most;
  };
  CHECK(blocks(*picked(*all, {.call = call})) > 60);
  CHECK(blocks(*picked(*all, {.call = call, .multiprocessors = 60})) <= 60);
  CHECK(blocks(*picked(*all, {.call = call, .multiprocessors = 60, .most_blocks = 16})) <= 16);
}

TEST_CASE("two ranks have plans for messages that leave others room") {
  const auto all = library();
  for (const uint32_t most : {66u, 22u, 9u, 4u}) {
    for (uint64_t bytes = 1; bytes <= uint64_t{1} << 30; bytes *= 4) {
      INFO(bytes << " bytes, " << most << " blocks");
      const LibraryCall call{.kind = CollectiveKind::broadcast, .ranks = 2, .bytes = bytes};
      const auto plan = picked(*all, {.call = call, .multiprocessors = 132, .most_blocks = most});
      REQUIRE(plan != nullptr);
      for (const Rank& rank : plan->plan->ranks) CHECK(rank.blocks <= most);
    }
  }
}

TEST_CASE("every row that is passed over has its reason") {
  const auto all = library();
  std::vector<PassedOver> over;
  Diagnostics diagnostics;
  const auto plan = all->pick({.call = kSmall}, &over, diagnostics);
  REQUIRE(plan != nullptr);
  REQUIRE(over.size() > 10);
  CHECK(over[0].why == "it is for 2 ranks");
  const auto small = std::find_if(over.begin(), over.end(), [](const PassedOver& p) {
    return p.name == "allreduce_1shot_ordered:R=4,F=LL16,B=2,T=128";
  });
  REQUIRE(small < over.end() - 1);
  CHECK(small[0].why == "it is for 1024 bytes at most");
  CHECK(small[1].why == "'allreduce_1shot_ordered:R=4,F=LL16,B=8,T=128' goes first");
  for (const PassedOver& p : over) CHECK(p.why != "");
  const auto has = [&](const char* why) {
    return std::ranges::count(over, why, &PassedOver::why) > 0;
  };
  CHECK(has("it is for 2 nodes or more"));
  CHECK(over.back().why == "it is for ranks that are spread unevenly over nodes");

  over.clear();
  LibraryCall far{.kind = CollectiveKind::gather, .ranks = 4, .bytes = 1};
  far.nodes = 2;
  CHECK(all->pick({.call = far}, &over, diagnostics) == nullptr);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(over.at(0).why == "it is for 1 node");
  CHECK(over.back().why == "it is for 1 node");
}

TEST_CASE("a reduction that a plan cannot do is a reason, not an error at the launch") {
  const auto all = library();
  Diagnostics diagnostics;
  std::vector<PassedOver> over;
  LibraryCall call = kSmall;
  call.bytes = 4095;  // no whole number of f32
  CHECK(all->pick({.call = call}, &over, diagnostics) != nullptr);
  call.accumulate = Dtype::i8;
  over.clear();
  CHECK(all->pick({.call = call}, &over, diagnostics) == nullptr);
  CHECK(std::ranges::any_of(
      over, [](const PassedOver& p) { return p.why == "'f32' cannot be added up in 'i8'"; }));
}

TEST_CASE("a folder of programs") {
  const testing::MadeUpFolder made;
  const std::string& folder = made.path();
  for (const LibraryFile& file : embedded_library()) {
    std::ofstream(folder + "/" + std::string(file.name)) << file.text;
  }
  Diagnostics diagnostics;
  const auto all = builtin_library({.folder = folder}, diagnostics);
  REQUIRE(all != nullptr);
  const auto plan = picked(*all, {.call = kSmall});
  CHECK(plan->name == folder + "/allreduce_1shot_ordered:R=4,F=LL16,B=8,T=128");
  CHECK(plan_digest(plan->plan, diagnostics) ==
        plan_digest(picked(*library(), {.call = kSmall})->plan, diagnostics));

  const auto refusal = [&](const LibraryCall& call) {
    Diagnostics found;
    CHECK(all->pick({.call = call}, nullptr, found) == nullptr);
    REQUIRE(found.has_errors());
    return found.all()[0].code + ": " + found.all()[0].message;
  };
  std::ofstream(folder + "/allreduce_push.mscl") << "program x\n";
  const LibraryCall large{.kind = CollectiveKind::allreduce, .ranks = 4, .bytes = 24 << 20};
  const std::string said = refusal(large);
  CHECK(said != "");
  CHECK(refusal(large) == said);
  std::filesystem::remove(folder + "/allgather_packets.mscl");
  CHECK(refusal({CollectiveKind::allgather, 4, 1}) ==
        fmt::format("no-registry: the library names '{}/allgather_packets.mscl', which is not "
                    "there",
                    folder));
  std::filesystem::remove(folder + "/library.json");
  Diagnostics none;
  CHECK(builtin_library({.folder = folder}, none) == nullptr);
  CHECK(none.all().at(0).message ==
        fmt::format("cannot read '{}/library.json': No such file or directory", folder));
}

}  // namespace mscclc
