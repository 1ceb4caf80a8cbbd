// Kernels of the benchmark, launched from C++: what moves bytes only, what compares results, and
// collectives written by hand.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tools/bench/ranks/peer_memory.h"

namespace mscclc::bench {

/// Bytes that a rank copies, its own or a peer's memory on both ends.
struct CopyMove {
  uint8_t* to = nullptr;
  const uint8_t* from = nullptr;
  uint64_t bytes = 0;
};
struct CopyMoves {
  static constexpr uint32_t kMax = 2 * PeerPointers::kMaxRanks;
  CopyMove move[kMax];
  uint32_t count = 0;
};
/// All moves at once. REQUIRES: pointers and lengths are multiples of 4, or `element` is 1 or 2 and
/// they are multiples of that.
cudaError_t launch_copy(const CopyMoves& moves, uint32_t element, cudaStream_t stream);

/// Adds the number of elements that differ to `*count`, which is on the device.
cudaError_t launch_count_different(const uint8_t* a, const uint8_t* b, uint64_t elements,
                                   uint32_t element, uint64_t* count, cudaStream_t stream);

/// A kernel that stands for a user's: it waits for the one ahead, keeps `blocks` blocks busy for
/// `cycles`, then reads `bytes` at `data`, or writes them anew as they are.
struct BusyKernel {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  uint64_t cycles = 0;
  uint32_t blocks = 1;
  bool writes = false;
  bool early = false;  ///< launched as one that may begin early; lets the next begin at once
  uint32_t zero = 0;   ///< stays 0
};
cudaError_t launch_busy(const BusyKernel& kernel, cudaStream_t stream);

/// The ranks of a collective of floats.
struct Ranks {
  uint32_t rank = 0, ranks = 0;
};

/// One-shot in LL16 packets (8 bytes of data, two flags). Scratch of each rank: two halves of
/// `ranks` rows of `row` packets; one epoch a block. Calls are ordered by the two halves: a rank
/// that starts call e + 2 has had all ranks' packets of e + 1, sent after they had ended call e.
struct OneShot {
  static constexpr uint32_t kMaxBlocks = 264;
  Ranks who;
  const float* input = nullptr;
  float* output = nullptr;
  uint64_t count = 0;  ///< floats
  PeerPointers scratch;
  uint64_t row = 0;            ///< packets
  uint32_t* epochs = nullptr;  ///< own, by block
  uint32_t blocks = 1, threads = 128;
};
cudaError_t launch_one_shot(const OneShot& call, cudaStream_t stream);

/// Two-shot in LL128 lines (120 bytes of data, an 8-byte flag, stored by 8 lanes at once). Scratch
/// of each rank: two halves of two stages of `ranks` rows of `row` lines. Ordered as one-shot.
struct TwoShotLines {
  static constexpr uint32_t kMaxBlocks = 264;
  Ranks who;
  const float* input = nullptr;
  float* output = nullptr;
  uint64_t count = 0;
  PeerPointers scratch;
  uint64_t row = 0;  ///< lines
  uint32_t* epochs = nullptr;
  uint32_t blocks = 1, threads = 128;
};
cudaError_t launch_two_shot_lines(const TwoShotLines& call, cudaStream_t stream);

/// What ranks send each other in one step: the same part to all (AllGather), a row of its own to
/// each (AllToAll), or such rows, which are added up (ReduceScatter).
enum class Exchanged { part, rows, sums };

/// One step in LL128 lines. Scratch of each rank: two halves of `ranks` rows of `row` lines.
/// Ordered as one-shot. Not in place.
struct ExchangeLines {
  static constexpr uint32_t kMaxBlocks = 264;
  Exchanged what = Exchanged::part;
  Ranks who;
  const float* input = nullptr;
  float* output = nullptr;
  uint64_t part = 0;  ///< floats that a rank sends to another
  PeerPointers scratch;
  uint64_t row = 0;  ///< lines
  uint32_t* epochs = nullptr;
  uint32_t blocks = 1, threads = 128;
};
cudaError_t launch_exchange_lines(const ExchangeLines& call, cudaStream_t stream);

/// Two-shot for large messages: every step pushes a slice of each share to its owner, and adds up
/// the slice that has come the step before, storing the sum into all outputs. Flags count steps; a
/// spare warp raises and awaits them. A rank leaves a call when all peers have ended it.
struct TwoShotPush {
  static constexpr uint32_t kMaxBlocks = 132;
  static constexpr uint32_t kRing = 4;  ///< slices of each source that are kept: 2 + 2 * depth 1
  Ranks who;
  const float* input = nullptr;
  PeerPointers outputs;
  uint64_t count = 0;
  PeerPointers scratch;  ///< rings: [block][slot][source][slice]
  PeerPointers flags;    ///< uint32_t [block][source]
  uint32_t* epochs = nullptr;
  uint32_t blocks = 132, threads = 1024;
  /// Floats of one slice of one block.
  static constexpr uint64_t slice(uint32_t threads) { return uint64_t{threads - 32} * 8; }
};
cudaError_t launch_two_shot_push(const TwoShotPush& call, cudaStream_t stream);

/// The same, with scratch for all shares: a block puts a slice, signals, and adds up the slice
/// before. Scratch of each rank: `ranks` rows of `row` pieces of 16 bytes. A rank leaves a call
/// when all peers have ended it.
struct TwoShotSlices {
  static constexpr uint32_t kBlocks = 128;
  Ranks who;
  const float* input = nullptr;
  PeerPointers outputs;
  uint64_t count = 0;
  PeerPointers scratch;
  uint64_t row = 0;
  PeerPointers flags;  ///< uint32_t [block][source]
  uint32_t* epochs = nullptr;
  uint32_t blocks = kBlocks, threads = 1024;
  uint32_t slices = 1;  ///< of a block's part of a share
  uint64_t slice = 0;   ///< pieces of one: whole lines of 128 bytes
};
cudaError_t launch_two_shot_slices(const TwoShotSlices& call, cudaStream_t stream);

}  // namespace mscclc::bench
