// What has been done to each chunk, as far as a later access may still conflict with it: stores
// that stand, loads since. Records live in one arena; a store that covers others takes their place.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "passes/prove/clocks.h"
#include "passes/prove/extent.h"
#include "passes/prove/finding.h"
#include "passes/prove/value_chains.h"

namespace mscclc::proof {

/// Packets of one store to a slot.
struct Packets {
  News news;              ///< what their arrival tells
  bool observed = false;  ///< somebody has waited for them
  bool again = false;     ///< the same were there: nobody can tell that these have come
};

struct Record {
  Event event = {};
  Extent extent = {};
  Position position = {};
  bool write = false;
  bool pinned = false;       ///< a store that a later one of the same value is in no order with
  uint32_t packets = kNone;  ///< in History, of a store of packets
  uint32_t node = kNone;     ///< of a store, in ValueChains
  uint32_t next = kNone;
};

class History {
 public:
  explicit History(uint64_t chunks) : heads_(chunks, kNone) {}

  uint32_t head(uint64_t chunk) const { return heads_[chunk]; }
  const Record& record(uint32_t i) const { return records_[i]; }
  void pin(uint32_t i, bool pinned) { records_[i].pinned = pinned; }
  Packets& packets(const Record& record) { return packets_[record.packets]; }

  /// Adds an access that is ordered behind all that conflict with it, and forgets what it covers:
  /// a store everything within its extent that is not pinned, a load older loads of its process.
  void add(uint64_t chunk, const Record& access) {
    uint32_t* link = &heads_[chunk];
    while (*link != kNone) {
      Record& old = records_[*link];
      const bool older = !old.write && old.event.process == access.event.process;
      if (access.extent.covers(old.extent) && !old.pinned && (access.write || older)) {
        const uint32_t gone = *link;
        *link = old.next;
        release(gone);
      } else {
        link = &old.next;
      }
    }
    const uint32_t fresh = take();
    records_[fresh] = access;
    records_[fresh].next = heads_[chunk];
    heads_[chunk] = fresh;
  }

  /// Room for what a store of packets brings.
  uint32_t add_packets(Packets packets) {
    if (free_packets_.empty()) {
      packets_.push_back(std::move(packets));
      return static_cast<uint32_t>(packets_.size() - 1);
    }
    const uint32_t i = free_packets_.back();
    free_packets_.pop_back();
    packets_[i] = std::move(packets);
    return i;
  }

 private:
  uint32_t take() {
    if (free_ == kNone) {
      records_.emplace_back();
      return static_cast<uint32_t>(records_.size() - 1);
    }
    const uint32_t i = free_;
    free_ = records_[i].next;
    return i;
  }
  void release(uint32_t i) {
    if (records_[i].packets != kNone) {
      packets_[records_[i].packets] = Packets{};
      free_packets_.push_back(records_[i].packets);
    }
    records_[i].next = free_;
    free_ = i;
  }

  std::vector<uint32_t> heads_;
  std::vector<Record> records_;
  uint32_t free_ = kNone;
  std::vector<Packets> packets_;
  std::vector<uint32_t> free_packets_;
};

}  // namespace mscclc::proof
