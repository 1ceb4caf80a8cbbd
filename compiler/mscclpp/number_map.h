// A map from numbers to numbers, for the many small lookups of a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mscclc::mscclpp {

/// Keys are any but UINT64_MAX. Open addressing: nothing is allocated for an entry.
class NumberMap {
 public:
  NumberMap() : entries_(64, kEmpty) {}

  /// The value of a key, which is `value` from now on if the key is new: then true.
  std::pair<uint32_t, bool> try_emplace(uint64_t key, uint32_t value) {
    if (2 * (count_ + 1) > entries_.size()) grow();
    KeyValue& entry = find(key);
    const bool is_new = entry.key != key;
    if (is_new) {
      entry = {key, value};
      ++count_;
    }
    return {entry.value, is_new};
  }

 private:
  struct KeyValue {
    uint64_t key;
    uint32_t value;
  };
  static constexpr KeyValue kEmpty = {UINT64_MAX, 0};

  /// The entry of a key, or the empty one where it belongs.
  KeyValue& find(uint64_t key) {
    const uint64_t mask = entries_.size() - 1;
    uint64_t hash = (key ^ key >> 32) * 0x9E3779B97F4A7C15;
    uint64_t at = (hash >> 32) & mask;
    while (entries_[at].key != UINT64_MAX && entries_[at].key != key) at = (at + 1) & mask;
    return entries_[at];
  }
  void grow() {
    std::vector<KeyValue> old(2 * entries_.size(), kEmpty);
    old.swap(entries_);
    for (const KeyValue& entry : old) {
      if (entry.key != UINT64_MAX) find(entry.key) = entry;
    }
  }

  std::vector<KeyValue> entries_;
  size_t count_ = 0;
};

}  // namespace mscclc::mscclpp
