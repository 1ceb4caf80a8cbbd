// Vector clocks as immutable, shared rows. Row[p] says how many ops of process p are known to be
// over. A row changes only where processes meet, and what is told is the row itself, so telling
// costs nothing; joining copies only what somebody else still holds.
//
// A row is a list of pages. In a large program most rows know of few processes, or the same of most
// as others do: pages are shared, too, and what no process has heard of has none. Ranks that have
// learnt the same on different ways share its pages from the end of a call on (PagePool).
//
// Ports have no column: what they have done, thread blocks find out at their waits and flushes, and
// whoever knows of the block then knows of the port, too (arrivals.h).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace mscclc::proof {

/// A run of columns. Rows that know the same of these share them.
struct ClockPage {
  static constexpr uint32_t kColumns = 128;
  uint32_t holders = 1;
  uint32_t counts[kColumns] = {};
};

/// Pages of which there is to be one for each content.
class PagePool {
 public:
  PagePool() = default;
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  ~PagePool();

  /// The pool's page with the content of `page`: `page` itself if it is the first.
  ClockPage* page_like(ClockPage* page);

 private:
  std::unordered_multimap<uint64_t, ClockPage*> pages_;  ///< by hash
};

/// A shared row of `width` counts; all processes of a run have rows of one width. Null: all zero.
class Row {
 public:
  Row() = default;
  Row(const Row& o) : data_(o.data_) {
    if (data_) ++data_->holders;
  }
  Row(Row&& o) noexcept : data_(std::exchange(o.data_, nullptr)) {}
  Row& operator=(Row o) noexcept {
    std::swap(data_, o.data_);
    return *this;
  }
  ~Row() {
    if (data_ && --data_->holders == 0) free(data_);
  }

  uint32_t operator[](uint32_t process) const {
    if (!data_) return 0;
    const ClockPage* page = data_->pages[process / ClockPage::kColumns];
    return page ? page->counts[process % ClockPage::kColumns] : 0;
  }
  bool same(const Row& o) const { return data_ == o.data_; }

  /// Learns all that `o` knows.
  void join(const Row& o, uint32_t width);
  /// Learns that process `p` has done `count` ops.
  void raise(uint32_t p, uint32_t count, uint32_t width);
  /// Holds pages of the pool where it has such: rows that know the same hold the same pages.
  void share_pages(PagePool& pool);
  /// The row whose column (p + by) % width is this one's p. It shares all pages with this one if
  /// both numbers are whole pages. REQUIRES: by < width.
  Row rotated(uint32_t by, uint32_t width) const;

 private:
  struct Data {
    uint32_t holders, page_count;
    ClockPage* pages[];  ///< null: all zero
  };
  static void free(Data* data);
  /// Makes the list of pages this holder's alone.
  void own(uint32_t width);
  /// The page of a column, this holder's alone. REQUIRES: own().
  ClockPage& own_page(uint32_t page);

  Data* data_ = nullptr;
};

/// What a signal, release, packet or proxy passes on: what its sender knows, and how far it has
/// come.
struct News {
  Row known = {};
  uint32_t process = 0xffffffffu;
  uint32_t done = 0;            ///< ops of `process` that are over
  uint32_t port = 0xffffffffu;  ///< a process of a port
  uint32_t port_done = 0;       ///< ops of `port` that are over
};

inline bool same(const News& a, const News& b) {
  return a.process == b.process && a.done == b.done && a.port == b.port &&
         a.port_done == b.port_done && a.known.same(b.known);
}

/// What the news tell of processes with a column.
inline void learn(Row& row, const News& news, uint32_t width) {
  row.join(news.known, width);
  if (news.process != 0xffffffffu) row.raise(news.process, news.done, width);
}

}  // namespace mscclc::proof
