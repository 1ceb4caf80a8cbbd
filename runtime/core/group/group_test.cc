#include "runtime/core/group/group.h"

#include <catch2/catch.hpp>

#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "tests/helpers/runtime/log_file.h"
#include "tests/helpers/runtime/undrained_device.h"

namespace mscclc {
namespace {

using testing::UndrainedDevice;

/// A group of one rank, and something of it that calls may still use.
struct Closing {
  explicit Closing(bool drains) {
    Diagnostics diagnostics;
    group->bootstrap = std::move(make_in_process_bootstraps(1, std::chrono::seconds(1))[0]);
    std::unique_ptr<Device> device = make_host_device(diagnostics);
    if (!drains) {
      device = std::make_unique<UndrainedDevice>(std::move(device), "", nullptr);
    }
    group->device = std::move(device);
    auto used = std::make_shared<int>(1);
    watched = used;
    group->launched(nullptr);
    group->retire(std::move(used));
  }
  std::shared_ptr<RankGroup> group = std::make_shared<RankGroup>();
  std::weak_ptr<int> watched;
};

TEST_CASE("what calls may still use is kept while the device does not wait") {
  for (const bool drains : {true, false}) {
    const Closing closing(drains);
    closing.group->release();
    CHECK(closing.watched.expired() == drains);
    closing.group->ended(nullptr);
    CHECK(closing.watched.expired());
  }
}

TEST_CASE("what calls may still use outlives a communicator whose device does not wait for them") {
  for (const bool drains : {true, false}) {
    Closing closing(drains);
    const testing::LogFile log(Environment::Values{{"MSCCLC_DEBUG", "WARN"}});
    closing.group->close();
    closing.group.reset();
    CHECK(closing.watched.expired() == drains);
    const std::string said =
        "[0] mscclc WARN INIT what a communicator has loaded or registered is never freed, as "
        "calls may still use it: a stream is captured\n";
    CHECK((log.text().find(said) != std::string::npos) == !drains);
  }
}

}  // namespace
}  // namespace mscclc
