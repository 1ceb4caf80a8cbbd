#include "runtime/cuda/early_launches.h"

#include <catch2/catch.hpp>

namespace mscclc::cuda {
namespace {

StreamHandle stream(uintptr_t handle) { return reinterpret_cast<StreamHandle>(handle); }

/// Launches on one stream after the other.
struct Launches {
  bool small(uintptr_t handle) {
    return all.note(ordinal, stream(handle), true, [] { return false; });
  }
  bool large(uintptr_t handle, bool captured = false) {
    return all.note(ordinal, stream(handle), false, [=] { return captured; });
  }
  EarlyLaunches all;
  int ordinal = 0;
};

TEST_CASE("a large launch does not begin early behind a small one") {
  Launches on;
  CHECK(on.large(0x100));  // behind nothing of ours
  CHECK(on.large(0x100));
  CHECK(on.small(0x100));
  CHECK(on.small(0x100));
  CHECK(!on.large(0x100));
  CHECK(on.large(0x100));  // the one ahead is large
  CHECK(on.small(0x100));
}

TEST_CASE("a stream that is destroyed is forgotten") {
  Launches on;
  CHECK(on.small(0x100));
  on.all.forget(0, stream(0x100));
  CHECK(on.large(0x100));  // another stream with the same handle
}

TEST_CASE("streams and devices have their own launches") {
  Launches on;
  CHECK(on.small(0x100));
  CHECK(on.large(0x200));
  on.ordinal = 1;
  CHECK(on.large(0x100));
  on.ordinal = 0;
  CHECK(!on.large(0x100));
}

TEST_CASE("captured launches are behind captured ones") {
  Launches on;
  CHECK(on.small(0x100));
  CHECK(!on.large(0x100, true));
  CHECK(on.large(0x100, true));
  CHECK(!on.large(0x100));  // the small one, if it was not captured
  CHECK(on.large(0x100));
}

TEST_CASE("the default stream has two names, and that of threads stands for many") {
  Launches on;
  CHECK(on.small(0));
  CHECK(!on.large(1));
  CHECK(on.large(0));
  CHECK(on.small(2));
  CHECK(!on.large(2));
  CHECK(!on.large(2));
}

}  // namespace
}  // namespace mscclc::cuda
