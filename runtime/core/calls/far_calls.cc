#include "runtime/core/calls/far_calls.h"

#include <algorithm>

namespace mscclc {
namespace {

/// As many as a rank may be ahead of another of its own machine.
constexpr size_t kMaxChanges = CallBoard::kRoom;

}  // namespace

std::optional<FarCalls::Difference> FarCalls::next(CallRecord& call, bool& changed) {
  const std::lock_guard lock(mutex_);
  call.call = ++calls_;
  changed = changes_.empty() || !call.is_same(changes_.back());
  if (changed) changes_.push_back(call);
  if (changes_.size() > kMaxChanges) changes_.pop_front();
  std::optional<Difference> found;
  const auto end = to_come_.upper_bound(calls_);
  for (auto entry = to_come_.lower_bound(calls_); entry != end; ++entry) {
    const auto& [rank, other] = entry->second;
    if (!found && !other.agrees_with(call)) found = Difference{rank, call, other};
  }
  to_come_.erase(to_come_.begin(), end);
  return found;
}

std::optional<FarCalls::Difference> FarCalls::noted(uint32_t rank, const CallRecord& other) {
  const std::lock_guard lock(mutex_);
  if (other.is_load != 0 && other.executable <= loaded_) return std::nullopt;
  if (other.call > calls_) {
    to_come_.emplace(other.call, std::pair(rank, other));
    return std::nullopt;
  }
  const auto before = [&](const CallRecord& own) { return own.call <= other.call; };
  const auto own = std::find_if(changes_.rbegin(), changes_.rend(), before);
  if (own == changes_.rend() || own->agrees_with(other)) return std::nullopt;
  return Difference{rank, *own, other};
}

void FarCalls::loads(uint32_t executable) {
  const std::lock_guard lock(mutex_);
  loaded_ = executable;
  std::erase_if(to_come_, [&](const auto& entry) {
    const CallRecord& other = entry.second.second;
    return other.is_load != 0 && other.executable <= loaded_;
  });
}

uint64_t FarCalls::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

}  // namespace mscclc
