// What a rank says of memory that lanes may write, as bytes of an offer.
#include "runtime/network/far_memory.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

std::vector<uint8_t> encoded(const FarPiece& piece) {
  std::vector<uint8_t> bytes;
  encode(piece, bytes);
  return bytes;
}

TEST_CASE("what stands for far memory is what its rank said of it") {
  const FarPiece pieces[] = {
      {.id = 7, .node = "a node"},
      {.id = 8, .device_key = DeviceKey{0x1000, 42, true}, .place = MemoryPlace::device},
  };
  for (const FarPiece& sent : pieces) {
    const auto piece = decode_far_piece(encoded(sent));
    REQUIRE(piece);
    CHECK(piece->node == sent.node);
    Diagnostics diagnostics;
    const auto window = FarWindow::reserve(4096, *piece, diagnostics);
    REQUIRE(window != nullptr);
    CHECK(window->bytes() == 4096);
    CHECK(window->exposed() == sent.id);
    CHECK(window->place() == sent.place);
    CHECK(window->device_key().has_value() == sent.device_key.has_value());
    if (!sent.device_key) continue;
    CHECK(window->device_key()->address == 0x1000);
    CHECK(window->device_key()->key == 42);
    CHECK(window->device_key()->staged);
  }
}

TEST_CASE("bytes that are no such piece are refused") {
  const auto whole = encoded({.id = 8, .device_key = DeviceKey{1, 2, false}});
  for (size_t count = 0; count < whole.size(); ++count) {
    CHECK_FALSE(decode_far_piece({whole.data(), count}));
  }
  auto elsewhere = encoded({.id = 7});
  REQUIRE(decode_far_piece(elsewhere));
  elsewhere[9] = 2;  // after the number and the missing key: neither host nor device
  CHECK_FALSE(decode_far_piece(elsewhere));
}

}  // namespace
}  // namespace mscclc
