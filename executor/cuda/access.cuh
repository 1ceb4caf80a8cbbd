// Loads and stores of the CUDA machine: 16 bytes where the address allows, fewer elsewhere; the
// volatile and atomic ones that cross blocks and ranks.
#pragma once

#include <cstdint>
#include <cstring>

namespace mscclc::cuda {

// Packets: one access each, never from a cache line read before.
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

// Counts. A release publishes what the thread saw before it, which after a block barrier is all
// that its block wrote; it pairs with load_acquire() in the waiter.
__device__ inline void add_release(unsigned long long* count) {
  asm volatile("red.release.sys.global.add.u64 [%0], 1;" ::"l"(count) : "memory");
}
__device__ inline void add_relaxed(unsigned long long* count) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], 1;" ::"l"(count) : "memory");
}
__device__ inline unsigned long long load_acquire(const unsigned long long* count) {
  unsigned long long value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(count) : "memory");
  return value;
}
__device__ inline unsigned long long load_relaxed(const unsigned long long* count) {
  unsigned long long value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(count) : "memory");
  return value;
}
__device__ inline uint32_t load_relaxed(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

/// Plain data that another block or rank may have written just before: `bytes` of up to 16, zeros
/// behind them.
__device__ inline void load_bytes(const uint8_t* from, uint32_t bytes, uint8_t* to) {
  if (bytes == 16 && (reinterpret_cast<uintptr_t>(from) & 15) == 0) {
    uint64_t words[2];
    load_volatile16(from, words);
    memcpy(to, words, 16);
    return;
  }
  for (uint32_t i = 0; i < 16; ++i) {
    to[i] = i < bytes ? *static_cast<const volatile uint8_t*>(from + i) : 0;
  }
}

__device__ inline void store_bytes(uint8_t* to, uint32_t bytes, const uint8_t* from) {
  if (bytes == 16 && (reinterpret_cast<uintptr_t>(to) & 15) == 0) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    return;
  }
  for (uint32_t i = 0; i < bytes; ++i) to[i] = from[i];
}

/// Copies by all threads of the block.
__device__ inline void copy_bytes(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  for (uint64_t at = threadIdx.x * 16ull; at < bytes; at += blockDim.x * 16ull) {
    alignas(16) uint8_t words[16];
    const uint32_t n = bytes - at < 16 ? static_cast<uint32_t>(bytes - at) : 16;
    load_bytes(from + at, n, words);
    store_bytes(to + at, n, words);
  }
}

}  // namespace mscclc::cuda
