// All accesses of the CUDA machine: plain data, and what crosses blocks and ranks: packets and
// counts. And what else a processor has to say in words of its own. Code that is compiled for the
// host gets twins of all that (executor/cuda/host).
//
// Scopes: .sys where a peer or the host is at the other end, .gpu between blocks of one rank.
#pragma once

#ifdef MSCCLC_ON_HOST
#include "executor/cuda/host/access.h"
#else

#include <cstdint>

namespace mscclc::cuda {

// Plain data.
template <class Word>
__device__ inline Word load_as(const uint8_t* from) {
  return *reinterpret_cast<const Word*>(from);
}
template <class Word>
__device__ inline void store_as(uint8_t* to, const Word& word) {
  *reinterpret_cast<Word*>(to) = word;
}

// Packets, never from a cache line read before. PTX takes a vector for accesses to its elements, in
// any order (memory consistency model, "Vector Data-types"): elements of 8 bytes keep what LL8 and
// LL16 rely on, that a flag comes with the 4 bytes of data beside it.
__device__ inline void load_volatile16(const uint8_t* at, uint64_t* words) {
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(words[0]), "=l"(words[1])
               : "l"(at)
               : "memory");
}
__device__ inline void store_volatile16(uint8_t* at, const uint64_t* words) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(words[0]), "l"(words[1])
               : "memory");
}
__device__ inline void store_volatile8(uint8_t* at, uint64_t word) {
  asm volatile("st.volatile.global.u64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
}

/// Loads a row if it is `there`, without a branch.
__device__ inline void load_packet_if(bool there, const uint8_t* at, uint4& row) {
  asm volatile(
      "{ .reg .pred there; .reg .b64 low, high;\n"
      "setp.ne.u32 there, %5, 0;\n"
      "mov.b64 low, {%0, %1}; mov.b64 high, {%2, %3};\n"
      "@there ld.volatile.global.v2.u64 {low, high}, [%4];\n"
      "mov.b64 {%0, %1}, low; mov.b64 {%2, %3}, high; }"
      : "+r"(row.x), "+r"(row.y), "+r"(row.z), "+r"(row.w)
      : "l"(at), "r"(static_cast<uint32_t>(there))
      : "memory");
}
/// The same for lines: the loads of the threads `warp` of a warp, which have just met, are one
/// instruction, as LL128 relies on.
__device__ inline void load_line_if(uint32_t, bool there, const uint8_t* at, uint4& row) {
  load_packet_if(there, at, row);
}
__device__ inline void store_packet(uint8_t* at, const uint4& row) {
  asm volatile(
      "{ .reg .b64 low, high;\n"
      "mov.b64 low, {%1, %2}; mov.b64 high, {%3, %4};\n"
      "st.volatile.global.v2.u64 [%0], {low, high}; }" ::"l"(at),
      "r"(row.x), "r"(row.y), "r"(row.z), "r"(row.w)
      : "memory");
}

/// The same for lines: the stores of the threads `warp` of a warp, which meet here, are one
/// instruction, as LL128 relies on.
__device__ inline void store_line(uint32_t warp, uint8_t* at, const uint4& row) {
  __syncwarp(warp);
  store_packet(at, row);
}

// Signals. A release publishes what the thread saw before it, which after a block barrier is all
// that its block wrote; it pairs with load_acquire() in the waiter.
__device__ inline void add_release(uint64_t* count) {
  asm volatile("red.release.sys.global.add.u64 [%0], 1;" ::"l"(count) : "memory");
}
__device__ inline void add_relaxed(uint64_t* count) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], 1;" ::"l"(count) : "memory");
}
__device__ inline void add_relaxed(uint32_t* count) {
  asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
}
__device__ inline uint64_t load_acquire(const uint64_t* count) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(count) : "memory");
  return value;
}
__device__ inline uint64_t load_relaxed(const uint64_t* count) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(count) : "memory");
  return value;
}
__device__ inline uint32_t load_relaxed(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline void store_release(uint64_t* word, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
/// What the thread saw before it, all see that see what it writes after it.
__device__ inline void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

/// Copies a count to shared memory while the thread goes on. REQUIRES: nothing changes it in this
/// launch before await_copies_to_shared(), except for a mark in its upper word (mark_of()): with it
/// or without, the value is one.
__device__ inline void copy_to_shared(uint64_t* to, const uint64_t* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}
/// Waits for what this thread copies.
__device__ inline void await_copies_to_shared() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Counts of a block, semaphores and barriers.
__device__ inline uint64_t fetch_add_relaxed_gpu(uint64_t* count) {
  uint64_t before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;"
               : "=l"(before)
               : "l"(count)
               : "memory");
  return before;
}
__device__ inline void add_release_gpu(uint64_t* count) {
  asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(count) : "memory");
}
__device__ inline uint64_t fetch_add_release_gpu(uint64_t* count) {
  uint64_t before;
  asm volatile("atom.release.gpu.global.add.u64 %0, [%1], 1;"
               : "=l"(before)
               : "l"(count)
               : "memory");
  return before;
}
__device__ inline uint64_t load_acquire_gpu(const uint64_t* count) {
  uint64_t value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(count) : "memory");
  return value;
}
__device__ inline uint64_t load_relaxed_gpu(const uint64_t* count) {
  uint64_t value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(count) : "memory");
  return value;
}
__device__ inline void store_relaxed_gpu(uint64_t* count, uint64_t value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(count), "l"(value) : "memory");
}
// Flags that the caller gives, of 32 bits (of 64 they are as counts).
__device__ inline void add_release(uint32_t* word) {
  asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(word) : "memory");
}
__device__ inline void add_release_gpu(uint32_t* word) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(word) : "memory");
}
__device__ inline uint32_t load_acquire(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline uint32_t load_acquire_gpu(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
/// Takes one from a count that was `seen`, above 0; false: it has changed since.
__device__ inline bool take_acquire_gpu(uint64_t* count, uint64_t seen) {
  uint64_t before;
  asm volatile("atom.acquire.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(count), "l"(seen), "l"(seen - 1)
               : "memory");
  return before == seen;
}

__device__ inline uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// The multiprocessor's clock.
__device__ inline uint64_t clock_ticks() { return static_cast<uint64_t>(clock64()); }

// Programmatic dependent launches (ahead.cuh); older devices order kernels by streams alone.
__device__ inline void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void await_launch_ahead() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Polls between two looks at the abort word, which costs a trip to the host's memory.
inline constexpr uint32_t kPollsPerLook = 4096;
/// Comes after each poll that was in vain.
__device__ inline void after_vain_poll() {}

[[noreturn]] __device__ inline void exit_thread() {
  asm volatile("exit;");
  __builtin_unreachable();
}

/// The shared memory that the launch asks for.
__device__ inline uint4* dynamic_shared() {
  extern __shared__ uint4 dynamic_shared_memory[];
  return dynamic_shared_memory;
}

}  // namespace mscclc::cuda

/// A variable in shared memory. A kernel has one of each type at most.
#define MSCCLC_SHARED(Type, name) __shared__ Type name

#endif
