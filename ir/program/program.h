// The IR: a program after its loops are unrolled, and before, between and after all passes.
//
// Plain structs, indices instead of pointers, arenas for what varies in length. A rank's ops are
// one flat list in *written order*, each with its place: a thread block, a group of blocks, or
// none yet. `split` sorts the list by thread block at the end; the text form of both is the
// language. A pipeline is an attribute of ops (`loop`), not a nesting.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/contract/contract.h"
#include "ir/ops/ops.h"
#include "ir/ops/summations.h"
#include "ir/program/flag_array.h"
#include "ir/rows/external.h"
#include "ir/rows/row_function.h"
#include "ir/support/arena.h"
#include "ir/support/source.h"

namespace mscclc {

inline constexpr uint32_t kNone = 0xffffffffu;

using NameId = uint32_t;

/// Family name and key values of a declared thing: `up[1, 3]`.
struct Label {
  NameId name = 0;
  Slice keys;  ///< in Program::integers
};

enum class BufferKind : uint8_t { input, output, scratch };

/// Buffers 0 and 1 of every rank are input and output (zero chunks where there is none).
struct Buffer {
  NameId name = 0;
  BufferKind kind = BufferKind::scratch;
  PacketFormat packets = PacketFormat::none;
  uint32_t copies = 1;  ///< call k uses copy k % copies
  /// Not 0: a chunk holds so many units of a pipeline, 2 to kMaxUnits, and round i uses unit
  /// i % units.
  uint32_t units = 0;
  uint64_t unit = 0;  ///< that of the pipelines which use it; 0: none does
  /// Scratch of a collective of rows: what its rows are made of.
  rows::Form form;
  uint32_t chunks = 0;
  Slice dims;  ///< in Program::integers: lengths of the dimensions as declared, for messages
  Slice rows;  ///< the same: their indices (RowNames), if these are not all 0, 1, …
  Span declared;
};
inline constexpr uint32_t kInput = 0, kOutput = 1, kFirstScratch = 2;

inline constexpr uint32_t kMaxCredits = 1024;

/// This rank's end of a channel.
struct Channel {
  ChannelKind kind = ChannelKind::memory;
  Label label;
  uint32_t peer = kNone;     ///< the other rank; kNone for a switch
  uint32_t partner = kNone;  ///< index of the other end among the peer's channels, or kNone
  uint32_t credits = 0;      ///< port: signals that waits here may take before any is given
  Slice group;               ///< switch: its ranks, in Program::integers
  Span declared;
};

struct Semaphore {
  Label label;
  uint32_t initial = 0;
  Span declared;
};

/// One operand. Chunk operands use all fields; other kinds say which.
struct Operand {
  uint32_t channel = kNone;  ///< kNone: local chunk; else chunk through it, or the channel itself
  uint32_t buffer = kNone;   ///< index among the buffers of the rank that owns the chunk; at a
                             ///< switch this rank's index (same name and layout on every member)
  uint32_t first = 0;  ///< first chunk; or semaphore index; block id; flag of the array `buffer`
  uint32_t count = 0;  ///< chunks; 0 for channels, semaphores, blocks and flags
  bool operator==(const Operand&) const = default;
};

/// A place in the author's program, and the loop variables' values there.
struct Location {
  uint32_t site = 0;  ///< in Program::sites
  Slice values;       ///< in Program::integers; as many as the site has variables
};

/// A place in the text; its variables are named once for all its locations.
struct Site {
  FileId file = 0;  ///< in Program::files
  uint32_t line = 0, column = 0;
  std::vector<NameId> variables;
};

struct Op {
  OpKind kind = OpKind::sync;
  ReduceOp reduce = ReduceOp::call;
  bool relaxed = false;
  bool complete = false;  ///< a reduction whose result holds every contribution (avg divides here)
  Summation summation = Summation::in_turn;  ///< how a reduction adds up its sources
  uint16_t part = 0, parts = 0;  ///< this block's part of a group op; parts == 0: all of it
  uint16_t dsts = 0, srcs = 0;   ///< operands left (chunks, channels, semaphores, blocks), right
  uint32_t operands = 0;         ///< first operand in Program::operands
  uint32_t block = kNone;        ///< thread block, or kNone
  uint32_t group = kNone;        ///< in Program::groups, or kNone; never together with block
  uint32_t loop = kNone;         ///< in Program::loops, or kNone
  Slice locations;               ///< in Program::locations
  Slice applied = {};            ///< a row function, in Program::integers: see applied.h
};

/// Loops are no larger: a chunk that holds units stays below 2^50 bytes.
inline constexpr uint64_t kMaxLoopUnit = uint64_t{1} << 40;
inline constexpr uint32_t kMaxUnits = 1024;

/// A `pipeline`: in round i each data op moves bytes [i unit, (i + 1) unit) of its operands.
struct Loop {
  uint64_t unit = 0;  ///< bytes, 1 to kMaxLoopUnit
  uint32_t chunks = 1;
};

/// An op of the author that a pass has taken out, as nothing seemed to need it. For messages.
struct RemovedOp {
  Op op;
  std::string_view pass;
};

struct Rank {
  std::vector<Buffer> buffers;
  std::vector<Channel> channels;
  std::vector<Semaphore> semaphores;
  std::vector<Op> ops;             ///< written order, or sorted by block if Program::split
  uint32_t blocks = 0;             ///< one more than the highest block id used or declared
  std::vector<RemovedOp> removed;  ///< in no order
};

enum class Policy : uint8_t { interleaved, blocked };

/// Thread blocks are whole warps of so many threads: packets and the pieces of an op are dealt out
/// to warps. No GPU has larger blocks.
constexpr uint32_t kWarpThreads = 32, kMaxBlockThreads = 1024;
constexpr bool is_block_size(uint32_t threads) {
  return threads != 0 && threads <= kMaxBlockThreads && threads % kWarpThreads == 0;
}

/// What `align` may be: the granule in which messages are cut, in bytes.
constexpr uint32_t kLeastAlign = 16, kMaxAlign = 1u << 20;
constexpr bool is_alignment(uint32_t bytes) {
  return bytes >= kLeastAlign && bytes <= kMaxAlign && bytes % kLeastAlign == 0;
}

struct Launch {
  uint32_t threads = 1024, instances = 1;
  Policy policy = Policy::interleaved;
  uint32_t align = 16;
  bool fuse = true, auto_sync = true, reuse_scratch = false;
};

struct Range {
  uint64_t min = 0, max = ~uint64_t{0};  ///< inclusive
};

/// When a registry may pick the plan; it has no other effect.
struct Select {
  Range sizes, nodes, gpus_per_node;
  std::vector<Dtype> dtypes;  ///< empty: all
  std::vector<ReduceOp> ops;  ///< empty: all
  std::vector<std::string> tags;
  int64_t priority = 0;
};

struct Program {
  std::string name, description;
  Contract contract;
  Select select;
  Launch launch;
  std::vector<Rank> ranks;
  std::vector<Loop> loops;
  std::vector<Slice> groups;  ///< block ids, in integers
  std::vector<rows::Function> functions;
  std::vector<rows::External> externals;
  std::vector<FlagArray> flags;
  /// Ops are sorted by thread block; no groups, every op placed. What plans hold.
  bool split = false;
  /// Read from MSCCL++'s plan without our key: `ReduceOp::call` does not occur, see
  /// plans/FORMAT.md.
  bool foreign = false;

  // Passes append; nothing is removed.
  Arena<Operand> operands;
  Arena<int64_t> integers;
  Arena<Location> locations;
  std::vector<Site> sites;
  std::vector<std::string> files;  ///< FileId of a Site: names of source files

  /// Bytes in which messages of a type are cut.
  uint32_t granule(Dtype type) const {
    return contract.columns == 0 ? launch.align : contract.columns * info(type).bytes;
  }
  NameId intern(std::string_view name);
  std::string_view name_of(NameId id) const { return names_[id]; }
  /// "up[1, 3]"
  std::string text(const Label& label) const;

  std::span<const Operand> dsts(const Op& op) const { return {operands.at(op.operands), op.dsts}; }
  std::span<const Operand> srcs(const Op& op) const {
    return {operands.at(op.operands) + op.dsts, op.srcs};
  }
  std::span<const Operand> all_operands(const Op& op) const {
    return {operands.at(op.operands), size_t{op.dsts} + op.srcs};
  }
  std::span<const int64_t> values(Slice s) const { return integers.of(s); }
  Slice append(std::span<const int64_t> values) { return integers.append(values); }
  /// Appends operands (destinations, then sources) and makes `op` refer to them.
  void set_operands(Op& op, std::span<const Operand> dsts, std::span<const Operand> srcs);
  /// The buffer that a chunk operand of `rank` names (at a switch: this rank's own).
  const Buffer& buffer_of(uint32_t rank, const Operand& o) const {
    if (o.channel == kNone) return ranks[rank].buffers[o.buffer];
    const Channel& channel = ranks[rank].channels[o.channel];
    return ranks[channel.kind == ChannelKind::switch_ ? rank : channel.peer].buffers[o.buffer];
  }
  /// What its rows are made of.
  rows::Form form_of(const Buffer& b) const {
    return b.kind == BufferKind::output ? rows::Form{.type = contract.output_type} : b.form;
  }
  rows::Form form_of(uint32_t rank, const Operand& o) const { return form_of(buffer_of(rank, o)); }
  /// The rank that owns it: `rank`, or the channel's peer. REQUIRES: not at a switch.
  uint32_t owner_of(uint32_t rank, const Operand& o) const {
    return o.channel == kNone ? rank : ranks[rank].channels[o.channel].peer;
  }
  const std::vector<std::string>& names() const { return names_; }
  /// For programs made in parts, see Arena.
  void begin_part(uint32_t part, uint32_t parts) {
    operands.begin_part(part, parts);
    integers.begin_part(part, parts);
    locations.begin_part(part, parts);
  }
  void adopt_arenas(Program& part) {
    operands.adopt(part.operands);
    integers.adopt(part.integers);
    locations.adopt(part.locations);
  }
  /// Allows several Additions at the same time.
  void open_to_threads() {
    operands.open_to_threads();
    integers.open_to_threads();
    locations.open_to_threads();
  }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> ids_;
};

/// What one thread adds to a program's arenas while other threads do the same. The program has it
/// all once this is destroyed.
struct Additions {
  /// `shared`: other threads add at the same time. REQUIRES: Program::open_to_threads() then.
  Additions(Program& program, bool shared)
      : operands(program.operands, shared),
        integers(program.integers, shared),
        locations(program.locations, shared) {}
  /// As Program::set_operands.
  void set_operands(Op& op, std::span<const Operand> dsts, std::span<const Operand> srcs);

  Arena<Operand>::Appender operands;
  Arena<int64_t>::Appender integers;
  Arena<Location>::Appender locations;
};

/// Offsets of a rank's ops by block: ops of block b are [offsets[b], offsets[b + 1]).
/// REQUIRES: program.split.
std::vector<uint32_t> block_offsets(const Rank& rank);

}  // namespace mscclc
