// Memory of ours that devices use, on whole pages of its own. A child of fork() may lack the pages
// of what is registered (ibv_fork_init), so nothing that it needs may lie there.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>

namespace mscclc::verbs {

/// Elements that begin as zeros.
template <class T>
class OwnPages {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  /// Throws std::bad_alloc.
  explicit OwnPages(size_t count) : count_(count) {
    void* const pages =
        ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<T*>(pages);
  }
  ~OwnPages() { ::munmap(data_, bytes()); }
  OwnPages(const OwnPages&) = delete;
  OwnPages& operator=(const OwnPages&) = delete;

  T* data() const { return data_; }
  size_t bytes() const { return count_ * sizeof(T); }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  const size_t count_;
  T* data_ = nullptr;
};

}  // namespace mscclc::verbs
