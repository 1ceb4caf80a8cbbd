// The device program: flat arrays that the interpreter walks, the same on every machine.
//
// `ops` are built once per plan. What depends on the message size (ranges, runs, offsets, rounds)
// lies in fields that lower.h fits to a size. Nothing here has a fixed limit: every array is found
// by an index, every offset has 64 bits.
//
//   op -> moves -> operands -> bases          (which buffers of which ranks)
//           └----> runs -> offsets            (which bytes of them, for this message size)
#pragma once

#include <cstdint>

#include "executor/interpreter/step_kinds.h"
#include "ir/ops/ops.h"

// MSCCLC_HD: arithmetic, for host and device code. MSCCLC_RUN: what only a machine runs, which is
// the device wherever nvcc compiles. MSCCLC_BODY: the same, for bodies that several handlers call.
// MSCCLC_APART: arithmetic that is seldom needed, and would take registers where it is inlined.
// MSCCLC_UNROLL: what a loop indexes shall lie in registers.
#if defined(__CUDACC__)
#define MSCCLC_HD __host__ __device__
#define MSCCLC_RUN __device__
#define MSCCLC_BODY __device__ __noinline__
#define MSCCLC_APART __host__ __device__ __noinline__
#define MSCCLC_UNROLL _Pragma("unroll")
#else
#define MSCCLC_UNROLL
#define MSCCLC_HD
#define MSCCLC_RUN
#define MSCCLC_BODY
#define MSCCLC_APART __attribute__((noinline))
#endif

namespace mscclc::device {

inline constexpr uint32_t kNoChannel = 0xffffffffu;

enum OpFlags : uint8_t {
  kRelaxed = 1,       ///< a signal or wait that orders no data
  kComplete = 2,      ///< the result holds every contribution: avg divides here
  kInLoop = 4,        ///< part of a pipeline's body
  kPosts = 8,         ///< sends through the proxy: one thread of a block does, in order
  kFreesNext = 16,    ///< CUDA: after it this block lets the next launch on the stream begin ...
  kShowsPeers = 32,   ///< ... which it knows by the packets of this op, among others
  kWithSignals = 64,  ///< a step that puts by ports: the next one signals the same channels in the
                      ///< same order, so a request may stand for both
  kTree = 128,        ///< the sources are added up as a tree, which is not one after the other
  kExact = kRelaxed,  ///< of a step that adds up: sums of floats are exact, not one after the other
};

/// One step of an op of a thread block.
struct DeviceOp {
  StepKind kind;
  ReduceOp reduce;       ///< ReduceOp::call: what the caller asks for
  PacketFormat format;   ///< of its packet operands; none: the op moves plain bytes
  uint8_t flags;         ///< OpFlags
  uint16_t part, parts;  ///< this block's share of a group op; parts 0: all of it
  uint32_t
      first;  ///< data ops: moves[first ...]; pipeline: loops[first]; others: targets[first ...]
  uint32_t count;   ///< moves or targets; pipeline: steps of the body, which follow it
  uint32_t source;  ///< the op's index among the rank's ops in the IR, for reports
};
static_assert(sizeof(DeviceOp) == 20);

/// Does a step, or an op, add up exactly? For hosts.
template <class Op>
bool adds_exactly(const Op& op) {
  return info(op.kind).adds && (op.flags & kExact) != 0;
}

/// Operands that are moved together: a pair of a pairwise op, all operands of any other.
///
/// Its virtual range is bytes [0, n * W) for n chunks of at most W bytes, or for packet ops units
/// [0, n * U), U units to a slot.
struct Move {
  uint32_t operands;  ///< operands[operands ...]: destinations, then sources
  uint16_t dsts, srcs;
  uint32_t runs;            ///< fitted: runs[runs ...], in virtual order
  uint32_t run_count : 31;  ///< fitted
  uint32_t like_last : 1;   ///< fitted: runs at the same virtual bytes as the op's move before
  uint64_t begin, end;      ///< fitted: this block's part of the virtual range; in a loop all of it
};
static_assert(sizeof(Move) == 32);

/// A stretch of the virtual range that lies in one piece in every operand.
struct Stretch {
  uint64_t begin, size;  ///< virtual bytes, or packet units
  uint64_t length;       ///< bytes of data in it, from its beginning
  uint64_t offsets;      ///< offsets[offsets + k]: where operand k's part begins in its buffer
};
static_assert(sizeof(Stretch) == 32);

enum OperandFlags : uint32_t {
  kPackets = 1,      ///< in a packet buffer
  kPort = 2,         ///< reached through a port channel: a proxy moves it
  kCounted = 4,      ///< a wait's target: what was taken follows from the number of the call
  kValue = 8,        ///< a scalar of a row function: the address's low bytes are what is stored
  kWideFlag = 16,    ///< a flag's word has 64 bits, not 32
  kSystemFlag = 32,  ///< a flag is of the system's scope, not of the GPU's
  kHanded = 64,  ///< of a row function: the sum that it is handed, or what goes where the sum would
};
/// The bits above: how many units of a pipeline a chunk of the buffer holds, 0 if all of it.
inline constexpr uint32_t kUnitsShift = 16;

struct DeviceOperand {
  uint32_t base;     ///< bases[base]
  uint32_t members;  ///< 1; at a switch its ranks, whose bases follow one another
  uint32_t channel;  ///< the rank's channel it goes through, or kNoChannel
  uint32_t flags;    ///< OperandFlags, and units << kUnitsShift
};
static_assert(sizeof(DeviceOperand) == 16);

/// A buffer that a rank's ops address, its own or another's. The machine knows the address.
struct Base {
  uint32_t rank, buffer;
  uint32_t copies;  ///< call k uses copy k % copies
  uint32_t reserved;
  uint64_t copy_stride;  ///< fitted: bytes from one copy to the next
};
static_assert(sizeof(Base) == 24);

struct DeviceLoop {
  uint64_t unit;    ///< round i moves virtual bytes [i * unit, (i + 1) * unit)
  uint64_t rounds;  ///< fitted
};
static_assert(sizeof(DeviceLoop) == 16);

/// A rank's device program as the interpreter sees it.
struct RankView {
  const DeviceOp* ops;
  const Move* moves;
  const DeviceOperand* operands;
  const Stretch* runs;
  const uint64_t* offsets;
  const DeviceLoop* loops;
  const uint32_t* targets;
  uint32_t align;  ///< granule in which group ops and rounds are cut
};

struct Range {
  uint64_t begin, end;
};

/// Part `i` of `n` of [0, units) granules: the first units % n parts are one longer.
MSCCLC_HD inline Range part_of(uint64_t units, uint64_t n, uint64_t i) {
  const uint64_t q = units / n, longer = units % n;
  const uint64_t begin = i * q + (i < longer ? i : longer);
  return {begin, begin + q + (i < longer ? 1 : 0)};
}

}  // namespace mscclc::device
