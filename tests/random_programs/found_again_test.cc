// The families find holes that the prover had, again, when the premises that close them are taken
// away (passes/prove/model/premises.def), and nothing with them.
//
// If a generator changes, so do its pieces: `random_programs_without --family NAME --without
// PREMISE...` finds others. docs/records/recorded_runs.md has how many programs that takes.
#include <catch2/catch.hpp>

#include "passes/prove/model/premise.h"
#include "tests/random_programs/sets.h"
#include "tests/random_programs/trial.h"

namespace mscclc::random_programs {
namespace {

using proof::Premise;

struct Sought {
  const char* hole;
  const char* family;
  uint64_t piece;  ///< of seed 1
  std::vector<Premise> without;
};

std::vector<Sought> all_sought() {
  using enum Premise;
  return {
      {"the same packets by two ranks", "twins", 7231, {several_show_nothing}},
      {"packets of the last store only",
       "twins",
       7229,
       {news_of_one_process, ends_are_used_in_turn}},
      {"other packets in one slot", "twins", 1207, {one_slot_one_store}},
      {"the same packets by a port", "echoes", 24, {several_show_nothing, echoes_of_the_first}},
      {"junk in packets of other calls",
       "junk",
       502,
       {known_packets_again, bits_of_one_call, unknown_data_is_no_value}},
      {"a wait that takes what an earlier one waits for",
       "exchanges",
       944,
       {counts_are_taken_in_turn}},
      {"a sum where its result goes", "rows", 8, {bits_from_the_first}},
      {"parts of rows of two types", "rows", 253, {types_divide_differently}},
      {"a function that stores where others load", "rows", 93, {loads_of_ops_that_store_elsewhere}},
      {"a part of a result that lost -0.0", "parts", 158, {any_piece_loses_minus_zero}},
      {"an empty part that flushes nothing", "parts", 91, {parts_that_meet_have_bytes}},
      {"a slot emptied after a port has sent it", "overlays", 485, {slots_lie_on_slots}},
      {"a slot left full by a port", "overlays", 970, {slots_lie_on_slots}},
      {"a full slot filled again", "overlays", 1475, {full_slots_that_ports_send}},
      {"chunks of other lengths", "overlays", 70, {chunk_on_chunk}},
      {"a credit that a relaxed signal gives back",
       "overlays",
       1317,
       {credits_and_relaxed_signals}},
      {"sequences that are too short", "overlays", 625, {sequences_one_longer_than_copies}},
  };
}

const TrialOptions kOptions = {.explorations = 2};

Tried tried(const Sought& sought) {
  if (const SetFamily* family = find_set_family(sought.family))
    return try_set(family->make(1, sought.piece), sought.piece, kOptions);
  const RandomProgram random = random_program(1, sought.piece, find_family(sought.family));
  const auto program = load(random);
  if (!program) return {.why = program.error().text()};
  TrialOptions options = kOptions;
  options.whole_granules = random.sketch.repeats;
  return try_program(*program, sought.piece, options);
}

TEST_CASE("families find holes again when what closes them is taken away") {
  for (const Sought& sought : all_sought()) {
    proof::removed_premises = sought.without;
    const Tried open = tried(sought);
    proof::removed_premises.clear();
    const Tried closed = tried(sought);
    INFO(sought.hole << ": " << sought.family << ' ' << sought.piece << ": " << open.why << "; "
                     << closed.why);
    CHECK(open.outcome == Outcome::hole);
    CHECK(closed.outcome != Outcome::hole);
  }
}

}  // namespace
}  // namespace mscclc::random_programs
