// The families find what version 3 of the prover missed: programs and sets that random search came
// upon with that version. While a hole is open, the search finds it at this piece; once it is
// closed, it finds nothing there. If a generator changes, so do its pieces: find others with
// `random_programs_full --family NAME` and the rule switched off.
#include <catch2/catch.hpp>

#include "ir/program/proof.h"
#include "tests/random_programs/sets.h"
#include "tests/random_programs/trial.h"

namespace mscclc::random_programs {
namespace {

struct Sought {
  const char* hole;
  const char* family;
  uint64_t piece;  ///< of seed 1
};

constexpr Sought kSought[] = {
    {"the same packets by two ranks", "twins", 2297},
    {"the same packets by a port", "echoes", 1238},
    {"junk in packets of other calls", "junk", 693},
    {"a slot emptied after a port has sent it", "overlays", 485},
    {"a slot left full by a port", "overlays", 970},
    {"chunks of other lengths", "overlays", 19},
    {"a credit that a relaxed signal gives back", "overlays", 1317},
};

Tried tried(const Sought& sought) {
  if (const SetFamily* family = find_set_family(sought.family))
    return try_set(family->make(1, sought.piece), sought.piece, {});
  const RandomProgram random = random_program(1, sought.piece, find_family(sought.family));
  Tried tried;
  const auto program = load(random, tried.why);
  return program ? try_program(*program, sought.piece, {}) : tried;
}

TEST_CASE("families find the holes of version 3 while they are open") {
  for (const Sought& sought : kSought) {
    const Tried found = tried(sought);
    INFO(sought.hole << ": " << sought.family << ' ' << sought.piece << ": " << found.why);
    CHECK(found.outcome != Outcome::malformed);
    CHECK((found.outcome == Outcome::hole) == (kProverVersion == 3));
  }
}

}  // namespace
}  // namespace mscclc::random_programs
