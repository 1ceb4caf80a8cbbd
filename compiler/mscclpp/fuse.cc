// Fusion of neighbours in a thread block. Which ops become which one is what the rules of our own
// pass say (passes/fuse), except for these that MSCCL++ has otherwise:
//
//   put_with_signal_and_flush + put_with_signal_and_flush     one op for several peers
//   unpack_packets + unpack_packets, copy + a sum,            stay two ops
//   reduce_send_packets + copy_packets
//   rules that drop a copy or a signal, and those whose       are left out
//   result MSCCL++'s plans cannot name
//
// Under which conditions they do is MSCCL++'s.
#include <algorithm>

#include "compiler/mscclpp/passes.h"

namespace mscclc::mscclpp {
namespace {

/// The elements of `slice`, then those of `more`. References of ops that have the same elements
/// stay as they are.
template <class T>
Slice joined(std::vector<T>& all, Slice slice, Slice more) {
  if (more.count == 0) return slice;
  if (slice.first + slice.count != all.size()) {
    const auto begin = static_cast<uint32_t>(all.size());
    for (uint32_t i = 0; i < slice.count; ++i) all.push_back(T(all[slice.first + i]));
    slice.first = begin;
  }
  for (uint32_t i = 0; i < more.count; ++i) all.push_back(T(all[more.first + i]));
  slice.count += more.count;
  return slice;
}

template <class T>
bool equal(const std::vector<T>& all, Slice a, Slice b) {
  return a.count == b.count &&
         std::equal(all.begin() + a.first, all.begin() + a.first + a.count, all.begin() + b.first);
}

bool same_group(const Op& a, const Op& b) {
  return a.group_size == b.group_size && a.group_at == b.group_at;
}

/// Whether `left` can absorb `right`, which changes it then.
class Fusion {
 public:
  explicit Fusion(Program& program) : program_(program) {}

  bool absorb(Op& left, const Op& right);
  bool begins_with_sync(const Op& op) const { return is_sync(op, &Ops::front); }
  bool ends_with_sync(const Op& op) const { return is_sync(op, &Ops::back); }

 private:
  /// Whether the threads meet in an op, of a pipeline in that at this end of its body.
  bool is_sync(const Op& op, const Op& (Ops::*end)() const) const {
    if (op.body < 0) return info(op.kind).has(kSyncs);
    const Ops& ops = program_.bodies[static_cast<size_t>(op.body)];
    return !ops.empty() && is_sync((ops.*end)(), end);
  }
  const Ref& source(const Op& op) const { return program_.sources[op.sources.first]; }
  const Ref& destination(const Op& op, uint32_t at = 0) const {
    return program_.destinations[op.destinations.first + at];
  }
  bool join(Op& left, const Op& right, Slice sources, Slice destinations);
  bool join_channels(Op& left, const Op& right);
  bool join_puts(Op& left, const Op& right);
  bool join_forwards(Op& left, const Op& right);
  bool join_sums(Op& left, const Op& right);
  bool send_sum(Op& left, const Op& right, OpKind result, uint32_t which);
  bool store_switch_sum(Op& left, const Op& right);

  Program& program_;
};

/// REQUIRES: the syncs of bodies are written out.
bool Fusion::absorb(Op& left, const Op& right) {
  using fusion::Form;
  if (right.kind == OpKind::sync) return ends_with_sync(left);
  if (left.kind == OpKind::sync) {
    if (!begins_with_sync(right)) return false;
    left = right;
    return true;
  }
  const fusion::Rule* const rule = rule_of(left.kind, right.kind);
  if (rule == nullptr || left.relaxed != right.relaxed || !same_group(left, right)) return false;
  switch (rule->form) {
    case Form::join:
      if (info(right.kind).moves_data()) return join_puts(left, right);
      return has_channels(right) ? join_channels(left, right) : join(left, right, {}, {});
    case Form::fan:
      return join_forwards(left, right);
    case Form::sum:
      return join_sums(left, right);
    case Form::send:
      return send_sum(left, right, rule->result, 0);
    case Form::forward:
      return send_sum(left, right, rule->result, 1);
    case Form::exchange:
      return store_switch_sum(left, right);
    default:
      return false;
  }
}

/// `left` with these further references, and the channels and syncs of `right` as well, if the
/// executor has room for it.
bool Fusion::join(Op& left, const Op& right, Slice sources, Slice destinations) {
  if (left.sources.count + sources.count > kMaxReferences) return false;
  if (left.destinations.count + destinations.count > kMaxReferences) return false;
  if (names_data_channels(right) && left.ids.count + right.ids.count > kMaxDataChannels) {
    return false;
  }
  left.sources = joined(program_.sources, left.sources, sources);
  left.destinations = joined(program_.destinations, left.destinations, destinations);
  left.ids = joined(program_.ids, left.ids, right.ids);
  left.sync |= right.sync;
  return true;
}

/// Signals, waits and flushes of one kind: one op for all channels, each of which has it once.
bool Fusion::join_channels(Op& left, const Op& right) {
  if (left.channels != right.channels) return false;
  const auto begin = program_.ids.begin() + left.ids.first;
  const uint32_t id = program_.ids[right.ids.first];  // the only one: `right` has absorbed nothing
  if (std::find(begin, begin + left.ids.count, id) == begin + left.ids.count) {
    return join(left, right, {}, {});
  }
  if (left.kind != OpKind::flush) return false;
  left.sync |= right.sync;  // to flush twice is to flush once
  return true;
}

/// Transfers of equal size through channels of one kind.
bool Fusion::join_puts(Op& left, const Op& right) {
  if (left.channels != right.channels) return false;
  if (source(left).count != source(right).count) return false;
  return join(left, right, right.sources, right.destinations);
}

/// One source of packets, several destinations.
bool Fusion::join_forwards(Op& left, const Op& right) {
  if (left.channels != right.channels) return false;
  if (!equal(program_.sources, left.sources, right.sources)) return false;
  return join(left, right, {}, right.destinations);
}

/// Two sums from the same first source into the same chunk.
bool Fusion::join_sums(Op& left, const Op& right) {
  if (source(left) != source(right) || left.channels != right.channels) return false;
  if (!equal(program_.destinations, left.destinations, right.destinations)) return false;
  if (left.reduce != right.reduce) return false;
  return join(left, right, {right.sources.first + 1, right.sources.count - 1}, {});
}

/// A sum whose result (`which`: of the destinations) goes to a peer as well, or is kept as packets.
bool Fusion::send_sum(Op& left, const Op& right, OpKind result, uint32_t which) {
  if (right.channels != ChannelKind::memory) return false;
  if (source(right) != destination(left, which)) return false;
  if (!join(left, right, {}, right.destinations)) return false;
  left.kind = result;
  return true;
}

/// A sum over a switch that is only stored back through it.
bool Fusion::store_switch_sum(Op& left, const Op& right) {
  if (!equal(program_.ids, left.ids, right.ids)) return false;
  if (source(left).count != destination(right).count) return false;
  if (source(right) != destination(left)) return false;
  left.kind = OpKind::switch_reduce_broadcast;
  left.destinations = right.destinations;
  return true;
}

}  // namespace

const fusion::Rule* rule_of(OpKind left, OpKind right) {
  using fusion::Form;
  using enum OpKind;
  static constexpr fusion::Rule kTheirs = {put_with_signal_and_flush, put_with_signal_and_flush,
                                           Form::join, put_with_signal_and_flush};
  if (left == kTheirs.left && right == kTheirs.right) return &kTheirs;
  if (right == unpack_packets || (left == reduce_send_packets && right == copy_packets)) {
    return nullptr;
  }
  for (const fusion::Rule& rule : fusion::rules(left, right)) {
    const bool is_known =
        !info(rule.result).wire.empty() && (rule.form < Form::queue || rule.form == Form::exchange);
    if (is_known && (rule.form != Form::sum || left == right)) return &rule;
  }
  return nullptr;
}

Ops fuse(Program& program, const Ops& ops) {
  Fusion fusion(program);
  Ops out;
  out.reserve(ops.size());
  for (Op right : ops) {
    if (!out.empty()) {
      Op& left = out.back();
      if (fusion.absorb(left, right)) continue;
      if ((right.sync & kBefore) != 0 && fusion.ends_with_sync(left)) {
        right.sync &= static_cast<uint8_t>(~kBefore);
      } else if ((left.sync & kAfter) != 0 &&
                 ((right.sync & kBefore) != 0 || fusion.begins_with_sync(right))) {
        left.sync &= static_cast<uint8_t>(~kAfter);
      }
    }
    out.push_back(right);
  }
  return out;
}

}  // namespace mscclc::mscclpp
