// What goes over a bootstrap's connections, as bytes. Pure functions: the parser is fuzzed.
//
//   frame: u8 kind   3 zero bytes   u32 length   payload      numbers little endian
//
//   a rank                                        the hub
//                                  ◀── challenge  a nonce, a public key
//   hello  rank, keys, proof        ──▶           knows now that the rank knows the secret
//                                  ◀── welcome    its own proof; or refused
//   --- from here on in sealed records (records.h) ---
//   joined                          ──▶           the rank knows that the hub does, and is here
//                                  ◀── ready      all ranks have come
//   gather    step, name, bytes     ──▶
//                                  ◀── gathered   the bytes of all ranks
//   give_up   why                   ──▶           failed to all others
//   waits     for which ranks       ──▶           blocks of this rank have given up
//                                  ◀── asked      to all: which rank waits for which?
//   answer                          ──▶           this rank lives
//                                  ◀── failed     what has ended the job
//   heartbeat                      ◀─▶            at times, if there is nothing else to say
//   goodbye                         ──▶           this rank leaves in peace
//                                  ◀── closing    the hub does
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/api/bootstrap.h"
#include "runtime/support/address/address.h"
#include "runtime/support/address/unique_id.h"
#include "runtime/support/sha256.h"

namespace mscclc::wire {

using Bytes = std::vector<uint8_t>;
using Payload = std::span<const uint8_t>;
using Nonce = std::array<uint8_t, 16>;
using PublicKey = std::array<uint8_t, 32>;

constexpr uint32_t kVersion = 4;
constexpr uint32_t kMaxRanks = 1u << 16;
constexpr uint64_t kMaxName = 256;           ///< bytes of a step's name
constexpr uint64_t kMaxReason = 2048;        ///< bytes of a text that says why
constexpr uint64_t kMaxGathered = 1u << 30;  ///< bytes of all ranks of one step
/// Most that either side takes before the other has proved that it knows the secret.
constexpr uint64_t kMaxHello = 154;
constexpr uint64_t kMaxGreeting = 64;
/// Most that a hub takes from a rank, and a rank from its hub.
constexpr uint64_t kMaxFromRank = Bootstrap::kMaxBytes + kMaxName + 64;
constexpr uint64_t kMaxFromHub = kMaxGathered + 4 * uint64_t{kMaxRanks} + 64;

enum class FrameKind : uint8_t {
  challenge = 1,
  hello,
  welcome,
  refused,
  ready,
  gather,
  gathered,
  give_up,
  failed,
  heartbeat,
  goodbye,
  closing,
  joined,
  waits,
  asked,
  answer,
};

struct Challenge {
  Nonce nonce{};
  PublicKey key{};
};
struct Hello {
  uint32_t rank = 0, size = 0;
  uint32_t process = 0;     ///< its id
  uint64_t began = 0;       ///< when that began, in ticks since its machine did; 0: not known
  uint32_t timeout_ms = 0;  ///< how long it waits for others at a step; 0: as the hub says
  Nonce nonce{};
  PublicKey key{};
  /// Address::bytes() of the two ends of the connection, as the rank sees them.
  std::array<uint8_t, Address::kBytes> from{}, to{};
  Digest proof{};
};
struct Welcome {
  uint32_t timeout_ms = 0;  ///< of every step
  uint32_t silence_ms = 0;  ///< after which an end that says nothing counts as dead
  uint32_t hub_rank = 0;    ///< in whose process the hub runs; kNoRank: not known
  uint32_t process = 0;     ///< of the hub, and when that began: as in hello
  uint64_t began = 0;
  Digest proof{};
};
using mscclc::kNoRank;

/// Why a hello is not taken. Nothing has been proved to the rank by then: it goes on trying.
enum class Refusal : uint8_t { wrong_secret, other_ends };
struct Refused {
  Refusal code = Refusal::wrong_secret;
};
struct Gather {
  uint64_t step = 0;
  std::string_view name;
  Payload data;
};
struct Gathered {
  uint64_t step = 0;
  std::vector<Payload> all;
};
enum class FailureKind : uint8_t {
  timeout,
  died,
  gave_up,
  left,
  mismatch,
  too_long,
  protocol,
  refused,
  hang,
};
struct Failure {
  FailureKind kind = FailureKind::died;
  std::string why;  ///< lines after the first are notes
};

Bytes frame(const Challenge& c);
Bytes frame(const Hello& h);
Bytes frame(const Welcome& w);
Bytes frame(const Refused& r);
Bytes frame(const Gather& g);
Bytes frame(const Gathered& g);
Bytes frame(const Failure& f);
Bytes frame(const WaitReport& w);
Bytes give_up_frame(std::string_view why);
/// ready, heartbeat, goodbye, closing, joined, asked, answer: no payload.
Bytes frame(FrameKind kind);

/// nullopt: not such a payload. Views point into the payload.
[[nodiscard]] std::optional<Challenge> read_challenge(Payload payload);
[[nodiscard]] std::optional<Hello> read_hello(Payload payload);
[[nodiscard]] std::optional<Welcome> read_welcome(Payload payload);
[[nodiscard]] std::optional<Refused> read_refused(Payload payload);
[[nodiscard]] std::optional<Gather> read_gather(Payload payload);
[[nodiscard]] std::optional<Gathered> read_gathered(Payload payload);
[[nodiscard]] std::optional<Failure> read_failure(Payload payload);
[[nodiscard]] std::optional<WaitReport> read_waits(Payload payload);
[[nodiscard]] std::optional<std::string> read_give_up(Payload payload);

/// Splits a stream of bytes into frames, and holds no more than one frame of at most `limit` bytes
/// plus what was fed at once.
class FrameReader {
 public:
  explicit FrameReader(uint64_t limit) : limit_(limit) {}
  void set_limit(uint64_t limit) { limit_ = limit; }
  void feed(Payload bytes);
  /// Forgets all that was fed.
  void clear();
  /// What was fed and not taken yet, the present frame included.
  Payload held() const { return Payload(buffer_).subspan(begin_); }
  /// What was fed and is not part of the frame of the last next(): forgotten here.
  Bytes take_rest();

  enum class Next : uint8_t { more, frame, bad };
  /// Moves on to the next frame. kind() and payload() are good until the next call of next() or
  /// feed(). After `bad`, nothing of the stream is to be believed.
  Next next();
  FrameKind kind() const { return kind_; }
  Payload payload() const { return {buffer_.data() + begin_ + kHead, taken_ - kHead}; }

 private:
  void drop_done();

  static constexpr uint64_t kHead = 8;
  uint64_t limit_;
  Bytes buffer_;
  uint64_t begin_ = 0;  ///< bytes at the front that are done with
  uint64_t taken_ = 0;  ///< of what follows: the frame of the last next()
  FrameKind kind_ = FrameKind::heartbeat;
};

}  // namespace mscclc::wire
