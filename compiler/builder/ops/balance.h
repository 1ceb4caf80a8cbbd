// The check, once a program is complete, that every signal is waited for and every release
// acquired, equally often in each class of pipelines.
#pragma once

#include <vector>

#include "compiler/builder/ops/tallies.h"

namespace mscclc {

class Balance {
 public:
  Balance(BuildReports& reports, const Draft& draft, const KeyedMembers& members,
          const Places& places, const Tallies& tallies)
      : reports_(reports),
        draft_(draft),
        members_(members),
        places_(places),
        tallies_(tallies),
        more_classes_(tallies.more_classes()) {}

  /// Of the channels and semaphores of a rank; reports what does not agree.
  void check(uint32_t rank) const;

 private:
  /// The pipeline classes that a pair of tallies can have.
  template <class F>
  void each_class(const Tally& a, const Tally& b, F f) const {
    if (a.count > 0) f(a.rounds);
    if (b.count > 0 && (a.count == 0 || a.rounds != b.rounds)) f(b.rounds);
    for (uint32_t k = 0; k < more_classes_; ++k) {
      if ((a.count == 0 || k != a.rounds) && (b.count == 0 || k != b.rounds)) f(k);
    }
  }

  void note_rounds(Diagnostic& d, uint32_t rounds) const;
  std::vector<uint32_t> taken_elsewhere(const Tally& signals, uint64_t signal_key,
                                        const Tally& waits, uint64_t wait_key) const;
  void note_elsewhere(Diagnostic& d, uint32_t peer, uint32_t rounds) const;
  void channel(uint32_t r, uint32_t c, const Channel& channel) const;
  void semaphore(uint32_t r, uint32_t i) const;

  BuildReports& reports_;
  const Draft& draft_;
  const KeyedMembers& members_;
  const Places& places_;
  const Tallies& tallies_;
  uint32_t more_classes_;
};

}  // namespace mscclc
