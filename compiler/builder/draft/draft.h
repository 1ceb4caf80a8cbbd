// The program that a builder makes, and the rank that is at hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/builder/draft/reports.h"

namespace mscclc {

/// Largest sizes that make sense; what is beyond is a mistake in the program.
inline constexpr uint32_t kMaxRanks = 65536, kMaxBlocks = 4096, kMaxCopies = 1024,
                          kMaxOperands = 65535;
inline constexpr int64_t kMaxChunks = 0x7fffffff;

class Draft {
 public:
  explicit Draft(BuildReports& reports);

  Program program;
  const NameId input_name, output_name;
  Mark kind_mark;       ///< of the contract
  bool flat = false;    ///< IR text: indices count chunks, and nothing is left out
  bool sealed = false;  ///< all declarations are made
  uint32_t rank = 0;    ///< the one at hand
  Rank* out = nullptr;  ///< program.ranks[rank]; null: none is at hand

  uint32_t ranks() const { return static_cast<uint32_t>(program.ranks.size()); }
  /// Takes a rank to hand; true the first time.
  bool enter(uint32_t r);
  bool entered(uint32_t r) const { return r < entered_.size() && entered_[r]; }
  /// The rank was entered elsewhere.
  void set_entered(uint32_t r, bool entered);
  /// Reports if no rank is at hand.
  bool ready() {
    if (out == nullptr) reports_.fail("rank", {}, "an op outside a rank");
    return out != nullptr;
  }

  std::string_view name(NameId id) const { return program.name_of(id); }
  /// What a channel is called.
  std::string label(uint32_t of_rank, uint32_t channel) const {
    return program.text(program.ranks[of_rank].channels[channel].label);
  }

 private:
  BuildReports& reports_;
  std::vector<bool> entered_;  ///< by rank
};

}  // namespace mscclc
