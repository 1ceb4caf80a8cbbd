// What each pass did to each line of a program: joined ops, dropped and added some, wrote some out,
// moved some.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "executor/cost/explanation.h"
#include "ir/program/program.h"
#include "passes/registry.h"

namespace mscclc {

class PassTrace {
 public:
  /// Has the passes that run with `options` followed. Must outlive that run.
  void follow(PassOptions& options);
  /// In the order of the passes, then of the program's lines. Counts are of the first kMaxRanks
  /// ranks.
  const std::vector<cost::PassLine>& lines() const { return lines_; }

 private:
  /// Lines that an op comes from, "12" or "12, 14", and what it is: "put".
  using Key = std::pair<std::string, std::string>;
  struct State {
    std::map<Key, uint64_t> counts;
    std::map<std::string, std::vector<uint64_t>> order;  ///< by rank and block: hashes of ops
    std::map<uint64_t, std::string> place;               ///< by hash
  };
  static State state_of(const Program& program);
  void compare(std::string_view pass, const State& before, const State& after);
  void compare_order(std::string_view pass, const State& before, const State& after);

  static constexpr size_t kMaxRanks = 16;

  bool begun_ = false;
  State before_;
  std::vector<cost::PassLine> lines_;
};

}  // namespace mscclc
