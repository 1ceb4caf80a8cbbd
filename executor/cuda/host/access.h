// The host's twins of the accesses of executor/cuda/device/access.cuh: the same names, the same
// order of memory as far as a thread can see, on fibers (grid.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "executor/cuda/host/grid.h"

namespace mscclc::cuda {

/// Words that the host, or a proxy, reads and writes at the same time are read whole.
template <class Word>
inline Word load_now(const Word* at) {
  host::Gpu& gpu = host::Gpu::get();
  gpu.step();
  gpu.settle(at, sizeof(Word));
  return std::atomic_ref(*const_cast<Word*>(at)).load(std::memory_order_acquire);
}
template <class Word>
inline Word add_now(Word* at, Word more) {
  host::Gpu& gpu = host::Gpu::get();
  gpu.step();
  gpu.note_change();
  return std::atomic_ref(*at).fetch_add(more, std::memory_order_acq_rel);
}

/// Plain data: a load that the thread's own order puts after what it has stored, and a store that
/// others may see late.
template <class Word>
inline Word load_as(const uint8_t* from) {
  host::Gpu& gpu = host::Gpu::get();
  gpu.step();
  gpu.settle(from, sizeof(Word));
  return *reinterpret_cast<const Word*>(from);
}
template <class Word>
inline void store_as(uint8_t* to, const Word& word) {
  static_assert(sizeof(Word) <= host::LateStores::kMaxBytes);
  // A store beyond a buffer is found where it is made, not where it is done.
  (void)*static_cast<const volatile uint8_t*>(to);
  (void)*static_cast<const volatile uint8_t*>(to + sizeof word - 1);
  host::Gpu::get().store(to, &word, sizeof word);
}

inline void load_volatile16(const uint8_t* at, uint64_t* words) {
  const uint4 row = load_as<uint4>(at);
  std::memcpy(words, &row, sizeof row);
}
inline void store_volatile16(uint8_t* at, const uint64_t* words) {
  uint4 row;
  std::memcpy(&row, words, sizeof row);
  store_as(at, row);
}
inline void store_volatile8(uint8_t* at, uint64_t word) { store_as(at, word); }

inline void load_packet_if(bool there, const uint8_t* at, uint4& row) {
  if (there) row = load_as<uint4>(at);
}
inline void store_packet(uint8_t* at, const uint4& row) { store_as(at, row); }
inline void load_line_if(uint32_t warp, bool there, const uint8_t* at, uint4& row) {
  host::Gpu::get().access_together(warp, [&] {
    if (there) row = *reinterpret_cast<const uint4*>(at);
  });
}
inline void store_line(uint32_t warp, uint8_t* at, const uint4& row) {
  host::Gpu& gpu = host::Gpu::get();
  gpu.access_together(warp, [&] { gpu.store(at, &row, sizeof row); });
}

inline void add_release(uint64_t* count) {
  host::Gpu::get().publish();
  add_now<uint64_t>(count, 1);
}
inline void add_relaxed(uint64_t* count) { add_now<uint64_t>(count, 1); }
inline void add_relaxed(uint32_t* count) { add_now<uint32_t>(count, 1); }
inline uint64_t load_acquire(const uint64_t* count) { return load_now(count); }
inline uint64_t load_relaxed(const uint64_t* count) { return load_now(count); }
inline uint32_t load_relaxed(const uint32_t* word) { return load_now(word); }
inline void fence_system() { host::Gpu::get().publish(); }
inline void store_release(uint64_t* word, uint64_t value) {
  fence_system();
  host::Gpu::get().store(word, &value, sizeof value);
  fence_system();
}

/// The copy may be made as late as it is awaited.
inline void copy_to_shared(uint64_t* to, const uint64_t* from) {
  host::Gpu& gpu = host::Gpu::get();
  gpu.step();
  gpu.now().copies.push_back({to, from});
}
inline void await_copies_to_shared() {
  host::Thread& self = host::Gpu::get().now();
  for (const host::AsyncCopy& copy : self.copies) *copy.to = load_now(copy.from);
  self.copies.clear();
}

inline uint64_t fetch_add_relaxed_gpu(uint64_t* count) { return add_now<uint64_t>(count, 1); }
inline uint64_t fetch_add_release_gpu(uint64_t* count) {
  host::Gpu::get().publish();
  return add_now<uint64_t>(count, 1);
}
inline void add_release_gpu(uint64_t* count) { fetch_add_release_gpu(count); }
inline uint64_t load_acquire_gpu(const uint64_t* count) { return load_now(count); }
inline uint64_t load_relaxed_gpu(const uint64_t* count) { return load_now(count); }
inline void store_relaxed_gpu(uint64_t* count, uint64_t value) {
  host::Gpu::get().store(count, &value, sizeof value);
}
inline void add_release(uint32_t* word) {
  host::Gpu::get().publish();
  add_now<uint32_t>(word, 1);
}
inline void add_release_gpu(uint32_t* word) { add_release(word); }
inline uint32_t load_acquire(const uint32_t* word) { return load_now(word); }
inline uint32_t load_acquire_gpu(const uint32_t* word) { return load_now(word); }
inline bool take_acquire_gpu(uint64_t* count, uint64_t seen) {
  if (load_now(count) != seen) return false;
  *count = seen - 1;
  host::Gpu::get().note_change();
  return true;
}

inline uint64_t clock_ticks() { return host::Gpu::get().tick(); }
inline uint64_t nanoseconds() { return host::Gpu::get().nanoseconds(); }

inline void launch_dependents() { host::Gpu::get().let_next_begin(); }
inline void await_launch_ahead() { host::Gpu::get().await_launch_ahead(); }

/// Each poll in vain is followed by a look: time goes on only when nothing can move.
inline constexpr uint32_t kPollsPerLook = 1;
inline void after_vain_poll() { host::Gpu::get().await_change(); }

[[noreturn]] inline void exit_thread() { host::Gpu::get().end_thread(); }

inline uint4* dynamic_shared() { return static_cast<uint4*>(host::Gpu::get().shared(nullptr, 0)); }

}  // namespace mscclc::cuda

#define MSCCLC_SHARED(Type, name) Type& name = ::mscclc::cuda::host::shared<Type>()
