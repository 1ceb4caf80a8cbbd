#include "runtime/bootstrap/wire/handshake.h"

#include <sodium.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "runtime/support/bytes.h"
#include "runtime/support/fd.h"

namespace mscclc::wire {
namespace {

static_assert(crypto_scalarmult_BYTES == 32 && crypto_scalarmult_SCALARBYTES == 32);

Payload bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// The payload of a frame, except for the proof at its end.
Payload unproved(const Bytes& frame) {
  return Payload(frame).subspan(8, frame.size() - 8 - sizeof(Digest));
}

}  // namespace

KeyPair KeyPair::make() {
  begin_sodium();
  KeyPair pair;
  fill_random(pair.hidden);
  if (crypto_scalarmult_base(pair.open.data(), pair.hidden.data()) != 0) std::abort();
  return pair;
}

// The labels and all fields have a fixed length, so no two transcripts are the same bytes.
Digest transcript(const Challenge& challenge, const Hello& hello) {
  Bytes message;
  ByteWriter writer(message);
  writer.text("mscclc bootstrap transcript");
  writer.bytes(Payload(frame(challenge)).subspan(8)).bytes(unproved(frame(hello)));
  return sha256(message);
}

Digest rank_proof(const Secret& secret, const Digest& transcript) {
  return hmac_sha256(secret, {bytes_of("mscclc bootstrap rank"), transcript});
}

Digest hub_proof(const Secret& secret, const Digest& transcript, const Welcome& welcome) {
  return hmac_sha256(secret,
                     {bytes_of("mscclc bootstrap hub "), transcript, unproved(frame(welcome))});
}

std::optional<SessionKeys> session_keys(const Secret& secret, const Digest& transcript,
                                        const Welcome& welcome, const KeyPair& own,
                                        const PublicKey& other) {
  std::array<uint8_t, 32> shared{};
  if (crypto_scalarmult(shared.data(), own.hidden.data(), other.data()) != 0) return std::nullopt;
  const Bytes said = frame(welcome);
  const auto key = [&](std::string_view label) -> SessionKey {
    return hmac_sha256(secret, {bytes_of(label), transcript, unproved(said), shared});
  };
  SessionKeys keys{.to_hub = key("mscclc bootstrap key to hub "),
                   .to_rank = key("mscclc bootstrap key to rank")};
  sodium_memzero(shared.data(), shared.size());
  return keys;
}

std::array<uint8_t, 16> local_name(const Secret& secret) {
  const Digest digest = hmac_sha256(secret, {bytes_of("mscclc bootstrap unix socket")});
  std::array<uint8_t, 16> name{};
  std::copy_n(digest.begin(), name.size(), name.begin());
  return name;
}

}  // namespace mscclc::wire
