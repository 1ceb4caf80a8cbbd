// The part of lowering that a message size decides: how long buffers are, which bytes each op
// moves, how often a pipeline turns. Also whether the plan can do a call at all.
#include <fmt/format.h>

#include <algorithm>

#include "executor/lower.h"
#include "ir/report/op_error.h"
#include "ir/support/precondition.h"
#include "ir/verify/row_faults.h"

namespace mscclc {
namespace {

using device::DeviceOp;
using device::Move;
using device::Stretch;

constexpr uint64_t kLine = 128;  ///< copies and buffers begin at whole lines
/// Of a buffer: whatever is computed from it stays far from the end of 64 bits.
constexpr uint64_t kMaxBytes = uint64_t{1} << 48;
/// Of a pipeline, which need not move any of the bytes that it goes over.
constexpr uint64_t kMaxRounds = 0x7fffffff;

uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

/// Sizes that all operands of a call share whose rows are of one type.
struct Slots {
  uint64_t longest;  ///< W: bytes of a plain scratch chunk
  uint64_t units(PacketFormat f) const {
    const PacketFormatInfo& unit = info(f);
    return (longest + unit.data - 1) / unit.data;
  }
  /// Bytes of a scratch chunk that holds units of so many bytes in all.
  uint64_t units_stride(uint64_t bytes) const { return std::min(bytes, longest); }
  /// Bytes of a scratch chunk as it lies in memory.
  uint64_t stride(PacketFormat f) const {
    return f == PacketFormat::none ? longest : units(f) * info(f).wire;
  }
};

/// How scratch chunks lie of rows that have `stored` bytes (0: as the call's). The capacity is that
/// of any type: the narrowest has the most rows in a chunk of so many bytes.
Slots capacity_of(const Chunking& capacity, uint64_t stored, uint32_t columns) {
  const uint64_t bytes = capacity.longest();
  if (stored == 0) return {bytes};
  return {round_up(bytes / (uint64_t{columns} * rows::kLeastBytesOfT) * stored, kLeastAlign)};
}

/// How chunks of one format lie: the same for all moves of a message, and divisions to find out.
struct FormatSizes {
  FormatSizes(PacketFormat format, uint64_t stored, const Slots& slots, const Slots& capacity)
      : format(format),
        stored(stored),
        size(format == PacketFormat::none ? slots.longest : slots.units(format)),
        stride(capacity.stride(format)),
        whole_units(format == PacketFormat::none || slots.longest % info(format).data == 0) {}
  PacketFormat format;
  uint64_t stored;   ///< bytes of a row; 0: as the call's
  uint64_t size;     ///< a chunk's share of the virtual range
  uint64_t stride;   ///< of packets: from one slot to the next
  bool whole_units;  ///< the longest chunk fills its units
};

class RankFit {
 public:
  RankFit(RankProgram& rank, uint32_t rank_id, const Contract& contract, const Chunking& chunking,
          const Chunking& capacity, const RowPitch& pitch)
      : rank_(rank),
        rank_id_(rank_id),
        columns_(contract.columns),
        output_(rows::fixed_bytes({.type = contract.output_type}, contract.columns)),
        chunking_(chunking),
        most_(capacity),
        pitch_(pitch),
        slots_{chunking.longest()},
        capacity_{capacity.longest()},
        sizes_(PacketFormat::none, 0, slots_, capacity_) {}

  bool layout(const Program& program, const Chunking& capacity);
  /// False if the pipeline that `failed` begins has too many rounds.
  bool loops(const DeviceOp** failed);
  /// False if operands of `failed` differ in size.
  bool moves(const DeviceOp** failed);

 private:
  bool alike(const Move& a, const Move& b) const;
  bool fit_move(const DeviceOp& op, Move& move, uint32_t chunks);
  /// Bytes of a row that has so many; 0: of the call's.
  uint64_t granule(uint64_t stored) const { return stored == 0 ? rank_.align : stored; }
  /// Packets carry the last values of a chunk with what follows them, up to 16 bytes.
  Slots slots_of(uint64_t stored, bool packets = false) const {
    const uint64_t bytes = slots_.longest / rank_.align * granule(stored);
    return {stored == 0 ? slots_.longest : round_up(bytes, packets ? kLeastAlign : 1)};
  }
  Slots most_of(uint64_t stored) const { return capacity_of(most_, stored, columns_); }
  /// What a move's bytes are of: its operands', or the call's type if it computes rows.
  uint64_t stored_of(const Move& move) const {
    return has_rows(move) ? 0 : rank_.chunks[move.operands].stored;
  }
  bool chunk_length(const Move& move, uint32_t k, bool packets, uint64_t& length) const;
  uint64_t chunk_offset(uint32_t operand, uint32_t k, uint64_t stride) const;
  bool continues(const Move& move, uint32_t k, uint64_t stride) const;
  bool has_rows(const Move& move) const {
    return !rank_.move_rows.empty() && rank_.move_rows[index_of(move)].chunk != kNone;
  }
  uint64_t rows_offset(const Move& move, uint32_t k) const {
    return chunking_.rows_before(rank_id_, rank_.move_rows[index_of(move)].chunk + k) * rank_.align;
  }
  uint64_t rows_length(const Move& move, uint32_t k) const {
    const uint32_t chunk = rank_.move_rows[index_of(move)].chunk + k;
    const uint64_t bytes = chunking_.length(Side::output, rank_id_, chunk);
    return bytes / granule(output_) * granule(0);
  }
  size_t index_of(const Move& move) const {
    return static_cast<size_t>(&move - rank_.moves.data());
  }

  RankProgram& rank_;
  const uint32_t rank_id_, columns_;
  const uint64_t output_;  ///< bytes of a row of the output; 0: as the call's
  const Chunking& chunking_;
  const Chunking& most_;
  const RowPitch& pitch_;
  const Slots slots_;     ///< what of a scratch chunk this message uses, in the call's type
  const Slots capacity_;  ///< how scratch chunks lie
  FormatSizes sizes_;     ///< of the op at hand
};

Side side_of(BufferKind kind) { return kind == BufferKind::input ? Side::input : Side::output; }

/// Bytes of one copy of a scratch buffer; false if they are too many.
bool scratch_bytes(const Buffer& b, uint32_t columns, const Chunking& capacity, uint64_t& bytes) {
  const Slots slots = capacity_of(capacity, rows::fixed_bytes(b.form, columns), columns);
  const uint64_t stride =
      b.units == 0 ? slots.stride(b.packets) : slots.units_stride(b.units * b.unit);
  const auto total = static_cast<unsigned __int128>(stride) * b.chunks;
  bytes = static_cast<uint64_t>(total);
  return (total + kLine) * b.copies < kMaxBytes;
}

bool RankFit::layout(const Program& program, const Chunking& capacity) {
  for (uint32_t i = 0; i < rank_.buffers.size(); ++i) {
    const Buffer& buffer = program.ranks[rank_id_].buffers[i];
    BufferLayout& b = rank_.buffers[i];
    if (buffer.kind == BufferKind::scratch) {
      if (!scratch_bytes(buffer, columns_, capacity, b.bytes)) return false;
    } else {
      const Side side = side_of(buffer.kind);
      b.bytes =
          chunking_.buffer_bytes(side, rank_id_) + pitch_.gaps_of(program.contract, side, rank_id_);
      if (b.bytes >= kMaxBytes) return false;
    }
    b.stride = round_up(b.bytes, kLine);
  }
  for (device::Base& base : rank_.bases) {
    if (base.copies < 2) continue;
    uint64_t bytes = 0;
    const Buffer& buffer = program.ranks[base.rank].buffers[base.buffer];
    if (!scratch_bytes(buffer, columns_, capacity, bytes)) return false;
    base.copy_stride = round_up(bytes, kLine);
  }
  return true;
}

bool RankFit::loops(const DeviceOp** failed) {
  if (rank_.loops.empty()) return true;
  for (const DeviceOp& op : rank_.ops) {
    if (op.kind != device::StepKind::pipeline) continue;
    device::DeviceLoop& loop = rank_.loops[op.first];
    const auto bytes = static_cast<unsigned __int128>(slots_.longest) * rank_.loop_chunks[op.first];
    const unsigned __int128 rounds = (bytes + loop.unit - 1) / loop.unit;
    *failed = &op;
    if (rounds > kMaxRounds) return false;
    loop.rounds = static_cast<uint64_t>(rounds);
  }
  return true;
}

// Chunk k of a move is as long as the caller's chunks in it, all alike, else as a scratch chunk;
// where rows of externals are computed with, as the output's chunk whose rows they are. Of
// chunks of several types the rows count.
bool RankFit::chunk_length(const Move& move, uint32_t k, bool packets, uint64_t& length) const {
  const uint64_t stored = stored_of(move);
  length = slots_of(stored, packets).longest;
  bool known = has_rows(move) && rank_.move_rows[index_of(move)].of_externals;
  if (known) length = rows_length(move, k);
  for (uint32_t o = 0; o < uint32_t{move.dsts} + move.srcs; ++o) {
    const RankProgram::Chunks& c = rank_.chunks[move.operands + o];
    if (c.kind == BufferKind::scratch) continue;
    uint64_t bytes = chunking_.length(side_of(c.kind), c.owner, c.first + k);
    if (c.stored != stored) bytes = bytes / granule(c.stored) * granule(stored);
    if (known && bytes != length) return false;
    length = bytes;
    known = true;
  }
  return true;
}

// `stride`: from one packet slot to the next.
uint64_t RankFit::chunk_offset(uint32_t operand, uint32_t k, uint64_t stride) const {
  const RankProgram::Chunks& c = rank_.chunks[operand];
  const uint64_t chunk = uint64_t{c.first} + k;
  if (c.kind != BufferKind::scratch) {
    const Side side = side_of(c.kind);
    const auto index = static_cast<uint32_t>(chunk);
    return chunking_.offset(side, c.owner, index) + pitch_.gaps(side, index);
  }
  if (c.units != 0) return chunk * capacity_.units_stride(c.units);
  const bool packets = (rank_.operands[operand].flags & device::kPackets) != 0;
  return chunk * (packets ? stride : most_of(c.stored).longest);
}

// True if chunk k begins in every operand where chunk k - 1, a longest one, ends. Scratch chunks
// that this message does not fill leave room between them: then no two chunks of any scratch
// buffer are one run, whatever its format (passes/framework/thread_partition.h counts on it).
bool RankFit::continues(const Move& move, uint32_t k, uint64_t stride) const {
  for (uint32_t o = 0; o < uint32_t{move.dsts} + move.srcs; ++o) {
    const uint32_t operand = move.operands + o;
    const uint64_t stored = rank_.chunks[operand].stored, longest = slots_of(stored).longest;
    if (rank_.chunks[operand].kind == BufferKind::scratch) {
      if (most_of(stored).longest != longest) return false;
      continue;
    }
    if (chunk_offset(operand, k, stride) != chunk_offset(operand, k - 1, stride) + longest) {
      return false;
    }
  }
  return true;
}

bool RankFit::fit_move(const DeviceOp& op, Move& move, uint32_t chunks) {
  const bool packets = op.format != PacketFormat::none;
  const uint64_t stored = stored_of(move);
  const Slots slots = slots_of(stored, packets);
  if (sizes_.format != op.format || sizes_.stored != stored) {
    sizes_ = FormatSizes(op.format, stored, slots, most_of(stored));
  }
  const uint64_t size = sizes_.size, stride = sizes_.stride;
  move.runs = static_cast<uint32_t>(rank_.runs.size());
  uint64_t last = 0;  // length of the chunk before
  for (uint32_t k = 0; k < chunks; ++k) {
    uint64_t length = 0;
    if (!chunk_length(move, k, packets, length)) return false;
    if (k > 0 && !rank_.keeps_steps() && last == slots.longest && sizes_.whole_units &&
        continues(move, k, stride)) {
      rank_.runs.back().size += size;
      rank_.runs.back().length += length;
    } else {
      rank_.runs.push_back({k * size, size, length, rank_.offsets.size()});
      for (uint32_t o = 0; o < uint32_t{move.dsts} + move.srcs; ++o) {
        rank_.offsets.push_back(chunk_offset(move.operands + o, k, stride));
      }
      if (has_rows(move)) rank_.offsets.push_back(rows_offset(move, k));
    }
    last = length;
  }
  move.run_count = static_cast<uint32_t>(rank_.runs.size()) - move.runs;
  move.begin = 0;
  move.end = chunks * size;
  if (op.parts > 1 && (op.flags & device::kInLoop) == 0) {
    // Rows stay whole, also in packets: their units divide a row (ir/verify/row_faults.h).
    const uint64_t unit = packets ? info(op.format).data : 1;
    const uint64_t whole = packets && !has_rows(move) ? 1 : granule(stored) / unit;
    const device::Range part = device::part_of(move.end / whole, op.parts, op.part);
    move.begin = part.begin * whole;
    move.end = part.end * whole;
  }
  return true;
}

// Moves alike can be done in step.
bool RankFit::alike(const Move& a, const Move& b) const {
  if (a.begin != b.begin || a.end != b.end || a.run_count != b.run_count) return false;
  for (uint32_t i = 0; i < a.run_count; ++i) {
    const Stretch& x = rank_.runs[a.runs + i];
    const Stretch& y = rank_.runs[b.runs + i];
    if (x.begin != y.begin || x.size != y.size || x.length != y.length) return false;
  }
  return true;
}

bool RankFit::moves(const DeviceOp** failed) {
  rank_.runs.clear();
  rank_.offsets.clear();
  rank_.runs.reserve(rank_.moves.size());
  rank_.offsets.reserve(rank_.operands.size());
  for (size_t i = 0; i < rank_.moves.size(); ++i) {
    *failed = &rank_.ops[rank_.move_ops[i]];
    if (!fit_move(**failed, rank_.moves[i], rank_.move_chunks[i])) return false;
    // Whether moves of one op are alike depends on how many rows each rank has.
    const bool follows =
        i > 0 && rank_.move_ops[i - 1] == rank_.move_ops[i] && !rank_.keeps_steps();
    rank_.moves[i].like_last = follows && alike(rank_.moves[i - 1], rank_.moves[i]);
  }
  return true;
}

bool too_large(Diagnostics& diagnostics) {
  diagnostics.error("too-large", {}, "a buffer would have 256 TiB or more");
  return false;
}

/// Reports the pipeline that `begin` begins. Always false.
bool too_many_rounds(const Program& program, uint32_t rank, const DeviceOp& begin,
                     Diagnostics& diagnostics) {
  const Op& op = program.ranks[rank].ops[begin.source];
  const Loop& loop = program.loops[op.loop];
  op_error(diagnostics, "too-large", program, rank, op,
           fmt::format("a pipeline over {} chunks in units of {} bytes has more than {} rounds for "
                       "this message",
                       loop.chunks, loop.unit, kMaxRounds));
  return false;
}

/// The sizes that an even-only plan takes, for a message.
uint64_t even_step(const Program& program) {
  const Contract& c = program.contract;
  return Chunking(c, uint64_t{c.part_chunks()} * program.launch.align, program.launch.align)
      .message_bytes();
}

/// A call of rows: a type that row functions have, and whole rows that chunks can be cut in.
bool check_rows(const Program& program, const Call& call, Diagnostics& diagnostics) {
  const uint32_t columns = program.contract.columns;
  const DtypeInfo& type = info(call.dtype);
  const auto error = [&](const std::string& text) {
    diagnostics.error("row-call", {}, text);
    return false;
  };
  if (columns == 0) return true;
  if (const auto fault = columns_fault(program)) return error(fault->message);
  if (!rows::can_be_t(call.dtype)) {
    return error(
        fmt::format("row functions are computed of f32, f16 and bf16, not of '{}'", type.name));
  }
  const uint32_t bytes = program.granule(call.dtype);
  if (bytes % kLeastAlign != 0) {
    return error(fmt::format("rows of {} {} are no multiple of {} bytes; {}", columns, type.name,
                             kLeastAlign, served_columns(columns, type.bytes)));
  }
  return call.part_bytes % bytes == 0 ||
         error(fmt::format("{} bytes of a rank are not whole rows of {} {}, which have {} bytes",
                           call.part_bytes, columns, type.name, bytes));
}

bool check_size(const Program& program, const Call& call, Diagnostics& diagnostics) {
  const uint32_t element = info(call.dtype).bytes, align = program.launch.align;
  const auto error = [&](const char* code, const std::string& text) {
    diagnostics.error(code, {}, text);
    return false;
  };
  if (call.part_bytes >= kMaxBytes) return too_large(diagnostics);
  if (call.part_bytes % element != 0) {
    return error("part-size",
                 fmt::format("{} bytes of a rank are not a whole number of {} elements",
                             call.part_bytes, info(call.dtype).name));
  }
  if (align % element != 0) {
    return error("align-size",
                 fmt::format("'align' {} cuts {} elements", align, info(call.dtype).name));
  }
  if (program.contract.even_only && !Chunking(program.contract, call.part_bytes, align).even()) {
    return error("uneven-size",
                 fmt::format("the plan only takes messages that divide evenly: multiples of {} "
                             "bytes",
                             even_step(program)));
  }
  return true;
}

bool check_reduction(const PlanUse& use, Call& call, Diagnostics& diagnostics) {
  if (!use.reduces) return true;
  const auto error = [&](const char* code, const std::string& text) {
    diagnostics.error(code, {}, text);
    return false;
  };
  if (use.fixed != ReduceOp::call && !use.from_call && use.fixed != call.reduce) {
    return error("fixed-reduction",
                 fmt::format("the plan's reduction is always '{}'; it cannot do '{}'",
                             name(use.fixed), name(call.reduce)));
  }
  if (use.exact && call.reduce == ReduceOp::prod && info(call.dtype).kind == DtypeKind::kFloat) {
    return error("exact-products",
                 "the plan's sums are exact, and no product of floats is: it cannot do 'prod'");
  }
  if (call.reduce != ReduceOp::avg) return true;
  call.contributions = use.contributions;
  if (call.contributions == 0) {
    return error("avg-contributions", "'avg' needs outputs that are sums of equally many inputs");
  }
  if (use.from_call && !use.complete) {
    return error("avg-incomplete", "'avg' needs a plan that marks where a sum is complete");
  }
  return true;
}

}  // namespace

uint32_t unit_of_part(const Program& program, Dtype dtype) {
  return program.contract.columns == 0 ? info(dtype).bytes : program.granule(dtype);
}

bool can_accumulate(Dtype dtype, Dtype accumulate) {
  const DtypeInfo& type = info(dtype);
  const DtypeInfo& sums = info(accumulate);
  if (accumulate == dtype) return true;
  if (sums.kind != type.kind) return false;
  // Of the floats that are added up in f32 only f16 holds all values of others, those of one byte.
  const bool computed = sums.accumulate == accumulate;
  if (!computed) return accumulate == Dtype::f16 && type.bytes == 1;
  return sums.bytes > type.bytes || accumulate == type.accumulate;
}

PlanUse use_of(const Program& program) {
  PlanUse use;
  use.reduces = program.contract.reduces();
  if (use.reduces) use.contributions = program.contract.contributions();
  for (const Rank& rank : program.ranks) {
    for (const Buffer& b : rank.buffers) use.sentinel |= is_sentinel(b.packets);
    for (const Op& op : rank.ops) {
      if (!info(op.kind).has(kReduces)) continue;
      if (op.reduce != ReduceOp::call) {
        use.fixed = op.reduce;
      } else {
        use.from_call = true;
        use.complete |= op.complete;
        use.exact |= op.summation == Summation::exact && adds_otherwise(op);
      }
    }
  }
  return use;
}

bool check_call(const Program& program, const PlanUse& use, Call& call, Diagnostics& diagnostics) {
  const DtypeInfo& type = info(call.dtype);
  if (use.sentinel && type.kind != DtypeKind::kFloat) {
    diagnostics.error("sentinel-type", {},
                      fmt::format("sentinel packets carry float types only, not '{}': -0.0 marks a "
                                  "slot that holds no data",
                                  type.name));
    return false;
  }
  if (!can_accumulate(call.dtype, call.accumulate)) {
    diagnostics.error(
        "accumulate-type", {},
        fmt::format("'{}' cannot be added up in '{}'", type.name, info(call.accumulate).name));
    return false;
  }
  return check_rows(program, call, diagnostics) && check_size(program, call, diagnostics) &&
         check_reduction(use, call, diagnostics);
}

bool check_call(const Program& program, Call& call, Diagnostics& diagnostics) {
  return check_call(program, use_of(program), call, diagnostics);
}

bool fit_rank_to_size(RankProgram& rank, const Program& program, uint32_t rank_id,
                      const Chunking& chunking, const Chunking& capacity, Diagnostics& diagnostics,
                      const RowPitch& pitch) {
  precondition(chunking.longest() <= capacity.longest());
  RankFit fit(rank, rank_id, program.contract, chunking, capacity, pitch);
  if (!fit.layout(program, capacity)) return too_large(diagnostics);
  const DeviceOp* failed = nullptr;
  if (!fit.loops(&failed)) return too_many_rounds(program, rank_id, *failed, diagnostics);
  if (fit.moves(&failed)) return true;
  op_error(diagnostics, "operand-size", program, rank_id,
           program.ranks[rank_id].ops[failed->source],
           "the operands differ in size for this message");
  return false;
}

bool scratch_layout(const Program& program, uint32_t rank_id, const Chunking& capacity,
                    std::vector<BufferLayout>& layout, Diagnostics& diagnostics) {
  layout.clear();
  for (const Buffer& buffer : program.ranks[rank_id].buffers) {
    BufferLayout& b = layout.emplace_back(BufferLayout{0, 0, buffer.copies, buffer.packets});
    if (buffer.kind != BufferKind::scratch) continue;
    if (!scratch_bytes(buffer, program.contract.columns, capacity, b.bytes)) {
      return too_large(diagnostics);
    }
    b.stride = round_up(b.bytes, kLine);
  }
  return true;
}

CallerBuffers caller_buffers(const Contract& contract, const Chunking& chunking, uint32_t rank,
                             bool in_place, const RowPitch& pitch) {
  CallerBuffers out;
  const auto alias = in_place ? contract.alias(rank) : std::nullopt;
  if (!alias) return out;
  const uint64_t input = chunking.buffer_bytes(Side::input, rank);
  const uint64_t output = chunking.buffer_bytes(Side::output, rank);
  out.shared = true;
  out.outer = output > input ? kOutput : kInput;
  if (std::min(input, output) == 0) return out;
  const Side outer = out.outer == kInput ? Side::input : Side::output;
  const uint32_t inner = out.outer == kInput ? alias->input_chunk : alias->output_chunk;
  out.inner_offset = chunking.offset(outer, rank, inner) + pitch.gaps(outer, inner);
  return out;
}

bool fit_to_size(DeviceProgram& device, const Program& program, const Call& call,
                 Diagnostics& diagnostics) {
  const Chunking chunking(program.contract, call.part_bytes, program.granule(call.dtype));
  for (uint32_t r = 0; r < device.ranks.size(); ++r) {
    device.ranks[r].align = program.granule(call.dtype);
    if (!fit_rank_to_size(device.ranks[r], program, r, chunking, chunking, diagnostics))
      return false;
  }
  return true;
}

}  // namespace mscclc
