// What a thread that drives several ranks does for all of them: one rank after the other, or, where
// they wait for one another in it, each on a thread of its own.
#pragma once

#include <algorithm>
#include <thread>
#include <vector>

#include "runtime/support/process/quiet_thread.h"

namespace mscclc {

/// Does a step for all ranks; true if it has been done for all. `wait`: ranks may wait for one
/// another in it, so it is begun for all of them; otherwise the first that fails is the last. A
/// `Step` is
///
///   struct Step {
///     static constexpr const char *kThread, *kWhat;  // a thread's name; "no thread for" kWhat
///     bool run(Rank& rank);                          // false: it has failed
///     // It could not be done, which others that wait for this rank must learn:
///     void without_memory(Rank& rank);
///     void without_thread(Rank& rank, Diagnostics& why);
///   };
///
/// Thread safety: the ranks' functions are called at the same time, one thread a rank.
template <class Rank, class Step>
[[nodiscard]] bool do_for_ranks(std::vector<Rank>& ranks, bool wait, Step step) {
  if (!wait || ranks.size() < 2) {
    return std::all_of(ranks.begin(), ranks.end(), [&](Rank& rank) { return step.run(rank); });
  }
  std::vector<uint8_t> done(ranks.size());  // not vector<bool>: threads write beside each other
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::thread thread = quiet_thread(
        Step::kThread, [&, r] { done[r] = step.run(ranks[r]) ? 1 : 0; },
        [&, r] { step.without_memory(ranks[r]); });
    Diagnostics why;
    if (has_started(thread, Step::kWhat, why)) {
      threads.push_back(std::move(thread));
    } else {
      step.without_thread(ranks[r], why);
    }
  }
  for (std::thread& thread : threads) thread.join();
  return std::count(done.begin(), done.end(), 0) == 0;
}

}  // namespace mscclc
