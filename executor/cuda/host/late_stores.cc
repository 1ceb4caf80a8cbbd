#include "executor/cuda/host/late_stores.h"

#include <algorithm>
#include <cstring>

namespace mscclc::cuda::host {

void LateStores::add(uint32_t thread, void* to, const void* from, uint32_t bytes, uint32_t group) {
  settle(thread, to, bytes);
  Store store{thread, bytes, group, meetings_, static_cast<uint8_t*>(to), {}};
  std::memcpy(store.data, from, bytes);
  list_.push_back(store);
}

template <class Pick>
void LateStores::do_if(Pick pick) {
  groups_.clear();
  for (const Store& store : list_) {
    if (store.group != 0 && pick(store)) groups_.push_back(store.group);
  }
  const auto in_group = [&](const Store& store) {
    return store.group != 0 && std::ranges::find(groups_, store.group) != groups_.end();
  };
  size_t kept = 0;
  for (size_t i = 0; i < list_.size(); ++i) {
    if (pick(list_[i]) || in_group(list_[i])) {
      std::memcpy(list_[i].to, list_[i].data, list_[i].bytes);
    } else {
      list_[kept++] = list_[i];
    }
  }
  list_.resize(kept);
}

void LateStores::settle(uint32_t thread) {
  do_if([&](const Store& store) { return knows(thread, store); });
}

void LateStores::settle(uint32_t thread, const void* at, uint32_t bytes) {
  const auto* begin = static_cast<const uint8_t*>(at);
  do_if([&](const Store& store) { return touch(store, begin, bytes) && knows(thread, store); });
}

bool LateStores::do_any(Dice& dice) {
  if (list_.empty()) return false;
  const Store chosen = list_[dice.below(static_cast<uint32_t>(list_.size()))];
  // Stores to the same bytes that are in order stay so; of others any may be first.
  do_if([&](const Store& store) { return touch(store, chosen.to, chosen.bytes); });
  return true;
}

void LateStores::do_all() {
  do_if([](const Store&) { return true; });
}

}  // namespace mscclc::cuda::host
