// From the addresses that blocks post to regions of peers.
#include "runtime/core/device/remote_regions.h"

#include <catch2/catch.hpp>
#include <utility>

namespace mscclc {
namespace {

/// Addresses only, which are never read.
class Piece final : public Memory {
 public:
  Piece(uintptr_t begin, uint64_t bytes) {
    data_ = reinterpret_cast<uint8_t*>(begin);
    bytes_ = bytes;
  }
};

struct World {
  const Memory* add(uint32_t peer, uintptr_t begin, uint64_t bytes) {
    auto piece = std::make_unique<Piece>(begin, bytes);
    const Memory* region = piece.get();
    known.push_back(regions->add(peer, std::move(piece)));
    CHECK(known.back()->data() == region->data());
    CHECK(known.back()->bytes() == bytes);
    return region;
  }
  std::pair<const Memory*, uint64_t> find(uint32_t peer, uintptr_t at, uint64_t bytes) const {
    const auto place = regions->find(peer, reinterpret_cast<const void*>(at), bytes);
    return place ? std::pair(place->region, place->offset) : std::pair(nullptr, 0ul);
  }
  std::shared_ptr<RemoteRegions> regions = std::make_shared<RemoteRegions>();
  std::vector<std::unique_ptr<Memory>> known;
};

using MappedPlace = std::pair<const Memory*, uint64_t>;
const MappedPlace nowhere{nullptr, 0};

TEST_CASE("an address is of the region of its peer that holds all its bytes") {
  World world;
  const Memory* one = world.add(1, 0x1000, 100);
  const Memory* two = world.add(2, 0x1000, 200);
  CHECK(world.find(1, 0x1000, 100) == MappedPlace(one, 0));
  CHECK(world.find(1, 0x1010, 8) == MappedPlace(one, 16));
  CHECK(world.find(1, 0x1000 + 100, 0) == MappedPlace(one, 100));
  CHECK(world.find(2, 0x1000 + 100, 100) == MappedPlace(two, 100));
  CHECK(world.find(1, 0x1000 + 93, 8) == nowhere);
  CHECK(world.find(1, 0x1000 + 101, 0) == nowhere);
  CHECK(world.find(1, 0xfff, 1) == nowhere);
  CHECK(world.find(0, 0x1000, 1) == nowhere);
  CHECK(world.find(3, 0x1000, 1) == nowhere);
  CHECK(world.find(1, 0x1010, ~uint64_t{0}) == nowhere);
}

TEST_CASE("a region may lie in another") {
  World world;
  const Memory* outer = world.add(1, 0x1000, 0x1000);
  const Memory* inner = world.add(1, 0x1800, 16);
  CHECK(world.find(1, 0x1800, 16) == MappedPlace(inner, 0));
  CHECK(world.find(1, 0x1808, 16) == MappedPlace(outer, 0x808));
  CHECK(world.find(1, 0x1900, 1) == MappedPlace(outer, 0x900));
}

TEST_CASE("a region is known as long as its memory lives") {
  World world;
  world.add(1, 0x1000, 100);
  const Memory* again = world.add(1, 0x1000, 100);
  world.known.erase(world.known.begin());
  CHECK(world.find(1, 0x1000, 8) == MappedPlace(again, 0));
  world.known.clear();
  CHECK(world.find(1, 0x1000, 8) == nowhere);
  CHECK(world.regions->add(1, nullptr) == nullptr);
}

}  // namespace
}  // namespace mscclc
