#include "runtime/core/group/buffer_overlaps.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

using Overlaps = std::vector<std::vector<BufferOverlap>>;

TEST_CASE("two buffers overlap in a piece of both") {
  const std::vector<uint8_t> memory(100);
  const std::span<const uint8_t> all(memory);
  CHECK(find_overlap(all.subspan(40, 40), 3, all.first(60)) == BufferOverlap{3, 0, 40, 20});
  CHECK(find_overlap(all.first(60), 3, all.subspan(40, 40)) == BufferOverlap{3, 40, 0, 20});
  CHECK(find_overlap(all, 3, all.subspan(10, 5)) == BufferOverlap{3, 10, 0, 5});
  CHECK(find_overlap(all.first(40), 3, all.subspan(40)) == std::nullopt);
  CHECK(find_overlap(all.subspan(10, 0), 3, all) == std::nullopt);
}

TEST_CASE("overlaps travel in messages") {
  const std::vector<BufferOverlap> overlaps = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  std::vector<uint8_t> message, none;
  encode(overlaps, message);
  message.push_back(9);
  std::span<const uint8_t> rest = message;
  std::vector<BufferOverlap> read;
  REQUIRE(decode(rest, read));
  CHECK(read == overlaps);
  CHECK(rest.size() == 1);
  rest = std::span<const uint8_t>(message).first(message.size() - 2);
  CHECK_FALSE(decode(rest, read));
}

TEST_CASE("what overlaps alike on all ranks is of no interest") {
  BufferOverlaps overlaps;
  overlaps.add(2, Overlaps(3, {{1, 0, 40, 20}}));
  CHECK_FALSE(overlaps.find(0, 2, 0, 8).has_value());
}

TEST_CASE("a place in two buffers is found from either") {
  BufferOverlaps overlaps;
  overlaps.add(2, {{{1, 0, 40, 20}}, {}, {{1, 0, 48, 20}}});
  const auto at = [&](uint32_t rank, uint64_t buffer, uint64_t offset, uint64_t bytes) {
    const auto both = overlaps.find(rank, buffer, offset, bytes);
    return both ? std::vector{both->offset, both->other.buffer, both->other.offset}
                : std::vector<uint64_t>();
  };
  CHECK(at(0, 2, 4, 8) == std::vector<uint64_t>{4, 1, 44});
  CHECK(at(0, 1, 44, 8) == std::vector<uint64_t>{44, 2, 4});
  CHECK(at(0, 1, 0, 41) == std::vector<uint64_t>{40, 2, 0});  // the call reaches it
  CHECK(at(0, 1, 0, 40).empty());
  CHECK(at(0, 2, 20, 8).empty());
  CHECK(at(1, 2, 4, 8).empty());
  CHECK(at(2, 2, 4, 0) == std::vector<uint64_t>{4, 1, 52});
  overlaps.remove(1);
  CHECK(at(0, 2, 4, 8).empty());
}

}  // namespace
}  // namespace mscclc
