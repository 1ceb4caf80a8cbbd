#include "passes/prove/model/clocks.h"

#include <algorithm>
#include <cstdlib>
#include <new>

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
MSCCLC_WIDE uint32_t compare(const uint32_t* a, const uint32_t* b) {
  uint32_t less = 0, more = 0;
  for (uint32_t i = 0; i < ClockPage::kColumns; ++i) {
    less |= a[i] < b[i] ? 1u : 0u;
    more |= a[i] > b[i] ? 2u : 0u;
  }
  return less | more;
}

/// to[i] = max(to[i], from[i])
MSCCLC_WIDE void raise_all(uint32_t* to, const uint32_t* from) {
  for (uint32_t i = 0; i < ClockPage::kColumns; ++i) to[i] = to[i] > from[i] ? to[i] : from[i];
}

void drop(ClockPage* page) {
  if (page != nullptr && --page->holders == 0) delete page;
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

void Row::own(uint32_t width) {
  if (data_ && data_->holders == 1) return;
  const uint32_t pages = (width + ClockPage::kColumns - 1) / ClockPage::kColumns;
  auto* fresh = static_cast<Data*>(std::malloc(sizeof(Data) + pages * sizeof(ClockPage*)));
  if (fresh == nullptr) throw std::bad_alloc();
  fresh->holders = 1;
  fresh->page_count = pages;
  for (uint32_t i = 0; i < pages; ++i) {
    fresh->pages[i] = data_ ? data_->pages[i] : nullptr;
    if (fresh->pages[i]) ++fresh->pages[i]->holders;
  }
  if (data_) --data_->holders;
  data_ = fresh;
}

ClockPage& Row::own_page(uint32_t page) {
  ClockPage*& p = data_->pages[page];
  if (p == nullptr) {
    p = new ClockPage;
  } else if (p->holders > 1) {
    auto* fresh = new ClockPage(*p);
    fresh->holders = 1;
    drop(std::exchange(p, fresh));
  }
  return *p;
}

void Row::join(const Row& o, uint32_t width) {
  if (!o.data_ || same(o)) return;
  if (!data_) {
    *this = o;
    return;
  }
  for (uint32_t i = 0; i < o.data_->page_count; ++i) {
    ClockPage* theirs = o.data_->pages[i];
    const ClockPage* mine = data_->pages[i];
    if (theirs == nullptr || theirs == mine) continue;
    const uint32_t difference = mine ? compare(mine->counts, theirs->counts) : 1;
    if (difference == 0) {  // learnt on two ways: one page will do
      keep_one(data_->pages[i], o.data_->pages[i]);
      continue;
    }
    if ((difference & 1) == 0) continue;
    own(width);
    if (difference == 1) {  // they know all of it
      ++theirs->holders;
      drop(std::exchange(data_->pages[i], theirs));
    } else {
      raise_all(own_page(i).counts, theirs->counts);
    }
  }
}

void Row::raise(uint32_t p, uint32_t count, uint32_t width) {
  if ((*this)[p] >= count) return;
  own(width);
  own_page(p / ClockPage::kColumns).counts[p % ClockPage::kColumns] = count;
}

PagePool::~PagePool() {
  for (const auto& [hash, page] : pages_) drop(page);
}

ClockPage* PagePool::page_like(ClockPage* page) {
  uint64_t hash = 0;
  for (const uint32_t count : page->counts) hash = (hash ^ count) * 0x9e3779b97f4a7c15u;
  const auto [begin, end] = pages_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    if (std::ranges::equal(known->second->counts, page->counts)) return known->second;
  }
  pages_.emplace(hash, page);
  ++page->holders;
  return page;
}

void Row::share_pages(PagePool& pool) {
  if (data_ == nullptr || data_->holders > 1) return;
  for (uint32_t i = 0; i < data_->page_count; ++i) {
    if (data_->pages[i] == nullptr) continue;
    ClockPage* shared = pool.page_like(data_->pages[i]);
    ++shared->holders;
    drop(std::exchange(data_->pages[i], shared));
  }
}

Row Row::rotated(uint32_t by, uint32_t width) const {
  Row result;
  if (data_ == nullptr) return result;
  result.own(width);
  if (by % ClockPage::kColumns == 0 && width % ClockPage::kColumns == 0) {
    const uint32_t pages = data_->page_count, first = by / ClockPage::kColumns;
    for (uint32_t i = 0; i < pages; ++i) {
      ClockPage* const page = data_->pages[i];
      if (page != nullptr) ++page->holders;
      result.data_->pages[i + first < pages ? i + first : i + first - pages] = page;
    }
    return result;
  }
  for (uint32_t i = 0; i < data_->page_count; ++i) {
    if (data_->pages[i] == nullptr) continue;
    const uint32_t begin = i * ClockPage::kColumns;
    const uint32_t end = std::min(begin + ClockPage::kColumns, width);
    for (uint32_t p = begin; p < end; ++p) {
      const uint32_t count = data_->pages[i]->counts[p - begin];
      if (count == 0) continue;
      const uint32_t to = p + by < width ? p + by : p + by - width;
      result.own_page(to / ClockPage::kColumns).counts[to % ClockPage::kColumns] = count;
    }
  }
  return result;
}

}  // namespace mscclc::proof

#undef MSCCLC_WIDE
