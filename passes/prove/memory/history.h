// What has been done to each chunk, as far as a later access may still conflict with it: stores
// that stand, loads since. Records live in one arena; a store that covers others takes their place.
//
// Stores and loads are kept apart, as loads conflict with stores only; and of the loads that a
// process makes of the same bytes only the newest is in the list, and leads to the older ones. So
// to load a chunk for the n-th time costs no walk over n loads.
//
// What it has covered lies beneath it as long as it stands: another store of the same bits may be
// in no order with it (lemma O7), and must then be ordered after what it did away with.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "passes/prove/model/clocks.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/growing.h"
#include "passes/prove/model/value_chains.h"

namespace mscclc::proof {

/// Packets of one store to a slot.
struct Packets {
  /// What their arrival shows. The port of packets that a port has sent is its reader.
  News news;
  bool observed = false;  ///< some process has waited for them
  /// Others of this call may be seen in their place (lemma O15): no poll shows that these have
  /// come.
  bool several = false;
};

/// What a later access looks at first stands first: the records of a large plan are brought from
/// memory, line by line.
struct Record {
  Event event = {};
  Extent extent = {};
  uint32_t next = kNone;     ///< in a list
  uint32_t older = kNone;    ///< of a load: the one before it of the same process and extent
  uint32_t packets = kNone;  ///< in History, of a store of packets
  Position position = {};
  bool write = false;
  bool pinned = false;       ///< a store that a later one of the same value is in no order with
  uint32_t beneath = kNone;  ///< of a store: the list of what it covers
  uint64_t bits = 0;         ///< of a store: stands for what it stored; 0: not known
  uint32_t node = kNone;     ///< of a store, in ValueChains
  uint32_t node_turns = 0;   ///< and how far that is turned
  uint32_t round = 0;        ///< of its pipeline
  uint32_t at = 0;           ///< how many records the run had made before
};

class History {
 public:
  explicit History(uint64_t chunks) : chunks_(chunks) {}

  /// The stores to a chunk, newest first; kNone: there are none.
  uint32_t stores(uint64_t chunk) const { return chunks_[chunk].stores; }
  /// Its loads, a list for any_of() and each_of().
  uint32_t loads(uint64_t chunk) const { return chunks_[chunk].loads; }
  const Record& record(uint32_t i) const { return records_[i]; }
  void pin(uint32_t i, bool pinned) {
    if (records_[i].pinned != pinned) records_[i].pinned = pinned;
  }
  /// Another store may be seen in place of this one: readers know nothing of its value's origin.
  void forget_node(uint32_t i) { records_[i].node = kNone; }
  Packets& packets(const Record& record) { return packets_[record.packets]; }

  /// Is test(i) true of a record of a list, be it of loads, of stores, or of what lies beneath?
  /// Asks no more after that.
  template <class Test>
  bool any_of(uint32_t list, Test&& test) const {
    for (; list != kNone; list = records_[list].next) {
      for (uint32_t i = list; i != kNone; i = records_[i].older) {
        if (test(i)) return true;
      }
    }
    return false;
  }
  /// Calls visit(i) for all records of a list.
  template <class Visit>
  void each_of(uint32_t list, Visit&& visit) const {
    any_of(list, [&](uint32_t i) { return visit(i), false; });
  }

  /// Adds a store that is ordered after all that conflict with it, and takes what it covers and is
  /// not pinned out of the lists.
  void add_store(uint64_t chunk, const Record& store) {
    const uint32_t added = take();
    records_[added] = store;
    cover(records_[added], chunks_[chunk].stores);
    cover(records_[added], chunks_[chunk].loads);
    push(chunks_[chunk].stores, added);
    each_of(records_[added].next, [&](uint32_t i) { note_if_unordered(i, added); });
  }
  /// Are two stores of a chunk in no order? REQUIRES: the second was added later.
  bool in_no_order(uint32_t first, uint32_t second) const {
    return unordered_.contains({records_[first].at, records_[second].at});
  }

  /// If nothing but a store by this process at this time is left of what was done to a chunk, that
  /// store is the event's now.
  bool renew(uint64_t chunk, const Event& event) {
    const Chunk& lists = chunks_[chunk];
    if (lists.stores == kNone || lists.loads != kNone) return false;
    Record& store = records_[lists.stores];
    if (store.next != kNone || store.event.process != event.process) return false;
    if (store.event.time != event.time || !store.extent.whole()) return false;
    store.event = event;
    return true;
  }

  /// Adds a load that is ordered after all stores that conflict with it. Of the older ones of its
  /// process that it covers it does away with the newest for which stands(load) says that whatever
  /// is ordered after this one is ordered after them: those up to the first which is not.
  template <class Stands>
  void add_load(uint64_t chunk, const Record& load, Stands&& stands) {
    const uint32_t added = take();
    records_[added] = load;
    for (uint32_t* link = &chunks_[chunk].loads; *link != kNone;) {
      const Record& newest = records_[*link];
      if (newest.event.process != load.event.process || !load.extent.covers(newest.extent)) {
        link = &records_[*link].next;
        continue;
      }
      uint32_t left = *link;
      const uint32_t next = newest.next;
      while (left != kNone && stands(records_[left])) {
        release(std::exchange(left, records_[left].older));
      }
      const bool alike = left != kNone && records_[left].extent == load.extent;
      if (alike) records_[added].older = left;
      *link = left == kNone || alike ? next : left;
      if (left == kNone || alike) continue;
      records_[left].next = next;
      link = &records_[left].next;
    }
    push(chunks_[chunk].loads, added);
  }

  /// Room for what a store of packets brings.
  uint32_t add_packets(Packets packets) {
    if (free_packets_.empty()) {
      packets_.add(std::move(packets));
      return static_cast<uint32_t>(packets_.size() - 1);
    }
    const uint32_t i = free_packets_.back();
    free_packets_.pop_back();
    packets_[i] = std::move(packets);
    return i;
  }

 private:
  struct Chunk {
    uint32_t stores = kNone, loads = kNone;
  };

  void push(uint32_t& list, uint32_t added) {
    Record& record = records_[added];
    record.at = made_++;
    record.next = std::exchange(list, added);
  }

  /// A store whose check has left `i` pinned is in no order with it.
  void note_if_unordered(uint32_t i, uint32_t added) {
    const Record &old = records_[i], &store = records_[added];
    if (!old.pinned || old.bits != store.bits || !old.extent.may_touch(store.extent)) return;
    unordered_.emplace(old.at, store.at);
  }

  /// Takes what a store covers out of a list. Loads of one extent go together.
  void cover(Record& store, uint32_t& list) {
    for (uint32_t* link = &list; *link != kNone;) {
      const uint32_t i = *link;
      if (!store.extent.covers(records_[i].extent) || records_[i].pinned) {
        link = &records_[i].next;
        continue;
      }
      *link = records_[i].next;
      put_beneath(store, i);
    }
  }

  /// Record `i` is covered by a store. If that is one of the same bits, what lay beneath it does so
  /// now; else whatever is ordered after it is ordered after that. What lies beneath a
  /// store that is no packets and whose bits are not known is never needed.
  void put_beneath(Record& store, uint32_t i) {
    const bool same = records_[i].write && records_[i].bits != 0 && records_[i].bits == store.bits;
    const uint32_t below = std::exchange(records_[i].beneath, kNone);
    if (same) {
      append(store.beneath, below);
      return release(i);
    }
    release_all(below);
    if (store.bits == 0 && store.packets == kNone) {
      records_[i].next = kNone;
      return release_all(i);
    }
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
      records_.add();
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
    while (list != kNone) {
      uint32_t i = std::exchange(list, records_[list].next);
      while (i != kNone) release(std::exchange(i, records_[i].older));
    }
  }
  void drop_packets(Record& record) {
    if (record.packets == kNone) return;
    packets_[record.packets] = Packets{};
    free_packets_.push_back(std::exchange(record.packets, kNone));
  }

  std::vector<Chunk> chunks_;
  Growing<Record> records_;
  uint32_t free_ = kNone, made_ = 0;
  Growing<Packets> packets_;
  std::vector<uint32_t> free_packets_;
  std::set<std::pair<uint32_t, uint32_t>> unordered_;  ///< stores of the same bits, by Record::at
};

/// The op that wrote these bytes of a chunk last, of those that stand; none: the caller has, or
/// what is there was never written.
inline Event last_store(const History& history, uint64_t chunk, const Extent& extent) {
  for (uint32_t i = history.stores(chunk); i != kNone; i = history.record(i).next) {
    const Record& record = history.record(i);
    if (record.event.op == kNone) continue;
    if (record.extent.may_touch(extent)) return record.event;
  }
  return {};
}

}  // namespace mscclc::proof
