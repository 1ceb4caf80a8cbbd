// A thread of the runtime that finds no memory ends, and the process goes on.
#include "runtime/support/process/quiet_thread.h"

#include <catch2/catch.hpp>
#include <new>

namespace mscclc {
namespace {

TEST_CASE("a thread without memory does what it is to do then, and ends") {
  bool handled = false;
  std::thread thread = quiet_thread(
      "short", [] { throw std::bad_alloc(); }, [&] { handled = true; });
  REQUIRE(thread.joinable());
  thread.join();
  CHECK(handled);
  std::thread none = quiet_thread(
      "shorter", [] { throw std::bad_alloc(); }, [] { throw std::bad_alloc(); });
  none.join();
  std::thread unhandled = quiet_thread("shortest", [] { throw std::bad_alloc(); });
  unhandled.join();
  bool ran = false;
  std::thread well = quiet_thread(
      "well", [&] { ran = true; }, [&] { handled = false; });
  well.join();
  CHECK((ran && handled));
}

}  // namespace
}  // namespace mscclc
