// Launches wait for room, but not forever, and not in captures.
#include "runtime/core/group/copy_calls.h"

#include <catch2/catch.hpp>

#include "runtime/api/host_device.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/helpers/runtime/longer_times.h"

namespace mscclc {
namespace {

/// A device with room for three calls, which end when a test says so: `looks` looks later.
class ThreeCalls final : public testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  uint32_t max_copy_calls() const override { return 3; }
  bool is_capturing(StreamHandle) override { return capturing; }
  bool mark(StreamHandle, std::unique_ptr<StreamMark>& mark, Diagnostics&) override {
    auto made = std::make_unique<Mark>(*this);
    made->call = ++calls;
    mark = std::move(made);
    return true;
  }
  bool capturing = false;
  uint32_t calls = 0, ended = 0, looks = 0, looked = 0;

 private:
  struct Mark : StreamMark {
    explicit Mark(ThreeCalls& of) : device(of) {}
    bool reached() override {
      ++device.looked;
      if (device.looks > 0 && --device.looks == 0) ++device.ended;
      return call <= device.ended;
    }
    ThreeCalls& device;
    uint32_t call = 0;
  };
};

struct Launches {
  Launches() : device(make_host_device(problems)) {}
  void launch() {
    if (calls.make_room(device, {}, [this] { return failed; })) calls.launched(device, {});
  }
  Diagnostics problems;
  ThreeCalls device;
  CopyCalls calls;
  bool failed = false;
};

// Unless this thread gets no processor for kRoomPatience: then it is as if it had waited in vain.
TEST_CASE("a launch waits until one of the calls before it has ended") {
  const auto is_right = [] {
    Launches of;
    for (int i = 0; i < 3; ++i) of.launch();
    CHECK(of.device.ended == 0);  // there was room
    of.device.looks = 50;
    of.launch();
    CHECK(of.device.calls == 4);
    return of.device.ended == 1;
  };
  CHECK(testing::right_in_a_try(is_right));
}

TEST_CASE("a launch that waits in vain goes on, and so do those after it, until all have ended") {
  const auto is_right = [] {
    Launches of;
    for (int i = 0; i < 3; ++i) of.launch();
    const auto begin = std::chrono::steady_clock::now();
    of.launch();
    CHECK(std::chrono::steady_clock::now() - begin >= kRoomPatience);
    of.device.looks = 1'000'000;  // a wait would look as often
    of.launch();
    CHECK(of.device.ended == 0);
    of.device.ended = of.device.calls, of.device.looks = 0;
    for (int i = 0; i < 3; ++i) of.launch();
    of.device.looks = 50;
    of.launch();
    return of.device.looks == 0;  // it has waited
  };
  CHECK(testing::right_in_a_try(is_right));
}

TEST_CASE(
    "so many calls that the driver would wait are never under way, unless the job has failed") {
  Launches of;
  for (int i = 0; i < 9; ++i) of.launch();
  CHECK(of.device.ended == 0);
  of.device.looks = 10'000;  // longer than kRoomPatience, or not: it waits
  of.launch();
  CHECK(of.device.ended == 1);
  of.failed = true;
  of.launch();
  CHECK(of.device.ended == 1);
  CHECK(of.device.calls == 11);
}

TEST_CASE("a launch that waits leaves the driver's lock to the copies") {
  Launches of;
  for (int i = 0; i < 9; ++i) of.launch();
  of.device.looks = 500;
  const uint32_t before = of.device.looked;
  const auto begin = std::chrono::steady_clock::now();
  of.launch();
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(of.device.ended == 1);
  // The first look comes at once, and the last mark looked at may be another one.
  CHECK(of.device.looked - before <= took / CopyCalls::kRest + 2);
}

TEST_CASE("captured calls, which do not run, are not counted") {
  Launches of;
  of.device.capturing = true;
  for (int i = 0; i < 9; ++i) of.launch();
  CHECK(of.device.calls == 0);
}

}  // namespace
}  // namespace mscclc
