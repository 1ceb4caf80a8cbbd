#include "executor/interpreter/packets.h"

#include <catch2/catch.hpp>

namespace mscclc::device {
namespace {

template <PacketFormat F>
void check_unit() {
  CHECK(Unit<F>::kData == packet_unit(F).data);
  CHECK(Unit<F>::kWire == packet_unit(F).wire);
}

TEST_CASE("units are those of the table") {
  check_unit<PacketFormat::LL8>();
  check_unit<PacketFormat::LL16>();
  check_unit<PacketFormat::LL128>();
  check_unit<PacketFormat::sentinel>();
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
