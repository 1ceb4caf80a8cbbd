#include "runtime/core/communicator/hang_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "executor/shared_atomics.h"
#include "ir/print/print.h"
#include "ir/program/access.h"
#include "ir/program/flag_regions.h"
#include "ir/report/op_error.h"

namespace mscclc {
namespace {

using device::Fault;
using device::WaitFor;

constexpr size_t kMaxNotes = 16;

/// Blocks of a rank with an op of which `brings(op)` is true, as text: "tb 1 and tb 3 of rank 2".
template <class Brings>
std::string blocks_that(const Program& program, uint32_t rank, Brings brings) {
  std::string text;
  uint32_t last = kNone;
  for (const Op& op : program.ranks[rank].ops) {
    if (op.block == last || !brings(op)) continue;
    last = op.block;
    text += fmt::format("{}tb {}", text.empty() ? "" : " and ", op.block);
  }
  return text.empty() ? text : fmt::format("{} of rank {}", text, rank);
}

bool names(const Program& program, const Op& op, auto test) {
  const auto dsts = program.dsts(op);
  return std::any_of(dsts.begin(), dsts.end(), test);
}

std::string signal_text(const Program& program, uint32_t rank, const Fault& fault) {
  const Channel& own = program.ranks[rank].channels[fault.index];
  std::string text = fmt::format("waits for signal {} at '{}'; {} came", fault.expected,
                                 program.text(own.label), fault.seen);
  if (own.partner == kNone) return text + "; no rank can send it";
  const Channel& partner = program.ranks[own.peer].channels[own.partner];
  text += fmt::format("; rank {} should send it from '{}'", own.peer, program.text(partner.label));
  const std::string senders = blocks_that(program, own.peer, [&](const Op& op) {
    return info(op.kind).has(kSignals) &&
           names(program, op, [&](const Operand& o) { return o.channel == own.partner; });
  });
  return text + (senders.empty() ? ", but no op does" : ": " + senders);
}

std::string semaphore_text(const Program& program, uint32_t rank, const Fault& fault) {
  const Rank& own = program.ranks[rank];
  const std::string releasers = blocks_that(program, rank, [&](const Op& op) {
    return op.kind == OpKind::release &&
           names(program, op, [&](const Operand& o) { return o.first == fault.index; });
  });
  return fmt::format("waits for '{}', which is {}; {}",
                     program.text(own.semaphores[fault.index].label), fault.seen,
                     releasers.empty() ? "no op releases it" : "it is released by " + releasers);
}

/// Blocks of `writer` that write a chunk of a rank, as text: "tb 1 and tb 3 of rank 2".
std::string writing_blocks(const Program& program, uint32_t writer, uint32_t rank, uint32_t buffer,
                           uint32_t chunk) {
  std::vector<Access> accesses;
  return blocks_that(program, writer, [&](const Op& op) {
    accesses.clear();
    append_accesses(program, writer, op, accesses);
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) {
      return a.write && a.rank == rank && a.buffer == buffer && chunk - a.first < a.count;
    });
  });
}

/// Those of all ranks: "tb 1 of rank 2 and tb 0 of rank 3".
std::string writers_of(const Program& program, uint32_t rank, uint32_t buffer, uint32_t chunk) {
  std::string text;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const std::string blocks = writing_blocks(program, r, rank, buffer, chunk);
    if (!blocks.empty()) text += (text.empty() ? "" : " and ") + blocks;
  }
  return text;
}

/// Where the packet lies that a block has waited for: its buffer and chunk.
struct PacketPlace {
  uint32_t buffer, chunk;
};
std::optional<PacketPlace> packet_place(const Program& program, uint32_t rank, const Fault& fault,
                                        const PeerMemory& region) {
  const auto spot = region.find(device::unit_of(fault));
  if (!spot) return std::nullopt;
  const Buffer& buffer = program.ranks[rank].buffers[spot->buffer];
  const uint64_t bytes = region.layout().buffers[spot->buffer].bytes;
  return PacketPlace{spot->buffer, static_cast<uint32_t>(spot->offset / (bytes / buffer.chunks))};
}

/// Ranks with an op that writes a chunk of a rank.
std::vector<uint32_t> ranks_that_write(const Program& program, uint32_t rank, PacketPlace place) {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    if (!writing_blocks(program, r, rank, place.buffer, place.chunk).empty()) ranks.push_back(r);
  }
  return ranks;
}

/// Ranks that should have sent what a block has waited for, which may be its own.
std::vector<uint32_t> ranks_awaited(const Program& program, uint32_t rank, const Fault& fault,
                                    const PeerMemory& region) {
  if (fault.what == WaitFor::signal) return {program.ranks[rank].channels[fault.index].peer};
  if (fault.what != WaitFor::packet) return {};
  const auto place = packet_place(program, rank, fault, region);
  return place ? ranks_that_write(program, rank, *place) : std::vector<uint32_t>();
}

std::string packet_text(const Program& program, uint32_t rank, const Fault& fault,
                        const PeerMemory& region) {
  const auto place = packet_place(program, rank, fault, region);
  if (!place) return "waits for a packet";
  const auto [index, chunk] = *place;
  const Buffer& buffer = program.ranks[rank].buffers[index];
  const std::string writers = writers_of(program, rank, index, chunk);
  return fmt::format("waits for a packet in '{}[{}]'{}; {}", program.name_of(buffer.name), chunk,
                     is_sentinel(buffer.packets) ? ", which is empty"
                                                 : fmt::format(" with flag {}; it holds flag {}",
                                                               fault.expected, fault.seen),
                     writers.empty() ? "no op writes it" : "it is written by " + writers);
}

/// Which array and flag a number over all arrays is.
std::pair<uint32_t, uint32_t> flag_of(const Program& program, uint32_t number) {
  uint32_t array = 0;
  while (number >= program.flags[array].count) number -= program.flags[array++].count;
  return {array, number};
}

/// In words of so many bits: how often it was raised in this call, if it was as often as it should
/// be in those before.
std::string awaited_flag_text(const Program& program, uint32_t rank, const Fault& fault) {
  const auto [array, flag] = flag_of(program, fault.index);
  const FlagArray& flags = program.flags[array];
  const FlagRegion region = flag_region(program, rank, array, flag);
  const uint64_t mask = flags.bits == 64 ? ~uint64_t{0} : 0xffffffffu;
  const uint64_t left = (fault.expected - fault.seen) & mask;
  const std::string name = flag_text(program, array, flag);
  const std::string raised =
      left > flags.raises
          ? fmt::format("in the calls before it was not raised {} times each", flags.raises)
          : fmt::format("in this call it was raised {} of {} times", flags.raises - left,
                        flags.raises);
  return fmt::format(
      "waits for the flag '{}', whose word is {} and must be {}: {}; the other side "
      "raises it when it has written chunk{} of the input",
      name, fault.seen, fault.expected & mask, raised,
      region.count == 1 ? fmt::format(" {}", region.first)
                        : fmt::format("s {} to {}", region.first, region.first + region.count - 1));
}

std::string reason(const Program& program, uint32_t rank, const Fault& fault,
                   const PeerMemory& region) {
  const auto peer = [&] {
    const Channel& channel = program.ranks[rank].channels[fault.index];
    return fmt::format("'{}' to rank {}", program.text(channel.label), channel.peer);
  };
  switch (fault.what) {
    case WaitFor::signal:
      return signal_text(program, rank, fault);
    case WaitFor::semaphore:
      return semaphore_text(program, rank, fault);
    case WaitFor::barrier:
      return fmt::format("waits for {} more blocks of its barrier", fault.expected - fault.seen);
    case WaitFor::packet:
      return packet_text(program, rank, fault, region);
    case WaitFor::queue:
      return fmt::format("waits for room in the queue of its proxy, for {}", peer());
    case WaitFor::flush:
      return fmt::format("waits for its proxy to have read the sources of {}", peer());
    case WaitFor::flag:
      return awaited_flag_text(program, rank, fault);
    case WaitFor::nothing:
    case WaitFor::skipped:
      break;
  }
  return "waits";
}

}  // namespace

bool have_given_up(const Fault* faults, uint32_t blocks) {
  return std::any_of(faults, faults + blocks, [](const Fault& fault) {
    return load_acquire<uint32_t>(&fault.what) != static_cast<uint32_t>(WaitFor::nothing);
  });
}

size_t describe_faults(const Program& program, uint32_t rank, const Fault* faults, uint32_t blocks,
                       const PeerMemory& region, std::vector<Note>& notes,
                       std::set<uint32_t>& awaited) {
  size_t count = 0;
  for (uint32_t b = 0; b < blocks; ++b) {
    const auto what = static_cast<WaitFor>(load_acquire<uint32_t>(&faults[b].what));
    if (what == WaitFor::nothing || what == WaitFor::skipped) continue;
    const Fault fault = faults[b];
    for (const uint32_t peer : ranks_awaited(program, rank, fault, region)) {
      if (peer != rank) awaited.insert(peer);
    }
    if (++count > kMaxNotes) continue;
    const Op& op = program.ranks[rank].ops[fault.op];
    std::string bindings = print_bindings(program, op);
    if (!bindings.empty()) bindings = fmt::format(" ({})", bindings);
    notes.push_back(op_note(
        program, op,
        fmt::format("{}: '{}'{} {}", print_place(program, rank, op), print_op(program, rank, op),
                    bindings, reason(program, rank, fault, region))));
  }
  if (count > kMaxNotes) notes.push_back({fmt::format("and {} more", count - kMaxNotes)});
  return count;
}

}  // namespace mscclc
