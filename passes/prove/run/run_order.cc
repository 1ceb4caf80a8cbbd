// Is an access ordered after an earlier one? docs/design/proofs.md gives the reason of each rule.
#include <algorithm>

#include "passes/base/thread_partition.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/run/run.h"

namespace mscclc::proof {

uint64_t Run::report_key(const Event& a, const Event& b) const {
  const auto place = [&](const Event& e) {
    return uint64_t{system_.processes()[e.process].rank} * 0x9e3779b97f4a7c15u + e.op;
  };
  return place(a) * 0xbf58476d1ce4e5b9u + place(b);
}

/// Reports the earlier accesses that conflict with this one and are in no order with it.
void Run::check(const Actor& actor, const Spot& spot, const ChunkName& name, const Record& access) {
  const auto against = [&](uint32_t i) { check_against(i, actor, spot, name, access); };
  history_.each_of(history_.stores(spot.chunk), against);
  if (access.write) history_.each_of(history_.loads(spot.chunk), against);
}

void Run::check_against(uint32_t i, const Actor& actor, const Spot& spot, const ChunkName& name,
                        const Record& access) {
  const Record& record = history_.record(i);
  if (!record.extent.may_touch(access.extent)) return;
  Event event = record.event;
  event.process = system_.turned(event.process, spot.turns);
  if (known(*actor.known, actor.knower, actor.settled, event)) return history_.pin(i, false);
  Record old = record;
  old.event = event;
  const bool in_order = ordered(actor, {history_.loads(spot.chunk), spot.turns}, old, access);
  // Two stores of the same bits leave the same, whichever is last. Both stay on record.
  const bool same =
      !in_order && old.bits != 0 && premise(Premise::other_bits, old.bits == access.bits);
  history_.pin(i, same);
  if (same) {
    check_beneath(actor, spot, name, old, access);
  } else if (!premise(Premise::a_race_is_in_no_order, in_order)) {
    report_race(name, old, access);
  }
}

/// Lemma O7: a store that is in no order with one of the same bits must not come before
/// that one has done away with something else, and before all have read that.
void Run::check_beneath(const Actor& actor, const Spot& spot, const ChunkName& name,
                        const Record& store, const Record& access) {
  history_.each_of(store.beneath, [&](uint32_t i) {
    Record old = history_.record(i);
    if (!old.extent.may_touch(access.extent)) return;
    old.event.process = system_.turned(old.event.process, spot.turns);
    if (premise(Premise::after_what_the_other_replaced,
                ordered(actor, {store.beneath, spot.turns}, old, access)))
      return;
    report_race(name, old, access);
  });
}

void Run::report_race(const ChunkName& name, const Record& old, const Record& access) {
  if (options_.suspects != nullptr) return;  // known
  suspect(name, old, access);
  if (!may_report(report_key(old.event, access.event))) return;
  Finding& finding = add_finding(Finding::Kind::race);
  finding.first = old.event;
  finding.second = access.event;
  finding.chunk = name;
  finding.first_writes = old.write;
  finding.second_writes = access.write;
  finding.first_pair = old.position.pair;
  finding.second_pair = access.position.pair;
  finding.first_round = old.round;
  finding.second_round = access.round;
  finding.too_early = reads_too_early(name, old, access);
}

/// Is it a load of what has not been written in this call, and a store that comes later in it? Then
/// the load is meant to come later.
bool Run::reads_too_early(const ChunkName& name, const Record& old, const Record& access) const {
  if (old.write || !access.write || old.event.op == kNone || access.event.op == kNone) return false;
  const uint32_t call = access.event.call;
  if (old.event.call != call) return false;
  const Spot spot = system_.spot(name.rank, name.buffer, name.chunk, call);
  const uint32_t owner = name.rank % system_.ranks(), input = part_of(owner, call).input + kInput;
  for (uint32_t c = 0; c < program_.ranks[owner].buffers[input].chunks; ++c) {
    if (system_.chunk(owner, input, c, call) == spot.chunk) return false;  // the caller's value
  }
  for (uint32_t i = history_.stores(spot.chunk); i != kNone; i = history_.record(i).next) {
    const Record& store = history_.record(i);
    const bool of_op = store.event.op != kNone && store.event.call == call;
    if (of_op && store.extent.may_touch(old.extent)) return false;
  }
  return true;
}

/// Notes what these two make uncertain, unless this run has done them in the order that is meant.
void Run::suspect(const ChunkName& name, const Record& old, const Record& access) {
  const uint64_t before = meant_position(old.event), after = meant_position(access.event);
  const bool fills = old.write && !access.write && name.buffer != kInput;  // then it is read
  if (before < after || (before == after && fills)) return;
  for (const Record* r : {&old, &access}) {
    const uint32_t rank = system_.processes()[r->event.process].rank;
    if (r->event.op == kNone) {
      suspects_.callers.insert(
          system_.spot(name.rank, name.buffer, name.chunk, r->event.call).chunk);
    } else if (!r->write) {
      suspects_.loads.insert(Suspects::key(rank, r->event.op));
    } else if (old.write && access.write) {
      suspects_.stores.insert(Suspects::key(rank, r->event.op));
    }
  }
}

/// Calls come one after the other: the caller hands over its buffers, ops, the caller takes them.
uint64_t Run::meant_position(const Event& event) const {
  const bool caller = event.op == kNone, leaving = caller && event.time == event.call + 2;
  return uint64_t{event.call} * 3 + (!caller ? 1 : leaving ? 2 : 0);
}

/// Adds an access to what is known of its chunk, as seen from the rank that owns it.
void Run::keep(const Spot& spot, const Record& access) {
  if (spot.turns != 0) {
    Record seen = access;
    seen.event.process = system_.turned(access.event.process, system_.back(spot.turns));
    return keep({spot.chunk}, seen);
  }
  if (access.write) return history_.add_store(spot.chunk, access);
  history_.add_load(spot.chunk, access, [&](const Record& old) { return stands_for(access, old); });
}

/// Lemma O5: is everything that is ordered after the newer load of a process so after the
/// older one, too?
bool Run::stands_for(const Record& newer, const Record& older) const {
  const Process& process = system_.processes()[newer.event.process];
  if (process.kind != ProcessKind::block) return true;  // one hears of it by its count only
  if (newer.event.call != older.event.call) return true;
  if (newer.event.time == older.event.time) {
    return premise(Premise::loads_of_one_call, newer.position == older.position);
  }
  if (!premise(Premise::values_may_depend_on_either, !chained_))
    return false;  // a value may depend on the one and not on the other
  const Op& op = program_.ranks[process.rank].ops[newer.event.op];
  // An op at a switch may store where it loads. That store comes after its own load, but not after
  // another op's.
  const auto at = [&](std::span<const Operand> side) { return at_switch(process.rank, side[0]); };
  const bool stores_there = at(program_.dsts(op)) || at(program_.srcs(op));
  if (!premise(Premise::loads_of_ops_that_store_elsewhere, !stores_there)) return false;
  return premise(Premise::loads_dealt_out_alike, !way_of_sharing(program_, process.rank, op)) ||
         same_threads(process.rank, newer, older);
}

bool Run::ordered(const Actor& actor, const Loads& loads, const Record& old, const Record& access) {
  if (known(*actor.known, actor.knower, actor.settled, old.event)) return true;
  const bool own = old.event.process == actor.event.process;
  const bool block = system_.processes()[actor.event.process].kind == ProcessKind::block;
  if (own && block) {
    // Within an op, and between ops cut alike, each thread touches what it has touched before.
    if (old.event.time == access.event.time) {
      if (premise(Premise::one_position_in_an_op, old.position == access.position)) return true;
    } else if (same_threads(rank_of(actor), old, access)) {
      return true;
    }
  } else if (learned(old, access)) {
    return true;
  }
  if (!old.write) return loaded_before_packets(actor, old, access);
  // A store of packets that was seen by loads which are over is over, too.
  const bool observed =
      old.packets != kNone && premise(Premise::somebody_polled, history_.packets(old).observed);
  if (observed && load_known(actor, loads, old, access)) return true;
  return ended_before_packets(actor, old, access);
}

/// The bytes that both may touch, or more.
static const Extent& common(const Extent& a, const Extent& b) { return a.covers(b) ? b : a; }

/// Each thread stores what it has made of packets; has it learned of the old access from those of
/// every byte? The bytes in
/// question are among those of the old access, and among those of this one: either will do. Parts
/// of an earlier call are cut elsewhere than what this op reads and stores, by size.
bool Run::learned(const Record& old, const Record& access) const {
  Covering before(cuts_, old.extent), now(cuts_, access.extent);
  return std::ranges::any_of(learned_, [&](const Learned& learned) {
    if (!known(learned.news.known, learned.news.process, learned.news.done, old.event))
      return false;
    const bool all_before = before.add(learned.extent), all_now = now.add(learned.extent);
    return premise(Premise::known_of_all_bytes, all_before || all_now);
  });
}

/// Is the event over, knowing `row` and that `done` ops of `knower` are over?
bool Run::known(const Row& row, uint32_t knower, uint32_t done, const Event& event) const {
  const auto reached = [&](uint32_t process, uint32_t count) {
    return row[process] >= count || (process == knower && done >= count);
  };
  if (event.process < system_.width()) return reached(event.process, event.time);
  // It is kept of the port that stands for this one, and so many turns back what has learned it.
  const uint32_t turns = system_.turns_of(system_.processes()[event.process].rank);
  const uint32_t port = system_.turned(event.process, system_.back(turns));
  return arrivals_.known(port - system_.width(), event.time, [&](uint32_t block, uint32_t count) {
    return reached(system_.turned(block, turns), count);
  });
}

/// Is it so of packets that have been read: of those that this op stores a value of (a load of it
/// may come before), or of any that all threads of the block know of?
template <class Follow>
bool Run::any_packets(const Actor& actor, bool stores, Follow&& follow) {
  if (!chained_) return false;
  Provenance& earlier = nodes_read_[rank_of(actor)];
  const bool block = system_.processes()[actor.event.process].kind == ProcessKind::block;
  for (const bool far : {false, true}) {  // most are found near by
    if (follow(earlier, earlier.size(), far)) return true;
    if (stores && follow(nodes_, nodes_.size(), far)) return true;
    if (!block) continue;
    Block& own = blocks_[actor.event.process];
    if (follow(own.nodes, own.settled_nodes, far)) return true;
  }
  return false;
}

/// An earlier access of a block, and the bytes that the one at hand touches.
Provenance::Load Run::as_load(const Record& old, const Record& access) const {
  const uint32_t rank = system_.processes()[old.event.process].rank;
  const Op& op = program_.ranks[rank].ops[old.event.op];
  return {old.event,
          rank,
          old.position,
          length_of(rank, op, old.position, old.event.call),
          common(old.extent, access.extent),
          access.extent};
}

/// Packets that have been read depend on what was loaded there (lemma O4). A port loads when it
/// likes.
bool Run::loaded_before_packets(const Actor& actor, const Record& load, const Record& access) {
  if (!premise(Premise::ports_load_at_any_time,
               system_.processes()[load.event.process].kind == ProcessKind::block))
    return false;
  const Provenance::Load loaded = as_load(load, access);
  return any_packets(actor, true, [&](Provenance& values, size_t count, bool far) {
    return values.follow(chains_, cuts_, count, loaded, far);
  });
}

/// Packets that have been read depend on what the rank stored in a later call: its kernel had ended
/// by then, and with it all that its blocks stored, be it what empties a slot (lemma O14). A port
/// may still be at work.
bool Run::ended_before_packets(const Actor& actor, const Record& store, const Record& access) {
  if (!store.write) return false;
  if (!premise(Premise::ports_outlast_calls,
               system_.processes()[store.event.process].kind == ProcessKind::block))
    return false;
  const Provenance::Load stored = as_load(store, access);
  return any_packets(actor, access.write, [&](Provenance& values, size_t count, bool far) {
    return values.follow_later(chains_, cuts_, count, stored, far);
  });
}

/// Is every byte of the store known to have been seen by a load that is over? One that came before
/// it has not seen it.
bool Run::load_known(const Actor& actor, const Loads& loads, const Record& store,
                     const Record& access) {
  Covering covering(cuts_, store.extent);
  return history_.any_of(loads.list, [&](uint32_t i) {
    Record load = history_.record(i);
    if (load.write || !premise(Premise::seen_later, load.at > store.at) ||
        !load.extent.may_touch(store.extent))
      return false;
    load.event.process = system_.turned(load.event.process, loads.turns);
    return ordered(actor, loads, load, access) &&
           premise(Premise::seen_in_full, covering.add(load.extent));
  });
}

/// Lemma O6: do both ops give the same bytes of a chunk to the same thread? Sums of
/// chunks that are not equally long have ends in other places, which a machine may deal out
/// otherwise.
bool Run::same_threads(uint32_t rank, const Record& old, const Record& access) const {
  const Op& a = program_.ranks[rank].ops[old.event.op];
  const Op& b = program_.ranks[rank].ops[access.event.op];
  const auto whole_chunk = [&](const Op& op, Position position) {
    const size_t pair = info(op.kind).srcs.slot[0].pairwise ? position.pair : 0;
    return premise(Premise::no_rounds_between, op.loop == kNone) &&
           premise(Premise::ops_over_one_chunk, program_.dsts(op)[pair].count == 1);
  };
  if (!whole_chunk(a, old.position) || !whole_chunk(b, access.position)) return false;
  if (!premise(Premise::dealt_out_alike, share_alike(program_, rank, a, b))) return false;
  return is_packet_op(a) || premise(Premise::sums_equally_long,
                                    length_of(rank, a, old.position, old.event.call) ==
                                        length_of(rank, b, access.position, access.event.call));
}

/// Which class of equally long chunks an op moves at a position: 0 if they are as long as scratch,
/// else one more than the caller's (Contract::size_class).
uint64_t Run::length_of(uint32_t rank, const Op& op, Position position, uint32_t call) const {
  const Part& part = part_of(rank, call);
  if (part.contract().even_only) return 0;
  std::span<const Operand> dsts = program_.dsts(op), srcs = program_.srcs(op);
  if (info(op.kind).srcs.slot[0].pairwise) {
    dsts = dsts.subspan(position.pair, 1);
    srcs = srcs.subspan(position.pair, 1);
  }
  for (const std::span<const Operand> operands : {dsts, srcs}) {
    for (const Operand& o : operands) {
      if (!system_.is_callers(o.buffer)) continue;
      const Side side = o.buffer == part.input + kInput ? Side::input : Side::output;
      const bool far = o.channel != kNone && !at_switch(rank, o);
      const uint32_t owner = far ? program_.ranks[rank].channels[o.channel].peer : rank;
      return part.contract().size_class(side, part.local[owner], o.first + position.chunk) + 1;
    }
  }
  return 0;
}

}  // namespace mscclc::proof
