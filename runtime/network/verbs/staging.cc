#include "runtime/network/verbs/staging.h"

#include "ir/support/precondition.h"

namespace mscclc::verbs {

Result<std::unique_ptr<Staging>> Staging::make(const Adapter& adapter) {
  auto staging = std::make_unique<Staging>();
  auto region = adapter.read_from(staging->memory_.data(), kBytes);
  if (!region) return region.error();
  staging->region_ = *std::move(region);
  return staging;
}

uint8_t* Staging::take(uint64_t bytes, uint64_t number) {
  precondition(bytes <= kMax);
  const uint64_t to_end = kBytes - next_;
  const uint64_t skipped = bytes <= to_end ? 0 : to_end;
  if (used_ + skipped + bytes > kBytes) return nullptr;
  if (skipped > 0) next_ = 0;
  uint8_t* const place = memory_.data() + next_;
  next_ = (next_ + bytes) % kBytes;
  used_ += skipped + bytes;
  taken_.push_back({number, skipped + bytes});
  return place;
}

void Staging::done_before(uint64_t number) {
  for (; !taken_.empty() && taken_.front().number < number; taken_.pop_front()) {
    used_ -= taken_.front().bytes;
  }
}

}  // namespace mscclc::verbs
