// The examples of FIPS 180-4 and RFC 4231.
#include "runtime/support/sha256.h"

#include <catch2/catch.hpp>
#include <string>

using namespace mscclc;

namespace {

std::span<const uint8_t> bytes_of_text(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string hex(const Digest& digest) {
  std::string out;
  for (const uint8_t byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

std::string hmac(const std::string& key, const std::string& data) {
  return hex(hmac_sha256(bytes_of_text(key), {bytes_of_text(data)}));
}

}  // namespace

TEST_CASE("SHA-256 of the standard's examples") {
  CHECK(hex(sha256(bytes_of_text(""))) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256(bytes_of_text("abc"))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256(bytes_of_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(sha256(bytes_of_text(std::string(1000000, 'a')))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("HMAC-SHA-256 of RFC 4231") {
  CHECK(hmac(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')) ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("parts are one message") {
  const std::string a = "what do ya ", b = "want for nothing?", key = "Jefe";
  CHECK(hmac_sha256(bytes_of_text(key), {bytes_of_text(a), bytes_of_text(b)}) ==
        hmac_sha256(bytes_of_text(key), {bytes_of_text(a + b)}));
}

TEST_CASE("digests differ in any bit") {
  const Digest a = sha256(bytes_of_text("abc"));
  CHECK(same_digest(a, a));
  for (size_t i = 0; i < a.size(); ++i) {
    Digest b = a;
    b[i] ^= 0x80;
    CHECK_FALSE(same_digest(a, b));
  }
}
