// Vector clocks as immutable, shared rows. Row[p] says how many ops of process p are known to be
// over. A row changes only where processes meet, and what is told is the row itself, so telling
// costs nothing; joining copies a row only if somebody else still holds it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace mscclc::proof {

/// to[i] = max(a[i], b[i]). Most of a large proof's time goes by here.
void latest(uint32_t* to, const uint32_t* a, const uint32_t* b, uint32_t width);

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
    if (data_ && --data_->holders == 0) std::free(data_);
  }

  uint32_t operator[](uint32_t process) const { return data_ ? counts()[process] : 0; }
  bool same(const Row& o) const { return data_ == o.data_; }

  /// Learns all that `o` knows.
  void join(const Row& o, uint32_t width) {
    if (!o.data_ || same(o)) return;
    if (!data_) {
      *this = o;
    } else if (data_->holders == 1) {
      latest(counts(), counts(), o.counts(), width);
    } else {
      Data* fresh = allocate(width);
      latest(counts_of(fresh), counts(), o.counts(), width);
      --data_->holders;
      data_ = fresh;
    }
  }
  /// Learns that process `p` has done `count` ops.
  void raise(uint32_t p, uint32_t count, uint32_t width) {
    if ((*this)[p] >= count) return;
    own(width);
    counts()[p] = count;
  }

 private:
  struct Data {
    uint32_t holders;
  };
  static uint32_t* counts_of(Data* data) { return reinterpret_cast<uint32_t*>(data + 1); }
  uint32_t* counts() const { return counts_of(data_); }
  static Data* allocate(uint32_t width) {
    auto* fresh = static_cast<Data*>(std::malloc(sizeof(Data) + width * sizeof(uint32_t)));
    if (fresh == nullptr) throw std::bad_alloc();
    fresh->holders = 1;
    return fresh;
  }
  /// Makes the row this holder's alone.
  void own(uint32_t width) {
    if (data_ && data_->holders == 1) return;
    Data* fresh = allocate(width);
    uint32_t* to = counts_of(fresh);
    if (data_) {
      std::copy_n(counts(), width, to);
      --data_->holders;
    } else {
      std::fill_n(to, width, 0u);
    }
    data_ = fresh;
  }

  Data* data_ = nullptr;
};

/// What a process knows of the others. `full`: their stores are visible here too. `loads`: their
/// loads have returned, so that what they have read may be overwritten. `loads` covers `full`.
struct Knowledge {
  Row full, loads;
};

/// What a signal, release, packet or proxy tells: knowledge, and how far the teller itself has
/// come.
struct News {
  Knowledge knowledge;
  uint32_t process = 0xffffffffu;
  uint32_t full = 0, loads = 0;  ///< ops of `process` whose stores are visible, loads have returned
};

inline bool same(const News& a, const News& b) {
  return a.process == b.process && a.full == b.full && a.loads == b.loads &&
         a.knowledge.full.same(b.knowledge.full) && a.knowledge.loads.same(b.knowledge.loads);
}

/// Does the news say that op `time` of `process` is over: its stores visible, or its loads
/// returned?
inline bool knows(const News& news, uint32_t process, uint32_t time, bool store) {
  const Row& row = store ? news.knowledge.full : news.knowledge.loads;
  return row[process] >= time ||
         (process == news.process && (store ? news.full : news.loads) >= time);
}

inline void learn(Knowledge& knowledge, const News& news, uint32_t width) {
  const bool alike = knowledge.full.same(knowledge.loads) &&
                     news.knowledge.full.same(news.knowledge.loads) && news.full == news.loads;
  knowledge.full.join(news.knowledge.full, width);
  if (news.process != 0xffffffffu) knowledge.full.raise(news.process, news.full, width);
  if (alike) {
    knowledge.loads = knowledge.full;
    return;
  }
  knowledge.loads.join(news.knowledge.loads, width);
  if (news.process != 0xffffffffu) knowledge.loads.raise(news.process, news.loads, width);
}

}  // namespace mscclc::proof
