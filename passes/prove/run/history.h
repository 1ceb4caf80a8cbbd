// What has been done to each chunk, as far as a later access may still conflict with it: stores
// that stand, loads since. Records live in one arena; a store that covers others takes their place.
//
// What it has covered lies beneath it as long as it stands: another store of the same bits may be
// in no order with it (lemma O7), and must then be ordered after what it did away with.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "passes/prove/model/clocks.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/value_chains.h"

namespace mscclc::proof {

/// Packets of one store to a slot.
struct Packets {
  News news;              ///< what their arrival shows
  bool observed = false;  ///< some process has waited for them
  bool again = false;     ///< the same were there: it cannot be seen that these have come
};

struct Record {
  Event event = {};
  Extent extent = {};
  Position position = {};
  bool write = false;
  bool pinned = false;       ///< a store that a later one of the same value is in no order with
  uint32_t packets = kNone;  ///< in History, of a store of packets
  uint32_t node = kNone;     ///< of a store, in ValueChains
  uint32_t round = 0;        ///< of its pipeline
  uint64_t bits = 0;         ///< of a store: stands for what it stored; 0: not known
  uint32_t beneath = kNone;  ///< of a store: the first record that it covers
  uint32_t next = kNone;
};

class History {
 public:
  explicit History(uint64_t chunks) : heads_(chunks, kNone) {}

  uint32_t head(uint64_t chunk) const { return heads_[chunk]; }
  const Record& record(uint32_t i) const { return records_[i]; }
  void pin(uint32_t i, bool pinned) { records_[i].pinned = pinned; }
  Packets& packets(const Record& record) { return packets_[record.packets]; }

  /// Adds an access that is ordered after all that conflict with it, and forgets what it covers:
  /// a store everything within its extent that is not pinned, a load the older loads of its process
  /// for which stands(load) says that whatever is ordered after this one is ordered after them.
  template <class Stands>
  void add(uint64_t chunk, const Record& access, Stands&& stands) {
    Record added = access;
    uint32_t* link = &heads_[chunk];
    while (*link != kNone) {
      const uint32_t i = *link;
      if (!forgets(access, records_[i], stands)) {
        link = &records_[i].next;
        continue;
      }
      *link = records_[i].next;
      if (access.write) {
        put_beneath(added, i);
      } else {
        release(i);
      }
    }
    const uint32_t fresh = take();
    records_[fresh] = added;
    records_[fresh].next = heads_[chunk];
    heads_[chunk] = fresh;
  }
  /// The same of a store.
  void add(uint64_t chunk, const Record& store) {
    add(chunk, store, [](const Record&) { return false; });
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
  template <class Stands>
  static bool forgets(const Record& access, const Record& old, Stands& stands) {
    if (!access.extent.covers(old.extent) || old.pinned) return false;
    if (access.write) return true;
    return !old.write && old.event.process == access.event.process && stands(old);
  }

  /// Record `i` is covered by a store. If that is one of the same bits, what lay beneath it does so
  /// now; else whatever is ordered after it is ordered after that.
  void put_beneath(Record& store, uint32_t i) {
    const bool same = records_[i].write && records_[i].bits != 0 && records_[i].bits == store.bits;
    const uint32_t below = std::exchange(records_[i].beneath, kNone);
    if (same) {
      append(store.beneath, below);
      return release(i);
    }
    release_all(below);
    records_[i].next = std::exchange(store.beneath, i);
  }

  /// Puts a list at the end of another, which has few records: what the store at hand alone has
  /// covered. The one that is put there may have grown with every store of a chain of copies.
  void append(uint32_t& few, uint32_t list) {
    uint32_t* end = &few;
    while (*end != kNone) end = &records_[*end].next;
    *end = list;
  }

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
    drop_packets(records_[i]);
    records_[i].next = free_;
    free_ = i;
  }
  void release_all(uint32_t list) {
    while (list != kNone) release(std::exchange(list, records_[list].next));
  }
  void drop_packets(Record& record) {
    if (record.packets == kNone) return;
    packets_[record.packets] = Packets{};
    free_packets_.push_back(std::exchange(record.packets, kNone));
  }

  std::vector<uint32_t> heads_;
  std::vector<Record> records_;
  uint32_t free_ = kNone;
  std::vector<Packets> packets_;
  std::vector<uint32_t> free_packets_;
};

}  // namespace mscclc::proof
