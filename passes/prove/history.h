// What has been done to each chunk, as far as a later access may still conflict with it: stores
// that stand, loads since. Records live in one arena; a store that covers others takes their place.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/prove/clocks.h"
#include "passes/prove/extent.h"
#include "passes/prove/finding.h"

namespace mscclc::proof {

/// Packets of one store to a slot.
struct Packets {
  News news;              ///< what their arrival tells
  uint32_t node = kNone;  ///< see PacketChains
  bool observed = false;  ///< somebody has waited for them
};

struct Record {
  Event event = {};
  Extent extent = {};
  uint32_t position = 0;  ///< which chunk of its operands this was
  bool write = false;
  uint32_t packets = kNone;  ///< in History, of a store of packets
  uint32_t next = kNone;
};

class History {
 public:
  explicit History(uint64_t chunks) : heads_(chunks, kNone) {}

  uint32_t head(uint64_t chunk) const { return heads_[chunk]; }
  const Record& record(uint32_t i) const { return records_[i]; }
  Packets& packets(const Record& record) { return packets_[record.packets]; }

  /// Adds an access that is ordered behind all that conflict with it, and forgets what it covers:
  /// a store everything within its extent, a load older loads of its process there.
  void add(uint64_t chunk, const Record& access) {
    uint32_t* link = &heads_[chunk];
    while (*link != kNone) {
      Record& old = records_[*link];
      const bool covered =
          access.extent.covers(old.extent) &&
          (access.write ||
           (!old.write && old.event.process == access.event.process && !old.extent.whole()) ||
           (!old.write && old.event.process == access.event.process && access.extent.whole()));
      if (covered) {
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

/// Which packets were computed from which: the chains along which a store that depends on a value
/// cannot overtake the loads that gave it.
class PacketChains {
 public:
  /// Packets that `event` made as chunk `position` of its operands, from the packets `parents`.
  uint32_t add(const Event& event, uint32_t position, const std::vector<uint32_t>& parents) {
    nodes_.push_back({event, position, static_cast<uint32_t>(parents_.size()),
                      static_cast<uint32_t>(parents.size())});
    parents_.insert(parents_.end(), parents.begin(), parents.end());
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  /// Do packets in `from`, or those that they were made of, come from `event` at `position`?
  bool reaches(const std::vector<uint32_t>& from, const Event& event, uint32_t position) const;

 private:
  struct Node {
    Event event;
    uint32_t position, first, count;
  };
  std::vector<Node> nodes_;
  std::vector<uint32_t> parents_;
};

}  // namespace mscclc::proof
