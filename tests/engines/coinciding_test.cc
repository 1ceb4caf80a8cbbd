// Ops whose operands coincide, and steps that are made of several ops, on every engine.
#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "tests/engines/coinciding_programs.h"
#include "tests/engines/engine_trial.h"

namespace mscclc {
namespace {

constexpr uint64_t kTrialSeeds = 16;

Program compiled(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("test.mscl", text);
  auto program = compile(sources, file, {}, {}, diagnostics);
  INFO(text << '\n' << render_text(diagnostics, sources));
  REQUIRE(program.has_value());
  return std::move(*program);
}

TEST_CASE("operands that coincide give the simulator's bits on every engine") {
  for (const CoincidingProgram& p : coinciding_programs()) {
    const Program program = compiled(p.text);
    EngineTrial trial(program);
    for (const Engine engine : kEngines) {
      for (uint64_t seed = 0; seed < kTrialSeeds; ++seed) {
        const EngineSpec spec{.bytes = seed % 2 == 0 ? 1024u : 72u,
                              .in_place = p.in_place,
                              .engine = engine,
                              .seed = seed,
                              .calls = 6};
        INFO(p.name << ": " << mscclc::text(spec) << '\n' << p.text);
        CHECK(trial.fault(spec).value_or("") == "");
      }
    }
  }
}

// Lemma O9: of so small messages the second part of a slot has no unit, so that nothing of 'pa' is
// flushed by the op that sends it; and the first channel is no port.
constexpr const char* kEmptyPart = R"(
program    empty_part
collective custom(ranks: 2, input: 2, output: 2, inplace: false)
ensure     output[0] at q = input[0] at 1 - q for q in 0..2
ensure     output[1] at q = input[1] at q for q in 0..2
select     dtypes: [f32]
rank r in 0..2 {
  buffer p[1] packets: sentinel
  buffer q[1] packets: sentinel
  buffer s[1]
  buffer t[1]
  channel m = memory(1 - r)
  channel pa = port(1 - r)
  channel pb = port(1 - r)
  tb 0 {
    signal m
    wait m
    copy t[0] <- input[0]
    put pa.s[0] <- t[0]
    put_packets m.p[0] <- input[1] part: [0, 2]
    put_packets m.p[0] <- input[1] part: [1, 2]
    signal m
    wait m
    read_put_packets pb.q[0] <- p[0] part: [0, 2]
    read_put_packets pa.q[0] <- p[0] part: [1, 2]
    flush pa
    copy t[0] <- input[1]
    signal pa
    wait pa
    copy output[0] <- s[0]
    unpack_packets output[1] <- q[0] part: [0, 2]
    unpack_packets output[1] <- q[0] part: [1, 2]
    flush pa, pb
  }
}
)";

TEST_CASE("parts without a unit ask nothing of a port on any engine") {
  const Program program = compiled(kEmptyPart);
  EngineTrial trial(program);
  for (const Engine engine : kEngines) {
    for (const uint64_t bytes : {8u, 32u, 72u, 1024u}) {
      const EngineSpec spec{.bytes = bytes, .engine = engine, .seed = bytes, .calls = 4};
      INFO(mscclc::text(spec));
      CHECK(trial.fault(spec).value_or("") == "");
    }
  }
}

}  // namespace
}  // namespace mscclc
