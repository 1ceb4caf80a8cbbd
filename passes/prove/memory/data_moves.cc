#include "passes/prove/memory/data_moves.h"

#include <utility>

#include "ir/program/applied.h"
#include "passes/framework/thread_partition.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

DataMoves::DataMoves(const System& system, const RunOptions& options, const CallOrder& calls,
                     ThreadBlocks& blocks, Knowledge& knowledge, Counters& counters,
                     const MemoryParts& memory)
    : system_(system),
      program_(system.program()),
      options_(options),
      calls_(calls),
      blocks_(blocks),
      knowledge_(knowledge),
      counters_(counters),
      memory_(memory) {}

void DataMoves::move(uint32_t process, const Op& op, const OpInfo& row) {
  const std::span<const Operand> dsts = program_.dsts(op), srcs = program_.srcs(op);
  OpAtHand& at_hand = memory_.at_hand;
  at_hand.sentinel =
      OpBytes::is_packet_op(op) && is_sentinel(packet_format(program_, blocks_[process].rank, op));
  if (row.srcs.slot[0].pairwise) {
    for (at_hand.pair = 0; at_hand.pair < dsts.size(); ++at_hand.pair) {
      const uint32_t pair = at_hand.pair;
      for (uint32_t k = 0; k < dsts[pair].count; ++k) {
        move_chunk(process, op, row, dsts.subspan(pair, 1), srcs.subspan(pair, 1), k);
      }
    }
    at_hand.pair = 0;
  } else {
    for (uint32_t k = 0; k < dsts[0].count; ++k) move_chunk(process, op, row, dsts, srcs, k);
  }
  for (const Emptied& slot : std::exchange(emptied_, {})) {
    Record reset = slot.reset;
    reset.event = actor_of(process).event;
    memory_.history.add_store(slot.chunk, reset);
  }
  counters_.publish_move(process, op, row);
}

void DataMoves::move_chunk(uint32_t process, const Op& op, const OpInfo& row,
                           std::span<const Operand> dsts, std::span<const Operand> srcs,
                           uint32_t k) {
  const ThreadBlock& block = blocks_[process];
  memory_.at_hand.begin();
  memory_.value.begin();
  memory_.at_hand.round = memory_.bytes.round_of(block, op, dsts[0], k);
  if (memory_.bytes.is_port(block.rank, dsts[0])) {
    return post_chunk(process, op, row, dsts, srcs[0], k);
  }
  if (memory_.bytes.copies_onto_itself(block.rank, op, k)) return;
  const Actor actor = actor_of(process);
  if (row.has(kApplies)) return apply_chunk(actor, op, dsts, srcs, k);
  if (op.summation != Summation::in_turn) {
    load_at_once(actor, op, srcs, k, row.has(kPolls));
  } else {
    for (const Operand& o : srcs) load(actor, op, o, k, row.has(kPolls));
  }
  if (row.has(kReduces)) sum_up(block, op, srcs[0], k);
  if (applies(op)) {
    const Symbol sum = memory_.value.get();
    return store_results(actor, op, dsts, k, {&sum, 1});
  }
  for (const Operand& o : dsts) memory_.value.size(block.rank, o, k);
  for (const Operand& o : dsts) store(actor, op, o, k);
}

/// The arguments are loaded; then each result is a value of its own, of them all.
void DataMoves::apply_chunk(const Actor& actor, const Op& op, std::span<const Operand> dsts,
                            std::span<const Operand> srcs, uint32_t k) {
  std::vector<Symbol> loaded;
  for (const Operand& o : srcs) {
    memory_.value.begin_term();
    load(actor, op, o, k, false);
    loaded.push_back(memory_.value.get());
  }
  store_results(actor, op, dsts, k, loaded);
}

/// `loaded`: what the parameters that are no externals stand for. A sum that a function has been
/// applied to has one such result, which all destinations get.
void DataMoves::store_results(const Actor& actor, const Op& op, std::span<const Operand> dsts,
                              uint32_t k, std::span<const Symbol> loaded) {
  const uint32_t rank = rank_of(actor.event);
  const Applied what = applied(program_, op);
  const bool sums = !info(op.kind).has(kApplies), rows = has_rows(program_, what);
  std::vector<Symbol> arguments;
  for (size_t i = 0; i < what.params.size(); ++i) {
    const RowValue value = what.param(i);
    arguments.push_back(value.external ? memory_.externals.given(value.index, rank, what.first + k)
                                       : loaded[value.index]);
  }
  for (uint32_t i = 0; i < what.results.size(); ++i) {
    const RowValue to = what.result(i);
    set_result(what, i, arguments);
    for (const Operand& o : dsts) memory_.value.size(rank, o, k);
    if (rows) memory_.value.size_as_output(rank, what.first + k);
    if (to.external) {
      memory_.externals.store(to.index, rank, what.first + k, op.parts, memory_.value.get(),
                              actor.event);
    } else {
      const size_t count = sums ? dsts.size() : 1;
      for (const Operand& o : dsts.subspan(to.index, count)) {
        memory_.at_hand.sum_before = sums && &o == &dsts[0];
        store(actor, op, o, k);
      }
      memory_.at_hand.sum_before = false;
    }
  }
}

/// A function that only moves values from one place to another makes no new ones (lemma V2).
void DataMoves::set_result(const Applied& what, uint32_t i, std::span<const Symbol> arguments) {
  const rows::Function& function = program_.functions[what.function];
  const uint32_t from = rows::moved_param(function, i);
  const bool moves =
      from != rows::kNoNode && !what.param(from).external &&
      premise(Premise::moved_values_keep_their_form, rows::keeps_form(function, i, from));
  if (!moves) return memory_.value.set_result(what.function, i, arguments);
  memory_.value.begin_term();
  memory_.value.add(arguments[from]);
}

/// What has been loaded becomes a sum.
void DataMoves::sum_up(const ThreadBlock& block, const Op& op, const Operand& src, uint32_t k) {
  const bool call = op.reduce == ReduceOp::call || op.reduce == ReduceOp::avg;
  memory_.value.round(premise(Premise::complete_sums_are_divided, op.complete) && call &&
                      calls_.divides(block.rank, calls_.now(block.rank)));
  if (premise(Premise::switches_add_in_any_order, !memory_.bytes.at_switch(block.rank, src))) {
    return;
  }
  const ChunkName name{block.rank, src.buffer, src.first + k};
  memory_.value.set_by_switch(block.rank, memory_.bytes.extent_of(block, op, src, k, name));
}

/// The sources one by one, and then their sum.
void DataMoves::load_at_once(const Actor& actor, const Op& op, std::span<const Operand> srcs,
                             uint32_t k, bool polls) {
  std::vector<Symbol> terms;
  for (const Operand& o : srcs) {
    memory_.value.begin_term();
    load(actor, op, o, k, polls);
    terms.push_back(memory_.value.get());
  }
  memory_.value.set_sum(terms, op.summation);
}

Actor DataMoves::actor_of(uint32_t process) const {
  const ThreadBlock& block = blocks_[process];
  return {{process, block.now + 1, block.op, calls_.now(block.rank)},
          &block.known,
          process,
          block.settled};
}

void DataMoves::load(const Actor& actor, const Op& op, const Operand& o, uint32_t k, bool polls) {
  ThreadBlock& block = blocks_[actor.event.process];
  const OpAtHand& at_hand = memory_.at_hand;
  memory_.bytes.each_place(block.rank, o, k, [&](const ChunkName& name, const Spot& spot) {
    const Extent extent = memory_.bytes.extent_of(block, op, o, k, name);
    const Buffer& buffer = memory_.bytes.buffer(name);
    const PacketFormat format = buffer.packets;
    const bool packets = polls && format != PacketFormat::none;
    const Record access{.event = actor.event,
                        .extent = extent,
                        .position = {at_hand.pair, k},
                        .round = block.round};
    memory_.value.add(memory_.contents.load(actor.event, spot, extent, name, buffer.units != 0));
    if (!premise(Premise::sentinels_lose_minus_zero, !at_hand.sentinel)) {
      memory_.value.lose_minus_zero();
    }
    if (packets) {
      memory_.slots.report_overtaken(actor.event, spot.chunk, name, extent);
      memory_.slots.take(block, spot, extent, is_sentinel(format));
    } else {
      memory_.order.check(actor, spot, name, access);
      take_values(actor.event, spot, access);
    }
    memory_.order.check_overlaid(actor, name);
    memory_.order.keep(spot, access);
    if (packets && is_sentinel(format)) memory_.slots.empty(actor, spot, name, access);
  });
  memory_.value.size(block.rank, o, k);
}

/// Plain values of this call, too, depend on what they were made of. A thread that has stored one
/// has waited for all packets that it was made of, also where the chunk is shorter than they are.
void DataMoves::take_values(const Event& event, const Spot& spot, const Record& access) {
  if (!memory_.order.chained()) return;
  const History& history = memory_.history;
  StoresSince since(memory_.cuts, history);
  for (uint32_t i = history.stores(spot.chunk); i != kNone; i = history.record(i).next) {
    const Record& record = history.record(i);
    if (!record.extent.may_touch(access.extent)) continue;
    take_value(event, spot, access, i, since);
    since.add(i);
  }
}

/// The same of one store of the chunk: of what others since then have left of it.
void DataMoves::take_value(const Event& event, const Spot& spot, const Record& access,
                           uint32_t store, const StoresSince& since) {
  const Record& record = memory_.history.record(store);
  if (record.node == kNone) return;
  const uint32_t rank = rank_of(event);
  const uint32_t process = system_.turned(record.event.process, spot.turns);
  const uint32_t owner = system_.processes()[process].rank;
  if (calls_.instance(owner, record.event.call) != calls_.instance(rank, event.call)) return;
  const uint32_t turns = memory_.chains.add_turns(record.node_turns, spot.turns);
  since.each_left(store, access.extent, [&](const Extent& piece) {
    memory_.at_hand.nodes.add(memory_.chains, record.node, turns, piece);
  });
  if (!premise(Premise::the_same_thread_has_waited,
               process == event.process && memory_.bytes.same_threads(rank, record, access))) {
    return;
  }
  memory_.at_hand.nodes.add_parents(record.node, turns);
}

void DataMoves::store(const Actor& actor, const Op& op, const Operand& o, uint32_t k) {
  const uint32_t process = actor.event.process;
  const ThreadBlock& block = blocks_[process];
  memory_.bytes.each_place(block.rank, o, k, [&](const ChunkName& name, const Spot& spot) {
    const Extent extent = memory_.bytes.extent_of(block, op, o, k, name);
    const bool packets = memory_.bytes.buffer(name).packets != PacketFormat::none;
    store_at(actor, name, spot, extent, k, packets ? knowledge_.weak_news(process) : News{});
  });
}

void DataMoves::store_at(const Actor& actor, const ChunkName& name, const Spot& spot,
                         const Extent& extent, uint32_t k, const News& news) {
  const Buffer& buffer = memory_.bytes.buffer(name);
  const bool packets = buffer.packets != PacketFormat::none;
  const uint32_t back = system_.back(spot.turns);
  // As seen from the rank that owns the chunk.
  Symbol stored = memory_.contents.symbols().turned(memory_.value.get(), back);
  Record access{.event = actor.event,
                .extent = extent,
                .position = {memory_.at_hand.pair, k},
                .write = true,
                .round = blocks_[actor.knower].round};
  if (packets) {
    access.packets = memory_.history.add_packets({system_.turned(news, back)});
    memory_.slots.check_slot(actor.event, spot, name, extent, is_sentinel(buffer.packets), stored);
  }
  describe_value(actor, name, stored, back, access);
  if (packets) memory_.slots.mark_several(spot, access, stored);
  memory_.order.check(actor, spot, name, access);
  memory_.order.check_overlaid(actor, name);
  memory_.order.keep(spot, access);
  if (options_.suspects != nullptr &&
      options_.suspects->stores.contains(Suspects::key(rank_of(actor.event), actor.event.op))) {
    stored = memory_.contents.of_race();
  }
  if (buffer.units != 0) stored.round = memory_.at_hand.round;
  memory_.contents.store(spot.chunk, extent, memory_.cuts.pieces(extent.way), stored);
  if (packets) memory_.slots.wake_readers(spot.chunk);
}

/// Notes of a store what its bits stand for, and what its value was made of.
void DataMoves::describe_value(const Actor& actor, const ChunkName& name, const Symbol& stored,
                               uint32_t back, Record& access) {
  const Buffer& buffer = memory_.bytes.buffer(name);
  const uint32_t rank = rank_of(actor.event);
  const Op& op = program_.ranks[rank].ops[actor.event.op];
  // Lemma O7. What a slot of units holds belongs to a round, of which the value says nothing.
  if (premise(Premise::bits_outside_units, buffer.units == 0) &&
      premise(Premise::bits_to_the_end, memory_.value.fills(rank)) &&
      premise(Premise::bits_from_the_first, !memory_.at_hand.sum_before)) {
    const uint64_t of_call = calls_.instance(rank, actor.event.call) << 32 | actor.event.call;
    access.bits = bits_of(stored, premise(Premise::bits_of_one_call, of_call, uint64_t{0}));
  }
  if (memory_.order.chained() &&
      premise(Premise::no_chains_through_units,
              buffer.units == 0)) {  // of a slot of units each byte may be another's
    const bool packets = buffer.packets != PacketFormat::none;
    const uint64_t length = premise(Premise::chains_as_long_as_their_chunks, packets)
                                ? 0
                                : memory_.bytes.limit_of(rank, op, access.position);
    access.node = memory_.chains.add(actor.event, rank, access.position, access.extent, length,
                                     memory_.at_hand.nodes.values());
    access.node_turns = back;
  }
}

// ---- ports ----

/// Lemma O9: machines leave out a part without bytes, so that what it was met and flushed for holds
/// of its own bytes alone.
static bool meets_surely(const Extent& part) {
  return premise(Premise::parts_that_meet_have_bytes, part.sure);
}

// A port moves its data later: its reader takes the source, its writer fills the far end. They know
// what the block knew when it posted. Packets are sent as they lie.
void DataMoves::post_chunk(uint32_t process, const Op& op, const OpInfo& row,
                           std::span<const Operand> dsts, const Operand& src, uint32_t k) {
  const ThreadBlock& block = blocks_[process];
  const ChunkName name{block.rank, src.buffer, src.first + k};
  const Extent extent = memory_.bytes.extent_of(block, op, src, k, name);
  const ThreadBlock::Learned before = load_posted(process, op, row, src, k, extent);
  Provenance of_reader;  // it reads only
  memory_.at_hand.learned.clear();
  for (const Operand& dst : dsts) post_to(process, op, src, dst, k, extent, of_reader);
  if (!row.has(kPolls)) return;
  if (is_sentinel(memory_.bytes.buffer(name).packets)) empty_posted(process, src, dsts, k, extent);
  if (!meets_surely(extent)) knowledge_.forget(process, before);
}

/// What the port will find at its source; and what the block has learned before its threads meet.
ThreadBlock::Learned DataMoves::load_posted(uint32_t process, const Op& op, const OpInfo& row,
                                            const Operand& src, uint32_t k, const Extent& extent) {
  ThreadBlock& block = blocks_[process];
  const ChunkName name{block.rank, src.buffer, src.first + k};
  const Spot from{system_.chunk(block.rank, src.buffer, src.first + k, calls_.now(block.rank))};
  const Event posts = actor_of(process).event;
  const Record access{.event = posts, .extent = extent, .position = {memory_.at_hand.pair, k}};
  const Buffer& buffer = memory_.bytes.buffer(name);
  ThreadBlock::Learned before;
  memory_.slots.check_source(posts, from.chunk, name, extent);
  if (row.has(kPolls)) {  // all threads wait for the packets and meet before they are sent on
    memory_.slots.report_overtaken(posts, from.chunk, name, extent);
    memory_.slots.take(block, from, extent, is_sentinel(buffer.packets));
    memory_.order.keep(from, access);
    if (!extent.sure) before = block.learned();
    ++block.now;
    knowledge_.meet(process, meets_surely(extent));
  } else {
    take_values(posts, from, access);
  }
  memory_.value.add(
      memory_.contents.load(actor_of(process).event, from, extent, name, buffer.units != 0));
  memory_.value.size(block.rank, src, k);
  return before;
}

/// `of_reader`: what the port as reader has read, which is at hand while it does.
void DataMoves::post_to(uint32_t process, const Op& op, const Operand& src, const Operand& dst,
                        uint32_t k, const Extent& extent, Provenance& of_reader) {
  const ThreadBlock& block = blocks_[process];
  const uint32_t call = calls_.now(block.rank);
  const Spot from{system_.chunk(block.rank, src.buffer, src.first + k, call)};
  const ChunkName from_name{block.rank, src.buffer, src.first + k};
  const uint32_t reader = system_.port_reader(block.rank, dst.channel), writer = reader + 1;
  const uint32_t posted = knowledge_.post(reader);
  const Actor reads{{reader, posted, block.op, call},
                    &block.known,
                    process,
                    premise(Premise::posts_know_the_last_meeting, block.settled, block.now)};
  const Record read{.event = reads.event,
                    .extent = extent,
                    .position = {memory_.at_hand.pair, k},
                    .round = block.round};
  const bool chained = memory_.order.chained();
  if (chained) std::swap(memory_.at_hand.nodes, of_reader);
  if (!premise(Premise::ports_read_their_sources, false)) {
    memory_.order.check(reads, from, from_name, read);
  }
  memory_.order.check_overlaid(reads, from_name);
  memory_.order.keep(from, read);
  if (chained) std::swap(memory_.at_hand.nodes, of_reader);
  const Actor writes{{writer, posted, block.op, call}, &block.known, process, block.settled};
  memory_.value.size(block.rank, dst, k);
  memory_.bytes.each_place(block.rank, dst, k, [&](const ChunkName& name, const Spot& spot) {
    // What has been delivered has been read; what was posted before it may go another way.
    News news = knowledge_.weak_news(process);
    news.port = reader;
    news.port_done = posted;
    news.port_alone = premise(Premise::packets_come_on_ways_of_their_own, true, false);
    store_at(writes, name, spot, memory_.bytes.extent_of(block, op, dst, k, name), k, news);
  });
}

/// The slot of sentinel packets that have been sent on is emptied when they have been read.
void DataMoves::empty_posted(uint32_t process, const Operand& src, std::span<const Operand> dsts,
                             uint32_t k, const Extent& extent) {
  ThreadBlock& block = blocks_[process];
  const ChunkName name{block.rank, src.buffer, src.first + k};
  const Spot from{system_.chunk(block.rank, src.buffer, src.first + k, calls_.now(block.rank))};
  for (const Operand& dst : dsts) counters_.flush(process, dst.channel);
  ++block.now;
  knowledge_.meet(process, meets_surely(extent));
  const Actor resets = actor_of(process);
  const Record reset{.event = resets.event,
                     .extent = extent,
                     .position = {memory_.at_hand.pair, k},
                     .write = true};
  if (!premise(Premise::emptying_what_a_port_sends, false)) {
    memory_.order.check(resets, from, name, reset);
  }
  // Some machines meet once for all chunks: it is over later.
  emptied_.push_back({from.chunk, reset});
}

}  // namespace mscclc::proof
