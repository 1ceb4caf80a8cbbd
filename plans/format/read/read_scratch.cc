// Scratch: on the wire one space of chunks per rank, in the IR buffers with their packets and
// copies. Our plans say where each buffer stands. In a plan of MSCCL++ a run of chunks that is used
// for packets is one buffer, a run used for plain data another.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "ir/program/applied.h"
#include "plans/format/read/read_state.h"

namespace mscclc {
namespace {

/// Chunks [first, last) of the wire that one buffer has.
struct ScratchRange {
  uint64_t first, last;
  uint32_t buffer;    ///< among the rank's
  uint64_t used = 0;  ///< in a plan of MSCCL++: one more than the last chunk that an op names
};

/// Where the scratch of each rank is; by rank, ascending.
using ScratchRanges = std::vector<std::vector<ScratchRange>>;

// ---- our plans ----

bool read_buffer(ReadState& state, uint32_t rank, NodeId node, std::vector<uint32_t>& offsets) {
  const JsonReader& json = state.json;
  Program& program = state.program;
  Members m;
  std::string_view name, format;
  Buffer buffer;
  uint32_t at = 0;
  if (!m.read(json, node, {w_name, w_at, w_chunks},
              {w_dims, w_packets, w_copies, w_units, w_unit, w_type}) ||
      !json.string(m[w_name], name) || !json.number(m[w_at], at) ||
      !json.number(m[w_chunks], buffer.chunks)) {
    return false;
  }
  buffer.name = program.intern(name);
  if (m.has(w_copies) && !json.number(m[w_copies], buffer.copies)) return false;
  if (m.has(w_units) && !json.number(m[w_units], buffer.units)) return false;
  if (m.has(w_unit) && !json.u64(m[w_unit], buffer.unit)) return false;
  if (m.has(w_packets)) {
    if (!json.string(m[w_packets], format)) return false;
    const std::optional<PacketFormat> found = find_packet_format(format);
    if (!found) return json.fail(m[w_packets], fmt::format("unknown packets '{}'", format));
    buffer.packets = *found;
  }
  if (m.has(w_type)) {
    std::string_view type;
    if (!json.string(m[w_type], type)) return false;
    const std::optional<rows::Form> found = find_form(program, type);
    if (!found) return json.fail(m[w_type], fmt::format("unknown type '{}'", type));
    buffer.form = *found;
  }
  if (m.has(w_dims)) {
    std::vector<int64_t> dims;
    if (!json.integers(m[w_dims], dims)) return false;
    buffer.dims = program.append(dims);
  }
  program.ranks[rank].buffers.push_back(buffer);
  offsets.push_back(at);
  return true;
}

bool read_buffers(ReadState& state, uint32_t rank, std::vector<uint32_t>& offsets) {
  const NodeId list = state.extra_node(rank, w_buffers);
  if (list == kNoNode) return true;
  for (NodeId e = state.json.first(list); e != state.json.end(list); e = state.json.next(e)) {
    if (!read_buffer(state, rank, e, offsets)) return false;
  }
  return true;
}

/// Reads the buffers that the extra key declares. They must stand where the layout puts them.
bool place_ours(ReadState& state, ScratchRanges& runs) {
  std::vector<uint32_t> offsets;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    if (!read_buffers(state, r, offsets)) return false;
  }
  WireLayout layout;
  lay_out_buffers(state.program, layout);
  auto offset = offsets.begin();
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    const std::vector<Buffer>& buffers = state.program.ranks[r].buffers;
    for (uint32_t b = kFirstScratch; b < buffers.size(); ++b) {
      const uint32_t at = *offset++;
      if (at != layout.buffer(r, b).offset) {
        return state.fail(
            state.extra_node(r, w_buffers),
            fmt::format("'{}' is at {}; its place is {}", state.program.name_of(buffers[b].name),
                        at, layout.buffer(r, b).offset));
      }
      if (buffers[b].chunks > 0) runs[r].push_back({at, uint64_t{at} + buffers[b].chunks, b});
    }
    std::ranges::sort(runs[r], {}, &ScratchRange::first);
    if (layout.scratch_chunks[r] != state.ranks[r].chunks[2]) {
      return state.fail(state.ranks[r].chunk_nodes[2],
                        fmt::format("is {}; the buffers have {} chunks", state.ranks[r].chunks[2],
                                    layout.scratch_chunks[r]));
    }
  }
  return true;
}

// ---- MSCCL++'s plans ----

bool check_use(const ReadState& state, const ScratchUse& use) {
  if (use.packets && !state.packets) {
    return state.fail(use.node,
                      "packets, but the protocol is not 'LL': scratch would be too small");
  }
  if (use.plain_remote && state.double_scratch) {
    return state.fail(use.node,
                      "plain remote scratch in a plan with double scratch: MSCCL++'s executor "
                      "would always use the first half");
  }
  return true;
}

/// Splits the scratch of one rank. `uses`: those of the rank, by first chunk.
bool split_scratch(ReadState& state, uint32_t rank, std::span<const ScratchUse> uses,
                   std::vector<ScratchRange>& runs) {
  struct Kind {
    uint64_t first;
    bool packets;
    uint64_t used = 0;
  };
  std::vector<Kind> kinds;  // where each begins; the last use covers the chunks before `end`
  uint64_t end = 0;
  for (const ScratchUse& use : uses) {
    if (!check_use(state, use)) return false;
    const bool overlaps = use.first < end;
    if (overlaps && kinds.back().packets != use.packets) {
      return state.fail(use.node, fmt::format("scratch chunk {} is used both for packets and for "
                                              "plain data",
                                              use.first));
    }
    if (kinds.empty() || kinds.back().packets != use.packets) {
      kinds.push_back({kinds.empty() ? 0 : use.first, use.packets});
    }
    end = std::max(end, uint64_t{use.first} + use.count);
    kinds.back().used = end;
  }
  const uint32_t chunks = state.ranks[rank].chunks[2];
  if (kinds.empty() && chunks > 0) kinds.push_back({0, state.packets});
  std::vector<Buffer>& buffers = state.program.ranks[rank].buffers;
  uint32_t plain = 0, packets = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const uint64_t last = i + 1 < kinds.size() ? kinds[i + 1].first : chunks;
    Buffer buffer;
    const uint32_t number = kinds[i].packets ? ++packets : ++plain;
    std::string name = kinds[i].packets && kinds.size() > 1 ? "packets" : "scratch";
    if (number > 1) name += std::to_string(number);
    buffer.name = state.program.intern(name);
    buffer.chunks = static_cast<uint32_t>(last - kinds[i].first);
    buffer.packets = kinds[i].packets ? PacketFormat::LL16 : PacketFormat::none;
    buffer.copies = state.double_scratch ? 2 : 1;
    runs.push_back({kinds[i].first, last, static_cast<uint32_t>(buffers.size()), kinds[i].used});
    buffers.push_back(buffer);
  }
  return true;
}

/// Packet chunk c lies at the bytes of chunks 2c and 2c + 1: those must be no plain ones. What no
/// op names may lie anywhere.
bool check_bytes(const ReadState& state, uint32_t rank, const std::vector<ScratchRange>& runs) {
  std::vector<std::pair<uint64_t, uint64_t>> bytes;
  for (const ScratchRange& run : runs) {
    const bool packets =
        state.program.ranks[rank].buffers[run.buffer].packets != PacketFormat::none;
    const uint64_t times = packets ? 2 : 1;
    bytes.emplace_back(run.first * times, run.used * times);
  }
  std::ranges::sort(bytes);
  for (size_t i = 1; i < bytes.size(); ++i) {
    if (bytes[i].first >= bytes[i - 1].second) continue;
    return state.fail(state.ranks[rank].chunk_nodes[2],
                      "packets and plain data of scratch lie at the same bytes");
  }
  return true;
}

bool place_peers(ReadState& state, ScratchRanges& runs) {
  std::vector<ScratchUse>& uses = state.uses;
  std::ranges::sort(uses, [](const ScratchUse& a, const ScratchUse& b) {
    return std::tie(a.rank, a.first, a.node) < std::tie(b.rank, b.first, b.node);
  });
  auto first = uses.begin();
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    const auto last =
        std::find_if(first, uses.end(), [&](const ScratchUse& use) { return use.rank != r; });
    if (!split_scratch(state, r, {first, last}, runs[r]) || !check_bytes(state, r, runs[r])) {
      return false;
    }
    first = last;
  }
  return true;
}

// ---- both ----

/// Makes a scratch operand, which counts chunks of the wire, name its buffer.
bool place_operand(const ReadState& state, const std::vector<ScratchRange>& runs, NodeId node,
                   Operand& o) {
  const auto after = std::ranges::upper_bound(runs, uint64_t{o.first}, {}, &ScratchRange::first);
  if (after != runs.begin()) {
    const ScratchRange& run = *(after - 1);
    if (uint64_t{o.first} + o.count <= run.last) {
      o.buffer = run.buffer;
      o.first -= static_cast<uint32_t>(run.first);
      return true;
    }
  }
  return state.fail(node, fmt::format("scratch chunks {}..{} are not in one buffer", o.first,
                                      uint64_t{o.first} + o.count));
}

bool place_operands(ReadState& state, uint32_t rank, const ScratchRanges& runs) {
  Program& program = state.program;
  const std::vector<Op>& ops = program.ranks[rank].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!info(ops[i].kind).moves_data()) continue;
    for (uint32_t k = 0; k < uint32_t{ops[i].dsts} + ops[i].srcs; ++k) {
      Operand& o = program.operands.at(ops[i].operands)[k];
      if (o.buffer != kWireScratch) continue;
      const bool at_switch = o.channel != kNone &&
                             program.ranks[rank].channels[o.channel].kind == ChannelKind::switch_;
      const uint32_t owner = at_switch ? rank : program.owner_of(rank, o);
      if (!place_operand(state, runs[owner], state.op_nodes[rank][i], o)) return false;
    }
  }
  return true;
}

}  // namespace

bool read_scratch(ReadState& state) {
  ScratchRanges runs(state.ranks.size());
  if (!(state.ours ? place_ours(state, runs) : place_peers(state, runs))) return false;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    if (!place_operands(state, r, runs)) return false;
  }
  return true;
}

}  // namespace mscclc
