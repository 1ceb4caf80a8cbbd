// A list that grows without moving what is in it: large runs need no room for two copies of their
// records, and references stay good. Its blocks are equally long, so that an index is found soon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mscclc::proof {

template <class T>
class Growing {
 public:
  size_t size() const { return size_; }
  T& operator[](size_t i) { return at(*this, i); }
  const T& operator[](size_t i) const { return at(*this, i); }

  /// Adds T(values…).
  template <class... Values>
  T& add(Values&&... values) {
    if (size_ % kBlock == 0) blocks_.emplace_back().reserve(kBlock);
    ++size_;
    return blocks_.back().emplace_back(std::forward<Values>(values)...);
  }

 private:
  static constexpr size_t kBlock = 256;
  template <class Self>
  static auto& at(Self& self, size_t i) {
    return self.blocks_[i / kBlock][i % kBlock];
  }

  std::vector<std::vector<T>> blocks_;
  size_t size_ = 0;
};

}  // namespace mscclc::proof
