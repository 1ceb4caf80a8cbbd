// The bits that sums have in the order in which a plan adds: of a few elements of f32, and of bf16,
// which ops hand on rounded. Not for use outside the explorer.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ir/contract/order.h"
#include "ir/ops/summations.h"

namespace mscclc::explorer {

/// A contribution: an input chunk of a rank in a call, and the byte of it that a cell begins with.
using Contribution = std::array<uint32_t, 4>;

/// Bits of sample elements: two sums that are added or rounded in another way have other ones.
using Form = std::array<uint32_t, 8>;

/// Of what a caller gives. Random numbers of either sign that are of nearly one size, so that sums
/// are rounded.
Form form_of(const Contribution& input);

/// What an op makes of its sources, in written order: added up in f32, rounded once. REQUIRES:
/// there is a source.
Form sum_of(std::span<const Form> sources, Summation summation);

/// What a contract promises of the inputs of the ranks, which are given in their order. REQUIRES:
/// ranks, tree or exact.
Form promised_form(std::span<const Contribution> inputs, SumOrder order);

}  // namespace mscclc::explorer
