// A thread of the runtime that finds no memory ends, and the process goes on.
#include "runtime/base/process/quiet_thread.h"

#include <catch2/catch.hpp>
#include <new>

namespace mscclc {
namespace {

TEST_CASE("a thread without memory does what it is to do then, and ends") {
  bool told = false;
  std::thread thread = quiet_thread(
      "short", [] { throw std::bad_alloc(); }, [&] { told = true; });
  REQUIRE(thread.joinable());
  thread.join();
  CHECK(told);
  std::thread none = quiet_thread(
      "shorter", [] { throw std::bad_alloc(); }, [] { throw std::bad_alloc(); });
  none.join();
  std::thread unhandled = quiet_thread("shortest", [] { throw std::bad_alloc(); });
  unhandled.join();
  bool ran = false;
  std::thread well = quiet_thread(
      "well", [&] { ran = true; }, [&] { told = false; });
  well.join();
  CHECK((ran && told));
}

}  // namespace
}  // namespace mscclc
