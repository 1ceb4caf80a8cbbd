#include "runtime/network/lane_wire.h"

#include <algorithm>

#include "runtime/support/bytes.h"

namespace mscclc::net {
namespace {

constexpr std::string_view kMagic = "mscclcL1";
static_assert(kMagic.size() + sizeof(Nonce) == Challenge::kBytes);

template <size_t kCount>
void take(ByteReader& reader, std::array<uint8_t, kCount>& to) {
  const auto bytes = reader.bytes(kCount);
  if (reader.good()) std::copy(bytes.begin(), bytes.end(), to.begin());
}

Bytes without_proof(const Hello& hello) {
  Bytes bytes;
  ByteWriter(bytes)
      .number(hello.lane)
      .number(hello.connection)
      .number(hello.connections)
      .bytes(hello.nonce);
  return bytes;
}

Digest proof(const Key& key, std::string_view end, const Challenge& challenge, const Hello& hello) {
  const Bytes said = without_proof(hello);
  const std::span name(reinterpret_cast<const uint8_t*>(end.data()), end.size());
  return hmac_sha256(key, {name, challenge.nonce, said});
}

}  // namespace

Bytes encode(const LaneOffer& offer) {
  Bytes bytes;
  ByteWriter(bytes)
      .number(offer.address.port())
      .number(offer.lane)
      .bytes(offer.key)
      .text(offer.address.host());
  return bytes;
}

std::optional<LaneOffer> decode_offer(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  LaneOffer offer;
  const auto port = reader.number<uint16_t>();
  offer.lane = reader.number<uint64_t>();
  take(reader, offer.key);
  const std::string host(reader.text(reader.rest().size()));
  const auto address = Address::parse(host, port);
  if (!reader.ended() || !address || port == 0) return std::nullopt;
  offer.address = *address;
  return offer;
}

Bytes encode(const Challenge& challenge) {
  Bytes bytes;
  ByteWriter(bytes).text(kMagic).bytes(challenge.nonce);
  return bytes;
}

Bytes encode(const Hello& hello) {
  Bytes bytes = without_proof(hello);
  ByteWriter(bytes).bytes(hello.proof);
  return bytes;
}

Bytes encode(const Welcome& welcome) { return {welcome.proof.begin(), welcome.proof.end()}; }

std::optional<Challenge> decode_challenge(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  Challenge challenge;
  const bool ours = reader.text(kMagic.size()) == kMagic;
  take(reader, challenge.nonce);
  if (!ours || !reader.ended()) return std::nullopt;
  return challenge;
}

std::optional<Hello> decode_hello(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  Hello hello;
  hello.lane = reader.number<uint64_t>();
  hello.connection = reader.number<uint32_t>();
  hello.connections = reader.number<uint32_t>();
  take(reader, hello.nonce);
  take(reader, hello.proof);
  if (!reader.ended() || hello.connections > kMaxConnections ||
      hello.connection >= hello.connections) {
    return std::nullopt;
  }
  return hello;
}

std::optional<Welcome> decode_welcome(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  Welcome welcome;
  take(reader, welcome.proof);
  if (!reader.ended()) return std::nullopt;
  return welcome;
}

Digest sender_proof(const Key& key, const Challenge& challenge, const Hello& hello) {
  return proof(key, "mscclc lane 1, sender", challenge, hello);
}

Digest receiver_proof(const Key& key, const Challenge& challenge, const Hello& hello) {
  return proof(key, "mscclc lane 1, receiver", challenge, hello);
}

}  // namespace mscclc::net
