#include "runtime/support/observe/call_trace.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/helpers/files/made_up_folder.h"

namespace mscclc {
namespace {

CallTrace two_calls() {
  CallTrace trace;
  trace.rank = 3;
  trace.size = 8;
  trace.group = 0xabc;
  trace.host = "node7\xff";
  trace.process = 42;
  trace.launched = 1500;
  trace.calls = {{.executable = 1, .call = 7, .bytes = 64, .launched = 1000, .ended = 2500},
                 {.executable = 1, .call = 8, .bytes = 64, .launched = 3000}};
  trace.plans[1] = {"ring", "hash", CollectiveKind::allreduce};
  trace.marks = {{1, 10, 20}, {2, 30, 45}};
  return trace;
}

}  // namespace

TEST_CASE("a trace holds calls, what they name, and when ranks met") {
  const auto read = nlohmann::json::parse(call_trace_json(two_calls()));
  CHECK(read["mscclc_trace"] == kTraceVersion);
  CHECK(read["rank"] == 3);
  CHECK(read["group"] == "0000000000000abc");
  CHECK(read["marks"] == nlohmann::json::parse("[[1,10,20],[2,30,45]]"));
  CHECK(read["plans"][0]["collective"] == "allreduce");
  REQUIRE(read["calls"].size() == 2);
  CHECK(read["calls"][0]["launched_ns"] == 1000);
  CHECK(read["calls"][0]["ended_ns"] == 2500);
  CHECK(read["calls"][1]["ended_ns"].is_null());
}

TEST_CASE("traces of several communicators get files of their own") {
  const testing::MadeUpFolder folder;
  const std::string pattern = folder.file("t-%r");
  const auto write = [](const std::string& to) {
    const auto written = write_call_trace(two_calls(), to);
    return written ? *written : "not written: " + written.error().text();
  };
  CHECK(write(pattern) == folder.file("t-3.json"));
  CHECK(write(pattern) == folder.file("t-3-2.json"));
  CHECK(write("%x") == "not written: '%x' is not a file name with %h, %p, %r and %%");
  const std::string no_folder = write(folder.file("none/t"));
  CHECK_THAT(no_folder, Catch::StartsWith("not written: ") && Catch::Contains("No such file"));
}

TEST_CASE("the first marks stay, and the last") {
  ClockMarks marks;
  constexpr uint64_t kMany = 1000;
  for (uint64_t i = 1; i <= kMany; ++i) {
    marks.add(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
  }
  CHECK(marks.all().size() == ClockMarks::kFirst + ClockMarks::kLast);
  CHECK(marks.count() == kMany);
  for (uint64_t n = 1; n <= kMany; ++n) {
    const bool kept = n <= ClockMarks::kFirst || n > kMany - ClockMarks::kLast;
    const auto found = std::ranges::count(marks.all(), n, &ClockMark::number);
    CHECK(found == (kept ? 1 : 0));
  }
}

TEST_CASE("what all ranks exchanged has one digest") {
  const std::vector<std::vector<uint8_t>> a = {{1, 2}, {3}}, b = {{1}, {2, 3}};
  CHECK(digest_of(a) == digest_of(a));
  CHECK(digest_of(a) != digest_of(b));
}

}  // namespace mscclc
