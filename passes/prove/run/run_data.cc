// Ops that move data: every chunk they touch is checked against what was done to it before.
#include <algorithm>

#include "passes/base/thread_partition.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/run/run.h"

namespace mscclc::proof {

/// Calls each(chunk's name, its spot) for the `k`-th chunk of an operand: at a switch one of
/// every member.
template <class Each>
void Run::each_place(uint32_t rank, const Operand& o, uint32_t k, Each&& each) const {
  const auto at = [&](uint32_t owner, uint32_t buffer) {
    const uint32_t chunk = o.first + k;
    each(ChunkName{owner, buffer, chunk}, system_.spot(owner, buffer, chunk, calls_[rank]));
  };
  if (o.channel == kNone) return at(rank, o.buffer);
  const Rank& here = program_.ranks[rank];
  const Channel& channel = here.channels[o.channel];
  if (channel.kind != ChannelKind::switch_) return at(channel.peer, o.buffer);
  for (const int64_t q : program_.values(channel.group)) {
    const uint32_t member = static_cast<uint32_t>(q);
    at(member, member_buffer(program_, member, here.buffers[o.buffer], o.buffer));
  }
}

// ---- packets ----

/// Have packets of this call come for every byte of the extent? What a reader has emptied (lemma
/// O8) is not there, whatever had come before.
bool Run::arrived(uint64_t chunk, const Extent& extent, uint32_t call, bool sentinel) const {
  Covering covering(cuts_, extent);
  for (uint32_t i = history_.stores(chunk); i != kNone; i = history_.record(i).next) {
    const Record& record = history_.record(i);
    if (record.packets == kNone) {
      if (!premise(Premise::plain_is_no_packet, !record.extent.may_touch(extent))) return false;
    } else if (premise(Premise::packets_of_this_call, sentinel || record.event.call == call)) {
      if (premise(Premise::all_pieces_have_come, covering.add(record.extent))) return true;
    }
  }
  return false;
}

/// Waits for the packets that the op reads, and learns what they publish.
bool Run::await_packets(uint32_t process, const Op& op) {
  Block& block = blocks_[process];
  const uint32_t call = calls_[block.rank];
  for (const Operand& o : program_.srcs(op)) {
    const Buffer& buffer = program_.ranks[block.rank].buffers[o.buffer];
    if (o.channel != kNone || buffer.packets == PacketFormat::none) continue;
    for (uint32_t k = 0; k < o.count; ++k) {
      const uint64_t chunk = system_.chunk(block.rank, o.buffer, o.first + k, call);
      const Extent extent = extent_of(block, op, o, k, {block.rank, o.buffer, o.first + k});
      if (arrived(chunk, extent, call, is_sentinel(buffer.packets))) continue;
      awaited_[chunk].push_back(process);
      return false;
    }
  }
  return true;
}

/// What the reader of a slot learns from its packets. Lemma O2: the block has heard of those
/// of which it has surely waited for some, a thread of those whose bytes it has read.
void Run::take_packets(Block& block, const Spot& spot, const Extent& extent, bool sentinel) {
  for (uint32_t i = history_.stores(spot.chunk); i != kNone; i = history_.record(i).next) {
    const Record& record = history_.record(i);
    if (record.packets == kNone || !record.extent.may_touch(extent)) continue;
    if (!sentinel && record.event.call != calls_[block.rank]) continue;  // not what it waits for
    Packets& packets = history_.packets(record);
    packets.observed = premise(Premise::several_show_nothing, !packets.several);
    if (record.node != kNone) {
      const uint32_t turns = chains_.add_turns(record.node_turns, spot.turns);
      nodes_.add(chains_, record.node, turns, extent);
      block.nodes.add(chains_, record.node, turns, extent);
    }
    News turned;
    if (spot.turns != 0) turned = system_.turned(packets.news, spot.turns);
    const News& news = spot.turns != 0 ? turned : packets.news;
    if (record.extent.covers(extent)) {
      learned_.push_back({news, extent});
    } else if (extent.covers(record.extent)) {
      learned_.push_back({news, record.extent});
    } else {
      continue;
    }
    if (premise(Premise::parts_that_have_bytes, learned_.back().extent.sure)) {
      hear(block.gains, news);
    } else if (record.extent.sure && record.event.call == calls_[block.rank] &&
               record.extent.covers(extent)) {
      note_piece(block.rank, spot, record, extent, news);
    }
  }
}

/// Adds what packets publish to what is known.
void Run::hear(std::vector<News>& gains, const News& news) {
  if (gains.empty() || !same(gains.back(), news)) gains.push_back(news);
}

/// Blocks of a rank read a store of packets piece by piece. Some piece has a unit, though it is not
/// known which: when all of them have been read, the end of the call publishes what the packets
/// publish (lemma O2). Not where ranks stand for others, whose stores would be mixed up.
void Run::note_piece(uint32_t rank, const Spot& spot, const Record& record, const Extent& piece,
                     const News& news) {
  if (system_.ranks() != program_.ranks.size()) return;
  Pieces& pieces = pieces_read_[rank];
  const std::tuple store(spot.chunk, record.event.process, record.event.time, record.extent.way,
                         record.extent.piece);
  Covering& covering = pieces.of_store.try_emplace(store, cuts_, record.extent).first->second;
  if (covering.add(piece)) hear(pieces.news, news);
}

/// Plain values of this call, too, depend on what they were made of. A thread that has stored one
/// has waited for all packets that it was made of, also where the chunk is shorter than they are.
void Run::take_values(const Event& event, const Spot& spot, const Record& access) {
  if (!chained_) return;
  const uint32_t rank = system_.processes()[event.process].rank;
  for (uint32_t i = history_.stores(spot.chunk); i != kNone; i = history_.record(i).next) {
    const Record& record = history_.record(i);
    if (record.node == kNone || !record.extent.may_touch(access.extent)) continue;
    const uint32_t process = system_.turned(record.event.process, spot.turns);
    const uint32_t owner = system_.processes()[process].rank;
    if (instance(owner, record.event.call) != instance(rank, event.call)) continue;
    const uint32_t turns = chains_.add_turns(record.node_turns, spot.turns);
    nodes_.add(chains_, record.node, turns, access.extent);
    if (!premise(Premise::the_same_thread_has_waited,
                 process == event.process && same_threads(rank, record, access))) {
      continue;
    }
    nodes_.add_parents(record.node, turns);
  }
}

/// How much of a chunk's bytes an op moves that stores plain data at a position: 0 if all of them,
/// else the class of chunks which may be shorter. The first of a part is as long as
/// any.
uint64_t Run::limit_of(uint32_t rank, const Op& op, Position position) const {
  return as_limit(rank, length_of(rank, op, position, calls_[rank]));
}

/// A class of chunks as a limit of what is moved. The first class is the longest, but not at the
/// images of this rank if it turns into another one there (lemma S1).
uint64_t Run::as_limit(uint32_t rank, uint64_t length) const {
  const bool ragged = part_of(rank, calls_[rank]).contract().kind == CollectiveKind::alltoallv;
  return length == 1 && !ragged &&
                 premise(Premise::the_longest_class_stays_so, system_.symmetry().keeps(0))
             ? 0
             : length;
}

/// Is the value at hand as long as what the op moves? Else it may end before, for some sizes. Where
/// the op moves a chunk of the caller, what is known is as long as that one (size_value()).
bool Run::fills(uint32_t rank) const { return sized_ || as_limit(rank, value_.size) == 0; }

/// Packets that are put into a slot where some of this call are already.
void Run::check_slot(const Event& event, const Spot& spot, const ChunkName& name,
                     const Extent& extent, bool sentinel, const Symbol& stored) {
  for (uint32_t i = history_.stores(spot.chunk); i != kNone; i = history_.record(i).next) {
    Record old = history_.record(i);
    old.event.process = system_.turned(old.event.process, spot.turns);
    if (old.packets == kNone || !old.extent.may_touch(extent)) continue;
    if (!sentinel && old.event.call != event.call) continue;
    // What a port sends as it lies is not looked at where it lay.
    if (old.event.call != event.call &&
        premise(Premise::full_slots_that_ports_send, !polled_[name.rank][name.buffer]))
      continue;
    if (premise(Premise::one_slot_one_store, !sentinel && same_again(spot.chunk, extent, stored)))
      continue;
    if (options_.suspects != nullptr) continue;
    suspect(name, old, {.event = event, .write = true});
    if (!may_report(report_key(old.event, event))) continue;
    Finding& finding = add_finding(Finding::Kind::slot_twice);
    finding.first = old.event;
    finding.second = event;
    finding.chunk = name;
  }
}

/// Is what is put into a slot what lies there? Of what is not known there is no saying. `stored`:
/// as seen from the rank that has the slot.
bool Run::same_again(uint64_t chunk, const Extent& extent, const Symbol& stored) const {
  return premise(Premise::known_packets_again, stored.known()) &&
         values_[chunk].read(extent, mixed_) == stored;
}

/// What both of two stores of packets to one slot in one call show: all that is known of several
/// processes is nothing; one process shows no less with the later store than with the earlier.
static News shown_by_both(const News& earlier, const News& later) {
  if (!premise(Premise::news_of_one_process, earlier.process == later.process)) return {};
  News news = earlier;
  if (!premise(Premise::news_of_one_port, news.port == later.port)) news.port = kNone;
  return news;
}

/// Is what is being stored there made of the packets that have been waited for there, byte by byte?
/// Then its readers know no less than those of the packets.
bool Run::is_echo(const Spot& spot, const std::vector<uint32_t>& before,
                  const Extent& extent) const {
  const Record& first = history_.record(before[0]);
  const auto same_value = [&](uint32_t i) {
    const Record& record = history_.record(i);
    return record.node == first.node && record.node_turns == first.node_turns;
  };
  if (first.node == kNone || !std::ranges::all_of(before, same_value)) return false;
  const uint32_t turns = chains_.add_turns(first.node_turns, spot.turns);
  return std::ranges::any_of(nodes_.values(), [&](const ReadValue& read) {
    return read.value == first.node && read.turns == turns && !read.parents_only &&
           (read.piece.whole() || read.piece == extent);
  });
}

/// Packets of one call that are put into a slot where others of this call are, or have been: a
/// poll may see either, and shows no more than both show (lemma O15).
void Run::mark_several(const Spot& spot, Record& access, const Symbol& stored) {
  if (!same_again(spot.chunk, access.extent, stored)) return;  // others are an error: check_slot()
  std::vector<uint32_t> before;
  for (uint32_t i = history_.stores(spot.chunk); i != kNone; i = history_.record(i).next) {
    const Record& old = history_.record(i);
    if (old.packets == kNone || old.event.call != access.event.call) continue;
    if (old.extent.may_touch(access.extent)) before.push_back(i);
  }
  if (before.empty()) return;
  const bool echo = premise(Premise::echoes_of_the_first, is_echo(spot, before, access.extent));
  const Record& first = history_.record(before[0]);
  access.node = echo ? first.node : kNone;
  access.node_turns = first.node_turns;
  Packets& added = history_.packets(access);
  added.several = true;
  for (const uint32_t i : before) {
    Packets& old = history_.packets(history_.record(i));
    const News both = echo ? old.news : shown_by_both(old.news, added.news);
    old.news = added.news = both;
    old.several = true;
    old.observed = false;
    if (!echo) history_.forget_node(i);
  }
}

/// A slot that a port sends as it lies must hold packets of this call (lemma O8). What never came,
/// or has been emptied, is sent as "nothing has come", and the far reader waits forever.
void Run::check_source(const Event& event, uint64_t chunk, const ChunkName& name,
                       const Extent& extent) {
  const PacketFormat format = buffer_named(name).packets;
  if (format == PacketFormat::none) return;
  if (premise(Premise::ports_send_what_has_come,
              arrived(chunk, extent, event.call, is_sentinel(format))) ||
      !may_report(event.op))
    return;
  Finding& finding = add_finding(Finding::Kind::no_packets);
  finding.first = event;
  finding.chunk = name;
}

// ---- moving ----

Extent Run::piece_of(const Block& block, const Op& op, const Operand& o, uint32_t k,
                     const ChunkName& name) {
  const uint32_t rank = block.rank;
  const uint32_t granule = is_packet_op(op) ? info(packet_format(program_, rank, op)).data : 0;
  const uint32_t units = buffer_named(name).units;
  Extent extent =
      cuts_.extent(op, granule, k, o.count, block.round, units, instance(rank, calls_[rank]));
  if (units != 0) extent.turn = turn_of(block);
  return extent;
}

void Run::move(uint32_t process, const Op& op, const OpInfo& row) {
  const std::span<const Operand> dsts = program_.dsts(op), srcs = program_.srcs(op);
  sentinel_ = is_packet_op(op) && is_sentinel(packet_format(program_, blocks_[process].rank, op));
  if (row.srcs.slot[0].pairwise) {
    for (pair_ = 0; pair_ < dsts.size(); ++pair_) {
      for (uint32_t k = 0; k < dsts[pair_].count; ++k) {
        move_chunk(process, op, row, dsts.subspan(pair_, 1), srcs.subspan(pair_, 1), k);
      }
    }
    pair_ = 0;
  } else {
    for (uint32_t k = 0; k < dsts[0].count; ++k) move_chunk(process, op, row, dsts, srcs, k);
  }
  for (const Emptied& slot : std::exchange(emptied_, {})) {
    Record reset = slot.reset;
    reset.event = actor_of(process).event;
    history_.add_store(slot.chunk, reset);
  }
  publish_move(process, op, row);
}

/// What an op that moves data publishes when it has: the signals and flushes of its channels. One
/// thread posts and signals; the others may lag (lemma O9).
void Run::publish_move(uint32_t process, const Op& op, const OpInfo& row) {
  if (!row.has(kSignals)) return;
  for (const Operand& o : program_.dsts(op)) signal(process, o, false);
  if (!row.has(kFlushes)) return;
  for (const Operand& o : program_.dsts(op)) flush(process, o.channel);
}

bool Run::is_port(uint32_t rank, const Operand& o) const {
  return o.channel != kNone && program_.ranks[rank].channels[o.channel].kind == ChannelKind::port;
}

void Run::move_chunk(uint32_t process, const Op& op, const OpInfo& row,
                     std::span<const Operand> dsts, std::span<const Operand> srcs, uint32_t k) {
  Block& block = blocks_[process];
  nodes_.clear();
  learned_.clear();
  has_value_ = sized_ = false;
  round_ = round_of(block, op, dsts[0], k);
  if (is_port(block.rank, dsts[0])) return post_chunk(process, op, row, dsts, srcs[0], k);
  if (copies_onto_itself(block.rank, op, k)) return;
  const Actor actor = actor_of(process);
  if (op.summation != Summation::in_turn) {
    load_at_once(actor, op, srcs, k, row.has(kPolls));
  } else {
    for (const Operand& o : srcs) load(actor, op, o, k, row.has(kPolls));
  }
  if (row.has(kReduces)) {
    const bool call = op.reduce == ReduceOp::call || op.reduce == ReduceOp::avg;
    value_ = turned_.rounded(value_, premise(Premise::complete_sums_are_divided, op.complete) &&
                                         call && divides(block.rank, calls_[block.rank]));
    if (!premise(Premise::switches_add_in_any_order, !at_switch(block.rank, srcs[0]))) {
      value_ = summed_by_switch(
          block.rank, value_,
          extent_of(block, op, srcs[0], k, {block.rank, srcs[0].buffer, srcs[0].first + k}));
    }
  }
  for (const Operand& o : dsts) size_value(block.rank, o, k);
  for (const Operand& o : dsts) store(actor, op, o, k);
}

/// The sources one by one, and then their sum: along the tree (ir/ops/trees.h), or exact.
void Run::load_at_once(const Actor& actor, const Op& op, std::span<const Operand> srcs, uint32_t k,
                       bool polls) {
  std::vector<Symbol> terms;
  for (const Operand& o : srcs) {
    has_value_ = false;
    load(actor, op, o, k, polls);
    terms.push_back(value_);
  }
  value_ = op.summation == Summation::exact ? exact_of(terms) : tree_of(terms);
}

/// In place, a copy may find its chunk where it should be, and leaves it alone.
bool Run::copies_onto_itself(uint32_t rank, const Op& op, uint32_t k) const {
  if (!premise(Premise::only_copies_onto_themselves, op.kind == OpKind::copy)) return false;
  const Operand &to = program_.dsts(op)[0], &from = program_.srcs(op)[0];
  return system_.chunk(rank, to.buffer, to.first + k, calls_[rank]) ==
         system_.chunk(rank, from.buffer, from.first + k, calls_[rank]);
}

Run::Actor Run::actor_of(uint32_t process) const {
  const Block& block = blocks_[process];
  return {
      {process, block.now + 1, block.op, calls_[block.rank]}, &block.known, process, block.settled};
}

void Run::load(const Actor& actor, const Op& op, const Operand& o, uint32_t k, bool polls) {
  Block& block = blocks_[actor.event.process];
  each_place(block.rank, o, k, [&](const ChunkName& name, const Spot& spot) {
    const Extent extent = extent_of(block, op, o, k, name);
    const PacketFormat format = buffer_named(name).packets;
    const bool packets = polls && format != PacketFormat::none;
    const Record access{
        .event = actor.event, .extent = extent, .position = {pair_, k}, .round = block.round};
    const Symbol symbol = value_at(actor.event, spot, extent, name);
    add_value(symbol);
    value_.plus_zero |= !premise(Premise::sentinels_lose_minus_zero, !sentinel_);
    if (packets) {
      report_overtaken(actor.event, spot.chunk, name, extent);
      take_packets(block, spot, extent, is_sentinel(format));
    } else {
      check(actor, spot, name, access);
      take_values(actor.event, spot, access);
    }
    check_overlaid(actor, name);
    keep(spot, access);
    if (packets && is_sentinel(format)) empty_slot(actor, spot, name, access);
  });
  size_value(block.rank, o, k);
}

/// Packets that came to a sentinel slot before, in this call, have been taken: by an op that comes
/// before this one, whatever this one's own packets publish. Else this one may take them instead,
/// and that op waits forever (lemma O15).
void Run::check_takers(const Actor& actor, const Spot& spot, const ChunkName& name,
                       const Record& reset) {
  const auto check_emptied = [&](uint32_t i) {
    Record taken = history_.record(i);
    const bool emptied = taken.write && taken.packets == kNone && taken.event.op != kNone;
    if (!emptied || taken.event.call != reset.event.call) return;
    if (!taken.extent.may_touch(reset.extent)) return;
    taken.event.process = system_.turned(taken.event.process, spot.turns);
    const bool own = taken.event.process == reset.event.process;
    const bool after = known(*actor.known, actor.knower, actor.settled, taken.event) ||
                       (own && same_threads(rank_of(actor), taken, reset));
    if (!premise(Premise::takers_come_in_order, after)) report_race(name, taken, reset);
  };
  history_.each_of(history_.stores(spot.chunk), [&](uint32_t i) {
    if (history_.record(i).packets != kNone) {
      history_.each_of(history_.record(i).beneath, check_emptied);
    }
  });
}

/// A reader of a sentinel slot empties it: a store like any other. No op reads one twice, or fills
/// one that it reads (ir/report/coinciding.h).
void Run::empty_slot(const Actor& actor, const Spot& spot, const ChunkName& name,
                     const Record& load) {
  Record reset = load;
  reset.write = true;
  check_takers(actor, spot, name, reset);
  if (!premise(Premise::emptying_is_a_store, false)) check(actor, spot, name, reset);
  keep(spot, reset);
}

void Run::store(const Actor& actor, const Op& op, const Operand& o, uint32_t k) {
  const Block& block = blocks_[actor.event.process];
  each_place(block.rank, o, k, [&](const ChunkName& name, const Spot& spot) {
    const Extent extent = extent_of(block, op, o, k, name);
    const bool packets = buffer_named(name).packets != PacketFormat::none;
    store_at(actor, name, spot, extent, k, packets ? weak_news(actor.event.process) : News{});
  });
}

void Run::store_at(const Actor& actor, const ChunkName& name, const Spot& spot,
                   const Extent& extent, uint32_t k, const News& news) {
  const PacketFormat format = buffer_named(name).packets;
  const uint32_t back = system_.back(spot.turns);
  Symbol stored = turned_.turned(value_, back);  // as seen from the rank that owns the chunk
  Record access{.event = actor.event,
                .extent = extent,
                .position = {pair_, k},
                .write = true,
                .round = blocks_[actor.knower].round};
  if (format != PacketFormat::none) {
    access.packets = history_.add_packets({system_.turned(news, back)});
    check_slot(actor.event, spot, name, extent, is_sentinel(format), stored);
  }
  const uint32_t rank = rank_of(actor);
  const Op& op = program_.ranks[rank].ops[actor.event.op];
  // Lemma O7. What a slot of units holds belongs to a round, of which the value says nothing.
  if (premise(Premise::bits_outside_units, buffer_named(name).units == 0) &&
      premise(Premise::bits_to_the_end, fills(rank))) {
    const uint64_t of_call = instance(rank, actor.event.call) << 32 | actor.event.call;
    access.bits = bits_of(stored, premise(Premise::bits_of_one_call, of_call, uint64_t{0}));
  }
  if (chained_ &&
      premise(Premise::no_chains_through_units,
              buffer_named(name).units == 0)) {  // of a slot of units each byte may be another's
    const bool packets = format != PacketFormat::none;
    const uint64_t length = premise(Premise::chains_as_long_as_their_chunks, packets)
                                ? 0
                                : limit_of(rank, op, access.position);
    access.node = chains_.add(actor.event, rank, access.position, extent, length, nodes_.values());
    access.node_turns = back;
  }
  if (format != PacketFormat::none) mark_several(spot, access, stored);
  check(actor, spot, name, access);
  check_overlaid(actor, name);
  keep(spot, access);
  if (options_.suspects != nullptr &&
      options_.suspects->stores.contains(Suspects::key(rank_of(actor), actor.event.op))) {
    stored = raced_;
  }
  if (buffer_named(name).units != 0) stored.round = round_;
  values_[spot.chunk].write(extent, cuts_.pieces(extent.way), stored, mixed_at(spot.chunk));
  if (format == PacketFormat::none) return;
  const auto waiting = awaited_.find(spot.chunk);
  if (waiting == awaited_.end()) return;
  for (const uint32_t p : waiting->second) wake(p);
  awaited_.erase(waiting);
}

// A port moves its data later: its reader takes the source, its writer fills the far end. They know
// what the block knew when it posted. Packets are sent as they lie.
void Run::post_chunk(uint32_t process, const Op& op, const OpInfo& row,
                     std::span<const Operand> dsts, const Operand& src, uint32_t k) {
  Block& block = blocks_[process];
  const uint32_t call = calls_[block.rank];
  const uint64_t from = system_.chunk(block.rank, src.buffer, src.first + k, call);
  const ChunkName from_name{block.rank, src.buffer, src.first + k};
  const Extent extent = extent_of(block, op, src, k, from_name);
  check_source(actor_of(process).event, from, from_name, extent);
  if (row.has(kPolls)) {  // all threads wait for the packets and meet before they are sent on
    report_overtaken(actor_of(process).event, from, from_name, extent);
    take_packets(block, {from}, extent, is_sentinel(buffer_named(from_name).packets));
    keep({from}, {.event = actor_of(process).event, .extent = extent, .position = {pair_, k}});
    ++block.now;
    meet(process);
  } else {
    const Event posts = actor_of(process).event;
    take_values(posts, {from}, {.event = posts, .extent = extent, .position = {pair_, k}});
  }
  add_value(value_at(actor_of(process).event, {from}, extent, from_name));
  size_value(block.rank, src, k);
  Provenance of_reader;  // it reads only
  learned_.clear();
  for (const Operand& dst : dsts) {
    const uint32_t r = system_.port_reader(block.rank, dst.channel), w = r + 1;
    uint32_t& posted = posted_[r - system_.width()];
    posted_[w - system_.width()] = ++posted;
    const Actor reads{{r, posted, block.op, call},
                      &block.known,
                      process,
                      premise(Premise::posts_know_the_last_meeting, block.settled, block.now)};
    const Record read{
        .event = reads.event, .extent = extent, .position = {pair_, k}, .round = block.round};
    std::swap(nodes_, of_reader);
    if (!premise(Premise::ports_read_their_sources, false)) check(reads, {from}, from_name, read);
    check_overlaid(reads, from_name);
    keep({from}, read);
    std::swap(nodes_, of_reader);
    const Actor writes{{w, posted, block.op, call}, &block.known, process, block.settled};
    size_value(block.rank, dst, k);
    each_place(block.rank, dst, k, [&](const ChunkName& name, const Spot& spot) {
      News news = weak_news(process);  // what has been delivered has been read
      news.port = r;
      news.port_done = posted;
      store_at(writes, name, spot, extent_of(block, op, dst, k, name), k, news);
    });
  }
  const bool sentinel = is_sentinel(program_.ranks[block.rank].buffers[src.buffer].packets);
  if (!row.has(kPolls) || !sentinel) return;
  for (const Operand& dst : dsts) flush(process, dst.channel);  // then the slot is emptied
  ++block.now;
  meet(process);
  const Actor resets = actor_of(process);
  const Record reset{
      .event = resets.event, .extent = extent, .position = {pair_, k}, .write = true};
  if (!premise(Premise::emptying_what_a_port_sends, false)) check(resets, {from}, from_name, reset);
  emptied_.push_back({from, reset});  // some machines meet once for all chunks: it is over later
}

// ---- values ----

/// What these bytes hold, as seen from the rank at hand.
Symbol Run::symbol_at(const Spot& spot, const Extent& extent) const {
  Symbol symbol = values_[spot.chunk].read(extent, mixed_);
  if (symbol.same_contributions(mixed_)) symbol = mixed_at(spot.chunk);
  return turned_.turned(symbol, spot.turns);
}

/// What an op loads there. Of a unit of scratch it is known only in the round that put it there
/// (lemma R4).
Symbol Run::value_at(const Event& reader, const Spot& spot, const Extent& extent,
                     const ChunkName& name) {
  Symbol symbol = symbol_at(spot, extent);
  if (trace_) trace_->note_read(symbol, {name, reader, pair_});
  if (buffer_named(name).units != 0) {
    if (!premise(Premise::units_of_this_round, symbol.round == round_)) symbol = mixed_with(symbol);
    symbol.round = 0;
  }
  if (options_.suspects == nullptr) return symbol;
  return stale(reader, name, spot.chunk, symbol) ? raced_ : symbol;
}

/// A switch may add up in another order each time it is asked: a sum of its own, for all parts of
/// a group's op together.
Symbol Run::summed_by_switch(uint32_t rank, const Symbol& sum, const Extent& extent) {
  const uint32_t times = switch_sums_[{rank, sum.order, extent.way, extent.piece}]++;
  return symbols_.changed(symbols_.changed(symbols_.changed(sum, rank), extent.way), times);
}

void Run::add_value(const Symbol& symbol) {
  value_ = has_value_ ? sum_of(value_, symbol) : symbol;
  has_value_ = true;
}

Symbol Run::sum_of(const Symbol& a, const Symbol& b) {
  if (!premise(Premise::terms_equally_long, a.size == 0 || b.size == 0 || a.size == b.size)) {
    return raced(a) ? raced_ : mixed_with(b);
  }
  Symbol sum = turned_.add(a, b);
  sum.size = std::max(a.size, b.size);
  return sum;
}

/// A chunk of the caller has its own length. What goes through chunks of different lengths loses
/// its end for some message sizes.
void Run::size_callers_value(uint32_t rank, const Operand& o, uint32_t k) {
  each_place(rank, o, k, [&](const ChunkName& name, const Spot&) {
    if (!system_.is_callers(name.buffer)) return;
    const Part& part = part_of(rank, calls_[rank]);
    const Side side = name.buffer == part.input + kInput ? Side::input : Side::output;
    const uint64_t size = part.contract().size_class(side, part.local[name.rank], name.chunk) + 1;
    if (!premise(Premise::values_keep_their_length, value_.size == 0 || value_.size == size))
      value_ = mixed_with(value_);
    value_.size = size;
    sized_ = true;
  });
}

}  // namespace mscclc::proof
