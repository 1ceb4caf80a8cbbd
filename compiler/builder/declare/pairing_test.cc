#include "compiler/builder/declare/pairing.h"

#include <catch2/catch.hpp>

#include "compiler/builder/declare/declarations.h"

using namespace mscclc;

namespace {

/// Two ranks of an allgather without channels.
struct Ends {
  Diagnostics diagnostics;
  BuildReports reports{diagnostics, nullptr, nullptr};
  Draft draft{reports};
  Budget budget{reports};
  Declarations owned{reports, draft, budget};
  Ends() {
    draft.program.contract.kind = CollectiveKind::allgather;
    draft.program.contract.ranks = 2;
    draft.program.ranks.resize(2);
    owned.set_ranks(2);
  }
  void enter(uint32_t rank) {
    if (draft.enter(rank)) owned.begin_rank();
  }
  void channel(const char* name, std::vector<int64_t> keys = {},
               ChannelKind kind = ChannelKind::memory) {
    REQUIRE(owned.channel(kind, draft.program.intern(name), keys, 1 - draft.rank, {1, 2}, {}));
  }
  uint32_t partner(uint32_t rank, uint32_t channel) const {
    return draft.program.ranks[rank].channels[channel].partner;
  }
  std::string message() const {
    return diagnostics.all().empty() ? "" : diagnostics.all().back().message;
  }
};

}  // namespace

TEST_CASE("ends of one name meet") {
  Ends e;
  e.enter(0);
  e.channel("a");
  e.channel("b");
  e.enter(1);
  e.channel("b");
  e.channel("a");
  e.owned.seal();
  CHECK(e.partner(0, 0) == 1);
  CHECK(e.partner(0, 1) == 0);
  CHECK(e.partner(1, 0) == 1);
  CHECK(e.message().empty());
}

TEST_CASE("ends meet as 'to' says, and several without it are ambiguous") {
  Ends e;
  e.enter(0);
  e.channel("left");
  e.owned.pairing().connect(e.draft.program.intern("right"), {}, {3, 4});
  e.channel("twin", {0});
  e.enter(1);
  e.channel("right");
  e.owned.pairing().connect(e.draft.program.intern("left"), {}, {3, 4});
  e.channel("twin", {0});
  e.channel("twin", {1});
  e.owned.seal();
  CHECK(e.partner(0, 0) == 0);
  CHECK(e.partner(1, 0) == 0);
  CHECK(e.partner(0, 1) == kNone);
  CHECK(e.owned.pairing().joint(0, 1).ambiguous);
  CHECK(e.message().empty());
}

TEST_CASE("ends of two kinds, and ends that are not there, are reported") {
  Ends kinds;
  kinds.enter(0);
  kinds.channel("a");
  kinds.enter(1);
  kinds.channel("a", {}, ChannelKind::port);
  kinds.owned.seal();
  CHECK(kinds.message() ==
        "'a' of rank 1 is a port channel, its other end 'a' of rank 0 a memory channel");
  CHECK(kinds.partner(0, 0) == kNone);
  Ends none;
  none.enter(0);
  none.channel("a");
  none.owned.pairing().connect(none.draft.program.intern("b"), {}, {3, 4});
  none.enter(1);
  none.owned.seal();
  CHECK(none.message() == "'a' of rank 0 ends at 'b', which rank 1 does not have");
}
