// What goes over a connection once both ends are proved: frames in sealed records, each encrypted
// and authenticated with its number (ChaCha20-Poly1305). A record that was changed, dropped,
// repeated or put elsewhere does not open, nor does any after it.
//
//   record: u32 length of what follows   sealed bytes, 16 more than were put in
#pragma once

#include "runtime/bootstrap/wire/handshake.h"

namespace mscclc::wire {

constexpr uint64_t kMaxRecord = 64 << 10;  ///< bytes that are sealed at once

class Sealer {
 public:
  explicit Sealer(const SessionKey& key) : key_(key) {}
  /// Appends the next record. REQUIRES: 1 to kMaxRecord bytes.
  void seal(Payload plain, Bytes& to);

 private:
  const SessionKey key_;
  uint64_t number_ = 0;
};

/// Holds no more than one record and what was fed at once.
class Opener {
 public:
  explicit Opener(const SessionKey& key) : key_(key) {}
  void feed(Payload bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }

  enum class Next : uint8_t { more, record, bad };
  /// Moves on to the next record; `plain`: what was sealed. After `bad`, always `bad`.
  Next next(Bytes& plain);
  /// How many records have been opened.
  uint64_t opened() const { return number_; }

 private:
  const SessionKey key_;
  uint64_t number_ = 0;
  Bytes buffer_;
  uint64_t at_ = 0;  ///< bytes of buffer_ that are done with
  bool bad_ = false;
};

}  // namespace mscclc::wire
