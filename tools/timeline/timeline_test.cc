#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "executor/cost/model.h"
#include "executor/testing/test_plans.h"
#include "tools/timeline/chrome.h"
#include "tools/timeline/page.h"
#include "tools/timeline/predicted.h"

namespace mscclc::timeline {
namespace {

using mscclc::testing::TestProgram;
using nlohmann::json;

Machine four_gpus() {
  Diagnostics diagnostics;
  return *find_machine("4xH200", diagnostics);
}

Trace predicted(const Program& program) {
  Diagnostics diagnostics;
  const Machine machine = four_gpus();
  const Call call = cost::call_of(program, 1024, Dtype::f32);
  const auto timeline = predict(program, call, machine, diagnostics);
  REQUIRE(timeline);
  return predicted_trace(*timeline, machine);
}

/// The data of a page.
json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const size_t from = page.find(begin);
  REQUIRE(from != std::string::npos);
  const size_t end = page.find("</script>", from);
  return json::parse(page.substr(from + begin.size(), end - from - begin.size()));
}

}  // namespace

TEST_CASE("a timeline holds every step once, in the block's order") {
  const TestProgram t = testing::one_shot(4, 2, PacketFormat::LL16);
  const Trace trace = predicted(t.program);
  std::map<std::pair<uint32_t, uint32_t>, double> ends;
  for (const Slice& s : trace.slices) {
    CHECK(s.begin >= ends[std::pair(s.rank, s.block)]);
    CHECK(s.begin <= s.work);
    CHECK(s.work <= s.idle);
    CHECK(s.idle <= s.back);
    CHECK(s.back <= s.end);
    ends[std::pair(s.rank, s.block)] = s.end;
  }
  size_t steps = 0;
  for (const Rank& rank : t.program.ranks) steps += rank.ops.size();
  CHECK(trace.slices.size() == steps);
  for (const Arrow& a : trace.arrows) {
    CHECK(a.packets);
    CHECK(trace.slices[a.to].waited() > 0);
    CHECK(a.came <= trace.slices[a.to].end);
  }
  CHECK_FALSE(trace.arrows.empty());
}

TEST_CASE("blocks that meet wait for the last") {
  TestProgram t(1, 1);
  testing::add_op(t, 0, 0, OpKind::copy, {testing::local(kOutput, 0)}, {testing::local(kInput, 0)});
  testing::add_op(t, 0, 0, OpKind::barrier, {testing::id(0), testing::id(1)});
  testing::add_op(t, 0, 1, OpKind::barrier, {testing::id(0), testing::id(1)});
  const Trace trace = predicted(t.program);
  REQUIRE(trace.arrows.size() == 1);
  CHECK(trace.slices[trace.arrows[0].from].block == 0);
  CHECK(trace.slices[trace.arrows[0].to].block == 1);
  CHECK(trace.slices[trace.arrows[0].to].waited() > 0);
}

TEST_CASE("no arrow ends before it begins") {
  TestProgram t(1, 2);
  const uint32_t s = t.semaphore(0, "s", {});
  testing::add_op(t, 0, 0, OpKind::copy, {testing::local(kOutput, 0)}, {testing::local(kInput, 0)});
  testing::add_op(t, 0, 0, OpKind::release, {testing::id(s)});
  testing::add_op(t, 0, 1, OpKind::acquire, {testing::id(s)});
  Trace trace = predicted(t.program);
  REQUIRE(trace.arrows.size() == 1);
  CHECK(trace.arrows[0].left <= trace.arrows[0].came);
  CHECK(trace.path.back().slice == trace.arrows[0].to);
  CHECK(trace.path[1].slice == 0);  // what the release came after
  const auto check = [&] {
    std::map<std::string, double> ends;
    const json read = json::parse(chrome_trace({t.program, "a call"}, trace));
    for (const json& event : read["traceEvents"]) {
      if (event.contains("id")) ends[event["ph"]] = event["ts"];
    }
    CHECK(ends.size() == 2);
    CHECK(ends["s"] <= ends["f"]);
  };
  check();
  // Stamps of packets: they have come where their step begins.
  trace.arrows[0].left = trace.arrows[0].came = trace.slices[trace.arrows[0].from].begin;
  check();
  // By clocks that are apart, the step that waited was over by then.
  Slice& late = trace.slices[trace.arrows[0].from];
  late.begin += 1e6;
  late.end += 1e6;
  check();
}

TEST_CASE("Chrome's format: a process a rank, a slice a step, both ends of each arrow") {
  const TestProgram t = testing::one_shot(4, 2, PacketFormat::LL16);
  const Trace trace = predicted(t.program);
  const json read = json::parse(chrome_trace({t.program, "a call"}, trace));
  CHECK(read["otherData"]["call"] == "a call");
  std::set<int> processes;
  std::map<int, double> left;
  size_t slices = 0, flows = 0;
  for (const json& event : read["traceEvents"]) {
    const std::string phase = event["ph"];
    if (phase == "M") {
      if (event["name"] == "process_name") processes.insert(event["pid"].get<int>());
      continue;
    }
    CHECK(processes.contains(event["pid"].get<int>()));
    CHECK(event["ts"].get<double>() >= 0);
    if (phase == "X") slices += event["cat"] == "path" ? 0 : 1;
    if (phase == "s") left[event["id"].get<int>()] = event["ts"].get<double>();
    if (phase == "f") {
      ++flows;
      REQUIRE(left.contains(event["id"].get<int>()));
      CHECK(left[event["id"].get<int>()] <= event["ts"].get<double>());
    }
  }
  CHECK(processes.size() == 5);  // and the critical path
  CHECK(slices == trace.slices.size());
  CHECK(flows == trace.arrows.size());
}

TEST_CASE("a page holds the same, and asks nothing of a network") {
  const TestProgram t = testing::one_shot(4, 2, PacketFormat::LL16);
  const Trace trace = predicted(t.program);
  const std::string page = timeline_page({t.program, "a call"}, {trace, trace});
  const json data = data_of(page);
  CHECK(data["title"] == "a call");
  CHECK(data["blocks"].size() == 4);
  REQUIRE(data["views"].size() == 2);
  CHECK(data["views"][0]["slices"].size() == trace.slices.size());
  CHECK(data["views"][0]["arrows"].size() == trace.arrows.size());
  CHECK(data["views"][0]["path"].size() == trace.path.size());
  for (const json& slice : data["views"][0]["slices"]) CHECK(slice[2] < data["ops"].size());
  for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "import "}) {
    CAPTURE(outside);
    CHECK(page.find(outside) == std::string::npos);
  }
}

TEST_CASE("names of a hostile plan stay text") {
  TestProgram t = testing::one_shot(2, 1, PacketFormat::LL16);
  const std::string name = "</script><img src=x onerror=alert(1)>\"\\\x1b[31m\xff";
  t.program.ranks[0].buffers[0].name = t.program.intern(name);
  const Trace trace = predicted(t.program);
  const CallFacts facts{t.program, name};
  const std::string page = timeline_page(facts, {trace});
  CHECK(page.find("<img") == std::string::npos);
  CHECK(data_of(page)["title"].get<std::string>().starts_with("</script><img"));
  const json events = json::parse(chrome_trace(facts, trace));
  CHECK(events["otherData"]["call"].get<std::string>().find("\\x1b[31m\\xff") != std::string::npos);
}

TEST_CASE("what stands above a timeline") {
  const TestProgram t = testing::one_shot(4, 2, PacketFormat::LL16);
  CHECK(title_of(t.program, cost::call_of(t.program, 65536, Dtype::f16)) ==
        "test: allreduce of 64 KiB (f16) over 4 ranks");
}

}  // namespace mscclc::timeline
