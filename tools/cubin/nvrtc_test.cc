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
  std::string why, error;
  const auto compiler = open_nvrtc(kFake, why);
  REQUIRE(why == "");
  REQUIRE(compiler != nullptr);
  const auto cubin = compiler->compile("int x;\n", "sm_90", error);
  REQUIRE(cubin);
  CHECK(*cubin ==
        "kernels.cu:\nint x;\nheader mscclc_kernels.cuh\nheader mscclc_standard.cuh\n"
        "header array\nheader bit\nheader cstddef\nheader cstdint\nheader cstring\n"
        "header optional\nheader span\nheader string_view\nheader type_traits\n"
        "header cuda_runtime.h\n--std=c++20\n--device-as-default-execution-space\n"
        "--gpu-architecture=sm_90\n");
  CHECK(error == "");
}

TEST_CASE("what NVRTC says of an error is passed on") {
  std::string why, error;
  const auto compiler = open_nvrtc(kFake, why);
  REQUIRE(compiler != nullptr);
  CHECK(!compiler->compile("broken\n", "sm_90", error));
  CHECK(error == "libnvrtc failed: NVRTC_ERROR_COMPILATION\nkernels.cu(1): error: broken");
}

TEST_CASE("a file that is no libnvrtc is refused with a reason") {
  std::string why;
  CHECK(open_nvrtc("tools/none.so", why) == nullptr);
  CHECK(why.find("tools/none.so") != std::string::npos);
  CHECK(open_nvrtc("libdl.so.2", why) == nullptr);
  CHECK(why == "it lacks functions of NVRTC 11.1 and later");
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
    std::string error;
    const auto cubin = compiler->compile(*source, "sm_90", error);
    CHECK(error == "");
    REQUIRE(cubin);
    CHECK(
        cubin->starts_with("\x7f"
                           "ELF"));
  }
}

}  // namespace
}  // namespace mscclc
