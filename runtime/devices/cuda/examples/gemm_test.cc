// The example multiplies, launched early or not. Needs a GPU; without one it says so.
#include "runtime/devices/cuda/examples/gemm.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <vector>

#include "executor/cuda/testing/memory.h"

namespace mscclc::examples {
namespace {

using cuda::DeviceMemory;

/// Small whole numbers: sums are exact in any order.
std::vector<float> numbers(size_t count, uint32_t step) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(i * step % 7) - 3;
  return out;
}

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, uint32_t m,
                           uint32_t n, uint32_t k) {
  std::vector<float> c(size_t{m} * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

TEST_CASE("a product whose last round lets the next call begin") {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no GPU here: nothing is tested");
    return;
  }
  constexpr uint32_t kM = 128, kN = 192, kK = 64;
  const auto a = numbers(size_t{kM} * kK, 3), b = numbers(size_t{kK} * kN, 5);
  const auto first = product(a, b, kM, kN, kK);
  Diagnostics diagnostics;
  DeviceMemory at_a, at_b, at_c, at_d;
  REQUIRE(at_a.upload(a, diagnostics));
  REQUIRE(at_b.upload(b, diagnostics));
  REQUIRE(at_c.allocate(first.size() * sizeof(float), diagnostics));
  const auto next = numbers(size_t{kN} * kN, 2);
  const auto second = product(first, next, kM, kN, kN);
  DeviceMemory at_next;
  REQUIRE(at_next.upload(next, diagnostics));
  REQUIRE(at_d.allocate(second.size() * sizeof(float), diagnostics));
  // The second reads what the first has not yet written when it lets the second begin.
  const Gemm gemm{at_a.data<float>(), at_b.data<float>(), at_c.data<float>(), kM, kN, kK};
  const Gemm following{at_c.data<float>(), at_next.data<float>(), at_d.data<float>(), kM, kN, kN};
  REQUIRE(launch_gemm(gemm, false, nullptr) == cudaSuccess);
  REQUIRE(launch_gemm(following, true, nullptr) == cudaSuccess);
  std::vector<float> found(second.size());
  REQUIRE(cudaMemcpy(found.data(), at_d.data(), found.size() * sizeof(float),
                     cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(found == second);
}

}  // namespace
}  // namespace mscclc::examples
