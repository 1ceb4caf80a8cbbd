// GEMMs of the host device that are timed for real: all kinds, types and backends, with results
// that are checked. Times themselves are not looked at.
#include "tools/tune/overlap/team_gemm_timer.h"

#include <catch2/catch.hpp>

#include "tools/tune/overlap/gemm_results_test.h"

namespace mscclc::tune {
namespace {

using namespace overlap;

const TeamOptions kFast{.ranks = 2, .batches = 2, .batch = std::chrono::microseconds(1)};

}  // namespace

TEST_CASE("a team times all kinds and types, whatever the backend, and finds them right") {
  Diagnostics diagnostics;
  const auto timer = TeamGemmTimer::start(kFast, diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(timer != nullptr);
  CHECK(timer->device() == "host");
  CHECK(timer->why_no_nccl() == "it was not asked for");
  for (const KindInfo& kind : kinds()) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::e4m3}) {
      OverlapConfig shape = shape_of(kind.kind, 32, 24, 16);
      shape.a_dtype = shape.b_dtype = dtype;
      shape.out_dtype = is_wide(dtype) ? dtype : Dtype::bf16;
      if (!kind.sums) shape.n = {16, 8};
      for (const GemmWay& way :
           {GemmWay{kSerial}, GemmWay{kCopyEngine, 1, 1}, GemmWay{kFlagged, 2, 8}}) {
        INFO(name(kind.kind) << ", " << info(dtype).name << ", " << text_of(way));
        const auto taken = timer->time(in_way(shape, way), RunMode::eager, diagnostics);
        INFO(render_text(diagnostics, Sources{}));
        REQUIRE(taken);
        CHECK(taken->wrong == 0);
        CHECK(taken->ns > 0);
      }
    }
  }
  CHECK_FALSE(timer->broken());
}

TEST_CASE("an object that cannot be made is reported, and others go on") {
  Diagnostics diagnostics, refused;
  const auto timer = TeamGemmTimer::start(kFast, diagnostics);
  REQUIRE(timer != nullptr);
  const OverlapConfig shape = shape_of(OverlapKind::gemm_allreduce, 6, 4, 4);
  CHECK_FALSE(timer->time(in_way(shape, {kCopyEngine, 4, 1}), RunMode::eager, refused));
  REQUIRE(refused.has_errors());
  CHECK(refused.all().front().code == "bad-call");
  CHECK_FALSE(timer->broken());
  CHECK(timer->time(in_way(shape, {kSerial}), RunMode::eager, diagnostics));
}

}  // namespace mscclc::tune
