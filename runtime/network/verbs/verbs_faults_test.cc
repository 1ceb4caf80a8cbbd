// Lanes over fake devices that fail: what both ends say.
#include <catch2/catch.hpp>
#include <string>

#include "tests/helpers/verbs/lane_world.h"

namespace mscclc::verbs {
namespace {

using testing::base_options;
using testing::check_counts;
using testing::kWorldBytes;
using testing::reset_fake;
using testing::World;

TEST_CASE("memory that cannot be registered") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  World world;
  fake->most_registered = 4096;
  CHECK(world.far->expose(world.data(), kWorldBytes, world.diagnostics) == nullptr);
  CHECK(world.text() ==
        "error: fake0 cannot register 8388608 bytes: Cannot allocate memory (12); memory that "
        "devices use is locked: raise the limit (ulimit -l)\n");
}

TEST_CASE("devices without atomics get messages, or say so") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  fake->atomics = false;
  {
    World world;
    world.open();
    check_counts(world);
    CHECK(world.text() == "");
  }
  VerbsOptions options = base_options();
  options.mode = SignalMode::host;
  World world(options);
  CHECK(world.open_with(world.end->offer()) == nullptr);
  const std::string said =
      "the lane of rank 5 cannot be made: fake0 has no atomics, which MSCCLC_IBV_MODE=host needs; "
      "host-no-atomic does without them\n";
  CHECK_THAT(world.text(), Catch::EndsWith(": it says: " + said));
  CHECK(world.far_reports.wait() == said);
}

TEST_CASE("a sender whose device has no atomics sends messages, whatever the peer's has") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  World world;
  fake->atomics = false;
  VerbsOptions options = base_options();
  options.prefer = 1;
  world.near = Adapter::start(options, world.near->net(), world.diagnostics);
  REQUIRE(world.near != nullptr);
  const auto source = world.near->read_from(world.sources.data(), world.sources.size());
  REQUIRE(source);
  world.source = *source;
  world.open();
  check_counts(world);
  CHECK(fake->adds == 0);
  CHECK(world.text() == "");
}

TEST_CASE("a queue pair begins no more atomics than its device can begin") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  fake->most_begun = 4;
  World world;
  world.open();
  check_counts(world);
  CHECK(fake->adds > 0);
  CHECK(world.text() == "");
}

TEST_CASE(
    "forks: the library is made ready for them before a device is opened, where they do harm") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  { const World world; }
  CHECK(fake->forks == IBV_FORK_UNNEEDED);
  fake->forks = IBV_FORK_DISABLED;
  { const World world; }
  CHECK(fake->forks == IBV_FORK_ENABLED);
  CHECK(fake->not_ready == 0);
}

// A child may lack the pages of what is registered.
TEST_CASE("forks: what lanes register of their own lies on whole pages") {
  for (const SignalMode mode : {SignalMode::host, SignalMode::host_no_atomic}) {
    fake::FakeVerbs* const fake = reset_fake();
    if (fake == nullptr) return;
    VerbsOptions options = base_options();
    options.mode = mode;
    World world(options);
    const int64_t before = fake->in_pages;  // of the test's memory
    world.open();
    check_counts(world);
    CHECK(fake->in_pages == before);
  }
}

TEST_CASE("ends that do not fit") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  VerbsOptions options = base_options();
  World world(options);
  options.gid_index = 2;
  options.prefer = 1;
  world.near = Adapter::start(options, world.near->net(), world.diagnostics);
  CHECK(world.open_with(world.end->offer()) == nullptr);
  CHECK_THAT(world.far_reports.wait(),
             Catch::Contains("the lane of rank 5 cannot be made: its GID and the GID here are of "
                             "different versions of RoCE: set MSCCLC_IB_GID_INDEX"));
}

TEST_CASE("queue pairs that cannot be made") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  for (const char* call : {"create_comp_channel", "create_cq", "create_qp", "modify_qp"}) {
    INFO(call);
    World world;
    fake->failing_call = call;
    CHECK(world.open_with(world.end->offer()) == nullptr);
    CHECK_THAT(world.text(), Catch::StartsWith("error: no lane to rank 3: at ") &&
                                 Catch::EndsWith(" of fake1: Cannot allocate memory (12)\n"));
    CHECK_THAT(world.far_reports.wait(), Catch::StartsWith("rank 5 ends its lane: "));
    fake->failing_call = "";
  }
  CHECK(fake->objects == 0);
}

TEST_CASE("what completions that fail say") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  const std::pair<ibv_wc_status, const char*> meanings[] = {
      {IBV_WC_LOC_PROT_ERR, "local protection error: memory of this rank was freed"},
      {IBV_WC_RETRY_EXC_ERR, "transport retries exceeded: the peer's device does not answer"},
      {IBV_WC_RNR_RETRY_EXC_ERR, "receiver not ready: the peer takes no messages"},
      {IBV_WC_GENERAL_ERR, "an error of the device or its driver"},
  };
  for (const auto& [status, meaning] : meanings) {
    World world;
    world.open();
    fake->status = status;
    fake->failing_order = 3;
    bool good = true;
    for (int i = 0; i < 10 && good; ++i) {
      good = world.lane->put(world.at(0), world.sources.data(), 4096, world.diagnostics) &&
             world.lane->signal(world.at(0), static_cast<uint64_t>(i) + 1, world.diagnostics);
    }
    if (good) CHECK(!world.lane->flush(world.diagnostics));
    CHECK_THAT(world.text(), Catch::StartsWith("error: the lane to rank 3 has ended: RDMA write of "
                                               "4096 bytes: " +
                                               std::string(meaning)));
    CHECK_THAT(world.far_reports.wait(), Catch::Contains(meaning));
  }
}

TEST_CASE("an order that fails names the port, if that is down") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  World world;
  world.open();
  fake->status = IBV_WC_RETRY_EXC_ERR;
  fake->failing_order = 1;
  fake->down = 1;
  (void)world.lane->put(world.at(0), world.sources.data(), 4096, world.diagnostics);
  CHECK(!world.lane->flush(world.diagnostics));
  CHECK_THAT(world.text(), Catch::Contains("; port 1 of fake1 is down: its cable, or the network "
                                           "interface below it (ip link)"));
}

TEST_CASE("a device that does nothing, and says nothing, ends its lane") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  World world(base_options(), std::chrono::seconds{3});
  world.open();
  fake->hanging_order = 2;
  CHECK(world.lane->put(world.at(0), world.sources.data(), 1 << 20, world.diagnostics));
  CHECK(!world.lane->flush(world.diagnostics));
  const std::string said =
      "the lane to rank 3 has ended: fake1 has done nothing for 3 s, and reports no error; check "
      "that the process of rank 3 is not stopped, and the log of this system\n";
  CHECK(world.text() == "error: " + said);
  CHECK(world.near_reports.wait() == said);
  CHECK(world.far_reports.wait() == "rank 5 ends its lane: " + said);
}

}  // namespace
}  // namespace mscclc::verbs
