// Memory that threads and processes share while they write it: counts, and words of packets. Every
// access is atomic; the orders say which access pairs with which.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

namespace mscclc {

/// The word at `at` as an atomic. REQUIRES: aligned to its size.
template <class Word>
std::atomic_ref<Word> shared_word(const void* at) {
  return std::atomic_ref<Word>(*static_cast<Word*>(const_cast<void*>(at)));
}

/// Reads what another has published with store_release() or add_release(), and all before it.
template <class Word>
Word load_acquire(const void* at) {
  return shared_word<Word>(at).load(std::memory_order_acquire);
}
template <class Word>
void store_release(void* at, Word value) {
  shared_word<Word>(at).store(value, std::memory_order_release);
}
inline void add_release(uint64_t* count) {
  shared_word<uint64_t>(count).fetch_add(1, std::memory_order_release);
}

/// Copies whole words upwards, so that a packet's flag, which stands after its data, is never seen
/// before them. What lies across words' bounds is plain data, which signals publish.
inline void copy_words(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  constexpr uint64_t kWord = sizeof(uint64_t);
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % kWord == 0) {
    for (; bytes >= kWord; bytes -= kWord, to += kWord, from += kWord) {
      store_release<uint64_t>(to, shared_word<uint64_t>(from).load(std::memory_order_relaxed));
    }
  }
  std::memcpy(to, from, bytes);
}

}  // namespace mscclc
