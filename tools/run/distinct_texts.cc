#include "tools/run/distinct_texts.h"

#include <fmt/format.h>

namespace mscclc {
namespace {

/// What texts have in common that are said once.
std::string key_of(const std::string& text) {
  const bool is_error = text.starts_with("error: ");
  if (!is_error || text.find('\n') + 1 != text.size()) return text;
  std::string words;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) words.push_back(c);
    if (digit && (words.empty() || words.back() != '0')) words.push_back('0');
  }
  return words;
}

std::string name_ranks(const std::vector<uint32_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {} says", ranks.front());
  return fmt::format("ranks {} say", fmt::join(ranks, ", "));
}

}  // namespace

std::string DistinctTexts::add(uint32_t rank, const std::string& text) {
  const auto [entry, is_new] = said_.try_emplace(key_of(text), Said{rank, text, {}});
  if (is_new) return text;
  if (text != entry->second.text) entry->second.others.push_back(rank);
  return "";
}

std::string DistinctTexts::ranks_left_out() const {
  std::string all;
  for (const auto& [words, said] : said_) {
    if (said.others.empty()) continue;
    all += fmt::format("note: {} the same as rank {}, with other numbers\n",
                       name_ranks(said.others), said.rank);
  }
  return all;
}

}  // namespace mscclc
