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

}  // namespace
}  // namespace mscclc
