// What products cuBLASLt is asked for, and what of its refusals users get to know: by a fake of it.
#include "runtime/devices/cuda/gemm/cublaslt.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "tests/fakes/cuda/fake_driver.h"

namespace mscclc::cuda {
namespace {

/// Of 8-bit floats, as Hopper takes it.
Gemm narrow_product() {
  return {.m = 24,
          .n = 32,
          .k = 48,
          .a_stride = 48,
          .b_stride = 48,
          .d_stride = 32,
          .b_transposed = true,
          .a_dtype = Dtype::e4m3,
          .b_dtype = Dtype::e5m2,
          .d_dtype = Dtype::bf16,
          .has_bias = true,
          .has_scales = true};
}

/// What the fake counts, as "fakeCublasLtLive".
int counted(const char* what) {
  void* const fake = ::dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(fake != nullptr);
  const auto count = reinterpret_cast<int (*)()>(::dlsym(fake, what));
  REQUIRE(count != nullptr);
  const int found = count();
  ::dlclose(fake);
  return found;
}

/// What preparing a product and making it says; "": both are done.
std::string said_of(const Gemm& gemm) {
  FakeDriver fake;
  FakeDriver::enter(0);
  Diagnostics diagnostics;
  const SharedContext context = PrimaryContext::open(fake.driver(), 0, diagnostics);
  REQUIRE(context != nullptr);
  const auto products = make_cublaslt(context, diagnostics);
  if (products != nullptr && products->prepare(gemm, diagnostics)) {
    CHECK(products->run(gemm, nullptr, diagnostics));
  }
  return diagnostics.all().empty() ? "" : diagnostics.all().front().message;
}

TEST_CASE("products of 8-bit floats that cuBLASLt lacks are refused with what it takes") {
  CHECK(said_of(narrow_product()) == "");
  const auto refused = [](const std::string& product, const auto& change) {
    Gemm gemm = narrow_product();
    change(gemm);
    CHECK(said_of(gemm) ==
          "cuBLASLt has no GEMM of " + product +
              " (status 15); of types of 8 bits B must lie as [n, k] (b_transposed), k and n must "
              "be multiples of 16, and not both types be e5m2");
  };
  refused("m = 24, n = 32, k = 48, e4m3 times e5m2 to bf16", [](Gemm& g) {
    g.b_transposed = false;
    g.b_stride = 32;
  });
  refused("m = 24, n = 32, k = 40, e4m3 times e5m2 (transposed) to bf16",
          [](Gemm& g) { g.k = g.a_stride = g.b_stride = 40; });
  refused("m = 24, n = 40, k = 48, e4m3 times e5m2 (transposed) to bf16",
          [](Gemm& g) { g.n = g.d_stride = 40; });
  refused("m = 24, n = 32, k = 48, e5m2 times e5m2 (transposed) to bf16",
          [](Gemm& g) { g.a_dtype = Dtype::e5m2; });
  refused("m = 24, n = 32, k = 48, e4m3 times e5m2 (transposed) to f32",
          [](Gemm& g) { g.d_dtype = Dtype::f32; });
}

TEST_CASE("products of a GPU share one handle of cuBLASLt, which lives as long as they do") {
  FakeDriver fake({.devices = 2});
  FakeDriver::enter(0);
  Diagnostics diagnostics;
  const int before = counted("fakeCublasLtMade");
  {
    const SharedContext context = PrimaryContext::open(fake.driver(), 0, diagnostics);
    const SharedContext again = PrimaryContext::open(fake.driver(), 0, diagnostics);
    const SharedContext other = PrimaryContext::open(fake.driver(), 1, diagnostics);
    auto first = make_cublaslt(context, diagnostics), second = make_cublaslt(again, diagnostics);
    CHECK(counted("fakeCublasLtMade") == before + 1);
    auto elsewhere = make_cublaslt(other, diagnostics);
    CHECK(counted("fakeCublasLtMade") == before + 2);
    elsewhere.reset();
    first.reset();
    CHECK(counted("fakeCublasLtLive") == 1);
    REQUIRE(second->prepare(narrow_product(), diagnostics));
    CHECK(second->run(narrow_product(), nullptr, diagnostics));
    second.reset();
    CHECK(counted("fakeCublasLtLive") == 0);
    CHECK(make_cublaslt(context, diagnostics) != nullptr);
    CHECK(counted("fakeCublasLtMade") == before + 3);
  }
  CHECK(counted("fakeCublasLtLive") == 0);
  CHECK(diagnostics.all().empty());
}

TEST_CASE("cuBLASLt takes products of wider types in both layouts, of any sizes") {
  for (const bool transposed : {false, true}) {
    Gemm gemm = narrow_product();
    gemm.a_dtype = gemm.b_dtype = Dtype::bf16;
    gemm.has_scales = false;
    gemm.n = gemm.d_stride = 7;
    gemm.b_transposed = transposed;
    gemm.b_stride = transposed ? gemm.k : gemm.n;
    CHECK(said_of(gemm) == "");
  }
}

}  // namespace
}  // namespace mscclc::cuda
