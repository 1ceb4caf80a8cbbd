#include "compiler/builder/declare/declarations.h"

#include <catch2/catch.hpp>

using namespace mscclc;

namespace {

/// Two ranks of an allgather, of which the first is at hand.
struct Owners {
  Diagnostics diagnostics;
  BuildReports reports{diagnostics, nullptr, nullptr};
  Draft draft{reports};
  Budget budget{reports};
  Declarations owned{reports, draft, budget};
  Owners() {
    draft.program.contract.kind = CollectiveKind::allgather;
    draft.program.contract.ranks = 2;
    draft.program.ranks.resize(2);
    owned.set_ranks(2);
    draft.enter(0);
    owned.begin_rank();
  }
  NameId id(const char* name) { return draft.program.intern(name); }
  std::string message() const { return diagnostics.all().back().message; }
};

}  // namespace

TEST_CASE("what a rank owns is in the program") {
  Owners o;
  CHECK(o.owned.buffer(o.id("inbox"), std::vector<Dim>{2, 3}, {.copies = 2}, {}, {}));
  CHECK(o.owned.channel(ChannelKind::port, o.id("net"), {}, 1, {}, {}));
  CHECK(o.owned.credits(3, {}));
  CHECK(o.owned.semaphore(o.id("sem"), {}, 4, {}));
  const Rank& rank = o.draft.program.ranks[0];
  REQUIRE(rank.buffers.size() == 3);
  CHECK(rank.buffers[2].chunks == 6);
  CHECK(rank.buffers[2].copies == 2);
  CHECK(rank.channels.at(0).peer == 1);
  CHECK(rank.channels.at(0).credits == 3);
  CHECK(rank.semaphores.at(0).initial == 4);
  CHECK(o.diagnostics.all().empty());
}

TEST_CASE("what cannot be is refused") {
  Owners o;
  CHECK_FALSE(o.owned.channel(ChannelKind::memory, o.id("self"), {}, 0, {}, {}));
  CHECK(o.message() == "channel to itself on rank 0");
  CHECK_FALSE(o.owned.channel(ChannelKind::memory, o.id("far"), {}, 2, {}, {}));
  CHECK(o.message() == "rank 0 has no rank 2 to talk to");
  CHECK_FALSE(o.owned.buffer(o.id("copies"), std::vector<Dim>{1}, {.copies = 0}, {}, {}));
  CHECK(o.message() == "'copies' is 0; expected 1 to 1024");
  CHECK_FALSE(o.owned.semaphore(o.id("sem"), {}, -1, {}));
  CHECK(o.owned.names().is_poisoned(o.id("sem")));
  CHECK_FALSE(o.owned.switch_channel(o.id("sw"), {}, List::range(1, 2), {}, {}));
  CHECK(o.message() == "the switch of rank 0 does not list rank 0");
}

TEST_CASE("nothing is declared once all declarations are made") {
  Owners o;
  o.owned.seal();
  CHECK_FALSE(o.owned.semaphore(o.id("sem"), {}, 0, {}));
  CHECK(o.message() == "declare what every rank owns before the first op");
}
