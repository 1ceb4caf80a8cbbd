#include "passes/prove/memory/packet_slots.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {
namespace {

/// By rank and buffer: does an op wait for packets there?
std::vector<std::vector<bool>> polled_buffers(const Program& program) {
  std::vector<std::vector<bool>> polled;
  for (const Rank& rank : program.ranks) {
    std::vector<bool>& buffers = polled.emplace_back(rank.buffers.size());
    for (const Op& op : rank.ops) {
      if (!info(op.kind).has(kPolls)) continue;
      for (const Operand& o : program.srcs(op)) {
        if (o.channel == kNone) buffers[o.buffer] = true;
      }
    }
  }
  return polled;
}

/// What both of two stores of packets to one slot in one call show: all that is known of several
/// processes is nothing; one process shows no less with the later store than with the earlier.
News shown_by_both(const News& earlier, const News& later) {
  if (!premise(Premise::news_of_one_process, earlier.process == later.process)) return {};
  News news = earlier;
  const bool one_post = news.port == later.port && news.port_done == later.port_done;
  if (!premise(Premise::news_of_one_port, one_post)) news.port = kNone;
  return news;
}

}  // namespace

PacketSlots::PacketSlots(const AccessParts& parts, const ChunkContents& contents,
                         AccessOrder& order, FindingList& findings)
    : parts_(parts),
      program_(parts.system.program()),
      contents_(contents),
      order_(order),
      findings_(findings),
      polled_(polled_buffers(program_)),
      pieces_read_(parts.system.ranks()) {}

/// Have packets of this call come for every byte of the extent? What a reader has emptied (lemma
/// O8) is not there, whatever had come before.
bool PacketSlots::arrived(uint64_t chunk, const Extent& extent, uint32_t call,
                          bool sentinel) const {
  Covering covering(parts_.cuts, extent);
  for (uint32_t i = parts_.history.stores(chunk); i != kNone; i = parts_.history.record(i).next) {
    const Record& record = parts_.history.record(i);
    if (record.packets == kNone) {
      if (!premise(Premise::plain_is_no_packet, !record.extent.may_touch(extent))) return false;
    } else if (premise(Premise::packets_of_this_call, sentinel || record.event.call == call)) {
      if (premise(Premise::all_pieces_have_come, covering.add(record.extent))) return true;
    }
  }
  return false;
}

bool PacketSlots::await(uint32_t process, const Op& op) {
  ThreadBlock& block = parts_.blocks[process];
  const uint32_t call = parts_.calls.now(block.rank);
  for (const Operand& o : program_.srcs(op)) {
    const Buffer& buffer = program_.ranks[block.rank].buffers[o.buffer];
    if (o.channel != kNone || buffer.packets == PacketFormat::none) continue;
    for (uint32_t k = 0; k < o.count; ++k) {
      const uint64_t chunk = parts_.system.chunk(block.rank, o.buffer, o.first + k, call);
      const Extent extent =
          parts_.bytes.extent_of(block, op, o, k, {block.rank, o.buffer, o.first + k});
      if (arrived(chunk, extent, call, is_sentinel(buffer.packets))) continue;
      awaited_[chunk].push_back(process);
      return false;
    }
  }
  return true;
}

void PacketSlots::wake_readers(uint64_t chunk) {
  const auto waiting = awaited_.find(chunk);
  if (waiting == awaited_.end()) return;
  for (const uint32_t process : waiting->second) parts_.blocks.wake(process);
  awaited_.erase(waiting);
}

void PacketSlots::take(ThreadBlock& block, const Spot& spot, const Extent& extent, bool sentinel) {
  const uint32_t call = parts_.calls.now(block.rank);
  for (uint32_t i = parts_.history.stores(spot.chunk); i != kNone;
       i = parts_.history.record(i).next) {
    const Record& record = parts_.history.record(i);
    if (record.packets == kNone || !record.extent.may_touch(extent)) continue;
    if (!sentinel && record.event.call != call) continue;  // not what it waits for
    Packets& packets = parts_.history.packets(record);
    packets.observed = premise(Premise::several_show_nothing, !packets.several);
    if (record.node != kNone) {
      const uint32_t turns = parts_.chains.add_turns(record.node_turns, spot.turns);
      parts_.at_hand.nodes.add(parts_.chains, record.node, turns, extent);
      block.nodes.add(parts_.chains, record.node, turns, extent);
    }
    const bool whole = extent.covers(record.extent), piece = record.extent.covers(extent);
    if (!whole && !piece) continue;
    const News all = parts_.system.turned(packets.news, spot.turns);
    News news = all;
    // The port may have read no more than the piece.
    if (!premise(Premise::ports_read_piece_by_piece, whole)) news.port = kNone;
    parts_.at_hand.learned.push_back({news, piece ? extent : record.extent});
    const bool sure = parts_.at_hand.learned.back().extent.sure;
    if (premise(Premise::parts_that_have_bytes, sure)) block.hear(news);
    if (same(news, all) && sure) continue;
    if (record.extent.sure && record.event.call == call && piece) {
      note_piece(block.rank, spot, record, extent, all);
    }
  }
}

/// Blocks of a rank read a store of packets piece by piece. Some piece has a unit, though it is not
/// known which: when all of them have been read, the end of the call publishes what the packets
/// publish (lemma O2). Not where ranks stand for others, whose stores would be mixed up.
void PacketSlots::note_piece(uint32_t rank, const Spot& spot, const Record& record,
                             const Extent& piece, const News& news) {
  if (parts_.system.ranks() != program_.ranks.size()) return;
  Pieces& pieces = pieces_read_[rank];
  const std::tuple store(spot.chunk, record.event.process, record.event.time, record.extent.way,
                         record.extent.piece);
  Covering& covering = pieces.of_store.try_emplace(store, parts_.cuts, record.extent).first->second;
  if (!covering.add(piece)) return;
  if (pieces.news.empty() || !same(pieces.news.back(), news)) pieces.news.push_back(news);
}

void PacketSlots::end_call(uint32_t rank) {
  Pieces pieces = std::exchange(pieces_read_[rank], {});
  if (pieces.news.empty()) return;
  const uint32_t first = parts_.system.block_process(rank, parts_.calls.first_block(rank));
  std::ranges::move(pieces.news, std::back_inserter(parts_.blocks[first].gains));
}

void PacketSlots::empty(const Actor& actor, const Spot& spot, const ChunkName& name,
                        const Record& load) {
  Record reset = load;
  reset.write = true;
  order_.check_takers(actor, spot, name, reset);
  if (!premise(Premise::emptying_is_a_store, false)) order_.check(actor, spot, name, reset);
  order_.keep(spot, reset);
}

void PacketSlots::check_slot(const Event& event, const Spot& spot, const ChunkName& name,
                             const Extent& extent, bool sentinel, const Symbol& stored) {
  for (uint32_t i = parts_.history.stores(spot.chunk); i != kNone;
       i = parts_.history.record(i).next) {
    Record old = parts_.history.record(i);
    old.event.process = parts_.system.turned(old.event.process, spot.turns);
    if (old.packets == kNone || !old.extent.may_touch(extent)) continue;
    if (!sentinel && old.event.call != event.call) continue;
    // What a port sends as it lies is not looked at where it lay.
    if (old.event.call != event.call &&
        premise(Premise::full_slots_that_ports_send, !polled_[name.rank][name.buffer]))
      continue;
    if (premise(Premise::one_slot_one_store, !sentinel && same_again(spot.chunk, extent, stored)))
      continue;
    parts_.races.report_slot_twice(name, old, {.event = event, .write = true});
  }
}

/// Is what is put into a slot what lies there? Of what is not known there is no saying. `stored`:
/// as seen from the rank that has the slot.
bool PacketSlots::same_again(uint64_t chunk, const Extent& extent, const Symbol& stored) const {
  return premise(Premise::known_packets_again, stored.known()) &&
         contents_.read(chunk, extent) == stored;
}

/// Is what is being stored there made of the packets that have been waited for there, byte by byte?
/// Then its readers know no less than those of the packets.
bool PacketSlots::is_echo(const Spot& spot, const std::vector<uint32_t>& before,
                          const Extent& extent) const {
  const Record& first = parts_.history.record(before[0]);
  const auto same_value = [&](uint32_t i) {
    const Record& record = parts_.history.record(i);
    return record.node == first.node && record.node_turns == first.node_turns;
  };
  if (first.node == kNone || !std::ranges::all_of(before, same_value)) return false;
  const uint32_t turns = parts_.chains.add_turns(first.node_turns, spot.turns);
  return std::ranges::any_of(parts_.at_hand.nodes.values(), [&](const ReadValue& read) {
    return read.value == first.node && read.turns == turns && !read.parents_only &&
           (read.piece.whole() || read.piece == extent);
  });
}

void PacketSlots::mark_several(const Spot& spot, Record& access, const Symbol& stored) {
  if (!same_again(spot.chunk, access.extent, stored)) return;  // others are an error: check_slot()
  std::vector<uint32_t> before;
  for (uint32_t i = parts_.history.stores(spot.chunk); i != kNone;
       i = parts_.history.record(i).next) {
    const Record& old = parts_.history.record(i);
    if (old.packets == kNone || old.event.call != access.event.call) continue;
    if (old.extent.may_touch(access.extent)) before.push_back(i);
  }
  if (before.empty()) return;
  const bool echo = premise(Premise::echoes_of_the_first, is_echo(spot, before, access.extent));
  const Record& first = parts_.history.record(before[0]);
  access.node = echo ? first.node : kNone;
  access.node_turns = first.node_turns;
  Packets& added = parts_.history.packets(access);
  added.several = true;
  for (const uint32_t i : before) {
    Packets& old = parts_.history.packets(parts_.history.record(i));
    const News both = echo ? old.news : shown_by_both(old.news, added.news);
    old.news = added.news = both;
    old.several = true;
    old.observed = false;
    if (!echo) parts_.history.forget_node(i);
  }
}

void PacketSlots::check_source(const Event& event, uint64_t chunk, const ChunkName& name,
                               const Extent& extent) {
  const PacketFormat format = parts_.bytes.buffer(name).packets;
  if (format == PacketFormat::none) return;
  if (premise(Premise::ports_send_what_has_come,
              arrived(chunk, extent, event.call, is_sentinel(format))) ||
      !findings_.may_report(event.op))
    return;
  Finding& finding = findings_.add(Finding::Kind::no_packets);
  finding.first = event;
  finding.chunk = name;
}

bool PacketSlots::report_overtaken(const Event& reader, uint64_t chunk, const ChunkName& name,
                                   const Extent& extent) {
  for (uint32_t i = parts_.history.stores(chunk); i != kNone; i = parts_.history.record(i).next) {
    const Record& later = parts_.history.record(i);
    if (later.packets == kNone ||
        premise(Premise::packets_are_not_overtaken, later.event.call <= reader.call))
      continue;
    if (!later.extent.may_touch(extent)) continue;
    parts_.races.report_overtaken(name, reader, later);
    return true;
  }
  return false;
}

bool PacketSlots::report_lost(uint32_t process) {
  const ThreadBlock& block = parts_.blocks[process];
  if (block.op == block.end) return false;
  const Op& op = parts_.blocks.op_of(block);
  if (!info(op.kind).has(kPolls)) return false;
  const uint32_t call = parts_.calls.now(block.rank);
  for (const Operand& o : program_.srcs(op)) {
    for (uint32_t k = 0; o.channel == kNone && k < o.count; ++k) {
      const uint64_t chunk = parts_.system.chunk(block.rank, o.buffer, o.first + k, call);
      const Event reader{process, block.now + 1, block.op, call};
      if (report_overtaken(reader, chunk, {block.rank, o.buffer, o.first + k}, {})) return true;
    }
  }
  return false;
}

}  // namespace mscclc::proof
