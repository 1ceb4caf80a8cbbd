#include "compiler/fix/fix.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "compiler/fix/edits.h"
#include "compiler/fix/judge.h"
#include "compiler/fix/outline.h"

namespace mscclc {
namespace {

/// An AllReduce that is right, with places for mistakes.
std::string program(const std::string& collective, const std::string& buffer,
                    const std::string& body) {
  return "program    one_shot\n"
         "param      R = 4\n"
         "collective " +
         collective +
         "\n\n"
         "rank r in 0..R {\n"
         "  let others = 0..R except r\n"
         "  buffer " +
         buffer +
         "  # slots\n"
         "  channel ch[p in others] = memory(p)\n\n"
         "  tb 0 {\n" +
         body +
         "  }\n"
         "}\n";
}

const std::string kCollective = "allreduce(ranks: R)", kBuffer = "inbox[others] copies: 2";
const std::string kPut = "    for p in others { put ch[p].inbox[r] <- input }\n";
const std::string kSignal = "    signal ch[p] for p in others\n";
const std::string kWait = "    wait ch[p] for p in others\n";
const std::string kReduce = "    reduce output <- input, inbox[p] for p in others\n";

FixResult fixed(const std::string& text, const FixLimits& limits = {}) {
  return find_fix("a.mscl", text, {}, {}, limits);
}

TEST_CASE("mistakes are fixed to what was meant") {
  const std::string right = program(kCollective, kBuffer, kPut + kSignal + kWait + kReduce);
  const auto [wrong, title] = GENERATE_COPY(table<std::string, std::string>({
      {program(kCollective, kBuffer,
               kPut + kSignal + kWait + "    redcue output <- input, inbox[p] for p in others\n"),
       "replace 'redcue' with 'reduce'"},
      {program(kCollective, "inbox[others]", kPut + kSignal + kWait + kReduce),
       "add 'copies: 2' after ']'"},
      {program(kCollective, kBuffer, kPut + kSignal + kReduce),
       "add 'wait ch[p] for p in others' before line 13"},
      {program(kCollective, kBuffer, kPut + kWait + kReduce),
       "add 'signal ch[p] for p in others' before line 12"},
      {program(kCollective, kBuffer,
               "    for p in others { put ch.inbox[r] <- input }\n" + kSignal + kWait + kReduce),
       "add '[p]' after 'ch'"},
      {program(kCollective, kBuffer,
               "    for p in others { put ch[p].inbox[r] input }\n" + kSignal + kWait + kReduce),
       "add '<-' before 'input'"},
  }));
  const FixResult found = fixed(wrong);
  CHECK(found.title == title);
  CHECK(fix::Outline(found.text).statements().size() == fix::Outline(right).statements().size());
  CHECK(fixed(found.text).text.empty());
  CHECK(fixed(found.text).tried == 0);
}

TEST_CASE("a patch keeps comments and the ends of lines") {
  const std::string body = "    wait ch[p] for p in others  # wait\n    # own line\n" + kPut +
                           "    signal ch[p] for p in others  # signal\n" + kReduce;
  const FixResult moved = fixed(program(kCollective, kBuffer, body));
  REQUIRE(!moved.text.empty());
  for (const char* comment : {"# wait\n", "# own line\n", "# signal\n", "# slots\n"}) {
    const size_t at = moved.text.find(comment);
    REQUIRE(at != std::string::npos);
    CHECK(moved.text.find(comment, at + 1) == std::string::npos);
  }
  std::string lines = program(kCollective, kBuffer, kPut + kSignal + kReduce);
  for (size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 2) {
    lines.replace(at, 1, "\r\n");
  }
  const std::string with = fixed(lines).text;
  CHECK(with.find("wait ch[p] for p in others\r\n") != std::string::npos);
  CHECK(std::ranges::count(with, '\n') == std::ranges::count(with, '\r'));
}

TEST_CASE("a search ends in time: no proof is begun that took longer than what is left") {
  const std::string right = program(kCollective, kBuffer, kPut + kSignal + kWait + kReduce);
  const fix::Outline outline(right);
  const auto judged = [&](double seconds, double each) {
    double now = 0;  // a clock that each compilation, with its proof, advances
    FrontEndOptions front;
    fix::Judge judge("a.mscl", outline, front, {},
                     {seconds, [&now, each] { return now += each / 2; }});
    return judge.judge(right);
  };
  CHECK(judged(1000, 1).proved);
  CHECK_FALSE(judged(0, 1).proved);
  CHECK(judged(0, 1).world == 0);
  const fix::Verdict late = judged(4, 2);
  CHECK_FALSE(late.proved);
  CHECK(late.world > 0);
  const FixResult none = find_fix("a.mscl", program(kCollective, kBuffer, kPut + kWait + kReduce),
                                  {}, {}, {.seconds = 0});
  CHECK(none.text.empty());
  CHECK(none.tried == 0);
}

TEST_CASE("the op of a reduction is the author's choice") {
  const std::string reduce = "    reduce output <- input, inbox[p] for p in others op: mix\n";
  CHECK(fixed(program(kCollective, kBuffer, kPut + kSignal + kWait + reduce)).text.empty());
}

TEST_CASE("several mistakes are fixed together") {
  const std::string wrong = program(kCollective, "inbxo[others] copies: 2",
                                    kPut + "    singal ch[p] for p in others\n" + kWait + kReduce);
  const FixResult found = fixed(wrong);
  CHECK(found.title.find("; ") != std::string::npos);
  CHECK_FALSE(found.text.empty());
}

TEST_CASE("what a program promises is never changed") {
  // Each rank holds its own input only: that is no AllReduce, and no change of the body is near.
  const std::string copies =
      "program a\nparam R = 4\ncollective allreduce(ranks: R)\n"
      "rank r in 0..R {\n  tb 0 { copy output <- input }\n}\n";
  CHECK(fixed(copies).text.empty());
  CHECK(fixed(copies).tried > 0);
  CHECK(fixed(program("allredcue(ranks: R)", kBuffer, kPut + kSignal + kWait + kReduce))
            .text.empty());
  const std::string required =
      "program a\nparam R = 1\nrequire R > 1, \"two\"\n"
      "collective allreduce(ranks: R)\n"
      "rank r in 0..R { tb 0 { copy output <- input } }\n";
  CHECK(fixed(required).text.empty());
}

TEST_CASE("the mathematics of a row function is never changed") {
  const std::string misspelt =
      "row shift(x: row T, low: columns T, lo: columns T) {\n  out y: row T = x + loww\n}\n"
      "external low: columns T, lo: columns T\n"
      "collective allreduce(ranks: 1, columns: 4, then: shift)\n"
      "rank 0 { tb 0 { apply shift output <- input, low, lo } }\n";
  const FixResult found = fixed(misspelt);
  CHECK(found.text.empty());
  std::string right = misspelt;
  right.replace(right.find("loww"), 4, "low");
  CHECK(fixed(right).tried == 0);  // it is proved
}

TEST_CASE("the search ends at its limits") {
  const std::string wrong = program(kCollective, kBuffer, kPut + kSignal + kReduce);
  CHECK(fixed(wrong, {.candidates = 1}).text.empty());
  CHECK(fixed(wrong, {.candidates = 1}).tried == 1);
  CHECK(fixed(wrong, {.bytes = 10}).refused ==
        "has more than 10 bytes, which is too long to look for patches");
  CHECK(fixed("# a comment\nir 1\n").refused == "is IR text; fix its program");
  CHECK(fixed("").text.empty());
  CHECK(fixed("}{ \xff rank rank [[[").text.empty());
}

TEST_CASE("a patch is offered at the first error") {
  Sources sources;
  const std::string wrong = program(kCollective, "inbox[others]", kPut + kSignal + kWait + kReduce);
  const FileId file = sources.add("a.mscl", wrong);
  Diagnostics diagnostics;
  diagnostics.warning("unused", {}, "w");
  diagnostics.error("race", {}, "m");
  offer_patch(diagnostics, sources, file, {}, {});
  REQUIRE(diagnostics.all()[1].patches.size() == 1);
  const Patch& patch = diagnostics.all()[1].patches[0];
  REQUIRE(patch.edits.size() == 1);
  CHECK(patch.edits[0].begin == patch.edits[0].end);
  CHECK(fix::patched(wrong, patch.edits).find("buffer inbox[others] copies: 2  #") !=
        std::string::npos);
}

}  // namespace
}  // namespace mscclc
