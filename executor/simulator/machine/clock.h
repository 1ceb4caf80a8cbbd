// What a process of an adversarial run knows: how many ops of each process are over for it.
//
// A world has tens of thousands of processes, and a clock is kept with each of them, with each late
// access and with each signal on its way. Most know nearly the same, so clocks are cut into pages
// that they share until one of them changes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mscclc {

class Clock {
 public:
  Clock() = default;  ///< knows of nothing
  void join(const Clock& other) {
    if (pages_.size() < other.pages_.size()) pages_.resize(other.pages_.size());
    for (size_t i = 0; i < other.pages_.size(); ++i) join_page(pages_[i], other.pages_[i]);
  }
  /// The next op of `process` begins; returns its number, from 1.
  uint32_t tick(uint32_t process) {
    if (pages_.size() <= process / kPage) pages_.resize(process / kPage + 1);
    return ++own(pages_[process / kPage])[process % kPage];
  }
  bool knows(uint32_t process, uint32_t count) const {
    if (process / kPage >= pages_.size()) return false;
    const PagePointer& page = pages_[process / kPage];
    return page != nullptr && (*page)[process % kPage] >= count;
  }
  /// How many of its pages no other clock shares: the memory that it alone takes.
  size_t own_pages() const {
    return static_cast<size_t>(std::ranges::count(pages_, 1, &PagePointer::use_count));
  }

  static constexpr uint32_t kPage = 64;  ///< processes in a page

 private:
  using Page = std::array<uint32_t, kPage>;
  using PagePointer = std::shared_ptr<Page>;  ///< nullptr: all are 0

  static Page& own(PagePointer& page) {
    if (page == nullptr) {
      page = std::make_shared<Page>();
    } else if (page.use_count() > 1) {
      page = std::make_shared<Page>(*page);
    }
    return *page;
  }
  static void join_page(PagePointer& page, const PagePointer& other) {
    if (other == nullptr || other == page) return;
    bool older = false, newer = false;
    for (uint32_t i = 0; page != nullptr && i < kPage; ++i) {
      older |= (*page)[i] < (*other)[i];
      newer |= (*page)[i] > (*other)[i];
    }
    if (page == nullptr || (older && !newer)) {
      page = other;
    } else if (older) {
      Page& mine = own(page);
      for (uint32_t i = 0; i < kPage; ++i) mine[i] = std::max(mine[i], (*other)[i]);
    }
  }

  std::vector<PagePointer> pages_;
};

}  // namespace mscclc
