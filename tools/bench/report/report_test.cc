#include "tools/bench/report/report.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tools/bench/results/sample_results.h"
#include "tools/io/files.h"

namespace mscclc::bench {
namespace {

Record sample_record() {
  Record record;
  record.machine = "4 x H200";
  record.results = {sample(1024, "one", Role::plan, 3), sample(2048, "one", Role::plan, 4),
                    sample(1024, "nccl", Role::baseline, 6)};
  return record;
}

TEST_CASE("a record's tables are printed as in the run") {
  const std::string text = tables_text(sample_record(), false);
  CHECK(text.starts_with("#\n# allreduce_f32_sum_graph_4gpus, 4 x H200\n#"));
  CHECK(text.find("one (copies)\n") != std::string::npos);
  CHECK(text.ends_with("  nccl\n#\n"));
}

TEST_CASE("a run in which all took part is good") {
  std::string text;
  CHECK(report(sample_record(), {}, text));
  CHECK(text.empty());
}

TEST_CASE("a run with wrong elements is not good") {
  Record record = sample_record();
  record.results[1].out_of_place->wrong = 3;
  std::string text;
  CHECK_FALSE(report(record, {}, text));
  CHECK(text == "# 1 results are wrong\n");
}

TEST_CASE("what was left out is reported, in a line") {
  Record record = sample_record();
  record.left_out = {{"two at 8 bytes", "allreduce", "no memory\nat all"}};
  std::string text;
  CHECK_FALSE(report(record, {}, text));
  CHECK(text == "# 1 left out:\n#   allreduce, two at 8 bytes: no memory\n");
}

TEST_CASE("cliffs fail, and so does a record without neighbouring sizes") {
  Options options;
  options.cliffs = true;
  Record record = sample_record();
  std::string text;
  CHECK(report(record, options, text));
  CHECK(text == "# 0 cliffs in 2 steps from a size to the next\n");
  record.results[1].out_of_place->time = 30;
  text.clear();
  CHECK_FALSE(report(record, options, text));
  CHECK(text.starts_with("# cliff: allreduce_f32_sum_graph_4gpus, out of place: 3.00 us"));
  record.results.clear();
  CHECK_FALSE(report(record, options, text));
}

TEST_CASE("plots are files") {
  Options options;
  options.svg = std::string(std::getenv("TEST_TMPDIR")) + "/plots/deep";
  std::string text, error;
  CHECK(report(sample_record(), options, text));
  CHECK(text == "# 4 plots in " + options.svg + "\n");
  const auto document = read_input(options.svg + "/allreduce_f32_sum_graph_4gpus_latency.svg");
  REQUIRE(document);
  CHECK(document->starts_with("<svg"));
}

}  // namespace
}  // namespace mscclc::bench
