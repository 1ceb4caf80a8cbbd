// Plain data: loads, stores and copies of any length at any address, 16 bytes at a time where the
// addresses allow.
//
// All accesses are weak. What they must come after (a wait, a semaphore, a barrier) is an acquire
// by one thread of the block and then a meeting of its threads, which orders them for all; what
// must come after them is a meeting and then a release.
#pragma once

#include <cstdint>
#include <cstring>

#include "executor/cuda/device/access.cuh"

namespace mscclc::cuda {

template <class Word>
__device__ inline Word* at(uint8_t* base, uint64_t index) {
  return reinterpret_cast<Word*>(base) + index;
}
template <class Word>
__device__ inline const Word* at(const uint8_t* base, uint64_t index) {
  return reinterpret_cast<const Word*>(base) + index;
}
__device__ inline uint32_t low_bits(const void* address) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address));
}

template <class Word>
__device__ inline uint4 gather_words(const uint8_t* from) {
  constexpr uint32_t kWords = 16 / sizeof(Word);
  Word words[kWords];
#pragma unroll
  for (uint32_t i = 0; i < kWords; ++i) words[i] = load_as<Word>(from + i * sizeof(Word));
  uint4 out;
  memcpy(&out, words, 16);
  return out;
}
template <class Word>
__device__ inline void scatter_words(uint8_t* to, const uint4& data) {
  constexpr uint32_t kWords = 16 / sizeof(Word);
  Word words[kWords];
  memcpy(words, &data, 16);
#pragma unroll
  for (uint32_t i = 0; i < kWords; ++i) store_as(to + i * sizeof(Word), words[i]);
}

// Not inlined: the fast path is one access.
static __device__ __noinline__ uint4 load_slow(const uint8_t* from, uint32_t bytes) {
  if (bytes == 16) {
    if ((low_bits(from) & 7) == 0) return gather_words<uint64_t>(from);
    if ((low_bits(from) & 3) == 0) return gather_words<uint32_t>(from);
    if ((low_bits(from) & 1) == 0) return gather_words<uint16_t>(from);
    return gather_words<uint8_t>(from);
  }
  uint64_t words[2] = {0, 0};
  for (uint32_t i = 0; i < bytes; ++i)
    words[i / 8] |= uint64_t{load_as<uint8_t>(from + i)} << (i % 8 * 8);
  uint4 out;
  memcpy(&out, words, 16);
  return out;
}
static __device__ __noinline__ void store_slow(uint8_t* to, uint32_t bytes, uint4 data) {
  if (bytes == 16) {
    if ((low_bits(to) & 7) == 0) return scatter_words<uint64_t>(to, data);
    if ((low_bits(to) & 3) == 0) return scatter_words<uint32_t>(to, data);
    if ((low_bits(to) & 1) == 0) return scatter_words<uint16_t>(to, data);
    return scatter_words<uint8_t>(to, data);
  }
  uint64_t words[2];
  memcpy(words, &data, 16);
  for (uint32_t i = 0; i < bytes; ++i) {
    store_as(to + i, static_cast<uint8_t>(words[i / 8] >> (i % 8 * 8)));
  }
}

/// `bytes` of up to 16, zeros after them.
__device__ inline uint4 load_piece(const uint8_t* from, uint32_t bytes) {
  if (bytes == 16 && (low_bits(from) & 15) == 0) return load_as<uint4>(from);
  return load_slow(from, bytes);
}
__device__ inline void store_piece(uint8_t* to, uint32_t bytes, const uint4& data) {
  if (bytes == 16 && (low_bits(to) & 15) == 0) {
    store_as(to, data);
  } else {
    store_slow(to, bytes, data);
  }
}

/// Up to 4 bytes at a multiple of 4, zeros after them. `kTails`: they may be fewer than 4.
template <bool kTails>
__device__ inline uint32_t load_word(const uint8_t* from, uint32_t bytes) {
  if (bytes >= 4) return load_as<uint32_t>(from);
  if (!kTails || bytes == 0) return 0;
  uint32_t word = load_as<uint8_t>(from);
  if (bytes > 1) word |= uint32_t{load_as<uint8_t>(from + 1)} << 8;
  if (bytes > 2) word |= uint32_t{load_as<uint8_t>(from + 2)} << 16;
  return word;
}
template <bool kTails>
__device__ inline void store_word(uint8_t* to, uint32_t bytes, uint32_t word) {
  if (bytes >= 4) {
    store_as(to, word);
  } else if (kTails && bytes != 0) {
    store_as(to, static_cast<uint8_t>(word));
    if (bytes > 1) store_as(to + 1, static_cast<uint8_t>(word >> 8));
    if (bytes > 2) store_as(to + 2, static_cast<uint8_t>(word >> 16));
  }
}

/// `bytes` of up to 16 at a multiple of 4, zeros after them.
template <bool kTails>
__device__ inline uint4 load_words(const uint8_t* from, uint32_t bytes) {
  uint32_t words[4];
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i)
    words[i] = 4 * i + 4 <= bytes ? load_as<uint32_t>(from + 4 * i) : 0;
  if (kTails && (bytes & 3) != 0) {
    const uint32_t tail = load_word<true>(from + (bytes & 12), bytes & 3);
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) words[i] = i == bytes / 4 ? tail : words[i];
  }
  return {words[0], words[1], words[2], words[3]};
}
template <bool kTails>
__device__ inline void store_words(uint8_t* to, uint32_t bytes, const uint4& data) {
  const uint32_t words[] = {data.x, data.y, data.z, data.w};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    if (4 * i + 4 <= bytes) store_as(to + 4 * i, words[i]);
  }
  if (kTails && (bytes & 3) != 0) {
    const uint32_t low = bytes < 4 ? words[0] : words[1], high = bytes < 12 ? words[2] : words[3];
    store_word<true>(to + (bytes & 12), bytes & 3, bytes < 8 ? low : high);
  }
}

/// `count` words by all threads of the block, kTogether loads of each before their stores.
template <class Word, uint32_t kTogether>
__device__ inline void copy_words(uint8_t* to, const uint8_t* from, uint64_t count) {
  const uint64_t step = threads_of_block();
  uint64_t i = thread_of_block();
  for (; i + (kTogether - 1) * step < count; i += kTogether * step) {
    Word words[kTogether];
#pragma unroll
    for (uint32_t k = 0; k < kTogether; ++k) {
      words[k] = load_as<Word>(from + (i + k * step) * sizeof(Word));
    }
#pragma unroll
    for (uint32_t k = 0; k < kTogether; ++k) {
      store_as(to + (i + k * step) * sizeof(Word), words[k]);
    }
  }
  for (; i < count; i += step) {
    store_as(to + i * sizeof(Word), load_as<Word>(from + i * sizeof(Word)));
  }
}

/// What of `bytes` lies in front of a line of 128 bytes of the destination, which may be a peer's:
/// stores of a warp that fill lines take fewer packets.
__device__ inline uint64_t head_of(const uint8_t* to, uint64_t bytes) {
  const uint64_t head = (0u - low_bits(to)) & 127;
  return head < bytes ? head : bytes;
}

/// Copies in words as wide as both addresses share; the ends that do not fill one bytewise.
template <class Word, uint32_t kTogether>
__device__ inline void copy_as(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  const uint64_t head = head_of(to, bytes);
  const uint64_t words = (bytes - head) / sizeof(Word);
  const uint64_t tail = head + words * sizeof(Word);
  copy_words<Word, kTogether>(to + head, from + head, words);
  for (uint64_t i = threadIdx.x; i < head; i += blockDim.x)
    store_as(to + i, load_as<uint8_t>(from + i));
  for (uint64_t i = tail + threadIdx.x; i < bytes; i += blockDim.x)
    store_as(to + i, load_as<uint8_t>(from + i));
}

/// Copies between addresses that have only a multiple of 4 in common: rows of 16 bytes of the
/// destination are put together from words.
template <uint32_t kTogether>
__device__ inline void copy_rows_of_words(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  const uint64_t head = head_of(to, bytes);
  const uint64_t tail = head + (bytes - head) / 16 * 16, step = blockDim.x * 16ull;
  for (uint64_t i = head + threadIdx.x * 16; i < tail; i += kTogether * step) {
    uint4 rows[kTogether];
#pragma unroll
    for (uint32_t k = 0; k < kTogether; ++k) {
      if (i + k * step < tail) rows[k] = gather_words<uint32_t>(from + i + k * step);
    }
#pragma unroll
    for (uint32_t k = 0; k < kTogether; ++k) {
      if (i + k * step < tail) store_as(to + i + k * step, rows[k]);
    }
  }
  for (uint64_t i = threadIdx.x; i < head; i += blockDim.x)
    store_as(to + i, load_as<uint8_t>(from + i));
  for (uint64_t i = tail + threadIdx.x; i < bytes; i += blockDim.x)
    store_as(to + i, load_as<uint8_t>(from + i));
}

static __device__ __noinline__ void copy_slow(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  const uint32_t apart = low_bits(to) ^ low_bits(from);
  if (((apart | low_bits(to)) & 3) == 0) return copy_rows_of_words<4>(to, from, bytes);
  if ((apart & 1) == 0) return copy_as<uint16_t, 4>(to, from, bytes);
  copy_as<uint8_t, 4>(to, from, bytes);
}

/// Copies `bytes` by all threads of the block.
__device__ inline void copy_bytes(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  if (((low_bits(to) ^ low_bits(from)) & 15) == 0) {
    copy_as<uint4, 4>(to, from, bytes);
  } else {
    copy_slow(to, from, bytes);
  }
}

/// The same. REQUIRES: multiples of 4.
__device__ inline void copy_uneven(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  if (((low_bits(to) ^ low_bits(from)) & 15) == 0) {
    copy_as<uint4, 4>(to, from, bytes);
  } else {
    copy_rows_of_words<4>(to, from, bytes);
  }
}

}  // namespace mscclc::cuda
