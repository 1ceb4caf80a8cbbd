// What a plan of MSCCL++ means where it does not say so: what a send and receive sends, and the
// channels that data goes through.
#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/print/print.h"
#include "plans/format/plan_json.h"
#include "tests/helpers/plans/sample_plan.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// A plan as a peer could have written it: without our key.
OrderedJson peer_plan(const Program& program) {
  Diagnostics diagnostics;
  OrderedJson plan =
      OrderedJson::parse(*write_plan(program, builtin_targets().front(), diagnostics));
  plan.erase("mscclc");
  return plan;
}

}  // namespace

TEST_CASE("a send and receive of the peer sends as far as it writes") {
  OrderedJson plan = peer_plan(testing::sample_plan());
  plan["collective"] = "sendrecv";
  Diagnostics diagnostics;
  auto program = read_plan(plan.dump(), "p", diagnostics);
  REQUIRE(program);
  // A switch speaks to all ranks: nothing can be said about where data goes.
  CHECK(program->contract.kind == CollectiveKind::custom);
  for (OrderedJson& gpu : plan["gpus"]) gpu["threadblocks"][1]["ops"].erase(1);
  program = read_plan(plan.dump(), "p", diagnostics);
  REQUIRE(program);
  CHECK(program->contract.kind == CollectiveKind::sendrecv);
  CHECK(program->contract.shift == 1);
}

namespace {

constexpr uint32_t kNextEnd = 0, kBackEnd = 1, kPassed = kFirstScratch;

/// What a plan of MSCCL++ over three ranks sends, whose ranks each do `ops`: the shift, or 0 if
/// nothing is promised. Each rank writes at the next one only.
int64_t shift_of(const std::function<void(testing::TestProgram&, uint32_t rank)>& ops) {
  testing::TestProgram t(3, 1);
  t.program.split = true;
  t.program.contract.even_only = true;
  for (uint32_t r = 0; r < 3; ++r) {
    t.buffer(r, "stage", 2);
    t.channel(r, ChannelKind::memory, "up", {}, (r + 1) % 3, 1);
    t.channel(r, ChannelKind::memory, "down", {}, (r + 2) % 3, kNextEnd);
  }
  for (uint32_t r = 0; r < 3; ++r) ops(t, r);
  Diagnostics diagnostics;
  OrderedJson plan = peer_plan(t.program);
  plan["collective"] = "sendrecv";
  const auto program = read_plan(plan.dump(), "p", diagnostics);
  REQUIRE(program);
  if (program->contract.kind == CollectiveKind::custom) return 0;
  CHECK(program->contract.kind == CollectiveKind::sendrecv);
  return program->contract.shift;
}

}  // namespace

TEST_CASE("a send and receive of the peer goes as far as its data") {
  using namespace testing;
  CHECK(shift_of([](TestProgram& t, uint32_t r) {
          t.op_in(r, 0, OpKind::put, {far(kNextEnd, kOutput, 0)}, {local(kInput, 0)});
        }) == 1);
  // Sent from where the sender itself has put it.
  CHECK(shift_of([](TestProgram& t, uint32_t r) {
          t.op_in(r, 0, OpKind::copy, {local(kPassed, 0)}, {local(kInput, 0)});
          t.op_in(r, 0, OpKind::put, {far(kNextEnd, kOutput, 0)}, {local(kPassed, 0)});
        }) == 1);
  // Passed on by the rank between.
  CHECK(shift_of([](TestProgram& t, uint32_t r) {
          t.op_in(r, 0, OpKind::put, {far(kNextEnd, kPassed, 0)}, {local(kInput, 0)});
          t.op_in(r, 0, OpKind::copy, {local(kPassed, 1)}, {local(kPassed, 0)});
          t.op_in(r, 0, OpKind::put, {far(kNextEnd, kOutput, 0)}, {local(kPassed, 1)});
        }) == 2);
  // The same, but that the last one gets it.
  CHECK(shift_of([](TestProgram& t, uint32_t r) {
          t.op_in(r, 0, OpKind::put, {far(kNextEnd, kPassed, 0)}, {local(kInput, 0)});
          t.op_in(r, 0, OpKind::get, {local(kOutput, 0)}, {far(kBackEnd, kPassed, 0)});
        }) == 2);
  // Through the output, which may have come from either of two ranks.
  CHECK(shift_of([](TestProgram& t, uint32_t r) {
          t.op_in(r, 0, OpKind::put, {far(kNextEnd, kOutput, 0)}, {local(kInput, 0)});
          t.op_in(r, 0, OpKind::put, {far(kNextEnd, kOutput, 0)}, {local(kOutput, 0)});
        }) == 0);
}

TEST_CASE("data of a peer's plan takes the channels that no op of its block names, in turn") {
  testing::TestProgram t(3, 4);
  t.program.split = true;
  t.program.contract.even_only = true;
  for (uint32_t end = 0; end < 4; ++end) {
    const uint32_t peer = 1 + end % 2;
    t.channel(0, ChannelKind::memory, "ch", {end}, peer, end / 2);
    t.channel(peer, ChannelKind::memory, "ch", {end}, 0, end);
  }
  using namespace testing;
  for (const uint32_t end : {0u, 1u}) t.op_in(0, 0, OpKind::signal, {end_of(end)});
  for (const uint32_t r : {1u, 2u}) t.op_in(r, 0, OpKind::wait, {end_of(0)});
  for (const uint32_t chunk : {0u, 1u}) {
    for (const uint32_t end : {1u, 0u}) {
      t.op_in(0, 0, OpKind::put, {far(end, kOutput, chunk)}, {local(kInput, chunk)});
    }
  }
  OrderedJson plan = peer_plan(t.program);
  OrderedJson& block = plan["gpus"][0]["threadblocks"][0];
  const auto puts = [&](std::vector<int> table) {
    block["channels"][0]["channel_ids"] = table;
    Diagnostics diagnostics;
    const auto program = read_plan(plan.dump(), "p", diagnostics);
    REQUIRE(program);
    std::string channels;
    for (const Op& op : program->ranks[0].ops) {
      if (op.kind == OpKind::put) {
        channels += std::to_string(program->operands[op.operands].channel) + " ";
      }
    }
    return channels;
  };
  // The signals name the first two; one to each peer is left, then the first of each.
  CHECK(puts({0, 1, 2, 3}) == "3 2 1 0 ");
  CHECK(puts({0, 1, 3, 2}) == "3 2 1 0 ");
  CHECK(puts({0, 1}) == "1 0 1 0 ");
  // A block that lists none to a peer takes the rank's first one.
  CHECK(puts({2, 2}) == "1 2 1 2 ");
}

TEST_CASE("flags of several arrays are numbered one array after the other") {
  testing::TestProgram t(1, 6);
  t.program.split = true;
  for (const auto& [name, count] : {std::pair{"one", 2u}, {"two", 1u}, {"three", 3u}}) {
    t.program.flags.push_back({.name = name, .count = count, .of_output = true});
    const auto array = static_cast<uint32_t>(t.program.flags.size() - 1);
    for (uint32_t flag = 0; flag < count; ++flag) {
      t.op_in(0, 0, OpKind::notify, {Operand{.buffer = array, .first = flag}});
    }
  }
  Diagnostics diagnostics;
  const auto text = write_plan(t.program, builtin_targets().front(), diagnostics);
  REQUIRE(text);
  const auto again = read_plan(*text, "p", diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(again);
  CHECK(print_ir(*again) == print_ir(t.program));
}

}  // namespace mscclc
