// What has been done to each chunk, as far as a later access may still conflict with it: stores
// that stand, loads since. Records live in one arena; a store that covers others takes their place.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "passes/prove/clocks.h"
#include "passes/prove/extent.h"
#include "passes/prove/finding.h"

namespace mscclc::proof {

/// Packets of one store to a slot.
struct Packets {
  News news;              ///< what their arrival tells
  bool observed = false;  ///< somebody has waited for them
};

struct Record {
  Event event = {};
  Extent extent = {};
  uint32_t position = 0;  ///< which chunk of its operands this was
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

/// Which stored values were computed from which: the chains along which a store that depends on a
/// value cannot overtake the loads that gave it.
class ValueChains {
 public:
  /// What `event` of `rank` stores as chunk `position` of its operands, made from `parents`.
  uint32_t add(const Event& event, uint32_t rank, uint32_t position,
               const std::vector<uint32_t>& parents) {
    nodes_.push_back({event, rank, position, static_cast<uint32_t>(parents_.size()),
                      static_cast<uint32_t>(parents.size())});
    parents_.insert(parents_.end(), parents.begin(), parents.end());
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  /// Was the load of `event` of `rank` at `position` over before any of the values in `from` could
  /// be made: do they, or those that they were made of, come from that op, or from a later call of
  /// that rank?
  bool follow(std::span<const uint32_t> from, const Event& event, uint32_t rank, uint32_t position);

 private:
  struct Node {
    Event event;
    uint32_t rank, position, first, count;
  };
  std::vector<Node> nodes_;
  std::vector<uint32_t> parents_;
  std::vector<uint32_t> seen_;  ///< by node: the last search that has been there
  std::vector<uint32_t> open_;  ///< of the search at hand
  uint32_t search_ = 0;
};

}  // namespace mscclc::proof
