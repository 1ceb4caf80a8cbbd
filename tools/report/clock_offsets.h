// How far clocks of ranks are apart, from when each was in exchanges that all take part in: no rank
// leaves one before all have entered it. So each exchange of two ranks bounds the difference of
// their clocks from both sides, and the narrowest bounds count: of the last ones that agree with
// one another, as clocks of two machines drift apart over hours.
#pragma once

#include <cstdint>
#include <map>

namespace mscclc {

/// When a rank was in an exchange, by its own clock, in nanoseconds.
struct ClockStay {
  int64_t entered = 0, left = 0;
  bool operator==(const ClockStay& other) const = default;
};
/// By the number of the exchange.
using ClockStays = std::map<uint64_t, ClockStay>;

struct ClockOffset {
  bool known = false;        ///< there were exchanges of both
  int64_t ahead = 0;         ///< of the other clock, in the middle of what is possible ...
  int64_t give_or_take = 0;  ///< ... and so much more or less
};

/// How far `clock` is ahead of `reference`. One that can be the same is: 0, give or take 0, if
/// `one_machine`.
ClockOffset clock_offset(const ClockStays& reference, const ClockStays& clock, bool one_machine);

}  // namespace mscclc
