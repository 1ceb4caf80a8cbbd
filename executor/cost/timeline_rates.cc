#include "executor/cost/timeline_rates.h"

#include <algorithm>
#include <limits>

namespace mscclc::cost {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Bytes a nanosecond.
double rate_of(const Machine& machine, Shared kind) {
  const double link = ns(machine.link_mb_per_s()) / 1e3;
  switch (kind) {
    case Shared::egress:
    case Shared::ingress:
      return link;
    case Shared::memory:
      return ns(machine.memory_mb_per_s) / 1e3;
    case Shared::host_out:
    case Shared::host_in:
      return ns(machine.pcie_mb_per_s) / 1e3;
    case Shared::nic_out:
    case Shared::nic_in:
      return ns(machine.nic_mb_per_s) / 1e3;
    case Shared::nic_both:
      return ns(machine.nic_both_mb_per_s) / 1e3;
    case Shared::engine:
      return ns(machine.copy_engine_mb_per_s) / 1e3;
  }
  return link;
}

}  // namespace

Rates::Rates(const Machine& machine, size_t ranks, Events& events)
    : events_(events),
      versions_(ranks * kSharedKinds, 0),
      watched_(ranks * kSharedKinds, kNever),
      loads_(ranks * kSharedKinds, 0) {
  for (size_t i = 0; i < loads_.size(); ++i) {
    shared_.emplace_back(rate_of(machine, static_cast<Shared>(i % kSharedKinds)));
  }
}

void Rates::add(uint32_t shared, double bytes, uint32_t part) {
  shared_[shared].add(part, bytes, events_.now());
  watch(shared);
}

/// Has an event at the next end, or before it: an end that moves to later, as another transfer has
/// come, is found out by then.
void Rates::watch(uint32_t shared) {
  if (shared_[shared].idle()) return;
  const double end = std::max(events_.now(), shared_[shared].next_end());
  if (end >= watched_[shared]) return;
  watched_[shared] = end;
  events_.push(end, EventKind::rate, shared, ++versions_[shared]);
}

std::optional<uint32_t> Rates::ended(uint32_t shared, uint32_t version) {
  if (version != versions_[shared]) return std::nullopt;
  watched_[shared] = kNever;
  if (shared_[shared].next_end() > events_.now()) {
    watch(shared);
    return std::nullopt;
  }
  const uint32_t part = shared_[shared].pop(events_.now());
  watch(shared);
  return part;
}

}  // namespace mscclc::cost
