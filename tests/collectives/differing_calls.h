// Jobs in which one rank makes another call than the others, after some that were the same: what
// every rank hears of it, and whether anything is written that no rank has named.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mscclc::testing {

/// What the odd rank's call has otherwise.
enum class Difference : uint8_t {
  shorter,       ///< by one element
  longer,        ///< by one element
  far_longer,    ///< another plan, which may be still to be loaded
  type,          ///< of the same width
  reduction,     ///< of an allreduce
  collective,    ///< another one
  place,         ///< out of place, not in place
  offset,        ///< of the output in the registered buffer
  registration,  ///< of which it makes no use
  skipped,       ///< it leaves a call out, and goes on with the next
};
inline constexpr uint32_t kDifferences = 10;

struct DifferingTrial {
  uint64_t seed = 0;  ///< of all that is not said here
  uint32_t ranks = 2;
  uint32_t odd = 0;  ///< the rank that differs
  Difference difference = Difference::shorter;
  bool registered = false;
  uint32_t from = 0;   ///< the call at which it begins to differ
  bool stays = false;  ///< the others change instead: their call is the odd rank's other one
  bool processes = false;
  uint32_t on_node = 0;  ///< ranks of each node; 0: there is one node
};
DifferingTrial draw_differing(uint64_t seed);
std::string text(const DifferingTrial& trial);

struct DifferingOutcome {
  std::string wrong;    ///< what should not have come; "": nothing
  uint64_t beyond = 0;  ///< bytes that were written outside of what their rank has named
};
DifferingOutcome try_differing(const DifferingTrial& trial);

}  // namespace mscclc::testing
