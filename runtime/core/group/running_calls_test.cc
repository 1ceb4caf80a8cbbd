#include "runtime/core/group/running_calls.h"

#include <catch2/catch.hpp>

#include "runtime/api/host_device.h"
#include "tests/helpers/runtime/log_file.h"
#include "tests/helpers/runtime/undrained_device.h"

namespace mscclc {
namespace {

using testing::UndrainedDevice;

/// Calls of a rank, and something that they may still use.
struct Closing {
  explicit Closing(bool drains) {
    Diagnostics diagnostics;
    std::unique_ptr<Device> device = make_host_device(diagnostics);
    if (!drains) {
      device = std::make_unique<UndrainedDevice>(std::move(device), "", nullptr);
    }
    calls = std::make_unique<RunningCalls>(std::move(device), 0);
    auto used = std::make_shared<int>(1);
    watched = used;
    calls->launched(nullptr);
    calls->retire(std::move(used));
  }
  std::unique_ptr<RunningCalls> calls;
  std::weak_ptr<int> watched;
};

TEST_CASE("what calls may still use is kept while the device does not wait") {
  for (const bool drains : {true, false}) {
    const Closing closing(drains);
    closing.calls->release();
    CHECK(closing.watched.expired() == drains);
  }
}

// Its handle may be that of another stream by then; the device is not asked, as others may capture.
TEST_CASE("what calls may still use is kept where one stream has been waited for") {
  const Closing closing(true);
  closing.calls->ended(nullptr);
  CHECK_FALSE(closing.watched.expired());
  closing.calls->release();
  CHECK(closing.watched.expired());
}

TEST_CASE("what calls may still use outlives a communicator whose device does not wait for them") {
  for (const bool drains : {true, false}) {
    Closing closing(drains);
    const testing::LogFile log(Environment::Values{{"MSCCLC_DEBUG", "WARN"}});
    closing.calls->close();
    closing.calls.reset();
    CHECK(closing.watched.expired() == drains);
    const std::string said =
        "[0] mscclc WARN INIT what a communicator has loaded or registered is never freed, as "
        "calls may still use it: a stream is captured\n";
    CHECK((log.text().find(said) != std::string::npos) == !drains);
  }
}

}  // namespace
}  // namespace mscclc
