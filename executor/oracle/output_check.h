// Checks what a collective gives at a rank and call against its contract: inputs to fill in before
// a call, and outputs that must have come of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/oracle/values.h"
#include "ir/contract/contract.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

class OutputCheck {
 public:
  /// Of a call of this size; `only`: one rank, whose outputs alone are looked at.
  OutputCheck(const Contract& contract, uint64_t part_bytes, uint32_t align,
              const TestValues& values, std::optional<uint32_t> only = {});

  /// Of executors that are not ours: sums that are zero may be -0.0.
  void take_any_zero() { any_zero_ = true; }

  /// Before a call: poisons a rank's output, then fills in its input (in place that may be a part
  /// of the output).
  void fill(uint32_t rank, uint64_t call, uint8_t* input, uint8_t* output) const;
  /// After it: compares the output with what was promised. `shown`: the call's number in messages,
  /// if it is another.
  void compare(uint32_t rank, uint64_t call, const uint8_t* output,
               std::optional<uint64_t> shown = {});
  /// Counts a rank that has left a barrier before all had entered it.
  void count_early(uint32_t rank);

  uint64_t wrong() const { return wrong_; }
  /// Adds an error for every rank with wrong elements. `of_plan` is put after the rank: "" or
  /// " of 'a.json'".
  void report(Diagnostics& diagnostics, const std::string& of_plan = "") const;

 private:
  struct Source {
    uint32_t rank;
    uint64_t first;  ///< element of its input
  };
  /// A stretch of output whose elements are made of the same ranks' inputs, side by side.
  struct Expected {
    uint64_t first, count;  ///< elements of the output
    bool reduced;
    uint32_t source, sources;  ///< in sources_
  };
  struct WrongElement {
    uint64_t call, element;
    std::string expected, got;
  };
  struct WrongRank {
    uint64_t count = 0;
    std::vector<WrongElement> first;
  };

  void collect(uint32_t rank);
  void add(const Promise& promise);
  bool extends(const Expected& e, const Promise& promise, uint64_t first) const;
  void compare(uint32_t rank, uint64_t call, const Expected& e, const uint8_t* output,
               uint64_t shown);
  const uint8_t* expected_row(const Expected& e, uint64_t call, uint64_t at, uint32_t n);
  void compute(const Expected& e, uint64_t call, uint64_t at, uint32_t n, uint8_t* to);
  /// A reduction gives +0.0; what is only moved may lose its -0.0 (packets of sentinels).
  bool is_right(const Expected& e, const uint8_t* expected, const uint8_t* got) const;
  void count_wrong(const Expected& e, uint32_t rank, uint64_t call, uint64_t element,
                   const uint8_t* row, const uint8_t* got, uint32_t n);

  const Contract& contract_;
  const Chunking chunking_;
  const TestValues& values_;
  const uint32_t element_;
  bool shared_ = false;    ///< all ranks expect the same
  bool any_zero_ = false;  ///< take_any_zero()
  std::vector<Expected> expected_;
  std::vector<uint32_t> begin_;  ///< those of rank r are [begin_[r], begin_[r + 1])
  std::vector<Source> sources_;
  std::vector<int64_t> keys_;
  std::vector<uint8_t> row_;
  /// What all ranks expect of a call variant: computed once.
  std::vector<uint8_t> cache_[TestValues::kVariants];
  std::map<uint32_t, WrongRank> wrong_ranks_;
  uint64_t wrong_ = 0;
};

}  // namespace mscclc
