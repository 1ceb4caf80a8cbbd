#include "tools/bench/support/hardware_queues.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

TEST_CASE("hardware queues are asked for, unless the caller has") {
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  ask_for_queues(kUsualQueues);
  CHECK(std::string(::getenv("CUDA_DEVICE_MAX_CONNECTIONS")) == "8");
  ask_for_queues(kMaxQueues);
  CHECK(std::string(::getenv("CUDA_DEVICE_MAX_CONNECTIONS")) == "8");
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

}  // namespace
}  // namespace mscclc
