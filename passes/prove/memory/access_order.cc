#include "passes/prove/memory/access_order.h"

#include <algorithm>
#include <span>

#include "passes/framework/thread_partition.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

AccessOrder::AccessOrder(const AccessParts& parts, bool chained)
    : parts_(parts),
      chained_(chained),
      nodes_read_(parts.system.ranks()),
      shared_scratch_(parts.system.ranks(), parts.system.parts().size()) {}

void AccessOrder::check(const Actor& actor, const Spot& spot, const ChunkName& name,
                        const Record& access) {
  const auto against = [&](uint32_t i) { check_against(i, actor, spot, name, access); };
  parts_.history.each_of(parts_.history.stores(spot.chunk), against);
  if (access.write) parts_.history.each_of(parts_.history.loads(spot.chunk), against);
}

void AccessOrder::check_against(uint32_t i, const Actor& actor, const Spot& spot,
                                const ChunkName& name, const Record& access) {
  const Record& record = parts_.history.record(i);
  if (!record.extent.may_touch(access.extent)) return;
  Event event = record.event;
  event.process = parts_.system.turned(event.process, spot.turns);
  if (known(actor, event)) return parts_.history.pin(i, false);
  Record old = record;
  old.event = event;
  const bool in_order = ordered(actor, {parts_.history.loads(spot.chunk), spot.turns}, old, access);
  // Two stores of the same bits leave the same, whichever is last. Both stay on record.
  const bool same =
      !in_order && old.bits != 0 && premise(Premise::other_bits, old.bits == access.bits);
  parts_.history.pin(i, same);
  if (same) {
    check_beneath(actor, spot, name, old, access);
  } else if (!premise(Premise::a_race_is_in_no_order, in_order)) {
    parts_.races.report(name, old, access);
  }
}

/// Lemma O7: a store that is in no order with one of the same bits must not come before
/// that one has done away with something else, and before all have read that.
void AccessOrder::check_beneath(const Actor& actor, const Spot& spot, const ChunkName& name,
                                const Record& store, const Record& access) {
  parts_.history.each_of(store.beneath, [&](uint32_t i) {
    Record old = parts_.history.record(i);
    if (!old.extent.may_touch(access.extent)) return;
    old.event.process = parts_.system.turned(old.event.process, spot.turns);
    if (premise(Premise::after_what_the_other_replaced,
                ordered(actor, {store.beneath, spot.turns}, old, access)))
      return;
    parts_.races.report(name, old, access);
  });
}

/// Scratch that lies over another plan's: all of that plan's accesses there must be over.
void AccessOrder::check_other_parts(const Actor& actor, const ChunkName& name) {
  const size_t own = parts_.calls.part_index(rank_of(actor), actor.event.call);
  for (size_t other = 0; other < parts_.system.parts().size(); ++other) {
    if (!parts_.system.overlaid(name.rank, own, other)) continue;
    for (const Event& event : shared_scratch_.of(name.rank, other)) {
      const Record old{.event = event, .write = true};
      const Record access{.event = actor.event};
      if (premise(Premise::overlaid_scratch_is_over, ordered(actor, {}, old, access))) continue;
      parts_.races.report_overlaid(name, event, actor.event);
    }
  }
  shared_scratch_.note(name.rank, own, actor.event);
}

void AccessOrder::check_takers(const Actor& actor, const Spot& spot, const ChunkName& name,
                               const Record& reset) {
  const auto check_emptied = [&](uint32_t i) {
    Record taken = parts_.history.record(i);
    const bool emptied = taken.write && taken.packets == kNone && taken.event.op != kNone;
    if (!emptied || taken.event.call != reset.event.call) return;
    if (!taken.extent.may_touch(reset.extent)) return;
    taken.event.process = parts_.system.turned(taken.event.process, spot.turns);
    const bool own = taken.event.process == reset.event.process;
    const bool after = known(actor, taken.event) ||
                       (own && parts_.bytes.same_threads(rank_of(actor), taken, reset));
    if (!premise(Premise::takers_come_in_order, after)) parts_.races.report(name, taken, reset);
  };
  parts_.history.each_of(parts_.history.stores(spot.chunk), [&](uint32_t i) {
    if (parts_.history.record(i).packets != kNone) {
      parts_.history.each_of(parts_.history.record(i).beneath, check_emptied);
    }
  });
}

void AccessOrder::keep(const Spot& spot, const Record& access) {
  if (spot.turns != 0) {
    Record seen = access;
    seen.event.process = parts_.system.turned(access.event.process, parts_.system.back(spot.turns));
    return keep({spot.chunk}, seen);
  }
  if (access.write) return parts_.history.add_store(spot.chunk, access);
  parts_.history.add_load(spot.chunk, access,
                          [&](const Record& old) { return stands_for(access, old); });
}

/// Lemma O5: is everything that is ordered after the newer load of a process so after the
/// older one, too?
bool AccessOrder::stands_for(const Record& newer, const Record& older) const {
  const Process& process = parts_.system.processes()[newer.event.process];
  if (process.kind != ProcessKind::block) return false;  // packets show the one, not the other
  if (newer.event.call != older.event.call) return true;
  if (newer.event.time == older.event.time) {
    return premise(Premise::loads_of_one_call, newer.position == older.position);
  }
  if (!premise(Premise::values_may_depend_on_either, !chained_))
    return false;  // a value may depend on the one and not on the other
  const Program& program = parts_.system.program();
  const Op& op = program.ranks[process.rank].ops[newer.event.op];
  // An op at a switch, or a row function, may store where it loads. That store comes after its own
  // load, but not after another op's.
  const auto at = [&](std::span<const Operand> side) {
    return parts_.bytes.at_switch(process.rank, side[0]);
  };
  const bool stores_there =
      at(program.dsts(op)) || at(program.srcs(op)) || info(op.kind).has(kApplies);
  if (!premise(Premise::loads_of_ops_that_store_elsewhere, !stores_there)) return false;
  return premise(Premise::loads_dealt_out_alike, !way_of_sharing(program, process.rank, op)) ||
         parts_.bytes.same_threads(process.rank, newer, older);
}

bool AccessOrder::ordered(const Actor& actor, const Loads& loads, const Record& old,
                          const Record& access) {
  if (known(actor, old.event)) return true;
  const bool own = old.event.process == actor.event.process;
  if (own && is_block(actor.event)) {
    // Within an op, and between ops cut alike, each thread touches what it has touched before.
    if (old.event.time == access.event.time) {
      if (premise(Premise::one_position_in_an_op, old.position == access.position)) return true;
    } else if (parts_.bytes.same_threads(rank_of(actor), old, access)) {
      return true;
    }
  } else if (learned(old, access)) {
    return true;
  }
  if (!old.write) return loaded_before_packets(actor, old, access);
  // A store of packets that was seen by loads which are over is over, too.
  const bool observed = old.packets != kNone &&
                        premise(Premise::somebody_polled, parts_.history.packets(old).observed);
  if (observed && load_known(actor, loads, old, access)) return true;
  return ended_before_packets(actor, old, access);
}

/// The bytes that both may touch, or more.
static const Extent& common(const Extent& a, const Extent& b) { return a.covers(b) ? b : a; }

/// Each thread stores what it has made of packets; has it learned of the old access from those of
/// every byte? The bytes in
/// question are among those of the old access, and among those of this one: either will do. Parts
/// of an earlier call are cut elsewhere than what this op reads and stores, by size.
bool AccessOrder::learned(const Record& old, const Record& access) const {
  Covering before(parts_.cuts, old.extent), now(parts_.cuts, access.extent);
  return std::ranges::any_of(parts_.at_hand.learned, [&](const LearnedNews& learned) {
    const News& news = learned.news;
    if (!parts_.knowledge.known(news.known, news.process, news.done, old.event)) return false;
    const bool all_before = before.add(learned.extent), all_now = now.add(learned.extent);
    return premise(Premise::known_of_all_bytes, all_before || all_now);
  });
}

/// Is it so of packets that have been read: of those that this op stores a value of (a load of it
/// may come before), or of any that all threads of the block know of?
template <class Follow>
bool AccessOrder::any_packets(const Actor& actor, bool stores, Follow&& follow) {
  if (!chained_) return false;
  Provenance& earlier = nodes_read_[rank_of(actor)];
  ThreadBlock* const own = is_block(actor.event) ? &parts_.blocks[actor.event.process] : nullptr;
  // Most are found near by. What was read in earlier calls is the most, so it is searched last.
  for (const bool far : {false, true}) {
    if (stores && follow(parts_.at_hand.nodes, parts_.at_hand.nodes.size(), far)) return true;
    if (own != nullptr && follow(own->nodes, own->settled_nodes, far)) return true;
    if (follow(earlier, earlier.size(), far)) return true;
  }
  return false;
}

/// An earlier access of a block, and the bytes that the one at hand touches.
Provenance::Load AccessOrder::as_load(const Record& old, const Record& access) const {
  const uint32_t rank = parts_.system.processes()[old.event.process].rank;
  const Op& op = parts_.system.program().ranks[rank].ops[old.event.op];
  return {old.event,
          rank,
          old.position,
          parts_.bytes.length_of(rank, op, old.position, old.event.call),
          common(old.extent, access.extent),
          access.extent};
}

/// Packets that have been read depend on what was loaded there (lemma O4). A port loads when it
/// likes.
bool AccessOrder::loaded_before_packets(const Actor& actor, const Record& load,
                                        const Record& access) {
  if (!premise(Premise::ports_load_at_any_time, is_block(load.event))) return false;
  const Provenance::Load loaded = as_load(load, access);
  return any_packets(actor, true, [&](Provenance& values, size_t count, bool far) {
    return values.follow(parts_.chains, parts_.cuts, count, loaded, far);
  });
}

/// Packets that have been read depend on what the rank stored in a later call: its kernel had ended
/// by then, and with it all that its blocks stored, be it what empties a slot (lemma O14). A port
/// may still be at work.
bool AccessOrder::ended_before_packets(const Actor& actor, const Record& store,
                                       const Record& access) {
  if (!store.write) return false;
  if (!premise(Premise::ports_outlast_calls, is_block(store.event))) return false;
  const Provenance::Load stored = as_load(store, access);
  return any_packets(actor, access.write, [&](Provenance& values, size_t count, bool far) {
    return values.follow_later(parts_.chains, parts_.cuts, count, stored, far);
  });
}

/// Is every byte of the store known to have been seen by a load that is over? One that came before
/// it has not seen it.
bool AccessOrder::load_known(const Actor& actor, const Loads& loads, const Record& store,
                             const Record& access) {
  Covering covering(parts_.cuts, store.extent);
  return parts_.history.any_of(loads.list, [&](uint32_t i) {
    Record load = parts_.history.record(i);
    if (load.write || !premise(Premise::seen_later, load.at > store.at) ||
        !load.extent.may_touch(store.extent))
      return false;
    load.event.process = parts_.system.turned(load.event.process, loads.turns);
    return ordered(actor, loads, load, access) &&
           premise(Premise::seen_in_full, covering.add(load.extent));
  });
}

}  // namespace mscclc::proof
