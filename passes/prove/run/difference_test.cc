// What is said of a result that does not hold what is promised.
#include "passes/prove/run/difference.h"

#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc::proof {
namespace {

/// Of output[0] of rank 0 of an allreduce of two ranks, in call 1: input[0] of both is promised.
Difference of(const ValueTrace::Content& content, bool written = true) {
  Program program = testing::parse(testing::two_ranks("  tb 0 {\n    copy output <- input\n  }\n"));
  testing::run(program, {"assign", "groups", "split"});
  const Symmetry none(program);
  const System system(program, none, false);
  const RunOptions options{.calls = 2, .divides = true};
  const CallOrder calls(system, options);
  return difference(system, calls, {0, kOutput, 0}, 1, content, written);
}

constexpr Contribution kOwn{0, 0, 1}, kPeers{1, 0, 1};

TEST_CASE("inputs that are missing, too many, or of another call are named") {
  CHECK(of({.inputs = {{kOwn, 1}}}).texts ==
        std::vector<std::string>{"input[0] of rank 1 is missing"});
  const Difference often = of({.inputs = {{kOwn, 2}, {kPeers, 1}}, .divided = true});
  CHECK(often.kinds == Difference::kOften);
  CHECK(often.texts == std::vector<std::string>{"input[0] of rank 0 is in it twice"});
  const Difference old = of({.inputs = {{kOwn, 1}, {kPeers, 1}, {{1, 0, 0}, 1}}, .divided = true});
  CHECK(old.kinds == Difference::kOtherCall);
  CHECK(old.texts == std::vector<std::string>{"input[0] of rank 1 of an earlier call is in it"});
}

TEST_CASE("a sum that 'avg' would not divide is said to be so only if nothing else is wrong") {
  CHECK(of({.inputs = {{kOwn, 1}, {kPeers, 1}}}).kinds == Difference::kNotDivided);
  CHECK(of({.inputs = {{kOwn, 1}, {kPeers, 1}}, .divided = true}).kinds == 0);
  CHECK(of({.inputs = {{kOwn, 1}}}).kinds == Difference::kMissing);
  CHECK(of({.inputs = {{kOwn, 1}, {kPeers, 1}}, .parts_divided = true}).kinds ==
        Difference::kDivided);
}

TEST_CASE("of memory that was never written nothing more is said") {
  const Difference never = of({.unwritten = true}, false);
  CHECK(never.texts == std::vector<std::string>{"it was never written"});
  CHECK(of({.unknown = true}).kinds == Difference::kUnknown);
  const ValueTrace::FirstRead read{.chunk = {0, kFirstScratch, 2}, .reader = {}, .pair = 1};
  const Difference known = of({.unwritten = true, .read = read});
  CHECK(known.texts.empty());
  REQUIRE(known.read.has_value());
  CHECK(known.read->chunk.chunk == 2);
}

}  // namespace
}  // namespace mscclc::proof
