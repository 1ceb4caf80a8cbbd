#include "runtime/core/group/memory_pool.h"

#include <catch2/catch.hpp>

#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "runtime/core/group/group.h"
#include "tests/helpers/runtime/forwarding_device.h"

namespace mscclc {
namespace {

/// Counts what is allocated, exported and mapped.
class CountingDevice final : public testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override {
    ++allocated;
    return bytes > most ? nullptr : ForwardingDevice::allocate(bytes, what, diagnostics);
  }
  std::optional<MemoryHandle> export_memory(const void* address, uint64_t bytes,
                                            Diagnostics& diagnostics) override {
    ++exported;
    return ForwardingDevice::export_memory(address, bytes, diagnostics);
  }
  std::unique_ptr<Memory> import_memory(const MemoryHandle& handle,
                                        Diagnostics& diagnostics) override {
    ++imported;
    return ForwardingDevice::import_memory(handle, diagnostics);
  }
  int allocated = 0, exported = 0, imported = 0;
  uint64_t most = ~uint64_t{0};
};

struct Fixture {
  Diagnostics diagnostics;
  std::shared_ptr<CountingDevice> device =
      std::make_shared<CountingDevice>(make_host_device(diagnostics));
  MemoryPool pool;
};

constexpr uint64_t kStep = MemoryPool::kStep;

TEST_CASE("small pieces share a block, and lie at whole lines") {
  Fixture f;
  const PoolPiece a = f.pool.take(*f.device, 1, "a", f.diagnostics);
  const PoolPiece b = f.pool.take(*f.device, 300, "b", f.diagnostics);
  const PoolPiece c = f.pool.take(*f.device, kStep - 768, "c", f.diagnostics);
  REQUIRE((a && b && c));
  CHECK(f.device->allocated == 1);
  CHECK(b.offset == 256);
  CHECK(c.offset == 768);
  CHECK(f.pool.bytes() == kStep);
  const PoolPiece d = f.pool.take(*f.device, 1, "d", f.diagnostics);
  CHECK(d.block != a.block);
  CHECK(d.block->number != a.block->number);
  CHECK(f.pool.bytes() == 2 * kStep);
}

TEST_CASE("a large piece fills whole steps, and what is left of them is used") {
  Fixture f;
  const PoolPiece large = f.pool.take(*f.device, kStep + 1, "large", f.diagnostics);
  const PoolPiece small = f.pool.take(*f.device, 1000, "small", f.diagnostics);
  CHECK(f.pool.bytes() == 2 * kStep);
  CHECK(small.block == large.block);
  const PoolPiece alone = f.pool.take_alone(*f.device, 4096, "alone", f.diagnostics);
  const PoolPiece next = f.pool.take(*f.device, 64, "next", f.diagnostics);
  CHECK(alone.offset == 0);
  CHECK(next.block == large.block);
}

TEST_CASE("a block goes with its last piece, and no place of it is given out twice") {
  Fixture f;
  PoolPiece a = f.pool.take(*f.device, 64, "a", f.diagnostics);
  std::shared_ptr<Memory> kept = a.memory();
  a = {};  // the memory holds the block, too
  CHECK(f.pool.bytes() == kStep);
  PoolPiece b = f.pool.take(*f.device, 64, "b", f.diagnostics);
  CHECK(b.offset == 256);  // not where `a` was
  CHECK(f.device->allocated == 1);
  const std::weak_ptr<PoolBlock> block = b.block;
  b = {};
  kept->data()[0] = 1;
  kept.reset();
  CHECK(block.expired());
  CHECK(f.pool.bytes() == 0);
}

TEST_CASE("a block keeps no descriptor once peers have mapped it, and is offered anew") {
  Fixture f;
  const PoolPiece a = f.pool.take(*f.device, 64, "a", f.diagnostics);
  const auto offer = [&] {
    std::vector<uint8_t> message;
    CHECK(a.encode(*f.device, message, f.diagnostics));
    return message;
  };
  const std::vector<uint8_t> first = offer();
  CHECK(offer() == first);
  CHECK(f.device->exported == 1);
  const std::shared_ptr<const void> kept = a.block->handle.keep;
  f.pool.close_descriptors();
  CHECK(kept.use_count() == 1);
  std::vector<uint8_t> again = offer();
  CHECK(f.device->exported == 2);
  std::span<const uint8_t> from(again);
  const auto piece = decode_piece(from, f.diagnostics);
  REQUIRE(piece);
  CHECK(f.device->import_memory(piece->handle, f.diagnostics) != nullptr);
  CHECK(f.diagnostics.all().empty());
}

TEST_CASE("memory that there is not is reported") {
  Fixture f;
  f.device->most = 0;
  CHECK_FALSE(f.pool.take(*f.device, 64, "a", f.diagnostics));
  CHECK_FALSE(f.pool.take_alone(*f.device, 64, "a", f.diagnostics));
  CHECK(f.pool.bytes() == 0);
}

/// A group whose only other rank is itself.
struct Peers {
  Fixture f;
  RankGroup group{std::move(make_in_process_bootstraps(1, std::chrono::milliseconds(1000))[0]),
                  f.device, std::chrono::milliseconds(1000),
                  std::make_shared<Failure>(f.device->allocate_visible(
                      sizeof(uint32_t), "the abort word", f.diagnostics))};
  Peers() { group.neighbours.links = {Link{}, Link{}}; }
};

TEST_CASE("a block is exported and mapped once for all of its pieces") {
  Peers p;
  const PoolPiece a = p.f.pool.take(*p.f.device, 100, "a", p.f.diagnostics);
  const PoolPiece b = p.f.pool.take(*p.f.device, 200, "b", p.f.diagnostics);
  std::vector<uint8_t> message;
  REQUIRE(a.encode(*p.f.device, message, p.f.diagnostics));
  REQUIRE(b.encode(*p.f.device, message, p.f.diagnostics));
  CHECK(p.f.device->exported == 1);
  std::span<const uint8_t> rest = message;
  const auto first = decode_piece(rest, p.f.diagnostics);
  const auto second = decode_piece(rest, p.f.diagnostics);
  REQUIRE((first && second));
  CHECK(rest.empty());
  const auto map = [&](const PieceHandle& piece, uint64_t bytes, ReachedBy reached) {
    return import_piece(p.group, 1, piece, bytes, reached, p.f.diagnostics);
  };
  const auto x = map(*first, 100, ReachedBy::blocks), y = map(*second, 200, ReachedBy::blocks);
  REQUIRE((x != nullptr && y != nullptr));
  CHECK(p.f.device->imported == 1);
  CHECK(y->data() - x->data() == 256);
  a.memory()->data()[7] = 42;
  CHECK(x->data()[7] == 42);
  const auto again = map(*second, 200, ReachedBy::lanes);  // reached in another way
  CHECK(again != nullptr);
  CHECK_FALSE(p.f.diagnostics.has_errors());
}

TEST_CASE("a handle of a piece is not believed") {
  Peers p;
  const PoolPiece a = p.f.pool.take(*p.f.device, 100, "a", p.f.diagnostics);
  std::vector<uint8_t> message;
  REQUIRE(a.encode(*p.f.device, message, p.f.diagnostics));
  std::span<const uint8_t> rest = message;
  const auto piece = decode_piece(rest, p.f.diagnostics);
  REQUIRE(piece);
  const auto said = [&](PieceHandle handle, uint64_t bytes) {
    Diagnostics problems;
    CHECK(import_piece(p.group, 1, handle, bytes, ReachedBy::blocks, problems) == nullptr);
    return problems.all().front().code + ": " + problems.all().front().message;
  };
  PieceHandle far = *piece;
  far.offset = ~uint64_t{0} - 10;
  CHECK(said(far, 100) ==
        "bad-handle: rank 1 shares 2097152 bytes, of which 100 from byte 18446744073709551605 are "
        "asked for");
  CHECK(said(*piece, kStep + 1) ==
        "bad-handle: rank 1 shares 2097152 bytes, of which 2097153 from byte 0 are asked for");
  const auto mapped = import_piece(p.group, 1, *piece, 100, ReachedBy::blocks, p.f.diagnostics);
  REQUIRE(mapped != nullptr);
  PieceHandle other = *piece;
  other.handle.bytes = kStep / 2;
  CHECK(said(other, 100) == "bad-handle: rank 1 shares 1048576 bytes; its block 0 had 2097152");
  for (size_t n = 0; n < message.size(); ++n) {
    Diagnostics problems;
    std::span<const uint8_t> cut = std::span<const uint8_t>(message).first(n);
    CHECK_FALSE(decode_piece(cut, problems));
    CHECK(problems.has_errors());
  }
}

}  // namespace
}  // namespace mscclc
