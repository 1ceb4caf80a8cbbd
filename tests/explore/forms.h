// The bits that sums have in the order in which a plan adds: of a few elements of f32, and of bf16,
// which ops hand on rounded. Not for use outside the explorer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ir/contract/order.h"
#include "ir/ops/summations.h"

namespace mscclc::explorer {

/// A contribution: an input chunk of a rank in a call, and the byte of it that a cell begins with.
using Contribution = std::array<uint32_t, 4>;

/// Bits of sample elements: two sums that are added or rounded in another way have other ones.
using Form = std::array<uint32_t, 8>;

/// Forms under a contract; all are alike where there is none, as the order of sums is not followed.
class Forms {
 public:
  explicit Forms(std::optional<SumOrder> order) : order_(order) {}
  bool followed() const { return order_.has_value(); }
  /// Of what a caller gives: random numbers of either sign that are of nearly one size, so that
  /// sums are rounded.
  Form given(const Contribution& input) const;
  /// What an op makes of its sources, in written order: added up in f32, rounded once.
  Form sum(std::span<const Form> sources, Summation summation) const;
  /// Is it what the contract promises of the inputs of the ranks, which are given in their order?
  /// Under `replicated`: what was found of them before. REQUIRES: followed().
  bool keeps(const Form& found, const std::vector<Contribution>& inputs);

 private:
  const std::optional<SumOrder> order_;
  std::map<std::vector<Contribution>, Form> replicated_;
};

}  // namespace mscclc::explorer
