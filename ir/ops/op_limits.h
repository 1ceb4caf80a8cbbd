// How large single ops may become. Targets say it (plans/format/target.h), passes keep to it;
// neither includes the other.
#pragma once

#include <cstdint>

namespace mscclc {

/// Limits of one op; 0: as large as it likes.
struct OpLimits {
  uint32_t operands = 0;    ///< destinations of an op that moves data, and sources
  uint32_t channels = 0;    ///< channels that an op lists: signals, waits, gets, all of ports
  uint32_t semaphores = 0;  ///< of a release or acquire
  uint32_t unpacks = 0;     ///< chunks of an unpack_packets
  uint64_t absent = 0;      ///< kinds that there are none of, as bits by OpKind
  /// A get goes to the place that it has by itself: another chunk may stand at another offset.
  bool fixed_gets = false;
  /// With shared scratch, what a reduce sums up here is all scratch, or all the caller's.
  bool unmixed_shared_sums = false;
  /// All sources that an op puts through memory channels lie in buffers of one kind.
  bool one_source_kind = false;
  bool operator==(const OpLimits&) const = default;
};

}  // namespace mscclc
