// A folder of plans as `mscclc library` writes it, and a job that picks from it, call by call.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "ir/program/program.h"
#include "ir/support/read_file.h"
#include "plans/format/library_table.h"
#include "runtime/api/plan_registry.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/log.h"
#include "tests/helpers/plans/rehash.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint32_t kRegistryRanks = 4;

std::string scratch(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return std::string(folder == nullptr ? "/tmp" : folder) + "/" + name;
}

/// Plans for four ranks, of every kind of choice: formats, placements, roots, shifts.
const std::string& made_plans() {
  static const std::string folder = [] {
    const std::string made = scratch("plans");
    const std::string command = fmt::format(
        "tools/mscclc library --ranks 4 --collective allreduce,alltoall,reduce,sendrecv --root 2 "
        "--shift -1 -o {}",
        made);
    REQUIRE(std::system(command.c_str()) == 0);
    return made;
  }();
  return folder;
}

std::shared_ptr<PlanRegistry> opened(const std::string& folder,
                                     std::optional<ProofPolicy> proof = {}) {
  Diagnostics diagnostics;
  auto registry = PlanRegistry::create({.proof = proof}, diagnostics);
  REQUIRE(registry != nullptr);
  const bool added = registry->add_path(folder, diagnostics);
  INFO(testing::text(diagnostics));
  REQUIRE(added);
  return registry;
}

/// The table of a folder.
LibraryTable table_of(const std::string& folder) {
  Diagnostics diagnostics;
  auto table = LibraryTable::parse(read_file(folder + "/library.json").value(), "t", diagnostics);
  REQUIRE(table);
  return *std::move(table);
}

std::string refusal(const std::string& folder) {
  Diagnostics diagnostics;
  const auto registry = PlanRegistry::create({}, diagnostics);
  REQUIRE(registry != nullptr);
  CHECK_FALSE(registry->add_path(folder, diagnostics));
  const Diagnostic& d = diagnostics.all().at(0);
  return fmt::format("{}: {}{}", d.code, d.message,
                     d.notes.empty() ? "" : " (" + d.notes[0].text + ")");
}

std::string refusal(PlanRegistry& registry, const LibraryCall& call) {
  Diagnostics diagnostics;
  CHECK(registry.pick({.call = call}, nullptr, diagnostics) == nullptr);
  const Diagnostic& d = diagnostics.all().at(0);
  return fmt::format("{}: {}{}", d.code, d.message,
                     d.notes.empty() ? "" : " (" + d.notes[0].text + ")");
}

/// The calls of a job, over all that its table has.
std::vector<LibraryCall> some_calls() {
  std::vector<LibraryCall> calls;
  for (const CollectiveKind kind : {CollectiveKind::allreduce, CollectiveKind::alltoall,
                                    CollectiveKind::reduce, CollectiveKind::sendrecv}) {
    for (const uint64_t bytes : {uint64_t{4}, uint64_t{40000}, uint64_t{3} << 20}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::i32}) {
        for (const bool in_place : {false, true}) {
          if (in_place && kind == CollectiveKind::sendrecv) continue;
          calls.push_back({kind, kRegistryRanks, bytes, dtype, in_place, 2, -1});
        }
      }
    }
  }
  return calls;
}

/// A rank that loads each plan once, when it is first picked, and makes its calls with it.
std::string make_calls(Communicator& communicator) {
  constexpr uint64_t kLargest = uint64_t{4} << 20;
  Diagnostics diagnostics;
  const auto registry = PlanRegistry::create({}, diagnostics);
  if (registry == nullptr || !registry->add_path(made_plans(), diagnostics)) {
    return testing::text(diagnostics);
  }
  std::map<const Program*, std::unique_ptr<RankRunner>> loaded;
  for (const LibraryCall& call : some_calls()) {
    const auto choice = registry->pick({.call = call}, nullptr, diagnostics);
    if (choice == nullptr) return testing::text(diagnostics);
    std::unique_ptr<RankRunner>& runner = loaded[choice->plan.get()];
    if (runner == nullptr) {
      const LoadOptions load{.max_bytes = std::min(choice->max_bytes, kLargest)};
      runner =
          std::make_unique<RankRunner>(communicator, choice->plan, RunnerOptions{.load = load});
      if (!runner->load(diagnostics)) return testing::text(diagnostics);
    }
    const RankResult result = runner->run(
        {.bytes = call.bytes, .dtype = call.dtype, .in_place = call.in_place, .iterations = 3},
        diagnostics);
    if (result.run.status != RunStatus::right) {
      return fmt::format("{}: {}", choice->name, testing::text(diagnostics));
    }
  }
  return "";
}

}  // namespace

TEST_CASE("a job picks a plan for every call") {
  CHECK(!made_plans().empty());
  CHECK(testing::run_threads(kRegistryRanks, make_calls) == "");
}

TEST_CASE("a choice is the table's, and is read once") {
  const auto registry = opened(made_plans());
  const LibraryTable table = table_of(made_plans());
  Diagnostics diagnostics;
  for (const LibraryCall& call : some_calls()) {
    const auto choice = registry->pick({.call = call}, nullptr, diagnostics);
    REQUIRE(choice != nullptr);
    CHECK(choice->name == made_plans() + "/" + table.choose(call)->plan);
    CHECK(choice->max_bytes >= call.bytes);
    CHECK(choice->plan->contract.kind == call.kind);
    CHECK(registry->pick({.call = call}, nullptr, diagnostics) == choice);
  }
  const auto file = [&](uint64_t bytes, bool in_place) {
    return registry->pick(
        {.call = {CollectiveKind::alltoall, kRegistryRanks, bytes, Dtype::u8, in_place}}, nullptr,
        diagnostics);
  };
  CHECK(file(uint64_t{1} << 30, true)->max_bytes == ~uint64_t{0});
  CHECK(file(uint64_t{1} << 30, true) != file(uint64_t{1} << 30, false));
}

namespace {

/// The first reason why there is no plan for a call.
std::string first_reason(PlanRegistry& registry, const LibraryCall& call) {
  Diagnostics diagnostics;
  std::vector<PassedOver> over;
  CHECK(registry.pick({.call = call}, &over, diagnostics) == nullptr);
  CHECK_FALSE(diagnostics.has_errors());
  return over.empty() ? "nothing" : over[0].why;
}

}  // namespace

TEST_CASE("calls that no plan is for") {
  const auto registry = opened(made_plans());
  CHECK(first_reason(*registry, {CollectiveKind::broadcast, 4, 1, Dtype::f32, false, 1}) ==
        "nothing");
  CHECK(first_reason(*registry, {CollectiveKind::reduce, 4, 1, Dtype::f32, false, 1}) ==
        "it is for root 2");
  CHECK(first_reason(*registry, {CollectiveKind::sendrecv, 4, 1, Dtype::f32, false, 0, 2}) ==
        "it is for shift 3");
  CHECK(first_reason(*registry, {CollectiveKind::allreduce, 8, 1}) == "it is for 4 ranks");
  CHECK(first_reason(*registry, {CollectiveKind::allreduce, 0, 1}) == "nothing");
  CHECK(first_reason(*registry, {.kind = CollectiveKind::allreduce, .ranks = 4, .nodes = 2}) ==
        "it is for 1 node");
}

TEST_CASE("folders that are no registry") {
  CHECK(refusal("nowhere") ==
        "cannot-read: cannot read 'nowhere': No such file or directory (a path is a plan's file or "
        "a folder of plans)");
  CHECK(refusal("plans") ==
        "no-registry: 'plans/library.json' names programs, not plans ('mscclc library --library "
        "plans/ --ranks N -o FOLDER' compiles them)");
  const std::string broken = scratch("broken");
  std::filesystem::remove_all(broken);
  std::filesystem::copy(made_plans(), broken, std::filesystem::copy_options::recursive);
  const std::string lost = table_of(broken).rows()[3].choice.plan;
  std::filesystem::remove(broken + "/" + lost);
  CHECK(refusal(broken) ==
        fmt::format("no-registry: '{}/library.json' names '{}', which is not there (the folder "
                    "must be copied whole)",
                    broken, lost));
}

TEST_CASE("a plan that is not what the table says") {
  const std::string mixed = scratch("mixed");
  std::filesystem::remove_all(mixed);
  std::filesystem::copy(made_plans(), mixed, std::filesystem::copy_options::recursive);
  const auto registry = opened(mixed);
  const LibraryTable table = table_of(mixed);
  const LibraryCall reduce{CollectiveKind::reduce, 4, uint64_t{1} << 30, Dtype::i8, false, 2};
  const LibraryCall alltoall{CollectiveKind::alltoall, 4, uint64_t{1} << 30, Dtype::i8, true};
  const auto file = [&](const LibraryCall& call) { return mixed + "/" + table.choose(call)->plan; };
  const auto replace = [](const std::string& to, const std::string& from) {
    std::filesystem::copy(from, to, std::filesystem::copy_options::overwrite_existing);
  };
  replace(file(reduce), file({CollectiveKind::sendrecv, 4, 1, Dtype::f32, false, 0, 3}));
  CHECK(refusal(*registry, reduce) ==
        fmt::format("wrong-plan: '{0}/library.json' picks '{1}' for reduce over 4 ranks with root "
                    "2, but it is for sendrecv over 4 ranks with shift 3 ('mscclc library --ranks "
                    "4 -o FOLDER' writes plans for 4 ranks)",
                    mixed, file(reduce)));
  LibraryCall apart = alltoall;
  apart.in_place = false;
  replace(file(alltoall), file(apart));
  CHECK(refusal(*registry, alltoall) ==
        fmt::format("wrong-plan: '{0}/library.json' picks '{1}' for alltoall over 4 ranks, but it "
                    "is not for i8 in place ('mscclc library --ranks 4 -o FOLDER' writes plans for "
                    "4 ranks)",
                    mixed, file(alltoall)));
  std::ofstream(file(apart)) << "{}";
  Diagnostics diagnostics;
  CHECK(registry->pick({.call = apart}, nullptr, diagnostics) == nullptr);
  CHECK(diagnostics.all().at(0).path.starts_with(file(apart)));
}

namespace {

using Json = nlohmann::ordered_json;

/// Changes a plan's file, and gives it the hash of what it then says.
void forge(const std::string& file, const std::function<void(Json&)>& change) {
  Json plan = Json::parse(read_file(file).value());
  change(plan);
  std::ofstream(file) << testing::rehash(plan.dump());
}

/// Lets the first wait for three peers wait for one.
void wait_for_one(Json& plan) {
  for (Json& gpu : plan["gpus"]) {
    for (Json& block : gpu["threadblocks"]) {
      for (Json& op : block["ops"]) {
        if (op["name"] != "wait" || op["channel_ids"].size() != 3) continue;
        op["channel_ids"] = Json::array({op["channel_ids"][0]});
        return;
      }
    }
  }
  FAIL("no op waits for three peers");
}

}  // namespace

TEST_CASE("a plan that was forged, hash and all, is refused") {
  const std::string folder = scratch("forged");
  std::filesystem::copy(made_plans(), folder);
  const LibraryCall call{CollectiveKind::alltoall, kRegistryRanks, uint64_t{16} << 20, Dtype::f32};
  const std::string file = fmt::format("{}/{}", folder, table_of(folder).choose(call)->plan);
  Diagnostics diagnostics;
  const std::string right = read_file(file).value();
  {
    const auto registry = opened(folder);
    const auto choice = registry->pick({.call = call}, nullptr, diagnostics);
    REQUIRE(choice != nullptr);
    REQUIRE(choice->proof);
    CHECK(choice->proof->out_of_place);
  }
  forge(file, wait_for_one);
  {
    const auto registry = opened(folder);
    CHECK(registry->pick({.call = call}, nullptr, diagnostics) == nullptr);
    CHECK(diagnostics.all().back().code == "not-proved");
    diagnostics = Diagnostics();
    const std::string log = folder + "/log";
    reset_log();
    REQUIRE(start_log(Environment({{"MSCCLC_DEBUG", "WARN"}, {"MSCCLC_DEBUG_FILE", log}}),
                      diagnostics));
    const auto unproved = opened(folder, ProofPolicy::skip);
    const auto choice = unproved->pick({.call = call}, nullptr, diagnostics);
    REQUIRE(choice != nullptr);
    CHECK_FALSE(choice->proof);
    CHECK(diagnostics.all().at(0).code == "proof-skipped");
    reset_log();
    CHECK_THAT(read_file(log).value(),
               Catch::Contains("WARN LOAD proof-skipped: '" + file + "' has not been checked"));
  }
  std::ofstream(file) << right;
  forge(file, [](Json& plan) { plan["mscclc"]["proof"]["rounding"] = "once"; });
  const auto registry = opened(folder);
  CHECK(refusal(*registry, call) ==
        fmt::format("false-claim: '{}' claims what is not proved of it: it is not rounded as it "
                    "says (compile the plan's program again: 'mscclc compile' proves what it "
                    "writes)",
                    file));
}

TEST_CASE("a plan that claims other sums than its own is refused") {
  const std::string folder = scratch("other_sums");
  std::filesystem::copy(made_plans(), folder);
  const LibraryCall call{CollectiveKind::allreduce, kRegistryRanks, uint64_t{4} << 10, Dtype::f32};
  const std::string file = fmt::format("{}/{}", folder, table_of(folder).choose(call)->plan);
  forge(file, [](Json& plan) {
    Json& sums = plan["mscclc"]["proof"]["sums"];
    CHECK(sums == "x0 + x1 + x2 + x3");
    sums = "x0 + x2 + x1 + x3";
  });
  CHECK_THAT(refusal(*opened(folder), call),
             Catch::Contains("it is not adding up 'x0 + x2 + x1 + x3', but 'x0 + x1 + x2 + x3'"));
  forge(file, [](Json& plan) { plan["mscclc"]["proof"].erase("sums"); });  // as older plans
  Diagnostics diagnostics;
  CHECK(opened(folder)->pick({.call = call}, nullptr, diagnostics) != nullptr);
}

}  // namespace mscclc
