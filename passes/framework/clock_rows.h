// Rows of vector clocks in one arena: numbers of equal width, of what each process knows of the
// progress of others. A row is named by its number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mscclc {

class ClockRows {
 public:
  /// Begins with `rows` rows of `width` zeros.
  void start(uint32_t width, uint32_t rows) {
    width_ = width;
    count_ = rows;
    numbers_.assign(size_t{width} * rows, 0);
  }
  uint32_t* operator[](uint32_t row) { return numbers_.data() + size_t{row} * width_; }
  const uint32_t* operator[](uint32_t row) const { return numbers_.data() + size_t{row} * width_; }
  /// How many numbers all rows have.
  size_t numbers() const { return numbers_.size(); }
  /// A new row like this one.
  uint32_t copy(uint32_t row) {
    numbers_.resize(numbers_.size() + width_);
    std::copy_n((*this)[row], width_, (*this)[count_]);
    return count_++;
  }
  /// Adds to `row` what `other` knows, from its `first` number on.
  void raise(uint32_t row, uint32_t other, uint32_t first = 0) {
    uint32_t* const to = (*this)[row];
    const uint32_t* const from = (*this)[other];
    for (uint32_t i = first; i < width_; ++i) to[i] = std::max(to[i], from[i]);
  }

 private:
  uint32_t width_ = 0, count_ = 0;
  std::vector<uint32_t> numbers_;
};

}  // namespace mscclc
