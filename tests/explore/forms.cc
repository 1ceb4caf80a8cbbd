#include "tests/explore/forms.h"

#include <algorithm>
#include <bit>

#include "ir/ops/trees.h"

namespace mscclc::explorer {
namespace {

/// The first half of a form are elements of f32, the second of bf16.
constexpr size_t kHalf = std::tuple_size_v<Form> / 2;

uint32_t rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
}

float tree(std::span<const float> terms) {
  if (terms.size() == 1) return terms[0];
  const uint32_t middle = first_of_tree(static_cast<uint32_t>(terms.size()));
  return tree(terms.first(middle)) + tree(terms.subspan(middle));
}

float added(std::span<const float> terms, Summation summation) {
  if (summation == Summation::tree) return tree(terms);
  float sum = terms[0];
  double exact = terms[0];  // has room for all digits of some numbers of nearly one size
  for (const float term : terms.subspan(1)) {
    sum += term;
    exact += term;
  }
  return summation == Summation::exact ? static_cast<float>(exact) : sum;
}

}  // namespace

Form Forms::given(const Contribution& input) const {
  if (!order_) return {};
  uint64_t state = 0x9e3779b97f4a7c15;
  for (const uint32_t word : input) state = (state ^ word) * 0xbf58476d1ce4e5b9 + (state >> 29);
  Form form;
  for (size_t i = 0; i < form.size(); ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const auto random = static_cast<uint32_t>(state >> 32);
    // Of eight exponents, around that of 1.
    const uint32_t bits = (random & 0x807fffff) | ((123 + (random >> 23) % 8) << 23);
    form[i] = i < kHalf ? bits : bits & 0xffff0000;
  }
  return form;
}

Form Forms::sum(std::span<const Form> sources, Summation summation) const {
  if (!order_) return {};
  Form form;
  std::vector<float> terms(sources.size());
  for (size_t i = 0; i < form.size(); ++i) {
    std::ranges::transform(sources, terms.begin(),
                           [&](const Form& source) { return std::bit_cast<float>(source[i]); });
    const float sum = added(terms, summation);
    form[i] = i < kHalf ? std::bit_cast<uint32_t>(sum) : rounded_to_bf16(sum);
  }
  return form;
}

bool Forms::keeps(const Form& found, const std::vector<Contribution>& inputs) {
  if (*order_ == SumOrder::any) return true;
  if (*order_ == SumOrder::replicated) {
    return replicated_.try_emplace(inputs, found).first->second == found;
  }
  std::vector<Form> forms;
  for (const Contribution& input : inputs) forms.push_back(given(input));
  return found == sum(forms, *order_ == SumOrder::tree    ? Summation::tree
                             : *order_ == SumOrder::exact ? Summation::exact
                                                          : Summation::in_turn);
}

}  // namespace mscclc::explorer
