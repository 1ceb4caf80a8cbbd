// A list that grows without moving what is in it: large runs need no room for two copies of their
// records, and references stay good. Its blocks are twice as long each time.
#pragma once

#include <bit>
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

  T& push_back(T value) {
    if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity()) add_block();
    blocks_.back().push_back(std::move(value));
    ++size_;
    return blocks_.back().back();
  }

 private:
  static constexpr size_t kFirst = 64;
  template <class Self>
  static auto& at(Self& self, size_t i) {
    const auto block = static_cast<size_t>(std::bit_width(i / kFirst + 1) - 1);
    return self.blocks_[block][i + kFirst - (kFirst << block)];
  }
  void add_block() {
    const size_t length = kFirst << blocks_.size();
    blocks_.emplace_back().reserve(length);
  }

  std::vector<std::vector<T>> blocks_;
  size_t size_ = 0;
};

}  // namespace mscclc::proof
