#include "tools/run/rank_list.h"

#include <algorithm>
#include <charconv>

namespace mscclc {
namespace {

constexpr uint32_t kMaxRanks = 65536;

bool parse_rank(std::string_view text, uint32_t& rank) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), rank);
  return problem == std::errc() && end == text.data() + text.size() && rank <= kMaxRanks;
}

/// "3" or "0..4".
bool append(std::string_view item, std::vector<uint32_t>& ranks) {
  const size_t dots = item.find("..");
  uint32_t begin = 0, end = 0;
  if (!parse_rank(item.substr(0, dots), begin)) return false;
  if (dots == std::string_view::npos) {
    end = begin + 1;
  } else if (!parse_rank(item.substr(dots + 2), end) || end <= begin) {
    return false;
  }
  if (end > kMaxRanks) return false;
  for (uint32_t r = begin; r < end; ++r) ranks.push_back(r);
  return true;
}

}  // namespace

Result<FileOfRanks> split_ranks(std::string_view text) {
  FileOfRanks out{std::string(text), {}};
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size()) return out;
  std::string_view list = text.substr(at + 1);
  if (list.find_first_not_of("0123456789,.") != std::string_view::npos) return out;
  const Error no_list{"'" + std::string(text) + "': expected ranks after '@', as in 0,1 or 0..4"};
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (!append(list.substr(0, comma), out.ranks)) return no_list;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
    if (list.empty()) return no_list;
  }
  out.file = text.substr(0, at);
  std::vector<uint32_t> sorted = out.ranks;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) {
    return Error{"'" + std::string(text) + "' names a rank twice"};
  }
  return out;
}

}  // namespace mscclc
