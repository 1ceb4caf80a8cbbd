#include "compiler/builder/ops/tallies.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

TEST_CASE("signals are counted, apart for pipelines of another ratio") {
  TwoRanks two;
  const Ref end = two.end();
  const OpInfo& signal = info(OpKind::signal);
  two.tallies.use(signal, {&end, 1});
  two.tallies.use(signal, {&end, 1});
  two.places.enter_pipeline(64, 1, {}, {});
  const uint32_t rounds = two.places.rounds();
  CHECK(two.tallies.more_classes() == 0);
  two.tallies.use(signal, {&end, 1});
  const ChannelUse& use = two.tallies.channel(0, 0);
  CHECK(use.sender == 0);
  CHECK(use.waiter == kNone);
  CHECK(two.tallies.count(use.signals, tally_key(0, 0), 0) == 2);
  CHECK(two.tallies.count(use.signals, tally_key(0, 0), rounds) == 1);
  CHECK(two.tallies.count(use.waits, tally_key(0, 0) | kWaitTally, 0) == 0);
  CHECK(two.tallies.more_classes() == rounds + 1);
}

TEST_CASE("a side of a channel serves one block") {
  TwoRanks two;
  const Ref end = two.end();
  two.tallies.use(info(OpKind::signal), {&end, 1});
  two.places.enter_block(1, {});
  two.tallies.use(info(OpKind::wait), {&end, 1});
  CHECK(two.message().empty());
  two.tallies.use(info(OpKind::signal), {&end, 1});
  CHECK(two.message() == "tb 0 and tb 1 both signal at 'ch'");
}

TEST_CASE("counts of another builder come with its classes") {
  TwoRanks two, other;
  const Ref end = other.end();
  other.places.enter_pipeline(64, 1, {}, {});
  other.tallies.use(info(OpKind::signal), {&end, 1});
  two.tallies.take(other.tallies, {0, 1}, {0, 7});
  CHECK(two.tallies.count(two.tallies.channel(0, 0).signals, tally_key(0, 0), 7) == 1);
}
