#include "tools/doctor/cuda_facts.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>

using namespace mscclc::doctor;

namespace {

int g_init_result = 0;

int init(unsigned) { return g_init_result; }
int version(int* out) {
  *out = 12040;
  return 0;
}
int count(int* out) {
  *out = 3;
  return 0;
}
int device(int* out, int index) {
  *out = 100 + index;
  return 0;
}
int device_name(char* out, int bytes, int device) {
  std::strncpy(out, ("GPU" + std::to_string(device)).c_str(), static_cast<size_t>(bytes));
  return 0;
}
/// Multicast is an attribute that this driver does not know.
int attribute(int* out, int which, int) {
  *out = which == 75 ? 9 : which == 103 ? 1 : 0;
  return which == 132 ? 1 : 0;
}
/// 100 and 102 do not reach each other.
int can_access(int* out, int a, int b) {
  *out = a + b != 202 ? 1 : 0;
  return 0;
}

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

void* find(const char* name) {
  static const std::map<std::string, void*> functions = {
      {"cuInit", address(init)},
      {"cuDriverGetVersion", address(version)},
      {"cuDeviceGetCount", address(count)},
      {"cuDeviceGet", address(device)},
      {"cuDeviceGetName", address(device_name)},
      {"cuDeviceGetAttribute", address(attribute)},
      {"cuDeviceCanAccessPeer", address(can_access)}};
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

}  // namespace

TEST_CASE("CUDA: what a driver says") {
  g_init_result = 0;
  const CudaFacts facts = ask_driver(find);
  CHECK(facts.asked);
  CHECK(facts.error.empty());
  CHECK(facts.version == 12040);
  REQUIRE(facts.gpus.size() == 3);
  CHECK(facts.gpus[1].name == "GPU101");
  CHECK(facts.gpus[1].major == 9);
  CHECK(facts.gpus[1].shares_fd);
  CHECK_FALSE(facts.gpus[1].multicast);
  CHECK_FALSE(facts.gpus[1].dma_buf);
  CHECK(facts.gpus[0].reaches == std::vector<bool>{true, true, false});
  CHECK(facts.gpus[1].reaches == std::vector<bool>{true, true, true});
}

TEST_CASE("CUDA: a driver that fails, and one that lacks functions") {
  g_init_result = 999;
  CHECK(ask_driver(find).error == "cuInit says 999");
  g_init_result = 0;
  const CudaFacts old = ask_driver(
      [](const char* name) { return std::string(name) == "cuInit" ? nullptr : find(name); });
  CHECK(old.asked);
  CHECK(!old.error.empty());
  CHECK(old.gpus.empty());
}
