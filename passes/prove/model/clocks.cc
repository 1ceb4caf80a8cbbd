#include "passes/prove/model/clocks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ir/support/precondition.h"

namespace mscclc::proof {
namespace {

// The compiler makes several versions of these loops and picks one for the machine at load time:
// without them they go element by element. Not under sanitizers, which start too late for that.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(MSCCLC_ASAN) && \
    !defined(MSCCLC_TSAN)
#define MSCCLC_WIDE __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define MSCCLC_WIDE
#endif

/// Bit 0: some count of `a` is less than that of `b`; bit 1: some is more.
MSCCLC_WIDE uint32_t compare(const uint32_t* a, const uint32_t* b, uint32_t columns) {
  uint32_t less = 0, more = 0;
  for (uint32_t i = 0; i < columns; ++i) {
    less |= a[i] < b[i] ? 1u : 0u;
    more |= a[i] > b[i] ? 2u : 0u;
  }
  return less | more;
}

/// to[i] = max(to[i], from[i])
MSCCLC_WIDE void raise_all(uint32_t* to, const uint32_t* from, uint32_t columns) {
  for (uint32_t i = 0; i < columns; ++i) to[i] = to[i] > from[i] ? to[i] : from[i];
}

/// A number for the content of a page, the same for the same.
MSCCLC_WIDE uint32_t page_hash(const uint32_t* counts, uint32_t columns) {
  uint32_t hash = 0;
  for (uint32_t i = 0; i < columns; ++i) hash += counts[i] * ((i * 0x9e3779b9u) | 1u);
  return hash;
}

/// A page with the content of another, or zero.
ClockPage* new_page(uint32_t columns, const ClockPage* like) {
  const size_t bytes = columns * sizeof(uint32_t);
  auto* page = static_cast<ClockPage*>(std::malloc(sizeof(ClockPage) + bytes));
  if (page == nullptr) throw std::bad_alloc();
  page->holders = 1;
  page->pooled = false;
  if (like == nullptr) {
    std::memset(page->counts, 0, bytes);
  } else {
    std::memcpy(page->counts, like->counts, bytes);
  }
  return page;
}

void drop(ClockPage* page) {
  if (page != nullptr && --page->holders == 0) std::free(page);
}

/// Of two pages with the same content keeps the one that more rows hold, to which all will come.
void keep_one(ClockPage*& a, ClockPage*& b) {
  ClockPage*& rarer = a->holders < b->holders ? a : b;
  ClockPage* const kept = a->holders < b->holders ? b : a;
  ++kept->holders;
  drop(std::exchange(rarer, kept));
}

}  // namespace

void Row::free(Data* data) {
  for (uint32_t i = 0; i < data->page_count; ++i) drop(data->pages[i]);
  std::free(data);
}

void Row::own(const ClockLayout& layout) {
  if (data_ && data_->holders == 1) return;
  const uint32_t pages = layout.pages();
  auto* fresh = static_cast<Data*>(std::malloc(sizeof(Data) + pages * sizeof(ClockPage*)));
  if (fresh == nullptr) throw std::bad_alloc();
  fresh->holders = 1;
  fresh->page_count = pages;
  fresh->page_bits = layout.page_bits;
  fresh->fresh = data_ && data_->fresh;
  for (uint32_t i = 0; i < pages; ++i) {
    fresh->pages[i] = data_ ? data_->pages[i] : nullptr;
    if (fresh->pages[i]) ++fresh->pages[i]->holders;
  }
  if (data_) {
    --data_->holders;
  } else {
    first_ = 0;
  }
  data_ = fresh;
}

ClockPage& Row::own_page(uint32_t place) {
  ClockPage*& page = data_->pages[place];
  if (page == nullptr || page->holders > 1) {
    ClockPage* fresh = new_page(1u << data_->page_bits, page);
    drop(std::exchange(page, fresh));
  }
  page->pooled = false;  // what it holds is about to change
  data_->fresh = true;
  return *page;
}

/// Page by page: of one page most of the others hold the same.
void Row::join(std::span<const Row> others, const ClockLayout& layout) {
  if (!data_ && !others.empty()) {
    *this = others.front();
    others = others.subspan(1);
    if (!data_) return join(others, layout);
  }
  for (uint32_t page = 0; !others.empty() && page < layout.pages(); ++page) {
    const ClockPage* joined[4] = {data_->pages[place(page)]};  // some that are known to be in it
    uint32_t next = 0;
    for (const Row& o : others) {
      if (!o.data_) continue;
      const ClockPage* theirs = o.data_->pages[o.place(page)];
      if (std::ranges::find(joined, theirs) != std::end(joined)) continue;
      join_page(o, page, layout);
      joined[++next % 4] = theirs;
    }
  }
}

void Row::join_page(const Row& o, uint32_t page, const ClockLayout& layout) {
  const uint32_t here = place(page), there = o.place(page), columns = layout.columns();
  ClockPage* theirs = o.data_->pages[there];
  const ClockPage* mine = data_->pages[here];
  if (theirs == nullptr || theirs == mine) return;
  const uint32_t difference = mine ? compare(mine->counts, theirs->counts, columns) : 1;
  if (difference == 0) {  // learned on two ways: one page will do
    keep_one(data_->pages[here], o.data_->pages[there]);
    return;
  }
  if ((difference & 1) == 0) return;
  own(layout);
  if (difference == 1) {  // they know all of it
    ++theirs->holders;
    data_->fresh |= !theirs->pooled;
    drop(std::exchange(data_->pages[here], theirs));
  } else {
    raise_all(own_page(here).counts, theirs->counts, columns);
  }
}

void Row::raise(uint32_t p, uint32_t count, const ClockLayout& layout) {
  if ((*this)[p] >= count) return;
  own(layout);
  own_page(place(p >> layout.page_bits)).counts[p & (layout.columns() - 1)] = count;
}

PagePool::~PagePool() {
  for (ClockPage* page : pages_) drop(page);
}

ClockPage* PagePool::page_like(ClockPage* page) {
  if (pages_.empty()) pages_.resize(size_t{1} << kPlaceBits);
  const uint32_t hash = page_hash(page->counts, columns_) * 0x9e3779b9u;
  ClockPage*& known = pages_[hash >> (32 - kPlaceBits)];
  if (known != nullptr && std::equal(page->counts, page->counts + columns_, known->counts)) {
    return known;
  }
  page->pooled = true;
  ++page->holders;
  drop(std::exchange(known, page));
  return page;
}

void Row::share_pages(PagePool& pool) {
  if (data_ == nullptr || data_->holders > 1 || !data_->fresh) return;
  for (uint32_t i = 0; i < data_->page_count; ++i) {
    if (data_->pages[i] == nullptr || data_->pages[i]->pooled) continue;
    ClockPage* shared = pool.page_like(data_->pages[i]);
    ++shared->holders;
    drop(std::exchange(data_->pages[i], shared));
  }
  data_->fresh = false;
}

Row Row::rotated(uint32_t by, const ClockLayout& layout) const {
  precondition(by < layout.width && by % layout.columns() == 0 &&
               layout.width % layout.columns() == 0);
  Row result = *this;
  if (data_ != nullptr) result.first_ = place(data_->page_count - (by >> layout.page_bits));
  return result;
}

}  // namespace mscclc::proof
