// Calls of several ranks that one thread drives.
#include <algorithm>
#include <utility>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/core/collectives/plan_chooser.h"
#include "runtime/support/process/rank_steps.h"

namespace mscclc {
namespace {

/// The calls of one rank, by their numbers among all.
struct CallsOfRank {
  Collectives* rank;
  std::vector<size_t> calls;
  Diagnostics said = {};
};

class Together {
 public:
  Together(std::span<const RankCall> calls, Diagnostics& diagnostics)
      : calls_(calls), diagnostics_(diagnostics), choices_(calls.size()), ready_(calls.size()) {}

  bool run() { return sort() && prepare() && launch(); }

 private:
  /// One thing to do for a rank. False: reported.
  struct Step {
    static constexpr const char *kThread = "mscclc-rank", *kWhat = "a rank of this thread";
    Together& together;
    bool (Together::*work)(CallsOfRank&);

    bool run(CallsOfRank& of) { return (together.*work)(of); }
    void without_memory(CallsOfRank& of) {
      of.rank->communicator().abort("this rank does not have enough memory for a call");
      of.said.error("out-of-memory", {}, "there is not enough memory for a call");
    }
    void without_thread(CallsOfRank& of, Diagnostics& why) {
      of.rank->communicator().abort(why);
      of.said = std::move(why);
    }
  };

  bool sort();
  bool prepare();
  bool launch();
  bool launch_in_rounds();
  bool for_ranks(bool wait, bool (Together::*work)(CallsOfRank&));
  bool prepare_of(CallsOfRank& of);
  bool launch_of(CallsOfRank& of);
  bool some_wait();

  const std::span<const RankCall> calls_;
  Diagnostics& diagnostics_;
  std::vector<PlanChoice> choices_;  ///< empty: still to be chosen, or there is none
  std::vector<ReadyCall> ready_;
  std::vector<CallsOfRank> ranks_;
};

bool Together::sort() {
  for (size_t i = 0; i < calls_.size(); ++i) {
    Collectives* const rank = calls_[i].rank;
    if (rank == nullptr) {
      diagnostics_.error("bad-call", {}, "a call names no rank");
      return false;
    }
    if (!rank->check(calls_[i].call, diagnostics_)) return false;
    auto of = std::find_if(ranks_.begin(), ranks_.end(),
                           [rank](const CallsOfRank& one) { return one.rank == rank; });
    if (of == ranks_.end()) of = ranks_.insert(ranks_.end(), {rank, {}});
    of->calls.push_back(i);
  }
  return true;
}

bool Together::prepare_of(CallsOfRank& of) {
  for (const size_t i : of.calls) {
    const auto& [rank, call, stream] = calls_[i];
    ready_[i] = choices_[i].picked != nullptr ? rank->prepare(call, choices_[i], stream, of.said)
                                              : rank->prepare(call, stream, of.said);
    if (!ready_[i]) return false;
  }
  return true;
}

bool Together::launch_of(CallsOfRank& of) {
  return std::all_of(of.calls.begin(), of.calls.end(),
                     [&](size_t i) { return of.rank->launch(ready_[i], of.said); });
}

bool Together::some_wait() {
  bool waits = false;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const auto& [rank, call, stream] = calls_[i];
    Diagnostics problems;  // prepare() reports them
    const bool capturing = rank->communicator().device().is_capturing(stream);
    choices_[i] = rank->choose_once(call, capturing, nullptr, problems);
    waits = rank->waits_for_ranks(call, choices_[i]) || may_be_of_one_rank(problems) || waits;
  }
  return waits;
}

bool Together::for_ranks(bool wait, bool (Together::*work)(CallsOfRank&)) {
  const bool done = do_for_ranks(ranks_, wait, Step{*this, work});
  for (CallsOfRank& of : ranks_) {
    const Diagnostics said = std::exchange(of.said, {});
    for (const Diagnostic& one : said.all()) diagnostics_.add(one);
  }
  return done;
}

bool Together::prepare() {
  return for_ranks(ranks_.size() > 1 && some_wait(), &Together::prepare_of);
}

// The first call of every rank, then the second of every rank: a launch may wait for the calls
// before it (StreamChain), and these for the other ranks.
bool Together::launch_in_rounds() {
  size_t most = 0;
  for (const CallsOfRank& of : ranks_) most = std::max(most, of.calls.size());
  for (size_t round = 0; round < most; ++round) {
    for (const CallsOfRank& of : ranks_) {
      if (round < of.calls.size() && !of.rank->launch(ready_[of.calls[round]], diagnostics_)) {
        return false;
      }
    }
  }
  return true;
}

bool Together::launch() {
  const bool wait = ranks_.size() > 1 && ranks_.front().rank->launches_wait();
  return wait ? for_ranks(true, &Together::launch_of) : launch_in_rounds();
}

}  // namespace

bool call_together(std::span<const RankCall> calls, Diagnostics& diagnostics) {
  return Together(calls, diagnostics).run();
}

}  // namespace mscclc
