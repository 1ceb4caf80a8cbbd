#include "tests/orders/random_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace mscclc::testing {
namespace {

/// Ops that add up x[0] … x[n - 1], in a random order and grouping, into `output`.
class RandomSum {
 public:
  RandomSum(uint32_t ranks, Dice& dice) : dice_(dice), leaves_(ranks) {
    std::iota(leaves_.begin(), leaves_.end(), 0);
    if (dice_.below(3) != 0) shuffle();
    const std::string terms = sum_of(0, ranks, true);
    text_ += fmt::format("    reduce output <- {}{}\n", terms, form());
  }
  const std::string& text() const { return text_; }
  uint32_t partial() const { return partial_; }

 private:
  void shuffle() {
    for (size_t i = leaves_.size(); i > 1; --i) std::swap(leaves_[i - 1], leaves_[dice_.below(i)]);
  }
  /// The operands of a sum of leaves [begin, end), of which some are sums that were stored before.
  std::string sum_of(uint32_t begin, uint32_t end, bool whole) {
    std::string operands;
    uint32_t parts = 0;
    for (uint32_t at = begin; at < end; ++parts) {
      uint32_t n = dice_.below(3) == 0 ? 1 + static_cast<uint32_t>(dice_.below(end - at)) : 1;
      if (n == end - begin) n -= 1;  // a part of itself
      operands += (operands.empty() ? "" : ", ") + operand(at, at + n);
      at += n;
    }
    return parts > 1 || !whole ? operands : sum_of(begin, end, whole);
  }
  std::string operand(uint32_t begin, uint32_t end) {
    if (end - begin == 1) return fmt::format("x[{}]", leaves_[begin]);
    const std::string terms = sum_of(begin, end, true);
    text_ += fmt::format("    reduce y[{}] <- {}{}\n    sync\n", partial_, terms, form());
    return fmt::format("y[{}]", partial_++);
  }

  const char* form() {
    constexpr const char* kForms[] = {" tree", " exact", "", ""};
    return kForms[dice_.below(4)];
  }

  Dice& dice_;
  std::vector<uint32_t> leaves_;
  std::string text_;
  uint32_t partial_ = 0;
};

}  // namespace

std::string random_sums(uint32_t ranks, Dice& dice) {
  const RandomSum all(ranks, dice);
  std::string sums = all.text();
  uint32_t partial = all.partial();
  if (dice.below(3) == 0) {
    const RandomSum other(ranks, dice);
    partial = std::max(partial, other.partial());
    sums = fmt::format("    if r == {} {{\n{}    }} else {{\n{}    }}\n", dice.below(ranks),
                       other.text(), sums);
  }
  return fmt::format(
      "program sums\ncollective allreduce(ranks: {0})\nrank r in 0..{0} {{\n"
      "  let others = 0..{0} except r\n  buffer s[others] packets: LL16, copies: 2\n"
      "  buffer x[{0}]\n  buffer y[{1}]\n  channel ch[p in others] = memory(p)\n  tb 0 {{\n"
      "    for p in others {{ put_packets ch[p].s[r] <- input }}\n    copy x[r] <- input\n"
      "    for p in others {{ unpack_packets x[p] <- s[p] }}\n    sync\n{2}    sync\n  }}\n}}\n",
      ranks, std::max(partial, 1u), sums);
}

}  // namespace mscclc::testing
