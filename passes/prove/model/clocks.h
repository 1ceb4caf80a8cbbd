// Vector clocks as immutable, shared rows. Row[p] says how many ops of process p are known to be
// over. A row changes only where processes meet, and what is published is the row itself, so
// publishing costs nothing; joining copies only rows that others still hold.
//
// A row is a list of pages. In a large program most rows know of few processes, or the same of most
// as others do: pages are shared, too, and what no process has heard of has none. Who has learned
// the same on different ways soon holds the same pages (PagePool), so that most joins compare no
// more than pointers.
//
// Ports have no column: thread blocks learn what they have done at their waits and flushes, and
// what knows of the block then knows of the port, too (arrivals.h).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/support/precondition.h"

namespace mscclc::proof {

/// How the rows of a run are laid out: so many columns, so many of them on a page. Where ranks
/// stand for others, those of one turn fill whole pages.
struct ClockLayout {
  static constexpr uint32_t kLeastBits = 3, kMaxBits = 7;
  uint32_t width = 0;
  uint32_t page_bits = kMaxBits;  ///< a page has 2^page_bits columns

  uint32_t columns() const { return 1u << page_bits; }
  uint32_t pages() const { return (width + columns() - 1) >> page_bits; }
};

/// A run of columns. Rows that know the same of these share them.
struct ClockPage {
  uint32_t holders;
  bool pooled;  ///< a PagePool has seen this content
  uint32_t counts[];
};

/// Pages that were met last, of which there is to be one for each content.
class PagePool {
 public:
  explicit PagePool(const ClockLayout& layout) : columns_(layout.columns()) {}
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  ~PagePool();

  /// The pool's page with the content of `page`: `page` itself if it knows none.
  ClockPage* page_like(ClockPage* page);

 private:
  static constexpr uint32_t kPlaceBits = 12;
  const uint32_t columns_;         ///< of a page
  std::vector<ClockPage*> pages_;  ///< by hash; of two at one place the newer one
};

/// A shared row of counts; all processes of a run have rows of one layout. Null: all zero. A row
/// and what becomes of it when ranks turn have one list of pages: each begins somewhere in it.
class Row {
 public:
  Row() = default;
  Row(const Row& o) : data_(o.data_), first_(o.first_) {
    if (data_) ++data_->holders;
  }
  Row(Row&& o) noexcept : data_(std::exchange(o.data_, nullptr)), first_(o.first_) {}
  Row& operator=(Row o) noexcept {
    std::swap(data_, o.data_);
    std::swap(first_, o.first_);
    return *this;
  }
  ~Row() {
    if (data_ && --data_->holders == 0) free(data_);
  }

  uint32_t operator[](uint32_t process) const {
    if (!data_) return 0;
    const ClockPage* page = data_->pages[place(process >> data_->page_bits)];
    return page ? page->counts[process & ((1u << data_->page_bits) - 1)] : 0;
  }
  bool same(const Row& o) const { return data_ == o.data_ && (!data_ || first_ == o.first_); }

  /// Stands for the row: what is the same has one number.
  uint64_t number() const {
    return data_ ? reinterpret_cast<uintptr_t>(data_) * 0x9e3779b97f4a7c15u + first_ : 0;
  }

  /// Learns all that others know.
  void join(std::span<const Row> others, const ClockLayout& layout);
  void join(const Row& o, const ClockLayout& layout) { join(std::span(&o, 1), layout); }
  /// Learns that process `p` has done `count` ops.
  void raise(uint32_t p, uint32_t count, const ClockLayout& layout);
  /// Holds pages of the pool where that has such: rows that know the same hold the same pages.
  void share_pages(PagePool& pool);
  /// The row whose column (p + by) % width is this one's p. REQUIRES: both are whole pages, and by
  /// < width.
  Row rotated(uint32_t by, const ClockLayout& layout) const;

 private:
  struct Data {
    uint32_t holders, page_count, page_bits;
    bool fresh;          ///< some pages may not be pooled
    ClockPage* pages[];  ///< null: all zero
  };
  static void free(Data* data);
  /// Where page `page` of this row is in the list. REQUIRES: there is a list.
  uint32_t place(uint32_t page) const {
    precondition(data_ != nullptr);
    const uint32_t at = page + first_;
    return at < data_->page_count ? at : at - data_->page_count;
  }
  /// Makes the list of pages this holder's alone.
  void own(const ClockLayout& layout);
  /// A page of the list, this holder's alone. REQUIRES: own().
  ClockPage& own_page(uint32_t place);
  void join_page(const Row& o, uint32_t page, const ClockLayout& layout);

  Data* data_ = nullptr;
  uint32_t first_ = 0;  ///< where in the list the first page is
};

/// What a signal, release, packet or proxy passes on: what its sender knows, and how far it has
/// come.
struct News {
  Row known = {};
  uint32_t process = 0xffffffffu;
  uint32_t done = 0;            ///< ops of `process` that are over
  uint32_t port = 0xffffffffu;  ///< a process of a port
  uint32_t port_done = 0;       ///< ops of `port` that are over
  bool port_alone = false;      ///< only the last of those
};

inline bool same(const News& a, const News& b) {
  return a.process == b.process && a.done == b.done && a.port == b.port &&
         a.port_done == b.port_done && a.port_alone == b.port_alone && a.known.same(b.known);
}

/// What the news say of processes with a column.
inline void learn(Row& row, const News& news, const ClockLayout& layout) {
  row.join(news.known, layout);
  if (news.process != 0xffffffffu) row.raise(news.process, news.done, layout);
}

}  // namespace mscclc::proof
