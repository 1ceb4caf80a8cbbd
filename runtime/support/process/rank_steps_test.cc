#include "runtime/support/process/rank_steps.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <new>
#include <string>

namespace mscclc {
namespace {

struct TriedRank {
  std::string met = {};
};

/// Meets all ranks, if they meet; then one rank fails in some way.
struct TriedStep {
  static constexpr const char *kThread = "tried", *kWhat = "a rank that is tried";
  std::atomic<size_t>& begun;
  size_t meets;      ///< so many; 0: they do not
  TriedRank* fails;  ///< reports
  TriedRank* lacks;  ///< has no memory

  bool run(TriedRank& rank) {
    ++begun;
    while (begun < meets) std::this_thread::yield();
    if (&rank == lacks) throw std::bad_alloc();
    rank.met = "done";
    return &rank != fails;
  }
  void without_memory(TriedRank& rank) { rank.met = "no memory"; }
  void without_thread(TriedRank& rank, Diagnostics&) { rank.met = "no thread"; }
};

TEST_CASE("ranks that wait for one another each have a thread") {
  std::vector<TriedRank> ranks(3);
  std::atomic<size_t> begun = 0;
  CHECK(do_for_ranks(ranks, true, TriedStep{begun, 3, nullptr, nullptr}));
  for (const TriedRank& rank : ranks) CHECK(rank.met == "done");
}

TEST_CASE("a step that fails for one rank is still done for those that may wait for it") {
  std::vector<TriedRank> ranks(3);
  std::atomic<size_t> begun = 0;
  CHECK_FALSE(do_for_ranks(ranks, true, TriedStep{begun, 3, &ranks[0], &ranks[1]}));
  CHECK(ranks[0].met == "done");
  CHECK(ranks[1].met == "no memory");
  CHECK(ranks[2].met == "done");
}

TEST_CASE("where no rank waits the first that fails is the last") {
  std::vector<TriedRank> ranks(3);
  std::atomic<size_t> begun = 0;
  CHECK_FALSE(do_for_ranks(ranks, false, TriedStep{begun, 0, &ranks[1], nullptr}));
  CHECK(begun == 2);
  CHECK(ranks[2].met.empty());
}

TEST_CASE("one rank needs no thread") {
  std::vector<TriedRank> ranks(1);
  std::atomic<size_t> begun = 0;
  CHECK_THROWS_AS(do_for_ranks(ranks, true, TriedStep{begun, 1, nullptr, &ranks[0]}),
                  std::bad_alloc);
}

}  // namespace
}  // namespace mscclc
