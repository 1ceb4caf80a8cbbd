// libnvrtc is given all that it needs, and what it says is passed on.
// tests/compiled/real_nvrtc_test.cc compiles kernels by the real one.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/devices/kernels/cubin_compiler.h"

namespace mscclc {
namespace {

constexpr const char* kFake = "runtime/devices/kernels/libnvrtc_fake.so";

TEST_CASE("NVRTC gets source, headers and architecture") {
  const auto compiler = open_nvrtc(kFake);
  REQUIRE(compiler);
  const auto cubin = (*compiler)->compile("int x;\n", "sm_90");
  REQUIRE(cubin);
  CHECK(cubin->substr(64) ==
        "sm_90\nkernels.cu:\nint x;\nheader mscclc_kernels.cuh\nheader mscclc_standard.cuh\n"
        "header array\nheader bit\nheader cstddef\nheader cstdint\nheader cstring\n"
        "header optional\nheader span\nheader string_view\nheader type_traits\n"
        "header cuda_runtime.h\n--std=c++20\n--device-as-default-execution-space\n"
        "--gpu-architecture=sm_90\n");
}

TEST_CASE("NVRTC is prepared by a compilation") {
  const auto compiler = open_nvrtc(kFake);
  REQUIRE(compiler);
  CHECK((*compiler)->prepare("sm_90"));
  CHECK_FALSE((*compiler)->prepare("broken"));
}

TEST_CASE("what NVRTC says of an error is passed on") {
  const auto compiler = open_nvrtc(kFake);
  REQUIRE(compiler);
  const auto cubin = (*compiler)->compile("broken\n", "sm_90");
  REQUIRE(!cubin);
  CHECK(cubin.error() == "libnvrtc failed: NVRTC_ERROR_COMPILATION\nkernels.cu(1): error: broken");
}

TEST_CASE("a file that is no libnvrtc is refused with a reason") {
  const auto none = open_nvrtc("tools/none.so");
  REQUIRE(!none);
  CHECK_THAT(none.error().text(), Catch::Contains("tools/none.so"));
  const auto other = open_nvrtc("libdl.so.2");
  REQUIRE(!other);
  CHECK(other.error() == "it lacks functions of NVRTC 11.1 and later");
}

TEST_CASE("MSCCLC_NVRTC names the library, or none") {
  const auto find = [](const char* value) {
    return find_nvrtc(Environment(Environment::Values{{"MSCCLC_NVRTC", value}}));
  };
  const auto fake = find(kFake);
  REQUIRE(fake);
  CHECK((*fake)->version() == "NVRTC 12.99");
  CHECK((*fake)->file() == kFake);
  const auto none = find("none");
  REQUIRE(!none);
  CHECK(none.error() == "MSCCLC_NVRTC is none");
  const auto wrong = find("/nowhere/libnvrtc.so");
  REQUIRE(!wrong);
  CHECK_THAT(wrong.error().text(), Catch::StartsWith("MSCCLC_NVRTC is '/nowhere/libnvrtc.so': "));
}

TEST_CASE("nvcc takes no place of a libnvrtc that MSCCLC_NVRTC names") {
  const char* const base = std::getenv("TEST_TMPDIR");
  const auto home = std::filesystem::path(base == nullptr ? "/tmp" : base) / "cuda";
  std::filesystem::create_directories(home / "bin");
  const auto nvcc = home / "bin/nvcc";
  std::ofstream(nvcc) << "#!/bin/sh\necho a stub\n";
  std::filesystem::permissions(nvcc, std::filesystem::perms::owner_all);
  REQUIRE(::setenv("CUDA_HOME", home.c_str(), 1) == 0);
  const auto find = [](const char* value) {
    return find_compiler(Environment(Environment::Values{{"MSCCLC_NVRTC", value}}));
  };
  const auto none = find("none"), fake = find(kFake), wrong = find("/nowhere/libnvrtc.so");
  ::unsetenv("CUDA_HOME");
  std::filesystem::remove_all(home);
  REQUIRE(none);
  CHECK((*none)->version() == "nvcc a stub");
  REQUIRE(fake);
  CHECK((*fake)->version() == "NVRTC 12.99");
  REQUIRE(!wrong);
  CHECK_THAT(wrong.error().text(), Catch::StartsWith("MSCCLC_NVRTC is '/nowhere/libnvrtc.so': "));
}

TEST_CASE("libnvrtc is looked for in what is loaded, in wheels, and in the toolkit") {
  const auto places = [](const std::vector<std::string>& loaded, const char* home = "") {
    return nvrtc_places(loaded, home);
  };
  const std::vector<std::string> usual = {"libnvrtc.so.13", "libnvrtc.so.12",
                                          "/usr/local/cuda/lib64/libnvrtc.so"};
  const auto with = [&](std::vector<std::string> first) {
    first.insert(first.end(), usual.begin(), usual.end());
    return first;
  };
  CHECK(places({}) == usual);
  CHECK(places({"/lib/libc.so.6", "libcudart.so.12"}) == usual);
  CHECK(places({"/a/libnvrtc-builtins.so.12.8", "/b/libnvrtc.so.12"}) ==
        with({"/b/libnvrtc.so.12", "/a/libnvrtc.so.13", "/a/libnvrtc.so.12"}));
  CHECK(places({"/x/site-packages/torch/lib/libtorch.so", "/x/site-packages/mscclc/libmscclc.so.0"},
               "/opt/cuda") == with({"/x/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                                     "/x/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
                                     "/opt/cuda/lib64/libnvrtc.so"}));
}

}  // namespace
}  // namespace mscclc
