// A list of integers as programs use them: `0..R`, `0..R except r`, or stored elements. Ranges,
// and ranges with one element left out, take no memory, as most lists of a program are those.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace mscclc {

/// A view: stored elements live elsewhere (an arena, a vector of the caller's).
struct List {
  static constexpr int64_t kNoHole = std::numeric_limits<int64_t>::max();

  const int64_t* data = nullptr;  ///< null: first, first + 1, … where one may be left out
  int64_t first = 0;
  int64_t count = 0;
  int64_t hole = kNoHole;  ///< position from which elements are one larger

  /// The numbers from, …, to - 1.
  static List range(int64_t from, int64_t to) {
    return {nullptr, from, to > from ? to - from : 0, kNoHole};
  }
  static List stored(std::span<const int64_t> elements) {
    return {elements.data(), 0, static_cast<int64_t>(elements.size()), kNoHole};
  }
  int64_t operator[](int64_t i) const { return data ? data[i] : first + i + (i >= hole ? 1 : 0); }
  /// True for n, n + 1, … without a gap, however it is held.
  bool consecutive() const {
    if (!data) return hole >= count;
    for (int64_t i = 1; i < count; ++i) {
      const bool last = data[i - 1] == std::numeric_limits<int64_t>::max();
      if (last || data[i] != data[i - 1] + 1) return false;
    }
    return true;
  }
};

}  // namespace mscclc
