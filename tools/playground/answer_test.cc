#include "tools/playground/answer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plans/format/embedded_library.h"

namespace mscclc::playground {
namespace {

using Json = nlohmann::json;

/// One call is right; the next may overwrite an inbox that is still being read.
constexpr const char* kOneCall = R"(program    mine
param      R = 4
collective allreduce(ranks: R)
rank r in 0..R {
  let others = 0..R except r
  buffer inbox[others]
  channel ch[p in others] = memory(p)

  tb 0 {
    for p in others { put ch[p].inbox[r] <- input }
    signal ch[p] for p in others
    wait ch[p] for p in others
    reduce output <- input, inbox[p] for p in others
  }
}
)";

/// The parts in the order in which they came.
std::vector<Json> parts_of(const Json& request) {
  std::vector<Json> parts;
  answer(request.dump(), [&](std::string_view part) {
    CHECK(part.find('\n') == std::string_view::npos);
    parts.push_back(Json::parse(part));
  });
  return parts;
}

std::string names(const std::vector<Json>& parts) {
  std::string all;
  for (const Json& part : parts) {
    all += (all.empty() ? "" : " ") + part.at("part").get<std::string>();
  }
  return all;
}

Json part(const std::vector<Json>& parts, const std::string& name) {
  for (const Json& each : parts) {
    if (each.at("part") == name) return each;
  }
  FAIL("no part " << name);
  return {};
}

std::string text_of(const std::string& name) {
  const auto files = embedded_library();
  const auto found = std::ranges::find(files, name + ".mscl", &LibraryFile::name);
  REQUIRE(found != files.end());
  return std::string(found->text);
}

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  const size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), now);
}

Json ask(const std::string& text) {
  return {{"ask", "program"}, {"name", "a.mscl"}, {"text", text}, {"parameters", "R=4"}};
}

TEST_CASE("playground: a right program is proved, drawn and timed") {
  const auto parts = parts_of(ask(text_of("allreduce_2shot")));
  CHECK(names(parts) == "diagnostics verdict picture timeline ir end");
  CHECK(part(parts, "diagnostics").at("list").empty());
  CHECK(part(parts, "verdict").at("proved") == true);
  CHECK(part(parts, "verdict")
            .at("text")
            .get<std::string>()
            .starts_with("proved: out of place and in place, sums in rank order"));
  const std::string picture = part(parts, "picture").at("html");
  CHECK(picture.find("<svg") != std::string::npos);
  CHECK(picture.find("class=\"box") != std::string::npos);
  CHECK(picture.find(". The next one: no rank leaves a call before all are in it") !=
        std::string::npos);
  const Json timeline = part(parts, "timeline");
  CHECK(timeline.at("html").get<std::string>().find("<canvas") != std::string::npos);
  CHECK(timeline.at("text").get<std::string>().starts_with(
      "allreduce_2shot: allreduce of 1 MiB (f32) over 4 ranks, on "));
  CHECK(part(parts, "ir").at("text").get<std::string>().starts_with("ir 1"));
}

TEST_CASE("playground: a wrong word is reported at its place, with a patch that is proved") {
  const std::string text = text_of("allreduce_2shot");
  const auto parts = parts_of(ask(replaced(text, "signal up", "signl up")));
  CHECK(names(parts) == "diagnostics verdict patch end");
  const Json list = part(parts, "diagnostics").at("list");
  REQUIRE(list.size() == 1);
  CHECK(list[0].at("message") == "unknown op 'signl'; did you mean 'signal'?");
  CHECK(list[0].at("line") == 22);
  CHECK(list[0].at("column") == 7);
  CHECK(list[0].at("end_column") == 12);
  CHECK(part(parts, "verdict").at("proved") == false);
  CHECK(part(parts, "patch").at("text") == text);
}

TEST_CASE("playground: a program with a race is drawn, but not timed") {
  const auto parts = parts_of(ask(kOneCall));
  CHECK(names(parts) == "diagnostics verdict picture ir patch end");
  CHECK(part(parts, "verdict").at("text") == "refused");
  const Json first = part(parts, "diagnostics").at("list").at(0);
  CHECK(first.at("code") == "race");
  CHECK(first.at("line") == 10);
  CHECK(part(parts, "picture").at("html").get<std::string>().find("NOT PROVED") !=
        std::string::npos);
  CHECK(part(parts, "patch").at("text").get<std::string>().find("inbox[others] copies: 2") !=
        std::string::npos);
}

TEST_CASE("playground: parameters, message and machine count") {
  Json request = ask(text_of("allgather_direct"));
  request["parameters"] = "R=2";
  request["bytes"] = "64K";
  request["machine"] = "8xH200";
  const std::string text = part(parts_of(request), "timeline").at("text");
  CHECK(text.starts_with("allgather_direct: allgather of 64 KiB (f32) over 2 ranks, on 8xH200"));
  request["parameters"] = "Q=2";
  const auto parts = parts_of(request);
  CHECK(part(parts, "verdict").at("proved") == false);
  CHECK(part(parts, "diagnostics").at("list")[0].at("message").get<std::string>().find("'Q'") !=
        std::string::npos);
}

TEST_CASE("playground: a machine that is too small is said") {
  Json request = ask(text_of("allgather_direct"));
  request["parameters"] = "R=8";
  request["machine"] = "2xH100";
  const Json timeline = part(parts_of(request), "timeline");
  CHECK_FALSE(timeline.contains("html"));
  CHECK(timeline.at("message").get<std::string>().find("2xH100") != std::string::npos);
}

TEST_CASE("playground: names in a program are escaped") {
  const auto parts = parts_of(ask("program <script>alert(1)</script>"));
  CHECK(part(parts, "verdict").at("proved") == false);
  CHECK(names(parts).find("picture") == std::string::npos);
}

TEST_CASE("playground: a program that unrolls to too much is refused") {
  const auto parts = parts_of(ask(replaced(
      kOneCall, "signal ch", "for i in 0..1000000000 { copy output <- input }\n    signal ch")));
  CHECK(part(parts, "verdict").at("proved") == false);
  CHECK(part(parts, "diagnostics").at("list").size() == 1);
}

TEST_CASE("playground: the library") {
  const auto parts = parts_of({{"ask", "library"}});
  CHECK(names(parts) == "library end");
  const Json programs = parts[0].at("programs");
  CHECK(programs.size() + 1 == embedded_library().size());  // all but library.json
  for (const Json& program : programs) {
    CHECK_FALSE(program.at("about").get<std::string>().empty());
    CHECK_FALSE(program.at("text").get<std::string>().empty());
  }
  const Json machines = parts[0].at("machines");
  CHECK(std::ranges::count(machines, Json("8xH100")) == 1);
}

TEST_CASE("playground: what is no request has an answer, too") {
  const auto parts = parts_of({{"ask", "everything"}});
  CHECK(names(parts) == "error");
  CHECK(part(parts, "error").at("message") == "'ask' is 'library' or 'program', not 'everything'");
}

}  // namespace
}  // namespace mscclc::playground
