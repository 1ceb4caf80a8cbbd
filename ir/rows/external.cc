#include "ir/rows/external.h"

#include <array>

namespace mscclc::rows {
namespace {

constexpr std::array<std::string_view, 3> kUses = {"in", "out", "inout"};
constexpr std::array<std::string_view, 3> kHoldings = {"local", "replicated", "sharded"};

template <class Word>
std::optional<Word> find(const std::array<std::string_view, 3>& words, std::string_view text) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == text) return static_cast<Word>(i);
  }
  return {};
}

}  // namespace

std::string_view name_of(Use use) { return kUses[static_cast<size_t>(use)]; }
std::string_view name_of(Holding holding) { return kHoldings[static_cast<size_t>(holding)]; }
std::optional<Use> find_use(std::string_view text) { return find<Use>(kUses, text); }
std::optional<Holding> find_holding(std::string_view text) {
  return find<Holding>(kHoldings, text);
}

}  // namespace mscclc::rows
