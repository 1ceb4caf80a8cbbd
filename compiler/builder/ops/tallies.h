// Who uses the ends of channels and the semaphores, and how often: counts that must agree at the
// end.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/builder/declare/members.h"
#include "compiler/builder/ops/places.h"
#include "ir/program/rank_parts.h"

namespace mscclc {

/// A count, outside pipelines or in those of one ratio. There may be more, of other classes.
struct Tally {
  uint32_t rounds = 0;  ///< class of pipelines, see Places; 0: outside
  uint32_t count = 0;
};

/// How an end of a channel is used.
struct ChannelUse {
  uint32_t sender = kNone, waiter = kNone;  ///< owner, see Places
  Tally signals, waits;
};

struct SemaphoreUse {
  Tally releases, acquires;
};

/// Which count of which thing.
inline uint64_t tally_key(uint32_t rank, uint32_t index) {
  return static_cast<uint64_t>(rank) << 32 | index;
}
inline constexpr uint64_t kWaitTally = uint64_t{1} << 63, kSemaphoreTally = uint64_t{1} << 62;

class Tallies {
 public:
  Tallies(BuildReports& reports, Draft& draft, KeyedMembers& members, Places& places)
      : reports_(reports), draft_(draft), members_(members), places_(places) {}

  /// All ranks have declared what they own.
  void seal();
  /// Counts what an op of the rank at hand does with its channels and semaphores.
  void use(const OpInfo& info, std::span<const Ref> dsts);

  const ChannelUse& channel(uint32_t rank, uint32_t index) const { return channels_[rank][index]; }
  const SemaphoreUse& semaphore(uint32_t rank, uint32_t index) const {
    return semaphores_[rank][index];
  }
  /// The count in a class of pipelines.
  int64_t count(const Tally& tally, uint64_t key, uint32_t rounds) const;
  /// Classes below this may have counts besides the first one of a thing.
  uint32_t more_classes() const;

  /// Takes another builder's counts of some ranks, whose classes of pipelines have these numbers
  /// here.
  void take(Tallies& part, RankRange of, const std::vector<uint32_t>& classes);

 private:
  void use_channels(const OpInfo& info, std::span<const Ref> refs);
  void use_semaphores(const OpInfo& info, std::span<const Ref> refs);
  void claim(uint32_t& side, uint32_t owner, std::string_view verb, const Ref& ref);
  /// Counts one more in the class at hand.
  void add(Tally& tally, uint64_t key) {
    const uint32_t rounds = places_.rounds();
    if (tally.count == 0) tally.rounds = rounds;
    if (tally.rounds == rounds) {
      ++tally.count;
    } else {
      ++more_[{key, rounds}];
    }
  }

  BuildReports& reports_;
  Draft& draft_;
  KeyedMembers& members_;
  Places& places_;
  std::vector<std::vector<ChannelUse>> channels_;      ///< by rank and channel
  std::vector<std::vector<SemaphoreUse>> semaphores_;  ///< by rank and semaphore
  /// Beyond the first class: (key, class) -> count.
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> more_;
};

}  // namespace mscclc
