#include "runtime/core/group/shared_buffers.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

/// Memory that is there until it is freed.
struct HeldUntilFreed final : HeldMemory {
  explicit HeldUntilFreed(const bool& is_freed) : is_freed_(is_freed) {}
  bool is_there() const override { return !is_freed_; }

 private:
  const bool& is_freed_;
};

struct Registered {
  std::vector<uint8_t> memory = std::vector<uint8_t>(100);
  bool is_freed = false;
  SharedBuffers buffers;

  std::shared_ptr<SharedBuffer> make(uint64_t begin, uint64_t bytes) {
    auto buffer = std::make_shared<SharedBuffer>();
    buffer->address = memory.data() + begin;
    buffer->bytes = bytes;
    buffer->held = std::make_unique<HeldUntilFreed>(is_freed);
    return buffer;
  }
};

TEST_CASE("buffers have numbers that are never given again") {
  Registered f;
  CHECK(f.buffers.add(f.make(0, 10), {}) == 0);
  CHECK(f.buffers.add(f.make(10, 20), {}) == 1);
  CHECK(f.buffers.find(1)->bytes == 20);
  CHECK(f.buffers.remove(1)->bytes == 20);
  CHECK(f.buffers.find(1) == nullptr);
  CHECK(f.buffers.add(f.make(10, 30), {}) == 2);
}

TEST_CASE("a new buffer overlaps those that are there, unless their memory was freed") {
  Registered f;
  f.buffers.add(f.make(0, 60), {});
  f.buffers.add(f.make(80, 20), {});
  const auto added = f.make(40, 30);
  CHECK(f.buffers.overlaps_of(*added) == std::vector<BufferOverlap>{{0, 0, 40, 20}});
  f.is_freed = true;
  CHECK(f.buffers.overlaps_of(*added).empty());
}

TEST_CASE("joined buffers are forgotten when no rank has them any more") {
  Registered f;
  const SharedBuffers::Members members{0, 1};
  for (const uint64_t number :
       {f.buffers.add(f.make(0, 10), {}), f.buffers.add(f.make(10, 10), {})}) {
    f.buffers.join(number, members);
  }
  f.buffers.remove(0);
  std::vector<uint8_t> own;
  f.buffers.append_joined(own);
  CHECK(own == std::vector<uint8_t>{0, 1});
  own.push_back(7);

  std::vector<std::vector<uint8_t>> messages = {own, {1, 1, 9}};
  REQUIRE(f.buffers.forget_joined(messages));
  CHECK(messages == std::vector<std::vector<uint8_t>>{{7}, {9}});
  CHECK(f.buffers.is_joined(0, members));  // rank 1 has it

  messages = {own, {0, 1, 9}};
  REQUIRE(f.buffers.forget_joined(messages));
  CHECK_FALSE(f.buffers.is_joined(0, members));
  CHECK(f.buffers.is_joined(1, members));
  CHECK_FALSE(f.buffers.is_joined(1, {0, 2}));
}

TEST_CASE("a message that is cut off forgets nothing") {
  Registered f;
  f.buffers.add(f.make(0, 10), {});
  f.buffers.join(0, {0, 1});
  std::vector<std::vector<uint8_t>> messages = {{0}, {}};
  CHECK_FALSE(f.buffers.forget_joined(messages));
  CHECK(f.buffers.is_joined(0, {0, 1}));
}

}  // namespace
}  // namespace mscclc
