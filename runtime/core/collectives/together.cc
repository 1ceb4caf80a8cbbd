// Calls of several ranks that one thread drives: steps in which ranks wait for one another run on a
// thread for each rank.
#include <algorithm>
#include <functional>
#include <thread>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {
namespace {

/// The calls of one rank, by their place among all.
struct Turn {
  Collectives* rank;
  std::vector<size_t> calls;
};

/// One thing to do for a rank. False: reported.
using Step = std::function<bool(const Turn&, Diagnostics&)>;

class Together {
 public:
  Together(std::span<const RankCall> calls, Diagnostics& diagnostics)
      : calls_(calls), diagnostics_(diagnostics), choices_(calls.size()), ready_(calls.size()) {}

  bool run() { return sort() && prepare() && launch(); }

 private:
  bool sort();
  bool prepare();
  bool launch();
  bool launch_in_rounds();
  bool on_threads(const Step& step);
  bool prepare_of(const Turn& turn, Diagnostics& diagnostics);
  bool anyone_waits();

  const std::span<const RankCall> calls_;
  Diagnostics& diagnostics_;
  std::vector<PlanChoice> choices_;  ///< empty: still to be chosen, or there is none
  std::vector<ReadyCall> ready_;
  std::vector<Turn> turns_;
};

bool Together::sort() {
  for (size_t i = 0; i < calls_.size(); ++i) {
    Collectives* const rank = calls_[i].rank;
    if (rank == nullptr) {
      diagnostics_.error("bad-call", {}, "a call names no rank");
      return false;
    }
    if (!rank->check(calls_[i].call, diagnostics_)) return false;
    auto turn = std::find_if(turns_.begin(), turns_.end(),
                             [rank](const Turn& t) { return t.rank == rank; });
    if (turn == turns_.end()) turn = turns_.insert(turns_.end(), {rank, {}});
    turn->calls.push_back(i);
  }
  return true;
}

bool Together::prepare_of(const Turn& turn, Diagnostics& diagnostics) {
  for (const size_t i : turn.calls) {
    const auto& [rank, call, stream] = calls_[i];
    ready_[i] = choices_[i].picked != nullptr
                    ? rank->prepare(call, choices_[i], stream, diagnostics)
                    : rank->prepare(call, stream, diagnostics);
    if (!ready_[i]) return false;
  }
  return true;
}

bool Together::anyone_waits() {
  Diagnostics ignored;  // prepare() reports it
  bool waits = false;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const auto& [rank, call, stream] = calls_[i];
    const bool capturing = rank->communicator().device().is_capturing(stream);
    choices_[i] = rank->choose_once(call, capturing, nullptr, ignored);
    waits = rank->waits_for_ranks(call, choices_[i]) || waits;
  }
  return waits;
}

bool Together::on_threads(const Step& step) {
  std::vector<Diagnostics> said(turns_.size());
  std::vector<uint8_t> done(turns_.size());  // not vector<bool>: threads write beside each other
  std::vector<std::thread> threads;
  bool started = true;
  for (size_t t = 0; t < turns_.size() && started; ++t) {
    threads.push_back(quiet_thread(
        "mscclc-rank", [&, t] { done[t] = step(turns_[t], said[t]) ? 1 : 0; },
        [&, t] {  // the others wait for it
          turns_[t].rank->communicator().abort("this rank does not have enough memory for a call");
          said[t].error("out-of-memory", {}, "there is not enough memory for a call");
        }));
    started = has_started(threads.back(), "a rank of this thread", diagnostics_);
    if (!started) threads.pop_back();
  }
  if (!started) {  // the others wait for the ranks that have none
    for (const Turn& turn : turns_) turn.rank->communicator().abort(diagnostics_);
  }
  for (std::thread& thread : threads) thread.join();
  for (const Diagnostics& d : said) {
    for (const Diagnostic& one : d.all()) diagnostics_.add(one);
  }
  return started && std::count(done.begin(), done.end(), 0) == 0;
}

bool Together::prepare() {
  if (turns_.size() > 1 && anyone_waits()) {
    return on_threads([this](const Turn& turn, Diagnostics& d) { return prepare_of(turn, d); });
  }
  for (const Turn& turn : turns_) {
    if (!prepare_of(turn, diagnostics_)) return false;
  }
  return true;
}

// The first call of every rank, then the second of every rank: a launch may wait for the calls
// before it (StreamChain), and these for the other ranks.
bool Together::launch_in_rounds() {
  size_t most = 0;
  for (const Turn& turn : turns_) most = std::max(most, turn.calls.size());
  for (size_t round = 0; round < most; ++round) {
    for (const Turn& turn : turns_) {
      if (round < turn.calls.size() &&
          !turn.rank->launch(ready_[turn.calls[round]], diagnostics_)) {
        return false;
      }
    }
  }
  return true;
}

bool Together::launch() {
  const bool wait = turns_.size() > 1 && turns_.front().rank->launches_wait();
  if (!wait) return launch_in_rounds();
  return on_threads([this](const Turn& turn, Diagnostics& diagnostics) {
    return std::all_of(turn.calls.begin(), turn.calls.end(),
                       [&](size_t i) { return turn.rank->launch(ready_[i], diagnostics); });
  });
}

}  // namespace

bool call_together(std::span<const RankCall> calls, Diagnostics& diagnostics) {
  return Together(calls, diagnostics).run();
}

}  // namespace mscclc
