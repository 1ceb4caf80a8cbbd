// Fusion of neighbours in a thread block.
#include <algorithm>

#include "compiler/mscclpp/passes.h"

namespace mscclc::mscclpp {
namespace {

/// The elements of `span`, then those of `more`. References of ops that have the same elements stay
/// as they are.
template <class T>
Span joined(std::vector<T>& all, Span span, Span more) {
  if (more.count == 0) return span;
  if (span.first + span.count != all.size()) {
    const auto begin = static_cast<uint32_t>(all.size());
    for (uint32_t i = 0; i < span.count; ++i) all.push_back(T(all[span.first + i]));
    span.first = begin;
  }
  for (uint32_t i = 0; i < more.count; ++i) all.push_back(T(all[more.first + i]));
  span.count += more.count;
  return span;
}

template <class T>
bool equal(const std::vector<T>& all, Span a, Span b) {
  return a.count == b.count &&
         std::equal(all.begin() + a.first, all.begin() + a.first + a.count, all.begin() + b.first);
}

bool same_group(const Op& a, const Op& b) {
  return a.group_size == b.group_size && a.group_at == b.group_at;
}

constexpr Span kNothing = {};

/// Whether `left` can absorb `right`, which changes it then.
class Fusion {
 public:
  explicit Fusion(Program& program) : program_(program) {}

  bool absorb(Op& left, const Op& right);
  bool begins_with_sync(const Op& op) const;
  bool ends_with_sync(const Op& op) const;

 private:
  const Ref& source(const Op& op) const { return program_.sources[op.sources.first]; }
  const Ref& destination(const Op& op, uint32_t at = 0) const {
    return program_.destinations[op.destinations.first + at];
  }
  const Ops* body(const Op& op) const;

  bool join(Op& left, const Op& right, Span sources, Span destinations);
  bool join_channels(Op& left, const Op& right);
  bool join_puts(Op& left, const Op& right);
  bool join_forwards(Op& left, const Op& right);
  bool join_sums(Op& left, const Op& right);
  bool send_sum(Op& left, const Op& right, Name name, uint32_t which);
  bool pack_sum(Op& left, const Op& right);
  bool store_switch_sum(Op& left, const Op& right);
  bool absorb_same(Op& left, const Op& right);
  bool absorb_put(Op& left, const Op& right);
  bool absorb_packets(Op& left, const Op& right);

  Program& program_;
};

/// The ops of a pipeline that has some.
const Ops* Fusion::body(const Op& op) const {
  if (op.body < 0) return nullptr;
  const Ops& ops = program_.bodies[static_cast<size_t>(op.body)];
  return ops.empty() ? nullptr : &ops;
}

bool Fusion::begins_with_sync(const Op& op) const {
  if (const Ops* inner = body(op)) {
    return (inner->front().sync & kBefore) != 0 || begins_with_sync(inner->front());
  }
  return op.name == Name::nop || op.name == Name::barrier;
}

bool Fusion::ends_with_sync(const Op& op) const {
  if (const Ops* inner = body(op)) {
    return (inner->back().sync & kAfter) != 0 || ends_with_sync(inner->back());
  }
  return op.name == Name::nop || op.name == Name::barrier;
}

bool Fusion::absorb(Op& left, const Op& right) {
  if (left.name == right.name) return absorb_same(left, right);
  switch (right.name) {
    case Name::nop:
      return left.name == Name::barrier || (left.name == Name::pipeline && ends_with_sync(left));
    case Name::barrier:
    case Name::pipeline:
      if (left.name != Name::nop || !begins_with_sync(right)) return false;
      left = right;
      return true;
    case Name::put:
      return absorb_put(left, right);
    case Name::cpkt:
      return left.name == Name::repkt && pack_sum(left, right);
    case Name::ppkt:
    case Name::rppkt:
      return absorb_packets(left, right);
    case Name::gstore:
      return left.name == Name::glre && store_switch_sum(left, right);
    default:
      return false;
  }
}

bool Fusion::absorb_same(Op& left, const Op& right) {
  switch (left.name) {
    case Name::nop:
      return true;
    case Name::sem_acquire:
    case Name::sem_release:
      return join(left, right, kNothing, kNothing);
    case Name::signal:
    case Name::wait:
    case Name::rlxsignal:
    case Name::rlxwait:
    case Name::flush:
      return join_channels(left, right);
    case Name::put:
    case Name::pws:
    case Name::pwsf:
    case Name::ppkt:
    case Name::get:
      return join_puts(left, right);
    case Name::rppkt:
      return join_forwards(left, right);
    case Name::re:
    case Name::rre:
    case Name::repkt:
      return join_sums(left, right);
    default:
      return false;
  }
}

bool Fusion::absorb_put(Op& left, const Op& right) {
  if (left.name == Name::re || left.name == Name::res) return send_sum(left, right, Name::res, 0);
  if (left.name == Name::rre || left.name == Name::rres) {
    return send_sum(left, right, Name::rres, 0);
  }
  return false;
}

bool Fusion::absorb_packets(Op& left, const Op& right) {
  const bool packed = left.name == Name::recpkt || left.name == Name::recspkt;
  if (right.name == Name::rppkt) return packed && send_sum(left, right, Name::recspkt, 1);
  if (packed) return send_sum(left, right, Name::recspkt, 0);
  const bool sum = left.name == Name::repkt || left.name == Name::respkt;
  return sum && send_sum(left, right, Name::respkt, 0);
}

/// `left` with these further references, and the channels and syncs of `right` as well, if the
/// executor has room for it.
bool Fusion::join(Op& left, const Op& right, Span sources, Span destinations) {
  if (left.sources.count + sources.count > kMaxReferences) return false;
  if (left.destinations.count + destinations.count > kMaxReferences) return false;
  if (right.kind == Kind::port && right.destinations.count > 0 &&
      left.ids.count + right.ids.count > kMaxDataChannels) {
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
  if (left.kind != right.kind) return false;
  const auto begin = program_.ids.begin() + left.ids.first;
  const uint32_t id = program_.ids[right.ids.first];  // the only one: `right` has absorbed nothing
  if (std::find(begin, begin + left.ids.count, id) == begin + left.ids.count) {
    return join(left, right, kNothing, kNothing);
  }
  if (left.name != Name::flush) return false;
  left.sync |= right.sync;  // to flush twice is to flush once
  return true;
}

/// Transfers of equal size through channels of one kind.
bool Fusion::join_puts(Op& left, const Op& right) {
  if (left.kind != right.kind || !same_group(left, right)) return false;
  if (source(left).count != source(right).count) return false;
  return join(left, right, right.sources, right.destinations);
}

/// One source of packets, several destinations.
bool Fusion::join_forwards(Op& left, const Op& right) {
  if (left.kind != right.kind || !same_group(left, right)) return false;
  if (!equal(program_.sources, left.sources, right.sources)) return false;
  return join(left, right, kNothing, right.destinations);
}

/// Two sums from the same first source into the same chunk.
bool Fusion::join_sums(Op& left, const Op& right) {
  if (source(left) != source(right) || left.kind != right.kind) return false;
  if (!equal(program_.destinations, left.destinations, right.destinations)) return false;
  if (!same_group(left, right) || left.reduce != right.reduce) return false;
  return join(left, right, {right.sources.first + 1, right.sources.count - 1}, kNothing);
}

/// A sum whose result (`which`: of the destinations) goes to a peer as well.
bool Fusion::send_sum(Op& left, const Op& right, Name name, uint32_t which) {
  if (right.kind != Kind::memory || !same_group(left, right)) return false;
  if (right.sources.count != 1 || source(right) != destination(left, which)) return false;
  if (!join(left, right, kNothing, right.destinations)) return false;
  left.name = name;
  left.kind = Kind::memory;
  return true;
}

/// A packet sum whose result is also kept as packets.
bool Fusion::pack_sum(Op& left, const Op& right) {
  if (!same_group(left, right) || source(right) != destination(left)) return false;
  if (!join(left, right, kNothing, right.destinations)) return false;
  left.name = Name::recpkt;
  return true;
}

/// A sum over a switch that is only stored back through it.
bool Fusion::store_switch_sum(Op& left, const Op& right) {
  if (!equal(program_.ids, left.ids, right.ids)) return false;
  if (source(left).count != destination(right).count) return false;
  if (source(right) != destination(left)) return false;
  left.name = Name::glres;
  left.destinations = right.destinations;
  return true;
}

}  // namespace

Ops fuse(Program& program, const Ops& ops) {
  Fusion fusion(program);
  Ops out;
  out.reserve(ops.size());
  for (Op right : ops) {
    if (right.body >= 0) {
      program.bodies.push_back(fuse(program, program.bodies[static_cast<size_t>(right.body)]));
      right.body = static_cast<int32_t>(program.bodies.size() - 1);
    }
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
