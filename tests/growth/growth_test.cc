// Nothing grows: however often a job launches, registers, or makes communicators, it holds as many
// blocks of memory as before.
#include "tests/growth/growth.h"

#include <catch2/catch.hpp>

#include "tests/growth/live_memory.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

/// Containers grow in steps, and give nothing back, and other threads may have a message under way:
/// as much as may be held more. Of what is done so often, one block each time would be more.
constexpr int64_t kSteps = 64;

std::shared_ptr<const Program> plan_for_two(std::string_view name) {
  const CompiledWorld world(name, {{"R", "2"}});
  REQUIRE(world.errors() == "");
  return std::make_shared<const Program>(world.program());
}

/// Blocks that live at the first and the last look. None in the middle: it is for the others.
struct Watch {
  int64_t first = -1, last = -1;
  testing::Look look() {
    return [this](uint64_t) {
      last = testing::live_blocks();
      if (first < 0) first = last;
    };
  }
};

TEST_CASE("launches of one call leave nothing behind") {
  Watch watch;
  CHECK(testing::launch_again(plan_for_two("allreduce_ring"), 9000, 3000, watch.look()) == "");
  CHECK(watch.last <= watch.first + kSteps);
}

TEST_CASE("buffers that are registered, joined at a switch and dropped leave nothing behind") {
  Watch watch;
  CHECK(testing::register_again(plan_for_two("allreduce_switch_direct"), 600, 200, watch.look()) ==
        "");
  CHECK(watch.last <= watch.first + kSteps);
}

TEST_CASE("communicators leave nothing behind") {
  Watch watch;
  const auto plan = plan_for_two("allgather_direct");
  CHECK(testing::communicate_again(plan, 300, 100, watch.look()) == "");
  CHECK(watch.last <= watch.first + kSteps);
}

}  // namespace
}  // namespace mscclc
