// Buffers that all ranks have registered, and the calls that are bound to them. Binding such a call
// may be a step of all ranks, so what is kept must be the same on all of them: a call is known by
// the numbers of its buffers and the offsets in them, which ranks have in common, not by its
// pointers.
#pragma once

#include <compare>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "runtime/api/communicator.h"

namespace mscclc {

/// Thread safety: one thread at a time.
class RegisteredCalls {
 public:
  /// Where a buffer lies, as all ranks name it.
  struct BufferSpot {
    uint64_t buffer = 0, offset = 0;
    auto operator<=>(const BufferSpot&) const = default;
  };
  /// A call, as all ranks know it.
  struct Key {
    const Executable* executable;
    uint64_t bytes;
    Dtype dtype;
    ReduceOp op;
    std::optional<Dtype> accumulate;
    uint64_t row_pitch;
    BufferSpot input, output;
    auto operator<=>(const Key&) const = default;
  };

  /// Takes a buffer that all ranks have registered; returns its number.
  uint64_t add(const void* address, uint64_t bytes, std::unique_ptr<RegisteredBuffer> buffer);
  /// nullptr: there is none.
  const RegisteredBuffer* buffer(uint64_t number) const;
  /// Forgets a buffer, and all calls: any of them may be bound to it. False: there is none.
  bool remove(uint64_t number);
  /// In the buffer that was registered last. nullopt: no memory is registered there.
  std::optional<BufferSpot> find(const void* at) const;

  /// Empty: none is kept.
  BoundCall call(const Key& key) const;
  /// Puts out the oldest where there are too many.
  void keep(const Key& key, BoundCall call);
  uint64_t count() const { return calls_.size(); }

 private:
  static constexpr size_t kMaxCalls = 1024;
  struct Buffer {
    const uint8_t* address;
    uint64_t bytes;
    std::unique_ptr<RegisteredBuffer> registered;
  };

  std::map<uint64_t, Buffer> buffers_;
  uint64_t next_ = 1;
  std::map<Key, BoundCall> calls_;
  std::deque<Key> by_age_;
};

}  // namespace mscclc
