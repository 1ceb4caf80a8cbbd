#include "executor/interpreter/packets.h"

#include <catch2/catch.hpp>

namespace mscclc::device {
namespace {

constexpr uint32_t kMaxWire = 128;

/// A unit gives back what it was given, and has come only with this call's marks, all of them.
template <PacketFormat F>
void check_unit(uint32_t element) {
  using Unit = Format<F>;
  static_assert(Unit::kWire <= kMaxWire);
  const Stamp now = stamp_of(7, element), next = stamp_of(8, element);
  alignas(8) uint8_t unit[kMaxWire] = {}, data[kMaxWire], back[kMaxWire] = {};
  for (uint32_t i = 0; i < Unit::kData; ++i) data[i] = static_cast<uint8_t>(i + 1);
  Unit::put(now, data, unit);
  CHECK(Unit::missing(unit, now) == 0);
  CHECK((Unit::missing(unit, next) == 0) == Unit::kSentinel);  // which does not count calls
  Unit::get(unit, back);
  CHECK(std::equal(data, data + Unit::kData, back));

  const auto load = [&unit](uint32_t at, bool wide) {
    uint64_t mark = 0;
    std::memcpy(&mark, unit + at, wide ? 8 : 4);
    return mark;
  };
  CHECK_FALSE(find_missing_mark<F>(Unit::stamp(now), now.word, load).missing);
  const Marks marks = Unit::marks(now.word);
  uint64_t stamp = Unit::stamp(Unit::kSentinel ? now : next);
  for (uint32_t at = marks.first; at < Unit::kWire; at += marks.step) {
    INFO("mark at " << at);
    REQUIRE(at + marks.bytes <= Unit::kWire);
    uint8_t good[8];
    std::memcpy(good, unit + at, marks.bytes);
    std::memcpy(unit + at, &stamp, marks.bytes);
    CHECK(Unit::missing(unit, now) != 0);
    const FoundMark found = find_missing_mark<F>(Unit::stamp(now), now.word, load);
    CHECK(found.missing);
    CHECK((found.seen == found.expected) == Unit::kSentinel);
    std::memcpy(unit + at, good, marks.bytes);
  }
  CHECK(Unit::missing(unit, now) == 0);
}

TEST_CASE("units of every format go there and back, and show what is missing") {
  for (const PacketFormatInfo& row : packet_formats()) {
    for (const uint32_t element : {1, 2, 4, 8}) {
      INFO(row.name << ", elements of " << element);
      bool checked = false;
      with_format(row.format, [&](auto tag) {
        check_unit<decltype(tag)::kFormat>(element);
        checked = true;
      });
      CHECK(checked);
    }
  }
  with_format(PacketFormat::none, [](auto) { FAIL("plain data has no format"); });
}

TEST_CASE("marks stand where machines look for them") {
  CHECK(Format<PacketFormat::LL8>::marks(4).first == 4);
  CHECK(Format<PacketFormat::LL16>::marks(4).step == 8);
  CHECK(Format<PacketFormat::LL128>::marks(4).first == 120);
  CHECK(Format<PacketFormat::LL128>::marks(4).bytes == 8);
  CHECK(Format<PacketFormat::sentinel>::marks(4).step == 4);
  CHECK(Format<PacketFormat::sentinel>::marks(8).step == 8);
}

TEST_CASE("what a format is good for follows from its row") {
  CHECK(info(PacketFormat::LL8).goes_everywhere());
  CHECK(info(PacketFormat::sentinel).goes_everywhere());
  CHECK_FALSE(info(PacketFormat::LL128).goes_everywhere());
  CHECK_FALSE(Format<PacketFormat::LL16>::kDense);
  CHECK(Format<PacketFormat::LL128>::kDense);
  CHECK(Format<PacketFormat::sentinel>::kDense);
  CHECK_FALSE(Format<PacketFormat::none>::kDense);
}

TEST_CASE("flags count calls and are never what fresh memory holds") {
  CHECK(stamp_of(0, 4).flag32 == 1);
  CHECK(stamp_of(0xfffffffe, 4).flag32 == 0xffffffff);
  CHECK(stamp_of(0xffffffff, 4).flag32 == 1);
  CHECK(stamp_of(uint64_t{1} << 40, 4).flag64 == (uint64_t{1} << 40) + 1);
}

TEST_CASE("the sentinel is -0.0 of the type") {
  CHECK(stamp_of(0, 1).sentinel == 0x8080808080808080);
  CHECK(stamp_of(0, 2).sentinel == 0x8000800080008000);
  CHECK(stamp_of(0, 4).sentinel == 0x8000000080000000);
  CHECK(stamp_of(0, 8).sentinel == 0x8000000000000000);
  CHECK(stamp_of(0, 8).word == 8);
  CHECK(stamp_of(0, 2).word == 4);
}

TEST_CASE("a flagged unit holds data and flags in turn") {
  uint8_t data[16], back[16];
  for (uint8_t i = 0; i < 16; ++i) data[i] = i;
  FlaggedUnit unit;
  unit.set(data, 7);
  CHECK(unit.ready(7));
  CHECK_FALSE(unit.ready(8));
  unit.words[5] = 6;
  CHECK_FALSE(unit.ready(7));
  unit.get(back);
  CHECK(std::equal(data, data + 16, back));
  CHECK(unit.words[2] == 0x07060504);
}

TEST_CASE("minus zeros are dropped element by element") {
  uint16_t halves[] = {0x8000, 0x8001, 0, 0x8000};
  drop_minus_zeros(reinterpret_cast<uint8_t*>(halves), sizeof halves, 2);
  CHECK(halves[0] == 0);
  CHECK(halves[1] == 0x8001);
  CHECK(halves[3] == 0);
  uint8_t bytes[] = {0x80, 0x81};
  drop_minus_zeros(bytes, 2, 1);
  CHECK(bytes[0] == 0);
  CHECK(bytes[1] == 0x81);
  uint64_t wide[] = {uint64_t{1} << 63};
  drop_minus_zeros(reinterpret_cast<uint8_t*>(wide), 8, 8);
  CHECK(wide[0] == 0);
}

}  // namespace
}  // namespace mscclc::device
