// A program of MSCCL++'s Python language: for each rank its thread blocks, and for each of these
// its ops, as the calls of the program came (read_trace.h), and then as the passes of the language
// leave them (passes.h).
//
// Plans must be MSCCL++'s. What gives the same plans is ours: ops, kinds of channels and reductions
// are those of ir/ops, which traces number by; which ops fuse, the rules of passes/fuse say, and
// what an op touches, the table of ops; plans are written by plans/format/json. What differs
// (docs/design/mscclpp_language.md has the figures):
//
//   numbers     remote buffers and barriers have theirs by the order of the calls, over all blocks
//               of a rank; ours come from the order of its ops (plans/format/wire)
//   scratch     one buffer, for plain chunks and packets; ours are buffers of one format each
//   fusion      the next op, from left to right, for as long as the executor's arrays have room;
//               ours moves ops past others, and drops copies (passes/fuse)
//   syncs       one before each op that touches what an op since the last sync has touched, and
//               those that calls ask for, by flags of ops that fusion joins; ours are the orders
//               that are missing, and no others (passes/sync)
//   instances   only chunk indices and numbers of blocks change, as plans are written; ours have
//               blocks, channels and packets of their own (passes/expand)
//   contracts   none: the language does not say what a program is for, so nothing can be proved,
//               and blocks without ops stay
//   plans       laid out as json.dumps() does, with the names of ops, and the reductions, that
//               calls gave, and ids in the order of the calls; ours are one line, and name what
//               MSCCL++'s executor does not run rightly otherwise (plans/format/write)
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/ops/dtypes.h"
#include "ir/ops/ops.h"
#include "ir/support/arena.h"

namespace mscclc::mscclpp {

inline constexpr uint64_t kMaxBlocks = 65536;  ///< of a rank

/// The syncs of its thread block that an op asks for: a set.
inline constexpr uint8_t kBefore = 1, kAfter = 2;

/// The call in Python that an op comes from: a code object's number, and where in it the call is.
using PythonCall = uint64_t;
inline constexpr PythonCall kNoPythonCall = UINT64_MAX;  ///< the program's own

/// What is wrong with a program.
struct Mistake {
  std::string text;
  PythonCall place = kNoPythonCall;
};
using Checked = std::optional<Mistake>;  ///< nullopt: nothing

/// Chunks that an op reads or writes. `where`: a local buffer, kInput to kScratch, or from 0 on the
/// position of a remote buffer, or of a switch, in a table of the op's block.
struct Ref {
  int32_t where;
  uint32_t first;
  uint32_t count;
  bool operator==(const Ref&) const = default;
};
inline constexpr int32_t kInput = -3, kOutput = -2, kScratch = -1;
inline constexpr uint32_t kBuffers = 3;
inline bool is_local(const Ref& ref) { return ref.where < 0; }
inline int32_t buffer_of(uint64_t number) { return kInput + static_cast<int32_t>(number); }

/// Operands are slices of vectors that all ops share. These elements are never changed, so several
/// ops may have the same ones. `ids` are positions in the block's table of channels of the op's
/// kind, one for each remote reference; of an op on semaphores, the rank's semaphores.
struct Op {
  OpKind kind = OpKind::sync;
  bool relaxed = false;
  ChannelKind channels = ChannelKind::memory;  ///< if it goes through some
  uint8_t sync = 0;                            ///< kBefore, kAfter
  ReduceOp reduce = ReduceOp::call;            ///< call: no reduction
  Slice sources = {}, destinations = {}, ids = {};
  uint32_t group_at = 0, group_size = 0;  ///< the part of a group of thread blocks; size 0: none
  uint32_t detail[2] = {};  ///< barrier: its number, and blocks; pipeline: unit, and chunks
  int32_t body = -1;        ///< pipeline: its ops, in Program::bodies
  PythonCall place = kNoPythonCall;
};
inline bool has_channels(const Op& op) { return info(op.kind).channels != kNoChannel; }
/// Whether an op through channels names them: puts and sums by memory name remote buffers only.
inline bool names_channels(const Op& op) {
  if (!has_channels(op) || op.channels == ChannelKind::switch_) return false;
  return op.channels == ChannelKind::port || op.kind == OpKind::get || !info(op.kind).moves_data();
}
/// Whether it moves data and does: such an op has room for few channels.
inline bool names_data_channels(const Op& op) {
  return info(op.kind).moves_data() && names_channels(op);
}

using Ops = std::vector<Op>;

inline constexpr size_t kKinds = 3;  ///< of channels

/// Ids of a rank's channels, or remote buffers, by the kind of access, in the order of their first
/// use.
struct Tables {
  std::vector<ChannelKind> kinds;  ///< in the order of their first use
  std::array<std::vector<uint32_t>, kKinds> of;
};

struct Block {
  uint32_t rank = 0, number = 0;
  Ops ops;
  Tables channels, remotes;
  int32_t body = -1;  ///< of the loop that is being read
};

struct RemoteBuffer {
  uint32_t rank;
  int32_t buffer;
  std::vector<ChannelKind> access;
};

/// Where channels end: a rank; for those of a switch a buffer, and a list in Program::switches.
struct ChannelEnd {
  uint32_t peer;
  int32_t buffer;
};

struct Rank {
  uint64_t input = 0, output = 0, scratch = 0;  ///< chunks
  std::vector<uint32_t> blocks;            ///< in Program::blocks, in the order of their first use
  std::vector<ChannelKind> channel_kinds;  ///< in the order of their first use
  std::array<std::vector<ChannelEnd>, kKinds> channels;
  std::vector<RemoteBuffer> remotes;
  std::vector<uint32_t> semaphores;  ///< first values
  std::map<std::vector<uint32_t>, uint32_t> barriers;
};

/// Signals from a rank to another, and the waits for them.
struct Signals {
  ChannelKind kind;
  uint32_t source, target;
  uint64_t sent = 0, taken = 0;
  PythonCall last_sent = kNoPythonCall, last_taken = kNoPythonCall;
};

struct Program {
  uint32_t instances = 1;
  bool fusion = true, auto_sync = true;
  bool limits = true;  ///< the plan must fit into MSCCL++'s executor
  std::vector<Rank> ranks;
  std::vector<Block> blocks;
  std::vector<std::vector<uint32_t>> switches;  ///< ranks that a switch joins
  std::vector<Signals> signals;                 ///< in the order of their first use
  std::vector<Ops> bodies;                      ///< of pipelines, each of one op

  // What the slices of ops are in.
  std::vector<Ref> sources, destinations;
  std::vector<uint32_t> ids;
};

/// Thread blocks of a rank in the plan of one instance: all up to the last one that has been used.
inline uint64_t count_blocks(const Program& program, const Rank& rank) {
  uint64_t count = 0;
  for (const uint32_t block : rank.blocks) {
    count = std::max(count, uint64_t{program.blocks[block].number} + 1);
  }
  return count;
}

}  // namespace mscclc::mscclpp
