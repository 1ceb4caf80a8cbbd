#include "tools/report/call_report.h"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/support/observe/call_trace.h"

namespace mscclc {
namespace {

/// A rank of three whose clock is `ahead`, and which launches calls 1 to 3 at these microseconds.
CallTrace trace_of(uint32_t rank, int64_t ahead, const std::vector<int64_t>& launched_us,
                   const std::string& host = "node0") {
  CallTrace trace;
  trace.rank = rank;
  trace.size = 3;
  trace.group = 7;
  trace.host = host;
  trace.launched = launched_us.size();
  trace.plans[1] = {"ring", "", CollectiveKind::allreduce};
  trace.marks = {{1, ahead + 1'000'000, ahead + 1'010'000},
                 {2, ahead + 2'000'000, ahead + 2'004'000}};
  for (size_t i = 0; i < launched_us.size(); ++i) {
    const int64_t at = ahead + 10'000'000 + launched_us[i] * 1000;
    trace.calls.push_back({.executable = 1,
                           .call = i + 1,
                           .bytes = 1024,
                           .launched = at,
                           .ended = i == 0 ? 0 : at + 50'000});
  }
  return trace;
}

RankCalls read(const CallTrace& trace) {
  Diagnostics diagnostics;
  const auto calls = read_calls(call_trace_json(trace), "a file", diagnostics);
  REQUIRE(calls);
  return *calls;
}

std::string why_not(const std::string& text) {
  Diagnostics diagnostics;
  CHECK_FALSE(read_calls(text, "t.json", diagnostics));
  REQUIRE(diagnostics.all().size() == 1);
  return diagnostics.all()[0].message;
}

std::string report(std::vector<RankCalls> ranks) {
  Diagnostics diagnostics;
  const auto text = report_calls(std::move(ranks), diagnostics);
  REQUIRE(text);
  return *text;
}

}  // namespace

TEST_CASE("which rank was late to which call, by how much") {
  const std::string text =
      report({read(trace_of(0, 0, {0, 100, 200})), read(trace_of(1, 0, {5, 900, 201})),
              read(trace_of(2, 0, {3, 101, 215}))});
  CHECK(text ==
        "files of 3 of 3 ranks; 3 calls are in all of them\n"
        "clocks: all ranks have the same\n"
        "\n"
        "how late each rank came, in us after the first to come\n"
        "  rank  came last to      median        most  at\n"
        "     0             0         0.0         0.0  call 1 of executable 1\n"
        "     1             2         5.0       800.0  call 2 of executable 1\n"
        "     2             1         3.0        15.0  call 3 of executable 1\n"
        "\n"
        "the calls whose ranks came furthest apart\n"
        "     800.0 us  call 2 of executable 1: rank 1 after rank 0; allreduce of 1024 bytes, f32, "
        "sum "
        "('ring')\n"
        "      15.0 us  call 3 of executable 1: rank 2 after rank 0; allreduce of 1024 bytes, f32, "
        "sum "
        "('ring')\n"
        "       5.0 us  call 1 of executable 1: rank 1 after rank 0; allreduce of 1024 bytes, f32, "
        "sum "
        "('ring')\n");
}

TEST_CASE("clocks of other machines are brought together, as far as that can be known") {
  const std::string text = report({read(trace_of(0, 0, {0, 100, 200})),
                                   read(trace_of(1, 5'000'000'000, {0, 400, 200}, "node1"))});
  CHECK(text.find("files of 2 of 3 ranks") != std::string::npos);
  CHECK(
      text.find(
          "clocks: that of rank 1 is 5000000.0 us ahead of that of rank 0, give or take 4.0 us") !=
      std::string::npos);
  CHECK(text.find("     300.0 us  call 2 of executable 1: rank 1 after rank 0") !=
        std::string::npos);
}

TEST_CASE("a rank of whose clock nothing is known is not compared") {
  CallTrace apart = trace_of(2, 9'000'000'000'000, {0, 100, 200}, "node2");
  apart.marks.clear();
  const std::vector<RankCalls> ranks = {read(trace_of(0, 0, {0, 100, 200})),
                                        read(trace_of(1, 0, {0, 400, 200})), read(apart)};
  const std::string text = report(ranks);
  CHECK(text.find("nothing says how far that of rank 2 is from that of rank 0: it is left out") !=
        std::string::npos);
  CHECK(text.find("     300.0 us  call 2 of executable 1: rank 1 after rank 0") !=
        std::string::npos);
  CHECK(text.find("\n     2  ") == std::string::npos);
  CHECK(report({ranks[0], ranks[2]}).find("how late") == std::string::npos);
  // Its slices begin with its own first call.
  const auto trace = nlohmann::json::parse(chrome_calls(ranks));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") CHECK(event["ts"].get<double>() <= 400);
  }
}

TEST_CASE("ranks that kept other calls are compared by those that all have") {
  CallTrace late = trace_of(1, 0, {0, 1, 2});
  late.calls.erase(late.calls.begin());
  CHECK(report({read(trace_of(0, 0, {0, 1, 2})), read(late)}).find("; 2 calls are in all") !=
        std::string::npos);
  late.calls.clear();
  CHECK(report({read(trace_of(0, 0, {0, 1, 2})), read(late)}).find("; 0 calls are in all") !=
        std::string::npos);
}

TEST_CASE("each communicator has a report of its own") {
  CallTrace other = trace_of(0, 0, {0});
  other.group = 8;
  const std::string text =
      report({read(trace_of(0, 0, {0, 1})), read(other), read(trace_of(1, 0, {0, 2}))});
  CHECK(text.find("2 of 3 ranks") != std::string::npos);
  CHECK(text.find("\n\nfiles of 1 of 3 ranks") != std::string::npos);
}

TEST_CASE("files of two jobs are not reported as those of one") {
  CallTrace other = trace_of(1, 0, {0, 1});
  other.group = 8;
  Diagnostics diagnostics;
  CHECK_FALSE(report_calls({read(trace_of(0, 0, {0, 1})), read(other)}, diagnostics));
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].code == "traces-differ");
  CHECK(diagnostics.all()[0].message ==
        "'a file' and 'a file' are of two jobs, or communicators: the files of each have a 'group' "
        "of their own");
  // All files of both are two reports.
  CallTrace first = trace_of(0, 0, {0});
  first.group = 8;
  CHECK(report({read(trace_of(0, 0, {0})), read(trace_of(1, 0, {0})), read(first), read(other)})
            .find("\n\nfiles of 2 of 3 ranks") != std::string::npos);
}

TEST_CASE("what is not a rank's file is an error") {
  const std::string good = call_trace_json(trace_of(0, 0, {0}));
  CHECK(is_call_trace(good));
  CHECK_FALSE(is_call_trace("{\"mscclc_flight\": 1}"));
  CHECK(why_not("[]") ==
        "'t.json' is not a record of a rank's calls: it is not JSON that a rank wrote");
  const auto with = [&](const char* key, nlohmann::json value) {
    auto root = nlohmann::json::parse(good);
    root[key] = std::move(value);
    return why_not(root.dump());
  };
  CHECK(with("mscclc_trace", 2).find("not of version 1") != std::string::npos);
  CHECK(with("rank", 3).find("'rank' is not less than 'size'") != std::string::npos);
  CHECK(with("marks", {{1, 2}}).find("a mark is not three numbers") != std::string::npos);
  CHECK(with("marks", {{1, 2, -3}}).find("not a number of nanoseconds") != std::string::npos);
  CHECK(with("calls", {{1}}).find("'executable' is not a number") != std::string::npos);
  CHECK(with("host", 5).find("'host' is no text") != std::string::npos);
  Diagnostics diagnostics;
  RankCalls other = read(trace_of(1, 0, {0}));
  other.size = 4;
  CHECK_FALSE(report_calls({read(trace_of(0, 0, {0})), other}, diagnostics));
  CHECK(diagnostics.all()[0].code == "traces-differ");
  // A copy of a file, of many.
  const RankCalls first = read(trace_of(0, 0, {0, 1}));
  RankCalls copy = first;
  copy.file = "copy.json";
  Diagnostics twice;
  CHECK_FALSE(report_calls({first, read(trace_of(1, 0, {0, 2})), copy}, twice));
  CHECK(twice.all()[0].message == "'a file' and 'copy.json' are the same record of rank 0");
}

TEST_CASE("calls in Chrome's format") {
  const auto events = nlohmann::json::parse(chrome_calls(
      {read(trace_of(0, 0, {0, 100})), read(trace_of(1, 5'000'000'000, {7, 100}, "node1"))}));
  size_t calls = 0, names = 0;
  for (const auto& event : events["traceEvents"]) {
    names += event["name"] == "thread_name" && event["args"]["name"] == "stream 0x0" ? 1 : 0;
    if (event["name"] == "process_sort_index") {
      CHECK(event["args"]["sort_index"] == event["pid"]);
    }
    if (event["ph"] != "X") continue;
    ++calls;
    CHECK(event["name"] == "allreduce");
    CHECK(event["ts"].get<double>() >= 0);
    CHECK(event["ts"].get<double>() < 1000);
    CHECK(event["args"]["end_known"] == (event["args"]["call"] == 2));
  }
  CHECK(calls == 4);
  CHECK(names == 2);
}

TEST_CASE("communicators have processes of their own in Chrome's format, and clocks by host") {
  CallTrace other = trace_of(0, 1'000'000'000, {0, 100}, "node1");
  other.group = 8;
  CallTrace beside = trace_of(0, 0, {50});
  beside.group = 9;
  const auto events = nlohmann::json::parse(
      chrome_calls({read(trace_of(0, 0, {0, 100})), read(other), read(beside)}));
  std::map<int, std::string> names;
  std::map<int, std::vector<double>> begins;
  for (const auto& event : events["traceEvents"]) {
    const int process = event["pid"];
    if (event["name"] == "process_name") names[process] = event["args"]["name"];
    if (event["ph"] == "X") begins[process].push_back(event["ts"]);
  }
  REQUIRE(names.size() == 3);
  const std::vector<RankCalls> all = {read(trace_of(0, 0, {0})), read(other), read(beside)};
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string host = i == 1 ? "node1" : "node0";
    CHECK(names[static_cast<int>(i)] == "rank 0 of group " + all[i].group + " on " + host);
  }
  CHECK(begins[0] == std::vector<double>{0, 100});
  CHECK(begins[1] == std::vector<double>{0, 100});
  CHECK(begins[2] == std::vector<double>{50});  // one clock with the first
}

}  // namespace mscclc
