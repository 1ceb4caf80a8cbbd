#include "compiler/builder/ops/refs.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

TEST_CASE("references find chunks, here and at the far end") {
  TwoRanks two;
  const Ref here = two.local(two.inbox, {3});
  CHECK(here.valid());
  CHECK(here.kind() == SlotKind::local);
  CHECK(here.operand.first == 3);
  CHECK(here.operand.channel == kNone);
  const Ref there = two.far(two.draft.output_name, {1});
  CHECK(there.kind() == SlotKind::remote);
  CHECK(there.operand.channel == 0);
  CHECK(there.channel_kind() == ChannelKind::memory);
  Ref sem;
  two.refs.semaphore_ref(two.sem, {}, {}, sem);
  CHECK(sem.kind() == SlotKind::semaphore);
  CHECK(two.message().empty());
}

TEST_CASE("references to what is not there are invalid, and say so") {
  TwoRanks two;
  CHECK_FALSE(two.local(two.inbox, {4}).valid());
  CHECK(two.message() == "'inbox' has no chunk 4 on rank 0");
  CHECK_FALSE(two.local(two.ch, {}).valid());
  CHECK(two.message() == "'ch' is a channel; expected a buffer");
  const std::vector<int64_t> key = {1};
  Ref end;
  two.refs.channel_end(two.ch, key, {}, end);
  CHECK_FALSE(end.valid());
  CHECK(two.message() == "'ch' has 0 keys; 1 is given");
}
