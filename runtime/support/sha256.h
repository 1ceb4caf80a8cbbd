// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), by which ranks prove that they know a secret
// without sending it: libsodium's.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace mscclc {

/// Before anything else of libsodium; any number of times, from any thread.
void begin_sodium();

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::span<const uint8_t> data);
/// Of all parts, one after the other. The caller makes the parts' borders unambiguous.
Digest hmac_sha256(std::span<const uint8_t> key,
                   std::initializer_list<std::span<const uint8_t>> parts);
/// Compares in a time that does not depend on where they differ.
bool same_digest(std::span<const uint8_t, 32> a, std::span<const uint8_t, 32> b);

}  // namespace mscclc
