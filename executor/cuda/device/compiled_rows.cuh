// Row functions in a kernel that was compiled for one plan: what an emitted function
// (executor/rows) is given of a thread block, and of the row at hand. All threads of a block work
// on one row; a thread has neighbouring columns, whose values it loads 16 bytes at a time into
// registers, and stores from there.
#pragma once

#include <cstdint>

#include "executor/compiled_arguments.h"
#include "executor/cuda/device/access.cuh"
#include "executor/cuda/device/cluster.cuh"
#include "executor/cuda/device/wait.cuh"
#include "executor/cuda/device/warp_access.cuh"
#include "executor/rows/row_tree.h"
#include "executor/rows/row_values.h"

namespace mscclc::cuda {

using device::RowForm;

/// The threads of this block, so many, as row_tree.h has them. `turn`: how many reductions the
/// block has done, of all of its steps.
template <uint32_t kBlockThreads>
class RowThreads {
 public:
  static constexpr uint32_t kThreads = kBlockThreads;

  __device__ __forceinline__ RowThreads(WaitState& waits, uint32_t& turn)
      : waits_(waits), turn_(turn) {}
  __device__ __forceinline__ uint32_t thread() const { return thread_of_block(); }
  __device__ __forceinline__ uint32_t threads() const { return kThreads; }
  __device__ __forceinline__ const float* shared() const {
    return shared_floats().of_warp[turn_ & 1];
  }
  __device__ __forceinline__ void take_turn() const { ++turn_; }
  __device__ __forceinline__ void share(uint32_t warp, float x) const {
    const uint32_t lane = threadIdx.x % 32;
    if (cluster_blocks() == 1) {
      if (lane == 0) shared_floats().of_warp[turn_ & 1][warp] = x;
    } else if constexpr (kHasClusters) {
      if (lane < cluster_blocks()) send(shared_floats(), turn_ & 1, warp, x, lane);
    }
  }
  /// Where a thread that sends has given up this gives up, too, and leaves the report to it.
  __device__ __forceinline__ void sync() const {
    if (cluster_blocks() == 1) return __syncthreads();
    if constexpr (kHasClusters) {
      if (threadIdx.x == 0) expect(shared_floats(), turn_ & 1, kThreads / 32 * sizeof(float));
      // A poll in vain takes up to 3.9 microseconds (H200).
      constexpr uint32_t kPolls = (kPollsPerLook + 15) / 16;
      uint32_t left = kPolls;
      while (!have_come(shared_floats(), turn_ & 1, turn_ >> 1 & 1)) {
        after_vain_poll();
        if (--left != 0) continue;
        if (gave_up(waits_) || load_relaxed(waits_.rank->abort) != 0) give_up(waits_, {});
        left = kPolls;
      }
    }
  }
  __device__ __forceinline__ void converge() const { __syncwarp(0xffffffffu); }
  __device__ __forceinline__ float across(float x, uint32_t bit) const {
    return float_across(x, bit);
  }

 private:
  WaitState& waits_;
  uint32_t& turn_;
};

/// Part `i` of a word: a value of 1, 2 or 4 bytes.
template <class Bits>
__device__ __forceinline__ Bits part_of_word(uint32_t word, uint32_t i) {
  return static_cast<Bits>(word >> (i * 8 * sizeof(Bits)));
}

/// Moves `kBytes`, 4, 8 or 16, between memory and words.
template <uint32_t kBytes>
__device__ __forceinline__ void load_words(const uint8_t* from, uint32_t* words) {
  if constexpr (kBytes == 16) {
    const uint4 row = load_as<uint4>(from);
    words[0] = row.x, words[1] = row.y, words[2] = row.z, words[3] = row.w;
  } else if constexpr (kBytes == 8) {
    const uint2 row = load_as<uint2>(from);
    words[0] = row.x, words[1] = row.y;
  } else {
    static_assert(kBytes == 4);
    words[0] = load_as<uint32_t>(from);
  }
}
template <uint32_t kBytes>
__device__ __forceinline__ void store_words(uint8_t* to, const uint32_t* words) {
  if constexpr (kBytes == 16) {
    store_as(to, uint4{words[0], words[1], words[2], words[3]});
  } else if constexpr (kBytes == 8) {
    store_as(to, uint2{words[0], words[1]});
  } else {
    static_assert(kBytes == 4);
    store_as(to, words[0]);
  }
}

/// Which words of a thread are for which of a function's values.
template <class F, uint32_t kChunk>
struct RowWords {
  /// Of a thread's values, where they are kept in registers.
  __device__ static constexpr uint32_t words_of(uint32_t v) {
    if (!F::form(v).wide) return F::form(v).apart == 0 ? 1 : 0;
    return kChunk * F::form(v).bytes / 4;
  }
  __device__ static constexpr uint32_t first_word(uint32_t v) {
    uint32_t words = 0;
    for (uint32_t i = 0; i < v; ++i) words += words_of(i);
    return words;
  }
  /// Bytes that are moved at once: what divides a row, and a thread's part of it.
  __device__ static constexpr uint32_t at_once(uint32_t v) {
    uint32_t bytes = 16;
    while (F::kColumns * F::form(v).bytes % bytes != 0 || kChunk * F::form(v).bytes % bytes != 0) {
      bytes /= 2;
    }
    return bytes;
  }
};

/// The row at hand. F: a function as the emitter writes it, with kColumns, kResults, kValues and
/// form(); values are results, then parameters. Places: address<v>() and line<v>() of a value; or
/// it is handed(v), and take<kChunk>(row, words) gives a parameter's words of a thread,
/// give<kChunk>(row, words) stores a result's.
template <class F, uint32_t kChunk, class Places>
class RowRegisters {
 public:
  __device__ __forceinline__ explicit RowRegisters(const Places& places) : places_(places) {
    load_scalars<F::kResults>();
    load_wide<F::kResults, true>();
  }
  /// Goes to a row of the step.
  __device__ __forceinline__ void begin(uint32_t row) {
    row_ = row;
    load_wide<F::kResults, false>();
    take_handed<F::kResults>();  // while what was loaded is on its way
    keep_shared<F::kResults>();
  }
  /// Stores the row's results that have a value for each column.
  __device__ __forceinline__ void end() const { store_wide<0>(); }

  // What the function calls.
  static constexpr bool kStoresAgain = true;  ///< a value may be stored again, with those after it
  template <uint32_t k, class Element>
  __device__ __forceinline__ float load(uint32_t i) const {
    constexpr uint32_t v = F::kResults + k;
    constexpr RowForm form = F::form(v);
    using Bits = typename Element::Bits;
    if constexpr (form.wide) {
      constexpr uint32_t kEach = 4 / sizeof(Bits);
      const uint32_t at = i % kChunk;  // known when this is compiled: i is first_column() + at
      return rows::load_as<Element>(
          part_of_word<Bits>(words_[Words::first_word(v) + at / kEach], at % kEach));
    } else if constexpr (form.apart == 0) {
      return rows::load_as<Element>(static_cast<Bits>(words_[Words::first_word(v)]));
    } else {
      return rows::load_as<Element>(load_as<Bits>(memory<v>() + i * sizeof(Bits)));
    }
  }
  template <uint32_t k, class Element>
  __device__ __forceinline__ void store(uint32_t i, float value) const {
    constexpr RowForm form = F::form(k);
    using Bits = typename Element::Bits;
    if constexpr (!form.wide) {
      store_as(memory<k>() + i * sizeof(Bits), rows::store_as<Element>(value));
    } else if constexpr (F::kColumns % 2 != 0 || kChunk % 2 != 0 || sizeof(Bits) == 4) {
      put<k>(i % kChunk, sizeof(Bits), rows::store_as<Element>(value));
    } else if (i % 2 == 0) {  // converted with its neighbour
      even_[k] = value;
    } else {
      put<k>(i % kChunk / 2, 2 * sizeof(Bits), rows::store_two<Element>(even_[k], value));
    }
  }

 private:
  using Words = RowWords<F, kChunk>;

  __device__ __forceinline__ static uint32_t first_column() { return thread_of_block() * kChunk; }

  /// Puts bits of a result, so many bytes, into number i of places of that size, once those before.
  /// It is known when this is compiled.
  template <uint32_t k>
  __device__ __forceinline__ void put(uint32_t i, uint32_t bytes, uint32_t bits) const {
    const uint32_t each = 4 / bytes;
    uint32_t& word = words_[Words::first_word(k) + i / each];
    word = i % each == 0 ? bits : word | bits << i % each * 8 * bytes;
  }

  /// Where a value of the row begins.
  template <uint32_t v>
  __device__ __forceinline__ uint8_t* memory() const {
    return places_.template address<v>() + uint64_t{row_} * F::form(v).apart;
  }

  /// Has a value one for each column, in memory?
  __device__ static constexpr bool in_memory(uint32_t v) {
    return F::form(v).wide && !Places::handed(v);
  }
  /// Loads parameters from number `v` on: those that all rows share, or the others.
  template <uint32_t v, bool kShared>
  __device__ __forceinline__ void load_wide() {
    if constexpr (v < F::kValues) {
      if constexpr (in_memory(v) && (F::form(v).apart == 0) == kShared) {
        each_vector<v>(
            [&](uint8_t* at, uint32_t* words) { load_words<Words::at_once(v)>(at, words); });
      }
      load_wide<v + 1, kShared>();
    }
  }
  /// Loads parameters from number `v` on that have one value for all.
  template <uint32_t v>
  __device__ __forceinline__ void load_scalars() {
    if constexpr (v < F::kValues) {
      constexpr RowForm form = F::form(v);
      if constexpr (!form.wide && form.apart == 0) {
        const uint4 line = places_.template line<v>();
        uint32_t& word = words_[Words::first_word(v)];
        if ((line.w >> 16 & device::kValue) != 0) {
          word = line.x;
        } else if constexpr (form.bytes == 4) {
          word = load_as<uint32_t>(memory<v>());
        } else if constexpr (form.bytes == 2) {
          word = load_as<uint16_t>(memory<v>());
        } else {
          word = load_as<uint8_t>(memory<v>());
        }
      }
      load_scalars<v + 1>();
    }
  }
  /// Nothing is made of what all rows share before here: that would wait for it, ahead of the loads
  /// of the row.
  template <uint32_t v>
  __device__ __forceinline__ void keep_shared() {
    if constexpr (v < F::kValues) {
      if constexpr (in_memory(v) && F::form(v).apart == 0) {
#pragma unroll
        for (uint32_t i = 0; i < Words::words_of(v); ++i) {
          asm volatile("" : "+r"(words_[Words::first_word(v) + i]));
        }
      }
      keep_shared<v + 1>();
    }
  }
  template <uint32_t v>
  __device__ __forceinline__ void take_handed() {
    if constexpr (v < F::kValues) {
      if constexpr (Places::handed(v)) {
        places_.template take<kChunk>(row_, words_ + Words::first_word(v));
      }
      take_handed<v + 1>();
    }
  }
  template <uint32_t v>
  __device__ __forceinline__ void store_wide() const {
    if constexpr (v < F::kResults) {
      if constexpr (Places::handed(v)) {
        places_.template give<kChunk>(row_, words_ + Words::first_word(v));
      } else if constexpr (F::form(v).wide) {
        each_vector<v>(
            [&](uint8_t* at, uint32_t* words) { store_words<Words::at_once(v)>(at, words); });
      }
      store_wide<v + 1>();
    }
  }
  template <uint32_t v, class Fn>
  __device__ __forceinline__ void each_vector(Fn fn) const {
    constexpr uint32_t kBytes = Words::at_once(v), kEach = kBytes / F::form(v).bytes;
    uint8_t* const first = memory<v>() + uint64_t{first_column()} * F::form(v).bytes;
#pragma unroll
    for (uint32_t i = 0; i < kChunk / kEach; ++i) {
      if (first_column() + i * kEach < F::kColumns) {
        fn(first + i * kBytes, words_ + Words::first_word(v) + i * (kBytes / 4));
      }
    }
  }

  const Places places_;
  uint32_t row_ = 0;
  mutable uint32_t words_[Words::first_word(F::kValues) + 1];
  mutable float even_[F::kResults];
};

/// A thread of those that have a row, where a function asks for none of the others.
struct ThreadOfRow {
  uint32_t number;
  __device__ __forceinline__ uint32_t thread() const { return number; }
};

/// Rows [begin, end) of a step by a block of kThreads threads: one after the other, or, of a
/// function without values for each column, side by side. `waits`, `turn`: see RowThreads.
template <class F, uint32_t kChunk, uint32_t kThreads, class Places>
__device__ __forceinline__ void apply_rows(const Places& places, uint32_t begin, uint32_t end,
                                           WaitState& waits, uint32_t& turn) {
  if (begin == end) return;
  if constexpr (F::kApart != 0) {
    constexpr uint32_t kEach = (F::kColumns + F::kApart - 1) / F::kApart, kRows = kThreads / kEach;
    if constexpr (kRows != 0) {
      ThreadOfRow thread{thread_of_block() % kEach};
      RowRegisters<F, F::kApart, Places> row(places);
      const uint32_t own = thread_of_block() / kEach;
      for (uint32_t r = own < kRows ? begin + own : end; r < end; r += kRows) {
        row.begin(r);
        F::template run<F::kApart>(thread, row);
      }
      return;
    }
  }
  RowThreads<kThreads> threads(waits, turn);
  RowRegisters<F, kChunk, Places> row(places);
#pragma unroll 1
  for (uint32_t r = begin; r < end; ++r) {
    row.begin(r);
    F::template run<kChunk>(threads, row);
    row.end();
  }
}

}  // namespace mscclc::cuda
