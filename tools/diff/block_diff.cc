#include "tools/diff/block_diff.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace mscclc::diff {
namespace {

constexpr size_t kMaxCells = size_t{1} << 24;  // of the table of common subsequences

/// Everything between goes, and comes anew.
void replace(std::vector<Edit>& out, size_t a, size_t a_end, size_t b, size_t b_end) {
  for (; a < a_end; ++a) out.push_back({Edit::removed, static_cast<uint32_t>(a), 0});
  for (; b < b_end; ++b) out.push_back({Edit::added, 0, static_cast<uint32_t>(b)});
}

}  // namespace

std::vector<Edit> edits(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::vector<Edit> out;
  size_t head = 0, a_end = a.size(), b_end = b.size();
  while (head < a_end && head < b_end && a[head] == b[head]) ++head;
  while (a_end > head && b_end > head && a[a_end - 1] == b[b_end - 1]) --a_end, --b_end;
  const auto both = [&](size_t i, size_t k) {
    out.push_back({Edit::both, static_cast<uint32_t>(i), static_cast<uint32_t>(k)});
  };
  for (size_t i = 0; i < head; ++i) both(i, i);
  const size_t n = a_end - head, m = b_end - head;
  if (n == 0 || m == 0 || n > kMaxCells / m) {
    replace(out, head, a_end, head, b_end);
  } else {
    std::vector<uint32_t> longest((n + 1) * (m + 1));  // common to the ends from i and k on
    const auto at = [&](size_t i, size_t k) -> uint32_t& { return longest[i * (m + 1) + k]; };
    for (size_t i = n; i-- > 0;) {
      for (size_t k = m; k-- > 0;) {
        at(i, k) = a[head + i] == b[head + k] ? at(i + 1, k + 1) + 1
                                              : std::max(at(i + 1, k), at(i, k + 1));
      }
    }
    for (size_t i = 0, k = 0; i < n || k < m;) {
      if (i < n && k < m && a[head + i] == b[head + k]) {
        both(head + i++, head + k++);
      } else if (k == m || (i < n && at(i + 1, k) >= at(i, k + 1))) {
        out.push_back({Edit::removed, static_cast<uint32_t>(head + i++), 0});
      } else {
        out.push_back({Edit::added, 0, static_cast<uint32_t>(head + k++)});
      }
    }
  }
  for (size_t i = a_end, k = b_end; i < a.size(); ++i, ++k) both(i, k);
  return out;
}

uint32_t shared(std::vector<uint64_t> a, std::vector<uint64_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::vector<uint64_t> common;
  std::ranges::set_intersection(a, b, std::back_inserter(common));
  return static_cast<uint32_t>(common.size());
}

}  // namespace mscclc::diff
