// Witnesses: for each way in which a plan can lack an order, one is found, it is small, and its
// replay from text goes wrong again. A right plan has none.
#include "executor/simulator/schedules/witness.h"

#include <catch2/catch.hpp>

#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;
using OpOfCall = Suspect::OpOfCall;

/// Finds a witness, replays it from its text, and returns its holds as text.
std::string holds_of(const Program& program, const Suspect& suspect, RunStatus expected) {
  const Suspect suspects[] = {suspect};
  const auto witness = find_witness(program, suspects);
  if (!witness) return "none";
  CHECK(witness->status == expected);
  const std::string text = write_schedule(witness->schedule);
  Diagnostics diagnostics;
  const auto schedule = read_schedule(text, "w.json", program, diagnostics);
  INFO(text << render_text(diagnostics, Sources{}));
  REQUIRE(schedule);
  CHECK(simulate(program, schedule->spec, diagnostics).status == witness->status);
  std::string holds;
  for (const Hold& hold : schedule->spec.adversary->holds) {
    holds += std::string(name(hold.what)) + " " + hold.note + "\n";
  }
  return holds + std::to_string(schedule->spec.iterations) + " calls, " +
         std::to_string(schedule->spec.adversary->strands) + " strands";
}

TEST_CASE("a right plan has no witness") {
  for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port}) {
    TestProgram t = exchange(kind);
    if (kind == ChannelKind::port) {  // or else the caller changes what has not been read
      for (uint32_t r = 0; r < 2; ++r) add_op(t, r, 0, OpKind::flush, {end_of(0)});
    }
    const Suspect suspects[] = {{{0, 3, 0}, OpOfCall{1, 6, 0}}, {{1, 3, 1}, OpOfCall{0, 3, 0}}};
    CHECK(!find_witness(t.program, suspects, {.seeds = 20}));
  }
}

TEST_CASE("no opening handshake") {
  TestProgram t = exchange();
  for (uint32_t r = 0; r < 2; ++r) {
    for (int i = 0; i < 3; ++i) erase(t.program, r, 0);
  }
  CHECK(holds_of(t.program, {{0, 0, 1}, OpOfCall{1, 0, 0}}, RunStatus::wrong) ==
        "1 calls, 1 strands");
}

TEST_CASE("a closing handshake that is relaxed") {
  TestProgram t = exchange();
  t.program.ranks[0].ops[5].relaxed = true;
  CHECK(holds_of(t.program, {{0, 3, 0}, OpOfCall{1, 6, 0}}, RunStatus::wrong) ==
        "access put ch[1].output[0] <- input[0] (rank 0, tb 0)\n1 calls, 1 strands");
}

TEST_CASE("no sync between a put and its signal") {
  TestProgram t = exchange();
  erase(t.program, 0, 4);
  CHECK(holds_of(t.program, {{0, 3, 0}, OpOfCall{1, 6, 0}}, RunStatus::wrong) ==
        "access put ch[1].output[0] <- input[0] (rank 0, tb 0)\n1 calls, 2 strands");
}

TEST_CASE("no flush: the caller changes what a port has not read") {
  TestProgram t = exchange(ChannelKind::port);
  // Nothing signals rank 0 that its put has arrived.
  erase(t.program, 0, 6);
  erase(t.program, 1, 5);
  CHECK(holds_of(t.program, {{0, 3, 0}, std::nullopt}, RunStatus::wrong) ==
        "proxy put ch[1].output[0] <- input[0] (rank 0, tb 0)\n2 calls, 1 strands");
}

TEST_CASE("a hang needs no hold") {
  TestProgram t = exchange();
  erase(t.program, 0, 5);
  CHECK(holds_of(t.program, {{1, 5, 0}, std::nullopt}, RunStatus::hung) == "1 calls, 1 strands");
}

TEST_CASE("packets in one copy of their slots: a rank that is ahead overwrites them") {
  const TestProgram t = one_shot(2, 1, PacketFormat::LL16, 1);
  const std::string found = holds_of(t.program, {{0, 1, 0}, OpOfCall{1, 0, 1}}, RunStatus::hung);
  CHECK(found ==
        "op reduce_packets output[0] <- input[0], inbox[0] complete (rank 0, tb 0)\n"
        "2 calls, 1 strands");
}

}  // namespace
}  // namespace mscclc
