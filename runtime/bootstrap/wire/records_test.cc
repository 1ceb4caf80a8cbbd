// Sealed records: what was sealed opens, in its order, once; nothing else does.
#include "runtime/bootstrap/wire/records.h"

#include <catch2/catch.hpp>

namespace mscclc::wire {
namespace {

using NextRecord = Opener::Next;

const SessionKey kKey = [] {
  SessionKey key{};
  key.fill(7);
  return key;
}();

Bytes text(std::string_view s) { return {s.begin(), s.end()}; }

/// Records of these texts, by one sealer.
std::vector<Bytes> records(std::initializer_list<std::string_view> texts) {
  Sealer sealer(kKey);
  std::vector<Bytes> out;
  for (const std::string_view t : texts) sealer.seal(text(t), out.emplace_back());
  return out;
}

/// What comes out of an opener that is fed these; "!" at the end: it is bad.
std::string opened(const std::vector<Bytes>& fed, size_t at_once = SIZE_MAX) {
  Opener opener(kKey);
  std::string out;
  Bytes plain;
  for (const Bytes& bytes : fed) {
    for (size_t at = 0; at < bytes.size();) {
      const size_t count = std::min(at_once, bytes.size() - at);
      opener.feed(Payload(bytes).subspan(at, count));
      at += count;
      for (;;) {
        const NextRecord next = opener.next(plain);
        if (next == NextRecord::bad) return out + "!";
        if (next == NextRecord::more) break;
        out += std::string(plain.begin(), plain.end()) + ".";
      }
    }
  }
  return out;
}

TEST_CASE("what is sealed opens, however it comes") {
  const auto r = records({"a", "bc", "def"});
  for (size_t at_once : {1, 2, 3, 7, 1000}) CHECK(opened(r, at_once) == "a.bc.def.");
}

TEST_CASE("what was changed, dropped, repeated, reordered or is another's does not open") {
  const auto r = records({"a", "bc", "def"});
  CHECK(opened({r[0], r[2]}) == "a.!");
  CHECK(opened({r[0], r[0]}) == "a.!");
  CHECK(opened({r[1], r[0]}) == "!");
  CHECK(opened({r[0], r[1], r[1], r[2]}) == "a.bc.!");
  for (size_t i = 4; i < r[1].size(); ++i) {
    Bytes changed = r[1];
    changed[i] ^= 1;
    CHECK(opened({r[0], changed, r[2]}) == "a.!");
  }
  SessionKey other = kKey;
  other[0] ^= 1;
  Bytes foreign;
  Sealer(other).seal(text("a"), foreign);
  CHECK(opened({foreign}) == "!");
}

TEST_CASE("no length is believed") {
  CHECK(opened({{0, 0, 0, 0}}) == "!");
  CHECK(opened({{16, 0, 0, 0}}) == "!");
  CHECK(opened({{17, 0, 1, 0}}) == "!");  // one more than the largest
  CHECK(opened({{0xff, 0xff, 0xff, 0xff}}) == "!");
  CHECK(opened({{16, 0, 1, 0}}) == "");
  Bytes changed = records({"abc"})[0];
  --changed[0];
  CHECK(opened({changed}) == "!");
}

TEST_CASE("the largest record, and many") {
  Sealer sealer(kKey);
  Opener opener(kKey);
  const Bytes large(kMaxRecord, 5);
  Bytes plain;
  for (int i = 0; i < 50; ++i) {
    Bytes record;
    sealer.seal(large, record);
    opener.feed(record);
    REQUIRE(opener.next(plain) == NextRecord::record);
    CHECK(plain == large);
    CHECK(opener.next(plain) == NextRecord::more);
  }
  CHECK(opener.opened() == 50);
}

}  // namespace
}  // namespace mscclc::wire
