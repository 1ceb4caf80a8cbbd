// libnvrtc is given all that it needs, and what it says is passed on. Where the real one is,
// kernels of all common arithmetics are compiled by it.
#include <catch2/catch.hpp>
#include <cstdio>

#include "executor/compiled/emit.h"
#include "executor/testing/test_plans.h"
#include "tools/cubin/cubin_compiler.h"

namespace mscclc {
namespace {

using namespace testing;

constexpr const char* kFake = "tools/cubin/libnvrtc_fake.so";

TEST_CASE("NVRTC gets source, headers and architecture") {
  const auto compiler = open_nvrtc(kFake);
  REQUIRE(compiler);
  const auto cubin = (*compiler)->compile("int x;\n", "sm_90");
  REQUIRE(cubin);
  CHECK(*cubin ==
        "kernels.cu:\nint x;\nheader mscclc_kernels.cuh\nheader mscclc_standard.cuh\n"
        "header array\nheader bit\nheader cstddef\nheader cstdint\nheader cstring\n"
        "header optional\nheader span\nheader string_view\nheader type_traits\n"
        "header cuda_runtime.h\n--std=c++20\n--device-as-default-execution-space\n"
        "--gpu-architecture=sm_90\n");
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

TEST_CASE("kernels are compiled by the real library, where it is") {
  const auto compiler = find_nvrtc();
  if (compiler == nullptr) {
    std::puts("no libnvrtc here: nothing is compiled");
    return;
  }
  for (const PacketFormatInfo& format : packet_formats()) {
    CAPTURE(format.name);
    Diagnostics diagnostics;
    const auto source = write_kernels(one_shot(2, 2, format.format).program, std::string(64, 'd'),
                                      usual_kernel_dtypes(), diagnostics);
    REQUIRE(source);
    const auto cubin = compiler->compile(*source, "sm_90");
    INFO((cubin ? "" : cubin.error().text()));
    REQUIRE(cubin);
    CHECK(
        cubin->starts_with("\x7f"
                           "ELF"));
  }
}

}  // namespace
}  // namespace mscclc
