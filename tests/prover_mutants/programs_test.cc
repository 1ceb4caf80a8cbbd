// Programs that the prover refuses for one premise that they lack: each is named after it.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

TEST_CASE("programs that lack a premise are refused") {
  size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/prover_mutants/programs")) {
    if (entry.path().extension() != ".mscl") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    INFO(entry.path());
    const Program program = testing::as_written(text.str());
    Diagnostics diagnostics;
    CHECK_FALSE(prove(program, diagnostics).proved);
    CHECK_FALSE(prove(program, diagnostics, {.symmetry_from = 0}).proved);
    ++programs;
  }
  CHECK(programs > 0);
}

}  // namespace
}  // namespace mscclc
