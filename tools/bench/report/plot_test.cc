#include "tools/bench/report/plot.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tools/bench/results/sample_results.h"

namespace mscclc::bench {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_CASE("a line runs from corner to corner of its axes") {
  const std::string text = svg(
      {"t", "x", "y", {{"a", {{1024, 1.0}, {4096, 10.0}, {16384, 100.0}}, Line::Style::plain}}});
  CHECK(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(text.ends_with("</svg>\n"));
  // Equal factors are equal distances, on both axes.
  CHECK(text.find("points=\"78.0,444.3 354.0,252.0 630.0,59.7\"") != std::string::npos);
  CHECK(count(text, "<circle") == 3);
  CHECK(count(text, ">4 KiB<") == 1);
  CHECK(count(text, ">10<") == 1);
}

TEST_CASE("one size alone, or nothing, is drawn too") {
  CHECK(count(svg({"t", "x", "y", {{"a", {{1024, 1.0}}, Line::Style::bold}}}), "<circle") == 1);
  CHECK(count(svg({"t", "x", "y", {}}), "<polyline") == 0);
  CHECK(count(svg({"t", "x", "y", {{"a", {}, Line::Style::bold}}}), "nan") == 0);
}

TEST_CASE("what has no place on logarithmic axes is left out") {
  const Series points = {{0, 1.0},    {1024, 0.0},           {2048, 5e-324},
                         {4096, 2.0}, {8192, HUGE_VAL},      {16384, 1.7e308},
                         {32768, -1}, {uint64_t{1} << 63, 1}};
  const std::string text = svg({"t", "x", "y", {{"a", points, Line::Style::plain}}});
  CHECK(count(text, "<circle") == 1);
  CHECK(count(text, "nan") == 0);
  CHECK(count(svg({"t", "x", "y", {{"a", {{1024, 0.0}}, Line::Style::plain}}}), "<circle") == 0);
}

TEST_CASE("names are escaped") {
  CHECK(count(svg({"a<b & c", "x", "y", {}}), "a&lt;b &amp; c") == 1);
}

TEST_CASE("each table gives latency and bandwidth, of the fastest plan and of all others") {
  const std::vector<Result> results = {
      sample(1024, "one", Role::plan, 3), sample(2048, "two", Role::plan, 4),
      sample(1024, "nccl", Role::baseline, 6), sample(2048, "copy", Role::floor, 1)};
  const auto files = plots_of(results, "4 x H200");
  REQUIRE(files.size() == 4);
  CHECK(files[0].first == "allreduce_f32_sum_graph_4gpus_latency.svg");
  CHECK(files[1].first == "allreduce_f32_sum_graph_4gpus_busbw.svg");
  CHECK(files[2].first == "allreduce_f32_sum_graph_4gpus_in_place_latency.svg");
  CHECK(count(files[0].second, "<polyline") == 3);
  CHECK(count(files[0].second, ">mscclc, fastest plan<") == 1);
  CHECK(count(files[0].second, ">nccl<") == 1);
  CHECK(count(files[0].second, "stroke-dasharray") == 2);  // the floor and its legend
}

}  // namespace
}  // namespace mscclc::bench
