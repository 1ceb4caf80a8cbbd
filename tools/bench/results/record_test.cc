#include "tools/bench/results/record.h"

#include <catch2/catch.hpp>

#include "tools/bench/results/sample_results.h"
#include "tools/io/files.h"

namespace mscclc::bench {
namespace {

TEST_CASE("a result is one line") {
  CHECK(result_line(sample(1024, "one", Role::plan, 2)) ==
        R"({"collective":"allreduce","type":"f32","redop":"sum","root":-1,"mode":"graph",)"
        R"("size":1024,"count":256,"offset":0,"ranks":4,"who":"one","role":"plan",)"
        R"("ordered_by":"copies","bus_factor":1.5,)"
        R"("out_of_place":{"time":2.0,"p50":2.0,"p99":4.0,"algbw":0.512,"busbw":0.768,"wrong":0},)"
        R"("in_place":{"time":3.0,"p50":2.0,"p99":4.0,"algbw":0.341,"busbw":0.512,"wrong":0}})"
        "\n");
}

TEST_CASE("what is written is read back") {
  Result r = sample(4096, "nccl", Role::baseline, 7.5);
  r.in_place.reset();
  r.out_of_place->checked = false;
  const std::string text = machine_line("4 x H200") + result_line(r) +
                           left_out_line({"two", "allgather", "no \"memory\""}) + "\n" +
                           start_up_line({"GPU", 12.5, 7});
  Record record;
  Diagnostics diagnostics;
  REQUIRE(read_record(text, "r.jsonl", record, diagnostics));
  CHECK(record.machine == "4 x H200");
  REQUIRE(record.results.size() == 1);
  CHECK(result_line(record.results[0]) == result_line(r));
  REQUIRE(record.left_out.size() == 1);
  CHECK(record.left_out[0].why == "no \"memory\"");
  REQUIRE(record.start_up.size() == 1);
  CHECK(record.start_up[0].milliseconds == 12.5);
  CHECK(record.start_up[0].bytes == 7);
}

TEST_CASE("costs between other kernels are written where there are any") {
  Result r = sample(1024, "one", Role::plan, 2);
  CHECK(result_line(r).find("between") == std::string::npos);
  r.between = "2 us";
  r.out_of_place->between = 3.25;
  CHECK(result_line(r).find("between_early") == std::string::npos);
  r.out_of_place->between_early = 2.75;
  const std::string text = result_line(r);
  Record record;
  Diagnostics diagnostics;
  REQUIRE(read_record(text, "r.jsonl", record, diagnostics));
  REQUIRE(record.results.size() == 1);
  CHECK(record.results[0].between == "2 us");
  CHECK(record.results[0].out_of_place->between == 3.25);
  CHECK(record.results[0].out_of_place->between_early == 2.75);
  CHECK(record.results[0].in_place->between == 0);
  CHECK(record.results[0].in_place->between_early == 0);
  CHECK(result_line(record.results[0]) == text);
}

TEST_CASE("MSCCL++'s recorded figures can be read") {
  const auto text = read_input("tools/bench/results/mscclpp_4xh200.jsonl");
  REQUIRE(text);
  Record record;
  Diagnostics diagnostics;
  REQUIRE(read_record(*text, "mscclpp", record, diagnostics));
  CHECK(record.results.size() == 88);
  for (const Result& r : record.results) CHECK((r.role == Role::baseline && r.time()));
}

TEST_CASE("a result that cannot be one is refused") {
  const auto why_not = [](const std::string& from, const std::string& to) {
    std::string text = result_line(sample(1024, "one", Role::plan, 2));
    text.replace(text.find(from), from.size(), to);
    Record record;
    Diagnostics diagnostics;
    CHECK_FALSE(read_record(text, "r", record, diagnostics));
    return diagnostics.all().empty() ? "" : diagnostics.all()[0].message;
  };
  // Files of plots get names of these.
  CHECK(why_not("\"allreduce\"", R"("../../x")") == "r:1: 'collective' is no word");
  CHECK(why_not("\"f32\"", R"("/tmp/x")") == "r:1: 'type' is no word");
  CHECK(why_not("\"sum\"", R"("a/b")") == "r:1: 'redop' is no word");
  CHECK(why_not("\"graph\"", R"("a\u0000b")") == "r:1: 'mode' is no word");
  for (const char* time : {"5e-324", "1.7e308", "-1"}) {
    CHECK(why_not("\"time\":2.0", std::string("\"time\":") + time) ==
          "r:1: 'time' is no time of a call");
  }
  CHECK(why_not("\"size\":1024", "\"size\":4611686018427387904") ==
        "r:1: 'size' is beyond 1152921504606846976");
  CHECK(why_not("\"ranks\":4", "\"ranks\":4294967300") == "r:1: 'ranks' is beyond 4294967295");
}

TEST_CASE("a line that is no result is reported with its number") {
  Record record;
  Diagnostics diagnostics;
  CHECK_FALSE(read_record("{\"machine\":\"m\"}\n{\"x\":1}\n", "r.jsonl", record, diagnostics));
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].message.starts_with("r.jsonl:2: "));
  CHECK_FALSE(read_record("nonsense", "r.jsonl", record, diagnostics));
}

}  // namespace
}  // namespace mscclc::bench
