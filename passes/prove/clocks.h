// Vector clocks as immutable, shared rows. Row[p] says how many ops of process p are known to be
// over. A row changes only where processes meet, and what is told is the row itself, so telling
// costs nothing; joining copies a row only if somebody else still holds it.
//
// Ports have no column: what they have done, thread blocks find out at their waits and flushes, and
// whoever knows of the block then knows of the port, too (arrivals.h).
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

  /// The row whose column (p + by) % width is this one's p. REQUIRES: by < width.
  Row rotated(uint32_t by, uint32_t width) const {
    Row result;
    if (data_ == nullptr) return result;
    result.data_ = allocate(width);
    std::copy_n(counts(), width - by, result.counts() + by);
    std::copy_n(counts() + (width - by), by, result.counts());
    return result;
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

/// What a signal, release, packet or proxy tells: what the teller knows, and how far it has come.
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
