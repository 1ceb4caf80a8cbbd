// Which rank is to blame when blocks of several ranks have given up: the reports of all ranks,
// joined into one graph of which rank waits for which. A rank that is waited for and waits for none
// is where it began. Pure: the hub and the bootstrap of threads feed it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/api/bootstrap.h"

namespace mscclc {

class WaitGraph {
 public:
  explicit WaitGraph(uint32_t ranks) : ranks_(ranks) {}

  /// `rank` has said for which ranks it waits.
  void report(uint32_t rank, const WaitReport& report);
  /// `rank` lives, but has not said yet whether it waits.
  void answer(uint32_t rank);
  /// `rank` waits in no call: `where` says what it does instead, "is at step 'load a plan'".
  void elsewhere(uint32_t rank, const std::string& where);

  /// Every rank has reported, or is elsewhere.
  bool complete() const;

  /// The first line names those that did not answer, or else those that did not send what others
  /// wait for, or those that wait for one another; further lines say which rank waits for which.
  /// `names`: of the ranks, "rank 3 (process 12 on 10.0.0.1)". REQUIRES: at least one rank has
  /// reported.
  std::string verdict(const std::vector<std::string>& names) const;

 private:
  enum class State : uint8_t { silent, living, reported, elsewhere };
  struct Rank {
    State state = State::silent;
    std::vector<uint32_t> awaited;
    std::string text;  ///< why, or where
  };
  std::vector<uint32_t> blamed() const;
  std::vector<uint32_t> circle() const;
  bool reaches(uint32_t from, uint32_t to) const;
  std::vector<uint32_t> waiting_for(const std::vector<uint32_t>& ranks) const;
  std::string first_line(const std::vector<std::string>& names) const;

  std::vector<Rank> ranks_;
};

/// "rank 3", "ranks 0, 2 and 7", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 92 more".
std::string list_ranks(const std::vector<uint32_t>& ranks);

}  // namespace mscclc
