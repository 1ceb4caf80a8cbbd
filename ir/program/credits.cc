#include "ir/program/credits.h"

#include <algorithm>

namespace mscclc {

uint64_t rounds_beyond_credits(const Program& program) {
  uint64_t units = 0, credits = 0;
  for (const Rank& rank : program.ranks) {
    for (const Buffer& buffer : rank.buffers) units = std::max<uint64_t>(units, buffer.units);
    for (const Semaphore& semaphore : rank.semaphores) credits += semaphore.initial;
    for (const Channel& channel : rank.channels) credits += channel.credits;
    for (const Op& op : rank.ops) {
      const bool gives = info(op.kind).has(kSignals) || info(op.kind).has(kReleases);
      if (gives && op.loop == kNone) credits += op.dsts;
    }
  }
  return std::max(units, credits) + 2;
}

}  // namespace mscclc
