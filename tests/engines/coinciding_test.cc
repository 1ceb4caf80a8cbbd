// Ops whose operands coincide, and steps that are made of several ops, on every engine: what the
// order of an op's parts (ir/ops/parts.h) leaves open must not show.
#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "tests/engines/engine_trial.h"

namespace mscclc {
namespace {

Program compiled(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("test.mscl", text);
  auto program = compile(sources, file, {}, {}, diagnostics);
  INFO(text << '\n' << render_text(diagnostics, sources));
  REQUIRE(program.has_value());
  return std::move(*program);
}

/// A program that is right gives the simulator's bits on every engine, however threads step.
void check_on_engines(const std::string& text, bool in_place, uint64_t seeds = 12) {
  const Program program = compiled(text);
  EngineTrial trial(program);
  for (const Engine engine : kEngines) {
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      const EngineSpec spec{.bytes = seed % 2 == 0 ? 1024u : 72u,
                            .in_place = in_place,
                            .engine = engine,
                            .seed = seed,
                            .calls = 6};
      INFO(mscclc::text(spec) << '\n' << text);
      CHECK(trial.fault(spec).value_or("") == "");
    }
  }
}

// The fuse pass once made one op of the first two, which took from the slot and stored there: GPUs
// empty a slot after they have stored.
TEST_CASE("a slot of sentinels that is filled again right after it was emptied") {
  check_on_engines(R"(
program    filled_again
collective custom(ranks: 2, input: 1, output: 1)
ensure     output[0] at 0 = reduce(input[0] at 0, input[0] at 1)
select     dtypes: [f32]
rank 0 {
  buffer s[1] packets: sentinel, copies: 2
  buffer x[1]
  channel ch = memory(1)
  tb 0 {
    reduce_packets x[0] <- input[0], s[0]
    copy_packets s[0] <- x[0]
    unpack_packets output[0] <- s[0]
    signal ch
  }
}
rank 1 {
  channel ch = memory(0)
  tb 0 {
    put_packets ch.s[0] <- input[0]
    wait ch
  }
}
)",
                   false);
}

// In place, the copy is no access; as a move of the step that unpacks it once loaded before it
// polled, and stored what it had loaded over what had been put there since.
TEST_CASE("a copy onto itself beside packets is no access") {
  for (const char* order : {"copy output[0] <- input[0] ; unpack_packets x[0] <- s[0]",
                            "unpack_packets x[0] <- s[0] ; copy output[0] <- input[0]"}) {
    check_on_engines(std::string(R"(
program    self_copy
collective custom(ranks: 2, input: 1, output: 1, inplace: true)
ensure     output[0] at 1 = input[0] at 0
rank 0 {
  channel ch = memory(1)
  tb 0 {
    wait ch
    put ch.output[0] <- input[0]
    signal ch
    put_packets ch.s[0] <- input[0]
  }
}
rank 1 {
  buffer s[1] packets: LL16, copies: 2
  buffer x[1]
  channel ch = memory(0)
  tb 0 { )") + order + R"( }
  tb 1 { signal ch ; wait ch }
}
)",
                     true, 40);
  }
}

// The root's copy of what it sends is a destination of the step that sends.
TEST_CASE("a root that keeps in place what it sends") {
  for (const char* format : {"LL8", "LL16", "LL128"}) {
    check_on_engines(std::string(R"(
program    kept
collective broadcast(ranks: 2, root: 0)
rank 0 {
  channel ch = memory(1)
  tb 0 {
    put_packets ch.s[0] <- input[0]
    copy output[0] <- input[0]
  }
  tb 1 { wait ch relaxed }
}
rank 1 {
  buffer s[1] packets: )") +
                         format + R"(, copies: 2
  channel ch = memory(0)
  tb 0 { unpack_packets output[0] <- s[0] }
  tb 1 { signal ch relaxed }
}
)",
                     true);
  }
}

// Sums that are stored where one of their terms lies.
TEST_CASE("a sum takes the place of one of its terms") {
  for (const char* format : {"LL8", "LL16", "LL128", "sentinel"}) {
    check_on_engines(std::string(R"(
program    in_its_place
collective custom(ranks: 2, input: 1, output: 1)
ensure     output[0] at r = reduce(input[0] at 0, input[0] at 1) for r in 0..2
select     dtypes: [f32]
rank r in 0..2 {
  buffer s[1] packets: )") +
                         format + R"(, copies: 2
  buffer x[1]
  channel ch = memory(1 - r)
  tb 0 {
    put_packets ch.s[0] <- input[0]
    copy x[0] <- input[0]
    reduce_packets x[0] <- x[0], s[0]
    copy output[0] <- x[0]
  }
}
)",
                     false);
  }
}

}  // namespace
}  // namespace mscclc
