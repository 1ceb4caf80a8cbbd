// What tests of ops begin with: two ranks that own a channel to each other, an inbox and a
// semaphore.
#pragma once

#include <string>
#include <vector>

#include "compiler/builder/declare/declarations.h"
#include "compiler/builder/declare/header.h"
#include "compiler/builder/ops/ops.h"
#include "compiler/builder/ops/refs.h"

namespace mscclc {

struct TwoRanks {
  Diagnostics diagnostics;
  BuildReports reports{diagnostics, nullptr, nullptr};
  Draft draft{reports};
  Budget budget{reports};
  Header header{reports, draft};
  Declarations owned{reports, draft, budget};
  Places places{reports, draft, budget};
  Locations locations{reports, draft};
  Tallies tallies{reports, draft, owned.members(), places};
  Refs refs{reports, draft, owned.names(), owned.layouts(), owned.members()};
  OpChecks op_checks{reports, draft, owned.members(), owned.pairing(), places};
  ChunkChecks chunk_checks{reports, draft, header, owned.names(), owned.layouts(), places};
  Ops ops{reports, draft, budget, places, locations, tallies, op_checks, chunk_checks};

  const NameId inbox = draft.program.intern("inbox"), ch = draft.program.intern("ch"),
               sem = draft.program.intern("sem");

  /// An allreduce of two chunks; block 0 of rank 0 is at hand.
  TwoRanks() {
    header.collective({.kind = CollectiveKind::allreduce, .ranks = 2, .chunks = {2}});
    owned.set_ranks(2);
    for (uint32_t r = 0; r < 2; ++r) {
      draft.enter(r);
      owned.begin_rank();
      owned.buffer(inbox, std::vector<Dim>{4}, {}, {}, {});
      owned.channel(ChannelKind::memory, ch, {}, 1 - r, {}, {});
      owned.semaphore(sem, {}, 0, {});
    }
    owned.seal();
    tallies.seal();
    enter(0);
    places.enter_block(0, {});
  }
  void enter(uint32_t rank) {
    draft.enter(rank);
    places.enter_rank();
  }
  Ref local(NameId buffer, std::vector<Index> index) {
    Ref ref;
    refs.chunk(buffer, {}, index, {}, ref);
    return ref;
  }
  Ref far(NameId buffer, std::vector<Index> index) {
    Ref ref;
    refs.far_chunk(ch, {}, {}, buffer, {}, index, {}, ref);
    return ref;
  }
  Ref end() {
    Ref ref;
    refs.channel_end(ch, {}, {}, ref);
    return ref;
  }
  bool op(OpKind kind, std::vector<Ref> dsts, std::vector<Ref> srcs = {}, OpOptions options = {}) {
    return ops.add(kind, dsts, srcs, options);
  }
  /// Of the mistake reported last; "" without one.
  std::string message() const {
    return diagnostics.all().empty() ? "" : diagnostics.all().back().message;
  }
};

}  // namespace mscclc
