#include "runtime/support/sha256.h"

#include <sodium.h>

#include <cstdlib>

namespace mscclc {
namespace {

static_assert(sizeof(Digest) == crypto_hash_sha256_BYTES &&
              sizeof(Digest) == crypto_auth_hmacsha256_BYTES);

}  // namespace

void begin_sodium() {
  if (sodium_init() < 0) std::abort();
}

Digest sha256(std::span<const uint8_t> data) {
  begin_sodium();
  Digest digest;
  crypto_hash_sha256(digest.data(), data.data(), data.size());
  return digest;
}

Digest hmac_sha256(std::span<const uint8_t> key,
                   std::initializer_list<std::span<const uint8_t>> parts) {
  begin_sodium();
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key.data(), key.size());
  for (const std::span<const uint8_t> part : parts) {
    crypto_auth_hmacsha256_update(&state, part.data(), part.size());
  }
  Digest digest;
  crypto_auth_hmacsha256_final(&state, digest.data());
  return digest;
}

bool same_digest(std::span<const uint8_t, 32> a, std::span<const uint8_t, 32> b) {
  begin_sodium();
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace mscclc
