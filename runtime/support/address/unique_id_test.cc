// Unique ids as text: only what is written is read.
#include "runtime/support/address/unique_id.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

constexpr const char* kV4 = "mscclc1/10.0.0.1/24123/000102030405060708090a0b0c0d0eff";
constexpr const char* kV6 = "mscclc1/2001:db8::1/1/ffffffffffffffffffffffffffffffff";

std::string mistake(const std::string& text) {
  Diagnostics diagnostics;
  const auto id = UniqueId::parse(text, diagnostics);
  CHECK(id.has_value() != diagnostics.has_errors());
  if (id) return {};
  CHECK(diagnostics.all().front().code == "bad-unique-id");
  CHECK(diagnostics.all().front().notes.size() == 1);
  const std::string message = diagnostics.all().front().message;
  CHECK(message.starts_with("this is not a unique id: "));
  return message.substr(25);
}

TEST_CASE("ids of IPv4, IPv6 and one machine") {
  Diagnostics diagnostics;
  const auto four = UniqueId::parse(kV4, diagnostics);
  REQUIRE(four);
  CHECK(four->address.text() == "10.0.0.1:24123");
  CHECK(four->secret[1] == 1);
  CHECK(four->secret[15] == 0xff);
  CHECK(four->text() == kV4);
  const auto six = UniqueId::parse(kV6, diagnostics);
  REQUIRE(six);
  CHECK(six->address.text() == "[2001:db8::1]:1");
  CHECK(six->text() == kV6);
  CHECK(std::string(kV6).size() < UniqueId::kMaxText);
  const char* const kHere = "mscclc1/local/0/000102030405060708090a0b0c0d0eff";
  const auto here = UniqueId::parse(kHere, diagnostics);
  REQUIRE(here);
  CHECK(here->local);
  CHECK(here->text() == kHere);
}

TEST_CASE("anything else is refused, and says which part is wrong") {
  CHECK(mistake("") == "it does not begin with 'mscclc1/'");
  CHECK(mistake("mscclc2/10.0.0.1/1/0") == "it does not begin with 'mscclc1/'");
  CHECK(mistake("mscclc1") == "it has 1 parts between '/', not 4");
  CHECK(mistake(std::string(kV4) + "/") == "it has 5 parts between '/', not 4");
  CHECK(mistake(std::string(200, 'a')) == "it is too long");
  const std::string secret = "/000102030405060708090a0b0c0d0eff";
  for (const char* port :
       {"", "0", "01", "65536", "-1", "+1", " 1", "1 ", "99999999999999999999"}) {
    CHECK(mistake("mscclc1/10.0.0.1/" + std::string(port) + secret) ==
          "its third part is not a port (1 to 65535)");
  }
  for (const char* host : {"", "local", "localhost", "10.0.0", "10.0.0.256", "010.0.0.1",
                           "10.0.0.1 ", "[::1]", "2001:DB8::1", "2001:0db8::1", "fe80::1%eth0"}) {
    CHECK(mistake("mscclc1/" + std::string(host) + "/1" + secret) ==
          "its second part is not an IPv4 or IPv6 address");
  }
  for (const char* wrong :
       {"", "00", "000102030405060708090a0b0c0d0efF", "000102030405060708090a0b0c0d0ef ",
        "000102030405060708090a0b0c0d0eff0"}) {
    CHECK(mistake("mscclc1/10.0.0.1/1/" + std::string(wrong)) ==
          "its last part is not a secret of 32 digits, 0-9 and a-f");
  }
  CHECK(mistake(std::string("mscclc1/10.0.0.1\0/1", 19) + secret) ==
        "its second part is not an IPv4 or IPv6 address");
}

TEST_CASE("errors do not show the secret") {
  CHECK(mistake("mscclc1/nowhere/1/000102030405060708090a0b0c0d0eff").find("0001") ==
        std::string::npos);
}

}  // namespace
}  // namespace mscclc
