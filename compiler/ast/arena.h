// Memory for the nodes of a syntax tree: a bump allocator that frees all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

namespace mscclc::ast {

/// A run of nodes in the arena.
template <class T>
class Array {
 public:
  Array() = default;
  Array(T* data, size_t size) : data_(data), size_(static_cast<uint32_t>(size)) {}
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  uint32_t size_ = 0;
};

/// Memory for nodes: never freed before the Ast, no destructors run.
class Arena {
 public:
  void* allocate(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (bytes > static_cast<size_t>(end_ - at_)) return more(bytes);
    void* p = at_;
    at_ += bytes;
    return p;
  }
  template <class T>
  T* make() {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 8);
    return new (allocate(sizeof(T))) T();
  }

 private:
  struct Free {
    std::align_val_t align;
    void operator()(char* block) const { ::operator delete(block, align); }
  };
  void* more(size_t bytes);
  std::vector<std::unique_ptr<char, Free>> blocks_;
  char* at_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace mscclc::ast
