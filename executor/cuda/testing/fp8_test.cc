// fp8 is converted on the GPU, by its instructions, to the bits that the host gives. Needs a GPU;
// without one it says so.
#include <catch2/catch.hpp>
#include <cstdio>

#include "executor/cuda/testing/fp8_check.h"
#include "executor/cuda/testing/ranks.h"

namespace mscclc::cuda {
namespace {

TEST_CASE("the GPU converts fp8 as the host does") {
  if (!CudaRanks::available()) {
    std::puts("no GPU here: nothing is tested");
    return;
  }
  for (const Dtype dtype : {Dtype::e4m3, Dtype::e5m2}) {
    Differences found;
    REQUIRE(compare_conversions(dtype, found) == 0);
    INFO(info(dtype).name << ", such as " << std::hex << found.example);
    CHECK(found.floats == 0);
    CHECK(found.codes == 0);
  }
}

}  // namespace
}  // namespace mscclc::cuda
