#include "executor/cost/work.h"

#include <algorithm>

#include "executor/interpreter/exact.h"
#include "executor/interpreter/packets.h"
#include "executor/kernel_threads.h"
#include "ir/ops/summations.h"
#include "ir/program/applied.h"
#include "ir/rows/external.h"

namespace mscclc::cost {

using device::DeviceOp;
using device::DeviceOperand;
using device::Frame;
using device::FrameStretch;

namespace {

/// Each call has bytes of a buffer to itself: what keeps calls from one another's copies is in the
/// plan, and the prover has seen to it.
constexpr uint32_t kCallShift = 52;

constexpr uint64_t kAtOnce = 16;  ///< bytes that a thread moves at once

/// By Summation: the figure of a machine. A new row of summations.def has none yet, and does not
/// compile.
constexpr uint64_t Machine::*kSumFigures[] = {
    nullptr,  // one after the other costs what its operands do
#define SUMMATION(name, ...) &Machine::sum_##name##_ns,
#include "ir/ops/summations.def"
#undef SUMMATION
};

double ns_of(Summation summation, const Machine& machine) {
  return static_cast<double>(machine.*kSumFigures[static_cast<size_t>(summation)]);
}

/// Threads of a rank's blocks, which its plan's kernel may have fewer of than the plan asks for.
uint64_t threads_of_blocks(const Program& program, const RankProgram& lowered) {
  const bool few = std::ranges::any_of(lowered.ops, [](const DeviceOp& op) {
    return op.format != PacketFormat::none || (op.flags & device::kTree) != 0 ||
           device::adds_exactly(op);
  });
  const bool rows = std::ranges::any_of(
      lowered.ops, [](const DeviceOp& op) { return op.kind == device::StepKind::apply; });
  uint32_t most = few ? device::kFewThreads : device::kManyThreads;
  if (rows) most = device::row_threads(program.ranks.size(), program.contract.columns, most);
  return std::min(program.launch.threads, most);
}

/// How often threads that read or write a round of packets do more than one load or store each:
/// where a row takes two stores, where those who share a line agree, and where a slot is emptied.
uint32_t more_accesses(const PacketFormatInfo& unit, bool reads, bool writes) {
  const bool line = unit.mark == PacketMark::line;
  const bool more_to_read = line || unit.mark == PacketMark::sentinel;
  const bool more_to_write = line || unit.store < kAtOnce;
  return (reads && more_to_read ? 1 : 0) + (writes && more_to_write ? 1 : 0);
}

double time_at(uint64_t bytes, uint64_t mb_per_s) {
  return static_cast<double>(bytes) * 1e3 / static_cast<double>(mb_per_s);
}

}  // namespace

WorkOut::WorkOut(const Program& program, const RankProgram& lowered, uint32_t rank,
                 const Machine& machine, const Call& call)
    : program_(program),
      lowered_(lowered),
      rank_(rank),
      machine_(machine),
      call_(call),
      has_packets_(std::ranges::any_of(
          lowered.ops, [](const DeviceOp& op) { return op.format != PacketFormat::none; })),
      threads_(threads_of_blocks(program, lowered)) {}

double WorkOut::first_ns() const {
  return static_cast<double>(machine_.block_first_ns +
                             (has_packets_ ? machine_.block_beside_ns : 0));
}

void Work::clear() {
  block_ns = first_ns = read_ns = busy_ns = tail_ns = 0;
  stores = 0;
  fetches = from_host = at_switch = false;
  loads.clear();
  reads.clear();
  writes.clear();
  requests.clear();
}

void Work::join(const Work& copy) {
  stores += copy.stores;
  for (const Load& l : copy.loads) load(l.shared, l.bytes);
}

void Work::load(uint32_t shared, uint64_t bytes) {
  for (Load& l : loads) {
    if (l.shared == shared) {
      l.bytes += bytes;
      return;
    }
  }
  loads.push_back({shared, bytes});
}

/// What adds up over the moves of a step.
struct WorkOut::Sums {
  uint64_t remote = 0, local = 0;  ///< bytes; remote: at other GPUs, and in the host's memory
  uint64_t pieces = 0;             ///< of the moves that go together: of kAtOnce bytes
  uint32_t operands = 0;           ///< of these
  uint32_t sources = 0;            ///< of these
  uint64_t data = 0;               ///< of an operand, over all moves that do not go together
};

/// Are these buffers of the caller's, from which or to which an op moves?
bool WorkOut::of_callers(const Frame& frame, const FrameStretch& s) const {
  for (uint32_t k = 0; k < device::operands_of(s); ++k) {
    if (lowered_.bases[device::operand_of(frame, s, k).base].buffer < kFirstScratch) return true;
  }
  return false;
}

SlotRange WorkOut::slot_range(const Frame& frame, const FrameStretch& s, uint32_t k, uint64_t wire,
                              uint64_t call) const {
  const uint64_t begin = frame.rank.offsets[s.run->offsets + k] + s.skip * wire;
  const uint64_t base = call << kCallShift;
  return {base + begin, base + begin + s.count * wire};
}

void WorkOut::add_access(const DeviceOperand& operand, bool write, uint64_t bytes, Sums& sums,
                         Work& out) const {
  const device::Base* base = &lowered_.bases[operand.base];
  const bool at_switch = operand.members > 1;
  bool own_link = false;
  for (uint32_t m = 0; m < operand.members; ++m) {
    const uint32_t owner = base[m].rank;
    if (owner == rank_ && !at_switch) {
      if (machine_.scratch_on_host() && base[m].buffer >= kFirstScratch) {
        if (!write) sums.remote += bytes;
        out.load(shared_index(rank_, write ? Shared::host_out : Shared::host_in), bytes);
        out.from_host |= !write;
        continue;
      }
      sums.local += bytes;
      out.load(shared_index(rank_, Shared::memory), bytes);
      continue;
    }
    own_link = true;
    if (owner != rank_) {
      out.load(shared_index(owner, write ? Shared::ingress : Shared::egress), bytes);
    }
  }
  if (!own_link) return;
  // A store to a switch leaves once, and what it adds up comes in once.
  out.load(shared_index(rank_, write ? Shared::egress : Shared::ingress), bytes);
  out.fetches |= !write;
  out.at_switch |= at_switch;
  sums.remote += bytes;
}

/// Do two moves that go together send the same bytes? Then they are read once.
bool WorkOut::same_source(const device::Move& a, const device::Move& b) const {
  if (a.srcs != 1 || b.srcs != 1 || a.run_count != b.run_count || a.run_count == 0) return false;
  if (lowered_.operands[a.operands + a.dsts].base != lowered_.operands[b.operands + b.dsts].base) {
    return false;
  }
  for (uint32_t r = 0; r < a.run_count; ++r) {
    if (lowered_.offsets[lowered_.runs[a.runs + r].offsets + a.dsts] !=
        lowered_.offsets[lowered_.runs[b.runs + r].offsets + b.dsts]) {
      return false;
    }
  }
  return true;
}

/// Bytes of rows that a function is applied to as those of an operand, which may have a few values
/// of each row only.
uint64_t WorkOut::as_stored(const DeviceOp& op, uint32_t k, uint64_t bytes) const {
  const Op& source = program_.ranks[rank_].ops[op.source];
  if (op.kind != device::StepKind::apply || !info(source.kind).has(kApplies)) return bytes;
  const rows::Form form = program_.form_of(rank_, program_.all_operands(source)[k]);
  if (form.kind == rows::Kind::row) return bytes;
  const uint64_t rows = bytes / program_.granule(call_.dtype);
  return rows * rows::bytes_of_row(form, call_.dtype, program_.contract.columns);
}

template <PacketFormat F>
void WorkOut::add_stretch(const Frame& frame, const DeviceOp& op, const FrameStretch& s,
                          uint64_t call, bool same_source, Sums& sums, Work& out) const {
  constexpr bool kPacketOp = F != PacketFormat::none;
  const PacketFormatInfo& unit = info(F);
  const uint64_t wire = kPacketOp ? s.count * unit.wire : s.count;
  const uint64_t begin = kPacketOp ? s.skip * unit.data : s.skip;
  const uint64_t length = s.length() > begin ? s.length() - begin : 0;
  const uint64_t data = kPacketOp ? std::min(s.count * unit.data, length) : s.count;
  const bool by_port = (op.flags & device::kPosts) != 0;
  out.stores += data * device::dsts_of(s);
  sums.data += data;
  uint64_t most = op.kind == device::StepKind::apply ? 0 : wire;
  const uint32_t operands = same_source ? device::dsts_of(s) : device::operands_of(s);
  for (uint32_t k = 0; k < operands; ++k) {
    const DeviceOperand& operand = device::operand_of(frame, s, k);
    const bool write = k < device::dsts_of(s);
    const bool packets = kPacketOp && (operand.flags & device::kPackets) != 0;
    const device::Base& base = lowered_.bases[operand.base];
    PacketRange slot{base.rank, base.buffer, {}};
    if (packets) slot.range = slot_range(frame, s, k, unit.wire, call);
    if ((operand.flags & device::kPort) != 0) {
      out.requests.push_back(
          {operand.channel, base.rank, wire, packets, of_callers(frame, s), slot});
      continue;
    }
    const uint64_t bytes = packets ? wire : as_stored(op, k, data);
    most = std::max(most, bytes);
    if (!by_port) add_access(operand, write, bytes, sums, out);
    if (!packets) continue;
    for (uint32_t m = 0; m < operand.members; ++m) {
      slot.rank = lowered_.bases[operand.base + m].rank;
      slot.buffer = lowered_.bases[operand.base + m].buffer;
      (write ? out.writes : out.reads).push_back(slot);
    }
  }
  if (!by_port) sums.pieces += (most + kAtOnce - 1) / kAtOnce;
}

/// What a source adds to a round where the sources are not added up one after the other: kernels
/// hold parts of trees, and what a sum has beside its number, in memory, and read sources again.
double WorkOut::source_ns(const DeviceOp& op) const {
  if ((op.flags & device::kTree) != 0) return ns_of(Summation::tree, machine_);
  const ReduceOp reduce = op.reduce == ReduceOp::call ? call_.reduce : op.reduce;
  const bool is_float = info(call_.dtype).kind == DtypeKind::kFloat;
  const bool exact = device::adds_exactly(op) && device::differs_if_exact(is_float, reduce);
  return exact ? ns_of(Summation::exact, machine_) : 0;
}

template <PacketFormat F>
void WorkOut::add_moves(const Frame& frame, const DeviceOp& op, uint64_t call, Sums& sums,
                        Work& out) const {
  constexpr bool kPacketOp = F != PacketFormat::none;
  const auto round =
      static_cast<double>(kPacketOp ? machine_.block_packet_round_ns : machine_.block_round_ns);
  const double begins = kPacketOp ? 0 : first_ns();
  const bool each_begins = device::info(op.kind).adds;
  const auto operand = static_cast<double>(machine_.block_operand_ns);
  const auto access = static_cast<double>(machine_.block_access_ns);
  for (uint32_t i = 0; i < op.count;) {
    sums.pieces = 0;
    sums.operands = sums.sources = 0;
    uint64_t first_pieces = 0;
    const uint32_t first = i;
    do {
      sums.pieces = 0;
      const device::Move& move = frame.rank.moves[op.first + i];
      const uint64_t data_before = sums.data;
      const bool same = i > first && same_source(move, frame.rank.moves[op.first + i - 1]);
      device::for_each_stretch<F>(frame, op, i, [&](const FrameStretch& s) {
        add_stretch<F>(frame, op, s, call, same, sums, out);
      });
      sums.operands += uint32_t{move.dsts} + (same ? 0u : move.srcs);
      sums.sources += move.srcs;
      if (i == first) first_pieces = sums.pieces;
      if (i > first) sums.data = data_before;
      ++i;
    } while (i < op.count && frame.rank.moves[op.first + i].like_last);
    if (first_pieces == 0) continue;
    const auto rounds = static_cast<double>((first_pieces + threads_ - 1) / threads_);
    const bool reads = !out.reads.empty();
    const bool writes = !out.writes.empty();
    const double sides = reads && writes ? 2 : 1;  // packets come, and go
    const double more = kPacketOp ? access * more_accesses(info(F), reads, writes) : 0;
    const double once =
        round * sides + more + operand * sums.operands + source_ns(op) * sums.sources;
    out.block_ns += begins * (each_begins ? rounds : 1) + rounds * once;
    if (out.first_ns != 0) continue;
    out.read_ns = reads ? round : 0;
    out.first_ns = begins + once;
  }
}

/// Externals go through memory once, and the block meets for each reduction of each row. What a row
/// takes has not been fitted: the figures are those of other steps.
void WorkOut::add_rows(const DeviceOp& op, uint64_t data, Sums& sums, Work& out) const {
  const Op& source = program_.ranks[rank_].ops[op.source];
  const Applied what = applied(program_, source);
  const rows::Function& function = program_.functions[what.function];
  const uint64_t count = data / program_.granule(call_.dtype);
  if (count == 0) return;
  uint64_t bytes = 0;
  const auto add = [&](const RowValue& value) {
    if (!value.external) return;
    const rows::External& external = program_.externals[value.index];
    const uint64_t row = rows::bytes_of_row(external, call_.dtype, program_.contract.columns);
    bytes += external.has_rows() ? row * count : row;
  };
  for (size_t i = 0; i < what.params.size(); ++i) add(what.param(i));
  for (size_t i = 0; i < what.results.size(); ++i) add(what.result(i));
  const auto reductions = std::ranges::count_if(
      function.nodes, [](const rows::Node& node) { return rows::is_reduction(node.op); });
  sums.local += bytes;
  out.load(shared_index(rank_, Shared::memory), bytes);
  out.block_ns += static_cast<double>(machine_.step_sync_ns) * static_cast<double>(count) *
                  static_cast<double>(reductions);
}

void WorkOut::of(const Frame& frame, const DeviceOp& op, uint64_t call, Work& out) const {
  out.clear();
  Sums sums;
  if (op.format == PacketFormat::none) {
    add_moves<PacketFormat::none>(frame, op, call, sums, out);
  } else {
    device::with_format(op.format, [&](auto tag) {
      add_moves<decltype(tag)::kFormat>(frame, op, call, sums, out);
    });
  }
  if (device::info(op.kind).family == device::StepFamily::rows) {
    add_rows(op, sums.data, sums, out);
  }
  out.tail_ns = out.reads.empty() ? 0 : out.first_ns - out.read_ns;
  const double begins = first_ns();
  const double moved = std::max(time_at(sums.remote, machine_.block_remote_mb_per_s),
                                time_at(sums.local, machine_.block_local_mb_per_s));
  // A round of packets, and of sums, waits for its loads before the next one begins; what is only
  // moved is loaded ahead.
  const bool in_turn = op.format != PacketFormat::none || info(op.kind).adds;
  if (!out.reads.empty()) {
    const double busy = time_at(sums.local, machine_.block_busy_mb_per_s);
    out.busy_ns = std::max(0.0, busy - time_at(sums.local, machine_.block_local_mb_per_s));
  }
  // A step without data takes no time.
  if (sums.data > 0) {
    out.block_ns = in_turn ? out.block_ns + moved : std::max(out.block_ns, begins + moved);
  }
}

}  // namespace mscclc::cost
