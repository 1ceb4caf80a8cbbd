#include "runtime/bootstrap/tcp/other_ranks.h"

#include "runtime/support/process/proc.h"

namespace mscclc {

void OtherRanks::all_came() { complete_since_ = ticks_now(); }

bool OtherRanks::began_before_all_came(std::optional<int32_t> process) const {
  const auto facts = process ? facts_of(*process) : std::nullopt;
  return facts && facts->began < complete_since_;
}

void OtherRanks::has_heard(std::optional<int32_t> process) {
  if (process) std::erase(awaited_, *process);
}

void OtherRanks::forget_ended() {
  std::erase_if(awaited_, [](int32_t process) {
    const auto facts = facts_of(process);
    return !facts || facts->state == 'Z';
  });
}

}  // namespace mscclc
