// Storage for what varies in length: runs of elements that ops and declarations refer to by the
// index of the first. Elements are added and changed, never removed.
//
// An arena is a list of segments. Only the first one ever moves, while it is small, so large arenas
// are never copied to grow, and several threads may add, each to segments of its own (Appender),
// while all of them read. A run is contiguous: one that does not fit into a segment begins the
// next.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace mscclc {

/// A run of elements in an arena.
struct Slice {
  uint32_t first = 0, count = 0;
};

template <class T>
class Arena {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  class Appender;

  Arena() = default;
  Arena(const Arena& from)
      : segments_(from.segments_), slots_(from.slots_), last_(from.last_), limit_(from.limit_) {
    for (uint32_t s = 0; s < slots_; ++s) {
      const Segment& old = from.segments_[s];
      if (old.capacity != 0) hold(s, old.capacity, {old.data, old.used});
    }
  }
  Arena(Arena&& from) noexcept { swap(from); }
  Arena& operator=(Arena from) noexcept {
    swap(from);
    return *this;
  }
  ~Arena() {
    for (const Segment& s : segments_) {
      if (s.capacity != 0) ::operator delete(s.data);
    }
  }
  void swap(Arena& other) noexcept {
    segments_.swap(other.segments_);
    std::swap(slots_, other.slots_);
    std::swap(last_, other.last_);
    std::swap(limit_, other.limit_);
  }

  const T& operator[](uint32_t i) const { return *at(i); }
  T& operator[](uint32_t i) { return *at(i); }
  /// The run that begins there.
  const T* at(uint32_t first) const {
    return segments_[first >> kBits].data + (first & (kSegment - 1));
  }
  T* at(uint32_t first) { return segments_[first >> kBits].data + (first & (kSegment - 1)); }
  std::span<const T> of(Slice run) const { return {at(run.first), run.count}; }

  /// True if all of the run has been added, so that at() and of() may be asked.
  bool has(uint32_t first, uint64_t count) const {
    uint32_t slot = first >> kBits;
    if (slot >= slots_) return false;
    if (count == 0) return true;
    while (slot > 0 && segments_[slot].capacity == 0) --slot;  // the middle of a long segment
    return first - (slot << kBits) + count <= segments_[slot].used;
  }
  /// Greater than every index in use.
  uint64_t size() const { return last_ + 1 == slots_ ? end() : uint64_t{slots_} << kBits; }

  /// The number of elements.
  uint64_t count() const {
    uint64_t elements = 0;
    for (uint32_t s = 0; s < slots_; ++s) elements += segments_[s].used;
    return elements;
  }
  template <class Visit>
  void for_each(Visit&& visit) {
    for (uint32_t s = 0; s < slots_; ++s) {
      std::for_each_n(segments_[s].data, segments_[s].used, visit);
    }
  }

  /// Adds a run without a value, to be filled by the caller. An empty one has the index 0.
  T* add(size_t count, uint32_t& first) {
    if (count == 0) return first = 0, nullptr;
    if (count > segments_[last_].capacity - segments_[last_].used) make_room(count);
    Segment& s = segments_[last_];
    first = (last_ << kBits) + s.used;
    T* const room = s.data + s.used;
    s.used += static_cast<uint32_t>(count);
    return room;
  }
  /// Adds a run, which may lie in this arena.
  Slice append(std::span<const T> run) {
    Slice made{0, static_cast<uint32_t>(run.size())};
    if (run.empty()) return made;
    const uint32_t from = index_of(run.data());
    T* const to = add(run.size(), made.first);
    std::memcpy(static_cast<void*>(to), from == kElsewhere ? run.data() : at(from),
                run.size_bytes());
    return made;
  }
  void push_back(const T& value) { append({&value, 1}); }
  /// Makes a run longer by one, at its end. Moves it if it is not the last one.
  void extend(Slice& run, T value) {
    uint32_t next = 0;
    if (run.count == 0) {
      *add(1, run.first) = value;
    } else if (run.first + run.count == end() && segments_[last_].used < room()) {
      *add(1, next) = value;
    } else {
      const uint32_t old = run.first;
      T* const to = add(run.count + size_t{1}, run.first);
      std::memcpy(static_cast<void*>(to), at(old), run.count * sizeof(T));
      to[run.count] = value;
    }
    ++run.count;
  }

  /// Lets threads add, each by an Appender. REQUIRES: no other thread uses the arena.
  void open_to_threads() { segments_.resize(kMaxSlots); }
  /// Keeps to the indices of part `part` of `parts`, for adopt(). REQUIRES: nothing was added yet,
  /// or part 0.
  void begin_part(uint32_t part, uint32_t parts) {
    open_to_threads();
    limit_ = kMaxSlots / parts * (part + 1);
    if (part != 0) slots_ = last_ = kMaxSlots / parts * part;
  }
  /// Takes what has been added to the arenas of other parts, in order, which keep their indices.
  void adopt(Arena& part) {
    for (uint32_t s = 0; s < part.slots_; ++s) {
      if (part.segments_[s].data != nullptr) segments_[s] = std::exchange(part.segments_[s], {});
    }
    slots_ = part.slots_;
    limit_ = kMaxSlots;
  }

 private:
  static constexpr uint32_t kBits = 17, kSegment = 1u << kBits;  ///< elements of a segment
  static constexpr uint32_t kMaxSlots = 1u << (32 - kBits), kFirst = 64;
  static constexpr uint32_t kElsewhere = 0xffffffffu;

  /// Elements from index `slot << kBits` on. A longer run takes several slots in a row, of which
  /// only the first has a capacity.
  struct Segment {
    T* data = nullptr;
    uint32_t capacity = 0, used = 0;
  };

  static T* allocate(size_t elements) {
    return static_cast<T*>(::operator new(elements * sizeof(T)));
  }

  /// Gives a slot (and those that its memory reaches into) memory with these elements in it.
  void hold(uint32_t slot, uint32_t capacity, std::span<const T> elements) {
    T* const data = allocate(capacity);
    if (!elements.empty())
      std::memcpy(static_cast<void*>(data), elements.data(), elements.size_bytes());
    segments_[slot] = {data, capacity, static_cast<uint32_t>(elements.size())};
    for (uint32_t k = 1; k < (capacity + kSegment - 1) >> kBits; ++k) {
      segments_[slot + k] = {data + size_t{k} * kSegment, 0, 0};
    }
  }

  /// New slots with room for `count` elements.
  uint32_t claim(size_t count) {
    const uint32_t slots = static_cast<uint32_t>((count + kSegment - 1) >> kBits);
    const uint32_t slot = std::atomic_ref(slots_).fetch_add(slots, std::memory_order_relaxed);
    if (slot + slots > limit_) throw std::length_error("too many operands, locations or numbers");
    if (slot + slots > segments_.size()) segments_.resize(slot + slots);  // no threads add
    hold(slot, slots << kBits, {});
    return slot;
  }

  uint64_t end() const { return (uint64_t{last_} << kBits) + segments_[last_].used; }
  uint32_t room() const { return std::max(segments_[last_].capacity, last_ == 0 ? kSegment : 0); }

  void make_room(size_t count) {
    const Segment old = segments_[last_];
    if (last_ != 0 || old.used + count > kSegment) {
      last_ = claim(count);
      return;
    }
    const size_t wanted = std::max<size_t>({kFirst, size_t{2} * old.capacity, old.used + count});
    hold(0, static_cast<uint32_t>(std::min<size_t>(wanted, kSegment)), {old.data, old.used});
    ::operator delete(old.data);
  }

  /// The index of an element of the first segment, which may move.
  uint32_t index_of(const T* element) const {
    const Segment& s = segments_[0];
    const bool here = !std::less<>{}(element, s.data) && std::less<>{}(element, s.data + s.used);
    return here ? static_cast<uint32_t>(element - s.data) : kElsewhere;
  }

  std::vector<Segment> segments_ = std::vector<Segment>(1);
  uint32_t slots_ = 1;  ///< in use
  uint32_t last_ = 0;   ///< the slot that elements are added to
  uint32_t limit_ = kMaxSlots;
};

/// Adds to an arena, beside others: in segments of its own if it is `shared`.
template <class T>
class Arena<T>::Appender {
 public:
  /// REQUIRES: open_to_threads() if shared. The arena is as it should be once this is destroyed.
  Appender(Arena& arena, bool shared) : arena_(arena), shared_(shared) {}
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;
  ~Appender() { settle(); }

  T* add(size_t count, uint32_t& first) {
    if (!shared_) return arena_.add(count, first);
    if (count == 0) return first = 0, nullptr;
    if (count > static_cast<size_t>(end_ - next_)) begin_segment(count);
    first = (slot_ << kBits) + static_cast<uint32_t>(next_ - begin_);
    T* const room = next_;
    next_ += count;
    return room;
  }
  Slice append(std::span<const T> run) {
    if (!shared_) return arena_.append(run);
    Slice made{0, static_cast<uint32_t>(run.size())};
    T* const to = add(run.size(), made.first);
    if (to != nullptr) std::memcpy(static_cast<void*>(to), run.data(), run.size_bytes());
    return made;
  }

 private:
  void begin_segment(size_t count) {
    settle();
    slot_ = arena_.claim(count);
    const Segment& s = arena_.segments_[slot_];
    begin_ = next_ = s.data;
    end_ = begin_ + s.capacity;
  }
  void settle() {
    if (begin_ != nullptr) arena_.segments_[slot_].used = static_cast<uint32_t>(next_ - begin_);
  }

  Arena& arena_;
  const bool shared_;
  uint32_t slot_ = 0;
  T *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
};

}  // namespace mscclc
