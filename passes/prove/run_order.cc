// Is an access ordered behind an earlier one? docs/verification.md gives the reason of each rule.
#include "passes/prove/run.h"
#include "passes/thread_partition.h"

namespace mscclc::proof {

uint64_t Run::report_key(const Event& a, const Event& b) const {
  const auto place = [&](const Event& e) {
    return uint64_t{system_.processes()[e.process].rank} * 0x9e3779b97f4a7c15u + e.op;
  };
  return place(a) * 0xbf58476d1ce4e5b9u + place(b);
}

/// Reports the earlier accesses that conflict with this one and are in no order with it.
void Run::check(const Actor& actor, const Spot& spot, const ChunkName& name, const Record& access) {
  for (uint32_t i = history_.head(spot.chunk); i != kNone; i = history_.record(i).next) {
    if (!history_.record(i).write && !access.write) continue;
    if (!history_.record(i).extent.may_touch(access.extent)) continue;
    Record old = history_.record(i);
    old.event.process = system_.turned(old.event.process, spot.turns);
    const bool in_order = ordered(actor, spot.chunk, old, access);
    const bool same = !in_order && stores_the_same(spot, old, access);
    history_.pin(i, same);
    if (in_order || same) continue;
    if (!may_report(report_key(old.event, access.event))) continue;
    Finding& finding = add_finding(Finding::Kind::race);
    finding.first = old.event;
    finding.second = access.event;
    finding.chunk = name;
    finding.first_writes = old.write;
    finding.second_writes = access.write;
  }
}

/// Adds an access to what is known of its chunk, told as seen from the rank that owns it.
void Run::keep(const Spot& spot, const Record& access) {
  Record seen = access;
  seen.event.process = system_.turned(access.event.process, system_.back(spot.turns));
  history_.add(spot.chunk, seen);
}

bool Run::ordered(const Actor& actor, uint64_t chunk, const Record& old, const Record& access) {
  if (known(*actor.known, actor.knower, actor.settled, old.event)) return true;
  const bool own = old.event.process == actor.event.process;
  const bool block = system_.processes()[actor.event.process].kind == ProcessKind::block;
  if (own && block) {
    // Within an op, and between ops cut alike, each thread touches what it has touched before.
    if (old.event.time == access.event.time) {
      if (old.position == access.position) return true;
    } else if (old.position.chunk == access.position.chunk &&
               same_threads(rank_of(actor), old, access)) {
      return true;
    }
  } else {
    for (const News& news : told_) {
      if (known(news.known, news.process, news.done, old.event)) return true;
    }
  }
  if (ended_before_packets(actor, old, access)) return true;
  // A store of packets that was seen by loads which are over is over, too.
  if (old.packets != kNone && history_.packets(old).observed) {
    return load_known(actor, chunk, old, access);
  }
  return !old.write && loaded_before_packets(actor, old);
}

/// Is the event over, for one who knows `row` and that `done` ops of `knower` are over?
bool Run::known(const Row& row, uint32_t knower, uint32_t done, const Event& event) const {
  const auto reached = [&](uint32_t process, uint32_t count) {
    return row[process] >= count || (process == knower && done >= count);
  };
  if (event.process < system_.width()) return reached(event.process, event.time);
  return arrivals_.known(event.process - system_.width(), event.time, reached);
}

/// Is it so of packets that have been read: of those that this op stores a value of (a load of it
/// may come before), or of any that all threads of the block know of?
template <class Follow>
bool Run::any_packets(const Actor& actor, bool stores, Follow&& follow) {
  if (!chained_) return false;
  Provenance& earlier = nodes_read_[rank_of(actor)];
  if (follow(earlier, earlier.size())) return true;
  if (stores && follow(nodes_, nodes_.size())) return true;
  if (system_.processes()[actor.event.process].kind != ProcessKind::block) return false;
  Block& block = blocks_[actor.event.process];
  return follow(block.nodes, block.settled_nodes);
}

/// Packets that have been read depend on what was loaded there.
bool Run::loaded_before_packets(const Actor& actor, const Record& load) {
  const uint32_t rank = system_.processes()[load.event.process].rank;
  return any_packets(actor, true, [&](Provenance& values, size_t count) {
    return values.follow(chains_, count, load.event, rank, load.position);
  });
}

/// Packets that have been read depend on what the rank stored in a later call: its kernel had ended
/// by then, and with it all that its blocks stored, be it what empties a slot.
bool Run::ended_before_packets(const Actor& actor, const Record& store, const Record& access) {
  if (!store.write) return false;
  const Process& process = system_.processes()[store.event.process];
  if (process.kind != ProcessKind::block) return false;  // a port may still be at work
  return any_packets(actor, access.write, [&](Provenance& values, size_t count) {
    return values.follow_later(chains_, count, process.rank, store.event.call);
  });
}

/// Is every byte of the store known to have been seen by a load that is over?
bool Run::load_known(const Actor& actor, uint64_t chunk, const Record& store,
                     const Record& access) {
  uint32_t pieces = 0, way = 0;
  for (uint32_t i = history_.head(chunk); i != kNone; i = history_.record(i).next) {
    const Record& load = history_.record(i);
    if (load.write || !load.extent.may_touch(store.extent)) continue;
    if (!ordered(actor, chunk, load, access)) continue;
    if (load.extent.covers(store.extent)) return true;
    if (pieces == 0) way = load.extent.way;
    pieces += load.extent.way == way ? 1 : 0;
  }
  return pieces > 0 && pieces == cuts_.pieces(way);
}

/// Two stores of the same bits leave the same, whoever is last. Both stay on record.
bool Run::stores_the_same(const Spot& spot, const Record& old, const Record& access) const {
  if (!old.write || !access.write || !has_value_) return false;
  return old.event.op != kNone && access.event.op != kNone &&
         symbol_at(spot, access.extent) == value_ && !(value_ == mixed_);
}

/// Do both ops give the same bytes of a chunk to the same thread?
bool Run::same_threads(uint32_t rank, const Record& old, const Record& access) const {
  const Op& a = program_.ranks[rank].ops[old.event.op];
  const Op& b = program_.ranks[rank].ops[access.event.op];
  const auto whole_chunk = [&](const Op& op) {
    return op.loop == kNone && program_.operands[op.operands].count == 1;
  };
  return whole_chunk(a) && whole_chunk(b) && share_alike(program_, rank, a, b);
}

}  // namespace mscclc::proof
