// A partition of things into sets: union-find with path halving. The smallest member names a set.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace mscclc::assign {

class ChainParts {
 public:
  explicit ChainParts(uint32_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }
  uint32_t find(uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void unite(uint32_t a, uint32_t b) {
    a = find(a);
    b = find(b);
    (a < b ? parent_[b] : parent_[a]) = a < b ? a : b;
  }

 private:
  std::vector<uint32_t> parent_;
};

}  // namespace mscclc::assign
