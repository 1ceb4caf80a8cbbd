// What a run of a plan is asked for, and what it shows besides findings.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "passes/prove/processes/suspects.h"

namespace mscclc::proof {

class SumForms;

struct RunOptions {
  uint32_t calls = 2;
  std::vector<uint32_t> rounds = {};  ///< by loop of the program
  /// The message has no bytes: no op moves data, no packet comes, no pipeline has a round.
  bool empty = false;
  bool in_step = true;   ///< loops of a group wait for each other
  bool divides = false;  ///< the reduction may be avg
  /// Between calls the caller may touch the scratch of its rank, too. Of one plan.
  bool scratch_is_callers = false;
  /// Several plans: by rank, the part of each of its calls. Else `calls` of the only one.
  std::vector<std::vector<uint32_t>> order = {};
  std::vector<bool> part_divides = {};  ///< the same as `divides`, by part
  bool traced = false;                  ///< wrong results are reported with what they hold
  /// Races are known: only results are looked at that do not hang on them. `traced`, then.
  const Suspects* suspects = nullptr;
  SumForms* forms = nullptr;  ///< filled with what the sums are, if set. `traced`, then
  /// By rank: which output chunks are looked at; nullptr: all. Of one plan.
  const std::vector<std::vector<bool>>* outputs = nullptr;
};

struct RunFacts {
  SumOrders orders{
      .replicated = true, .ranks = true, .tree = true, .exact = true};  ///< that all sums keep
  bool meets = true;  ///< no rank leaves a call before all are in it
  bool keeps_input = true;
  bool adds_sums = false;  ///< a sum is a term of another
  /// What holds of this run and of another.
  void join(const RunFacts& other) {
    orders &= other.orders;
    meets &= other.meets;
    keeps_input &= other.keeps_input;
    adds_sums |= other.adds_sums;
  }
};

}  // namespace mscclc::proof
