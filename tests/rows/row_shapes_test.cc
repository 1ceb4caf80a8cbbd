// Which plans with row functions have compiled kernels, and of which types.
#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "executor/compiled/emit.h"
#include "executor/compiled/shape.h"
#include "tests/rows/row_plans.h"

namespace mscclc {
namespace {

using testing::library_row_plan;
using testing::row_plan;

std::optional<CompiledShape> norm_shape(const std::string& columns, const std::string& more,
                                        std::string& said) {
  Diagnostics diagnostics;
  auto shape =
      CompiledShape::of(row_plan("allreduce_norm", {{"N", columns}}, more), 0, diagnostics);
  if (!shape) said = diagnostics.all().back().message;
  return shape;
}

TEST_CASE("rows that a block's threads can hold have kernels") {
  std::string said;
  const auto most = norm_shape("65536", "", said);
  REQUIRE(most);
  CHECK(most->has_rows());
  CHECK(most->threads() == 1024);
  CHECK(most->arithmetic(Dtype::bf16) == "bf16");
  CHECK(!norm_shape("65552", "", said));
  CHECK(said ==
        "rank 0 of 'allreduce_norm' cannot be a compiled kernel: its rows have 65552 columns, "
        "and blocks of 1024 threads take 65536 at most");
  CHECK(norm_shape("2048", "launch threads: 32\n", said));
  CHECK(!norm_shape("4096", "launch threads: 32\n", said));
}

TEST_CASE("blocks that share rows have more threads than others with packets, of few ranks") {
  const auto threads = [](int ranks, const char* columns) {
    Diagnostics diagnostics;
    const auto program = library_row_plan(
        "allreduce_norm_2shot", {{"N", columns}, {"R", std::to_string(ranks)}, {"T", "1024"}});
    const auto shape = CompiledShape::of(program, 0, diagnostics);
    REQUIRE(shape);
    return shape->threads();
  };
  CHECK(threads(2, "8192") == 1024);
  CHECK(threads(4, "8192") == 1024);
  CHECK(threads(5, "8192") == 512);
  CHECK(threads(5, "32768") == 512);
  // More columns than 512 threads can hold.
  CHECK(threads(5, "32784") == 1024);
  CHECK(threads(8, "65536") == 1024);
}

// How far the copies of a buffer lie apart in a sample of so many rows does not matter.
TEST_CASE("rows of many columns and ranks have kernels") {
  const std::pair<const char*, const char*> kWorlds[] = {{"64", "8192"}, {"8", "65536"}};
  for (const auto& [ranks, columns] : kWorlds) {
    Diagnostics diagnostics;
    const auto program =
        library_row_plan("allreduce_norm_quantize_1shot",
                         {{"R", ranks}, {"N", columns}, {"B", "128"}, {"T", "1024"}});
    const auto shape = CompiledShape::of(program, 0, diagnostics);
    INFO(render_text(diagnostics, Sources{}, 10));
    CHECK(shape.has_value());
  }
}

TEST_CASE("plans of other functions or columns have other kernels") {
  std::string said;
  const auto shape = norm_shape("64", "", said);
  REQUIRE(shape);
  Diagnostics diagnostics;
  const auto groups = CompiledShape::of(row_plan("allreduce_groups", {}), 0, diagnostics);
  REQUIRE(groups);
  CHECK(groups->key() != shape->key());
}

TEST_CASE("kernels hand over sums in registers, but not from lines") {
  const auto source_of = [](const std::string& format) {
    Diagnostics diagnostics;
    const Dtype dtypes[] = {Dtype::bf16};
    const auto source = write_kernels(
        library_row_plan("allreduce_norm_1shot", {{"R", "3"}, {"N", "2880"}, {"F", format}}),
        std::string(64, 'd'), dtypes, diagnostics);
    REQUIRE(source);
    return *source;
  };
  const auto has = [](const std::string& source, const char* text) {
    return source.find(text) != source.npos;
  };
  for (const char* const format : {"LL8", "LL16", "sentinel"}) {
    const std::string together = source_of(format);
    CHECK(has(together,
              "block.template sum_and_apply<StepKind::reduce_packets_apply, RowFunction0<"));
    CHECK(!has(together, "block.template apply<"));
    CHECK(!has(together, "steps of their own"));
  }
  const std::string apart = source_of("LL128");
  CHECK(!has(apart, "sum_and_apply"));
  CHECK(has(apart, "block.template apply<RowFunction0<"));
  CHECK(has(apart,
            "// Of this plan sums and row functions are steps of their own: LL128 packets hold 120 "
            "bytes, which are not the columns of a thread; LL16 would save a step.\n"));
}

TEST_CASE("kernels are written of the types that rows may have") {
  const auto kernels_of = [](const std::string& columns) {
    Diagnostics diagnostics;
    const Dtype dtypes[] = {Dtype::f32, Dtype::bf16, Dtype::i32, Dtype::e4m3};
    const auto source = write_kernels(row_plan("allreduce_norm", {{"N", columns}}),
                                      std::string(64, 'd'), dtypes, diagnostics);
    REQUIRE(source);
    std::string types;
    for (const Dtype dtype : dtypes) {
      const std::string type(info(dtype).name);
      if (source->find(", " + type + ")(\n") != source->npos) types += type + " ";
      CHECK((source->find("struct RowFunction0<Dtype::" + type + ">") != source->npos) ==
            (source->find(", " + type + ")(\n") != source->npos));
    }
    return types;
  };
  CHECK(kernels_of("64") == "f32 bf16 ");
  CHECK(kernels_of("2884") == "f32 ");  // rows of bf16 are no multiple of 16 bytes
}

}  // namespace
}  // namespace mscclc
