// What goes over the connections of a lane between machines: first the greeting, by which each end
// proves that it knows the key of the lane, then orders one way and answers the other. Pure
// functions.
//
//   rank that sends                     rank that receives
//                     ◀── challenge     a random number
//   hello ──▶                           which lane, which connection of how many, a random number,
//                                       proof
//                     ◀── welcome       proof
//   orders ──▶        ◀── answers
//
// The key is 256 bits from the system's generator, and reaches the sender in the lane's offer,
// through the bootstrap. What follows the greeting goes in the clear.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/support/address/address.h"
#include "runtime/support/sha256.h"

namespace mscclc::net {

using Bytes = std::vector<uint8_t>;
using Key = std::array<uint8_t, 32>;
using Nonce = std::array<uint8_t, 32>;

/// Connections that a lane may have.
constexpr uint32_t kMaxConnections = 16;

/// What a rank must know to open the lane to another.
struct LaneOffer {
  Address address;
  uint64_t lane = 0;  ///< its number at that address
  Key key{};
};
Bytes encode(const LaneOffer& offer);
[[nodiscard]] std::optional<LaneOffer> decode_offer(std::span<const uint8_t> bytes);

struct Challenge {
  static constexpr size_t kBytes = 40;
  Nonce nonce{};
};
struct Hello {
  static constexpr size_t kBytes = 80;
  uint64_t lane = 0;
  uint32_t connection = 0, connections = 0;
  Nonce nonce{};
  Digest proof{};
};
struct Welcome {
  static constexpr size_t kBytes = 32;
  Digest proof{};
};
Bytes encode(const Challenge& challenge);
Bytes encode(const Hello& hello);
Bytes encode(const Welcome& welcome);
/// nullopt: not such a message.
[[nodiscard]] std::optional<Challenge> decode_challenge(std::span<const uint8_t> bytes);
[[nodiscard]] std::optional<Hello> decode_hello(std::span<const uint8_t> bytes);
[[nodiscard]] std::optional<Welcome> decode_welcome(std::span<const uint8_t> bytes);

/// Cover the challenge and all of the hello except its proof.
Digest sender_proof(const Key& key, const Challenge& challenge, const Hello& hello);
Digest receiver_proof(const Key& key, const Challenge& challenge, const Hello& hello);

/// Orders as they lie in memory. A put or part is followed by its bytes, and zeros up to a whole
/// word.
struct Order {
  enum What : uint32_t {
    put = 1,
    signal,
    flush,
    fence,  ///< waits until `connection` has brought `value` orders, which were carried out
    bye,    ///< the last: the sender closes in good order
    part,   ///< a put that is part of a long one: worth a thread that does nothing else meanwhile
    note    ///< three words of a note; `connection`: the how manieth three, from 0
  };
  uint32_t what = 0;
  uint32_t connection = 0;          ///< fence
  uint64_t memory = 0, offset = 0;  ///< put, part and signal: where
  uint64_t value = 0;  ///< put and part: bytes; signal: the count; flush: its number, from 1
  static constexpr uint64_t kWord = 8;
  static constexpr uint32_t kNoteOrders = 3;
  static constexpr uint64_t padding(uint64_t bytes) { return (kWord - bytes % kWord) % kWord; }
};
static_assert(sizeof(Order) == 32);

/// What goes back: the number of a flush whose orders have all been carried out, once, by the
/// connection that brought it; or one of these.
constexpr uint64_t kGone = 0;              ///< no more orders are needed: all count as done
constexpr uint64_t kRefused = UINT64_MAX;  ///< followed by kRefusalBytes of text: why
constexpr size_t kRefusalBytes = 256;

}  // namespace mscclc::net
