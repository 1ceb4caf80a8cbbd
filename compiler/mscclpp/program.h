// A program of MSCCL++'s Python language: for each rank its thread blocks, and for each of these
// its ops, as the calls of the program came (read_trace.h), and then as the passes of the language
// leave them.
//
// Words for ops, kinds of channels and reductions are those of our tables (ir/ops), and plans are
// written with our writer of JSON text (plans/format/json/json_out.h). The rest is apart from our
// IR and passes, as plans must be MSCCL++'s to the byte:
//
//   numbers     channels, remote buffers and barriers have theirs by the order of the calls, over
//   all
//               ranks; ours come from the order of a rank's ops (plans/format/wire/block_tables.h)
//   references  a chunk of a peer is an entry of the block's table; ours is an end of a channel
//   fusion      the next op, from left to right, for as long as the executor's arrays have room;
//   ours
//               may move ops past others, and the target decides (passes/fuse)
//   syncs       one before each op that touches what an op since the last sync has touched, and
//   those
//               that calls ask for; ours are the orders that are missing (passes/sync)
//   instances   only chunk indices and numbers of blocks change, as plans are written; ours have
//               blocks, channels and packets of their own (passes/expand)
//   contracts   none: the language does not say what a program is for, so nothing can be proved,
//   and
//               blocks without ops stay
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/dtypes.h"
#include "ir/ops/ops.h"

namespace mscclc::mscclpp {

enum class Name : uint8_t {
#define MSCCLPP_OP(name, op, form, reads, writes) name,
#include "compiler/mscclpp/op_names.def"
#undef MSCCLPP_OP
};
/// What plans call it.
std::string_view text_of(Name name);
/// The op of ours that it is.
OpKind op_of(Name name);
bool is_relaxed(Name name);

enum class Kind : uint8_t { none, memory, port, by_switch };
inline constexpr size_t kKinds = 4;
std::string_view text_of(Kind kind);

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
/// "i", "o" or "s".
char letter_of(int32_t buffer);
inline int32_t buffer_of(uint64_t number) { return kInput + static_cast<int32_t>(number); }

/// Some elements, one after another, of a vector that all ops share. They are never changed, so
/// several ops may have the same ones.
struct Span {
  uint32_t first = 0;
  uint32_t count = 0;
};

/// `ids` are positions in the block's table of channels of `kind`, one for each remote reference;
/// of an op on semaphores, the rank's semaphores.
struct Op {
  Name name = Name::nop;
  Kind kind = Kind::none;
  uint8_t sync = 0;    ///< kBefore, kAfter
  uint8_t reduce = 0;  ///< 0: no reduction; else see reduction_of()
  Span sources = {}, destinations = {}, ids = {};
  uint32_t group_at = 0, group_size = 0;  ///< the part of a group of thread blocks; size 0: none
  uint32_t detail[2] = {};  ///< barrier: its number, and blocks; pipeline: unit, and chunks
  int32_t body = -1;        ///< pipeline: its ops, in Program::bodies
  PythonCall place = kNoPythonCall;
};
/// What the numbers of reductions in traces mean, from 1 on.
inline constexpr ReduceOp kReductions[] = {ReduceOp::call, ReduceOp::sum, ReduceOp::min,
                                           ReduceOp::max};
inline std::string_view reduction_of(uint8_t reduce) { return name(kReductions[reduce]); }

using Ops = std::vector<Op>;

/// Ids of a rank's channels, or remote buffers, by the kind of access, in the order of their first
/// use.
struct Tables {
  std::vector<Kind> kinds;  ///< in the order of their first use
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
  std::vector<Kind> access;
};

/// Where channels end: a rank; for those of a switch a buffer, and a list in Program::switches.
struct ChannelEnd {
  uint32_t peer;
  int32_t buffer;
};

struct Rank {
  uint64_t input = 0, output = 0, scratch = 0;  ///< chunks
  std::vector<uint32_t> blocks;     ///< in Program::blocks, in the order of their first use
  std::vector<Kind> channel_kinds;  ///< in the order of their first use
  std::array<std::vector<ChannelEnd>, kKinds> channels;
  std::vector<RemoteBuffer> remotes;
  std::vector<uint32_t> semaphores;  ///< first values
  std::map<std::vector<uint32_t>, uint32_t> barriers;
};

/// Signals from a rank to another, and the waits for them.
struct Signals {
  Kind kind;
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
  std::deque<Ops> bodies;                       ///< of pipelines; references stay

  // What the spans of ops are in.
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
