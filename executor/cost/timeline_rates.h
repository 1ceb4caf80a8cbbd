// What transfers share in virtual time: links, memories, network cards, copy engines.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/cost/virtual_time/events.h"
#include "executor/cost/virtual_time/shared_rate.h"
#include "executor/cost/work.h"

namespace mscclc::cost {

/// By shared_index(). Ends come as events of kind `rate`. For one thread.
class Rates {
 public:
  Rates(const Machine& machine, size_t ranks, Events& events);

  /// `part` needs so many bytes of it, from now on.
  void add(uint32_t shared, double bytes, uint32_t part);
  /// Takes an event. The part that has ended now, if one has.
  std::optional<uint32_t> ended(uint32_t shared, uint32_t version);
  /// When what is under way over it has ended, if nothing is added.
  double last_end(uint32_t shared) const { return shared_[shared].last_end(events_.now()); }
  /// For loads().
  void count(uint32_t shared, uint64_t bytes) { loads_[shared] += bytes; }
  const std::vector<uint64_t>& loads() const { return loads_; }

 private:
  void watch(uint32_t shared);

  Events& events_;
  std::vector<SharedRate> shared_;
  std::vector<uint32_t> versions_;
  std::vector<double> watched_;  ///< when the event comes that looks at it
  std::vector<uint64_t> loads_;
};

}  // namespace mscclc::cost
