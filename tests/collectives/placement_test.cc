// Plans that are right in place only, or out of place only, as those of MSCCL++ are: each serves
// the calls that it is right for, and the others go to other plans.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "ir/support/read_file.h"
#include "plans/format/plan_json.h"
#include "runtime/api/builtin_library.h"
#include "runtime/api/collectives.h"
#include "runtime/api/plan_registry.h"
#include "tests/collectives/definition.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using Kind = CollectiveKind;
constexpr uint32_t kThree = 3;

/// The JSON of a program of the library that is right for one placement.
std::string placed_plan(const std::string& program, const std::string& inplace) {
  std::string text = read_file("plans/" + program + ".mscl").value();
  const size_t at = text.find("ranks: R", text.find("\ncollective"));
  REQUIRE(at != std::string::npos);
  text.insert(at, "inplace: " + inplace + ", ");
  const size_t begin = text.find("\nselect"), end = text.find('\n', begin + 1);
  text.replace(begin, end - begin, "");
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions front;
  front.defines = {{"R", std::to_string(kThree)}};
  const auto compiled = compile(sources, sources.add("placed.mscl", text), front, {}, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(compiled);
  const auto json = write_plan(*compiled, *find_target("sm_90", diagnostics), diagnostics);
  REQUIRE(json);
  return *json;
}

std::shared_ptr<PlanRegistry> registry_with(const std::vector<std::string>& plans) {
  Diagnostics diagnostics;
  auto made = PlanRegistry::create({.library = builtin_library({}, diagnostics)}, diagnostics);
  REQUIRE(made != nullptr);
  for (size_t i = 0; i < plans.size(); ++i) {
    const bool added =
        made->register_plan(plans[i], fmt::format("mine {}", i), diagnostics).has_value();
    INFO(testing::text(diagnostics));
    REQUIRE(added);
  }
  return made;
}

/// Makes a call with test values; says which plan serves it, and what is wrong.
std::string serve(Collectives& collectives, Kind kind, uint64_t count, bool in_place,
                  std::string* picked) {
  Communicator& communicator = collectives.communicator();
  const uint32_t rank = communicator.rank(), ranks = communicator.size();
  Diagnostics diagnostics;
  const auto memory = communicator.device().allocate(8 << 20, "buffers", diagnostics);
  const StreamHandle stream = communicator.device().create_stream(diagnostics);
  if (memory == nullptr || stream == nullptr) return testing::text(diagnostics);
  CollectiveCall call{.kind = kind, .count = count, .dtype = Dtype::i32};
  auto* const base = reinterpret_cast<int32_t*>(memory->data()) + (1 << 19);
  int32_t* const from = base;
  int32_t* const to = in_place ? base + testing::in_place_offset(call, rank) : base + (1 << 19);
  const uint64_t rows_in = info(kind).has_rows(Side::input) ? ranks : 1;
  for (uint64_t i = 0; i < count * rows_in; ++i) from[i] = testing::value(rank, i);
  call.input = from;
  call.output = to;
  const auto choice = collectives.choose(call, false, nullptr, diagnostics);
  *picked = choice == nullptr ? "nothing" : choice->name;
  const bool done =
      collectives.call(call, stream, diagnostics) && communicator.synchronize(stream, diagnostics);
  communicator.device().destroy_stream(stream);
  if (!done) return testing::text(diagnostics);
  const uint64_t rows_out = info(kind).has_rows(Side::output) ? ranks : 1;
  for (uint64_t i = 0; i < count * rows_out; ++i) {
    if (to[i] == testing::expected(call, rank, ranks, i)) continue;
    return fmt::format("{}: element {} is {}", name(kind), i, to[i]);
  }
  return "";
}

struct Placed {
  Kind kind;
  const char* program;
  const char* inplace;  ///< of the plan
};
constexpr Placed kPlaced[] = {
    {Kind::allgather, "allgather_ring", "true"},
    {Kind::allgather, "allgather_ring", "false"},
    {Kind::allreduce, "allreduce_2shot", "true"},
    {Kind::allreduce, "allreduce_2shot", "false"},
    {Kind::alltoall, "alltoall_scratch", "true"},
    {Kind::alltoall, "alltoall_scratch", "false"},
    {Kind::reducescatter, "reducescatter_direct", "true"},
    {Kind::reducescatter, "reducescatter_direct", "false"},
};

TEST_CASE("placement: a plan of one placement serves the calls that it is right for") {
  for (const Placed& placed : kPlaced) {
    INFO(placed.program << ", inplace: " << placed.inplace);
    const bool plan_in_place = std::string(placed.inplace) == "true";
    const auto plans = registry_with({placed_plan(placed.program, placed.inplace)});
    const auto body = [&](Communicator& communicator) -> std::string {
      Diagnostics diagnostics;
      const auto made = Collectives::create(communicator, plans, {}, diagnostics);
      if (made == nullptr) return testing::text(diagnostics);
      for (const uint64_t count : {16, 17, 4096}) {
        for (const bool in_place : {false, true}) {
          std::string picked;
          const std::string said = serve(*made, placed.kind, count, in_place, &picked);
          if (!said.empty()) return said;
          if ((picked == "mine 0") != (in_place == plan_in_place)) {
            return fmt::format("{} serves a call {}\n", picked,
                               in_place ? "in place" : "out of place");
          }
        }
      }
      return "";
    };
    CHECK(testing::run_threads(kThree, body) == "");
  }
}

TEST_CASE("placement: with a plan for each, every call has its own") {
  const auto plans = registry_with(
      {placed_plan("allgather_ring", "true"), placed_plan("allgather_ring", "false")});
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto made = Collectives::create(communicator, plans, {}, diagnostics);
    if (made == nullptr) return testing::text(diagnostics);
    for (const bool in_place : {false, true, false}) {
      std::string picked;
      const std::string said = serve(*made, Kind::allgather, 4096, in_place, &picked);
      if (!said.empty()) return said;
      if (picked != (in_place ? "mine 0" : "mine 1")) return picked;
    }
    return "";
  };
  CHECK(testing::run_threads(kThree, body) == "");
}

TEST_CASE("placement: where ranks do not know it of each other, plans must be right both ways") {
  for (const char* inplace : {"true", "false"}) {
    const auto plans = registry_with({placed_plan("broadcast_direct", inplace)});
    Diagnostics diagnostics;
    std::vector<PassedOver> over;
    const LibraryCall call = as_jobs_ask({.kind = Kind::broadcast, .ranks = kThree, .bytes = 4096});
    const auto picked = plans->pick({.call = call}, &over, diagnostics);
    REQUIRE(picked != nullptr);
    CHECK(picked->name != "mine 0");
    REQUIRE(!over.empty());
    CHECK(over[0].name == "mine 0");
    CHECK(over[0].why ==
          fmt::format("it is {}, and ranks without the root's buffers do not know whether it is",
                      std::string(inplace) == "true" ? "for calls in place only"
                                                     : "not for calls in place"));
  }
}

TEST_CASE("placement: ranks that do not agree on it all hear of it") {
  const auto plans = registry_with({placed_plan("allgather_ring", "true")});
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto made = Collectives::create(communicator, plans, {}, diagnostics);
    if (made == nullptr) return testing::text(diagnostics);
    std::string picked;
    const std::string first = serve(*made, Kind::allgather, 64, true, &picked);
    if (!first.empty()) return first;
    return serve(*made, Kind::allgather, 64, communicator.rank() != 1, &picked);
  };
  for (const std::string& said : testing::threads(kThree, body)) {
    CHECK_THAT(said, Catch::Contains("different calls"));
  }
}

}  // namespace
}  // namespace mscclc
