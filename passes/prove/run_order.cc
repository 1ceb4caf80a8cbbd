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
void Run::check(const Actor& actor, uint64_t chunk, const ChunkName& name, const Record& access) {
  for (uint32_t i = history_.head(chunk); i != kNone; i = history_.record(i).next) {
    const Record& old = history_.record(i);
    if (!old.write && !access.write) continue;
    if (!old.extent.may_touch(access.extent)) continue;
    const bool in_order = ordered(actor, chunk, old, access);
    const bool same = !in_order && stores_the_same(chunk, old, access);
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

bool Run::ordered(const Actor& actor, uint64_t chunk, const Record& old, const Record& access) {
  const bool own = old.event.process == actor.event.process;
  if (own && old.event.time <= actor.settled) return true;
  const bool block = system_.processes()[actor.event.process].kind == ProcessKind::block;
  if (own && block) {
    // Within an op, and between ops cut alike, each thread touches what it has touched before.
    if (old.position == access.position &&
        (old.event.time == access.event.time ||
         same_threads(system_.processes()[actor.event.process].rank, old, access))) {
      return true;
    }
  } else {
    if ((*actor.known)[old.event.process] >= old.event.time) return true;
    for (const News& news : told_) {
      if (tells(news, old.event.process, old.event.time)) return true;
    }
  }
  // A store of packets that was seen by loads which are over is over, too.
  if (old.packets != kNone && history_.packets(old).observed) {
    return load_known(actor, chunk, old, access);
  }
  return !old.write && loaded_before_packets(actor, old);
}

/// Packets that have been read depend on what was loaded there: those that this op stores a value
/// of, or any that all threads of the block know of.
bool Run::loaded_before_packets(const Actor& actor, const Record& load) {
  const uint32_t rank = system_.processes()[load.event.process].rank;
  const auto follow = [&](std::span<const uint32_t> values) {
    return !values.empty() && chains_.follow(values, load.event, rank, load.position);
  };
  if (!chained_) return false;
  if (follow(nodes_) || follow(nodes_read_[rank_of(actor)])) return true;
  if (system_.processes()[actor.event.process].kind != ProcessKind::block) return false;
  const Block& block = blocks_[actor.event.process];
  return follow({block.nodes.data(), block.settled_nodes});
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
bool Run::stores_the_same(uint64_t chunk, const Record& old, const Record& access) const {
  if (!old.write || !access.write || !has_value_) return false;
  return old.event.op != kNone && access.event.op != kNone &&
         values_[chunk].read(access.extent, mixed_) == value_ && !(value_ == mixed_);
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
