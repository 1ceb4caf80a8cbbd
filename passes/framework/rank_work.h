// A pass that works on each rank by itself: on several threads, if the program is large. Each has a
// part of the ranks, and what it adds to the program, reports and counts is its own; it is put
// together in the order of the ranks, so that nothing depends on the number of threads.
#pragma once

#include <functional>

#include "ir/program/rank_parts.h"
#include "passes/framework/pass.h"

namespace mscclc {

/// What one thread has to do, and its own things to do it with.
struct RankWork {
  RankRange ranks;
  Additions& additions;
  PassContext& context;
};

/// Calls `work` for parts of the ranks in `all`, on as many threads as `context` says. A call may
/// change the ops and declarations of its own ranks, and read what no call changes. It returns
/// false after reporting an error, when the ranks after it do not matter any more.
/// True if all calls gave true.
bool work_on_ranks(Program& program, PassContext& context, RankRange all,
                   const std::function<bool(RankWork&)>& work);
/// The same for all ranks.
bool work_on_ranks(Program& program, PassContext& context,
                   const std::function<bool(RankWork&)>& work);

}  // namespace mscclc
