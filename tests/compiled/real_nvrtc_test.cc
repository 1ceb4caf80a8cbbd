// Where NVIDIA's libnvrtc is, it compiles what nvcc does: its headers are fewer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "ir/support/read_file.h"
#include "runtime/devices/kernels/cubin_compiler.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {
namespace {

/// The sources that mscclc wrote for `:kernels`, by name.
std::vector<std::filesystem::path> kernel_sources() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator("tests/compiled")) {
    if (entry.path().extension() == ".cu") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST_CASE("libnvrtc compiles kernels with every kind of step, where it is") {
  const auto sources = kernel_sources();
  REQUIRE(!sources.empty());
  const auto found = find_nvrtc(Environment::of_process());
  if (!found) {
    std::puts("no libnvrtc here: nothing is compiled");
    return;
  }
  for (const auto& path : sources) {
    INFO(path.string());
    const auto source = read_file(path.string());
    REQUIRE(source);
    const auto cubin = (*found)->compile(*source, "sm_90");
    INFO((cubin ? "" : cubin.error().text()));
    REQUIRE(cubin);
    CHECK(
        cubin->starts_with("\x7f"
                           "ELF"));
  }
}

}  // namespace
}  // namespace mscclc
