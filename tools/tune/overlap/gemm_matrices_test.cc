// What is looked at of results: those that are wrong are found.
#include "tools/tune/overlap/gemm_matrices.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tools/run/rank_device.h"

namespace mscclc::tune {

TEST_CASE("a result that nothing has written is wrong, and so is another rank's") {
  Diagnostics diagnostics;
  const auto device = open_rank_device({}, 0, 0, diagnostics);
  REQUIRE(device != nullptr);
  const OverlapConfig shape{.kind = OverlapKind::allgather_gemm,
                            .m = 8,
                            .k = 16,
                            .n = {4},
                            .a_dtype = Dtype::f32,
                            .b_dtype = Dtype::f32,
                            .out_dtype = Dtype::f32};
  const auto matrices = GemmMatrices::make(*device, shape, 0, 2, diagnostics);
  REQUIRE(matrices != nullptr);
  REQUIRE(matrices->poison(diagnostics));
  CHECK(matrices->wrong(diagnostics) == 64);
  std::memset(matrices->call().out[0], 0, 8 * 4 * sizeof(float));
  CHECK(matrices->wrong(diagnostics).value() > 32);
  CHECK(matrices->fit(shape));
  OverlapConfig other = shape;
  other.k = 8;
  CHECK_FALSE(matrices->fit(other));
}

}  // namespace mscclc::tune
