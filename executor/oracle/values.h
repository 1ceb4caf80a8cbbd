// Inputs for test runs, and the sums that must come out of them.
//
// Every element has a *key*, an integer, and reductions are computed on keys. Keys are chosen for
// each data type and reduction so that every partial result, in whatever order, is exact in the
// data type: what is expected does not depend on the algorithm. Values depend on rank, position and
// call, so that a contribution that is missing, doubled, misplaced or old shows.
//
//   sum, avg of floats   small integers, scaled; of few ranks at a time where the type is narrow
//   sum, prod of integers  anything: they wrap
//   prod of floats       powers of two, key = exponent * 2^16 + sign
//   min, max, no reduction  anything finite, key = bits with the sign taken apart
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ops/ops.h"

namespace mscclc {

/// What test runs leave in outputs and plain scratch before anything is written there.
constexpr uint8_t kUnwrittenByte = 0xcb;

class TestValues {
 public:
  /// `reduce`: ReduceOp::call if the collective reduces nothing.
  TestValues(Dtype dtype, Dtype accumulate, ReduceOp reduce, uint32_t ranks);

  /// Writes elements [first, first + n) of a rank's input of call `call`.
  void fill(uint32_t rank, uint64_t call, uint64_t first, uint64_t n, uint8_t* to) const;
  /// Starts or continues `n` reductions with elements from `first` on of a rank's input.
  void reduce(uint32_t rank, uint64_t call, uint64_t first, uint32_t n, bool start,
              int64_t* keys) const;
  /// The elements that `n` reductions of `contributions` inputs give; a zero is +0.0.
  void finish(const int64_t* keys, uint32_t n, uint32_t contributions, uint8_t* to) const;

  Dtype dtype() const { return dtype_; }
  ReduceOp reduction() const { return reduce_; }
  Dtype accumulate() const { return accumulate_; }
  uint32_t element() const { return element_; }

  static constexpr uint64_t kVariants = 7;  ///< calls that differ from one another

 private:
  enum class Keys : uint8_t { small, wrapping, ordered, exponents };
  static constexpr uint64_t kBlock = 256;    ///< elements that lie in a table as in the input
  static constexpr uint64_t kWindows = 768;  ///< places in a table where a block may begin
  static constexpr uint64_t kTable = kWindows + kBlock;

  void choose();
  int64_t make_key(uint32_t rank, uint32_t index) const;
  int64_t small_key(uint64_t random) const;
  uint64_t bits_of(int64_t key) const;
  uint64_t finished_bits(int64_t key, uint32_t contributions) const;
  template <Dtype T>
  void finish_as(const int64_t* keys, uint32_t n, uint32_t contributions, uint8_t* to) const;
  uint64_t window(uint64_t block, uint64_t call) const;

  Dtype dtype_, accumulate_;
  ReduceOp reduce_;
  uint32_t ranks_, element_;
  Keys kind_ = Keys::small;
  int64_t largest_ = 1;  ///< small: most that a key may be; ordered: likewise
  bool negative_ = true;
  uint32_t every_ = 1;         ///< one rank in so many has a key other than 0 (or exponent 0)
  double scale_ = 1;           ///< small: value of key 1
  std::vector<int64_t> keys_;  ///< a table for each rank
  std::vector<uint8_t> bits_;  ///< the same as elements
};

/// An element's value as text, for messages.
std::string element_text(Dtype dtype, const uint8_t* at);
/// True if two elements are equal: the same bits, or zeros of either sign.
bool same_element(Dtype dtype, const uint8_t* a, const uint8_t* b);

}  // namespace mscclc
