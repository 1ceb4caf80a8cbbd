// Over how many CUDA blocks compiled kernels spread the thread blocks of their plans.
#include <catch2/catch.hpp>
#include <string>

#include "executor/compiled/cluster.h"
#include "executor/compiled/emit.h"
#include "tests/library/library.h"
#include "tests/rows/row_plans.h"

namespace mscclc {
namespace {

const Dtype kTypes[] = {Dtype::bf16};

std::string source_of(const Program& program) {
  Diagnostics diagnostics;
  const auto source = write_kernels(program, std::string(32, '0'), kTypes, diagnostics);
  REQUIRE(source);
  return *source;
}

/// What a program's kernels say of their clusters: the lines of the source that name them.
std::string clusters_of(const Program& program) {
  const std::string source = source_of(program);
  std::string lines;
  for (size_t at = 0; (at = source.find("MSCCLC_CLUSTER", at)) != std::string::npos;) {
    const size_t end = source.find('\n', at);
    const std::string line = source.substr(at, end - at) + '\n';
    if (lines.find(line) == std::string::npos) lines += line;  // ranks differ in places
    at = end;
  }
  return lines;
}

std::string clusters_of_norm(const std::string& columns, const std::string& blocks,
                             const std::string& threads) {
  return clusters_of(testing::library_row_plan(
      "allreduce_norm_1shot",
      {{"R", "2"}, {"N", columns}, {"B", blocks}, {"T", threads}, {"F", "sentinel"}}));
}

/// How many threads and blocks of a multiprocessor the kernels of an all-reduce with a norm have.
std::string bounds_of(const std::vector<std::pair<std::string, std::string>>& defines) {
  const std::string source = source_of(testing::library_row_plan("allreduce_norm_1shot", defines));
  const size_t at = source.find("__launch_bounds__");
  REQUIRE(at != std::string::npos);
  return source.substr(at, source.find(')', at) + 1 - at);
}

TEST_CASE("compiled kernels: blocks of wide rows are clusters, of 128 threads each") {
  CHECK(clusters_of_norm("6144", "6", "768") == "MSCCLC_CLUSTER 6\nMSCCLC_CLUSTER_BOUNDS(768)\n");
  CHECK(clusters_of_norm("16384", "8", "1024") ==
        "MSCCLC_CLUSTER 8\nMSCCLC_CLUSTER_BOUNDS(1024)\n");
  CHECK(clusters_of_norm("2880", "1", "384") == "MSCCLC_CLUSTER 3\nMSCCLC_CLUSTER_BOUNDS(384)\n");
  CHECK(clusters_of_norm("1024", "1", "128").empty());
}

TEST_CASE(
    "compiled kernels: a cluster has a multiprocessor of 128 for each of its blocks, or has two") {
  CHECK(clusters_of_norm("4096", "32", "512") == "MSCCLC_CLUSTER 4\nMSCCLC_CLUSTER_BOUNDS(512)\n");
  CHECK(clusters_of_norm("4096", "64", "512") == "MSCCLC_CLUSTER 2\nMSCCLC_CLUSTER_BOUNDS(512)\n");
  CHECK(clusters_of_norm("8192", "128", "1024") ==
        "MSCCLC_CLUSTER 2\nMSCCLC_CLUSTER_BOUNDS(1024)\n");
}

TEST_CASE(
    "compiled kernels: of more blocks than multiprocessors each is single, and all are there") {
  const auto bounds_of_norm = [](const char* blocks, const char* threads) {
    return bounds_of({{"R", "2"}, {"N", "4096"}, {"B", blocks}, {"T", threads}, {"F", "sentinel"}});
  };
  CHECK(clusters_of_norm("4096", "256", "512").empty());
  CHECK(bounds_of_norm("256", "512") == "__launch_bounds__(512, 2)");
  CHECK(bounds_of_norm("512", "256") == "__launch_bounds__(256, 4)");
  CHECK(bounds_of_norm("512", "1024") == "__launch_bounds__(1024)");  // no GPU has room for them
}

TEST_CASE("compiled kernels: blocks that signal, or have no rows, are single ones") {
  const CompiledWorld sums("allreduce_1shot_ordered", {{"R", "2"}, {"B", "2"}, {"T", "1024"}});
  REQUIRE(sums.errors().empty());
  CHECK(clusters_of(sums.program()).empty());
  CHECK(
      clusters_of(testing::library_row_plan("allreduce_norm_push",
                                            {{"R", "2"}, {"N", "8192"}, {"B", "8"}, {"T", "1024"}}))
          .empty());
}

TEST_CASE("compiled kernels: blocks that write over what their threads have in common are single") {
  CHECK(clusters_of(testing::row_plan("allreduce_state", {{"R", "2"}, {"N", "4096"}})).empty());
}

}  // namespace
}  // namespace mscclc
