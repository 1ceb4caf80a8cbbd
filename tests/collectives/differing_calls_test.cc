// Ranks whose calls differ, after calls that were the same: every rank hears of it, none waits for
// what does not come, and nothing is written that no rank has named.
#include "tests/collectives/differing_calls.h"

#include <array>
#include <catch2/catch.hpp>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "tests/collectives/compiled_in_library.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {
namespace {

void check(const DifferingTrial& trial) {
  INFO(text(trial));
  const DifferingOutcome outcome = try_differing(trial);
  CHECK(outcome.wrong == "");
  CHECK(outcome.beyond == 0);
}

TEST_CASE("calls that differ: each difference, at the first call and later") {
  for (uint32_t d = 0; d < kDifferences; ++d) {
    const auto difference = static_cast<Difference>(d);
    const bool needs_registered =
        difference == Difference::offset || difference == Difference::registration;
    for (const bool registered : {false, true}) {
      if (needs_registered && !registered) continue;
      for (const uint32_t from : {0u, 5u}) {
        for (const bool stays : {false, true}) {
          if (difference == Difference::skipped && stays) continue;
          check({.seed = 7,
                 .ranks = 3,
                 .odd = 1,
                 .difference = difference,
                 .registered = registered,
                 .from = from,
                 .stays = stays});
        }
      }
    }
  }
}

TEST_CASE("calls that differ: 999,999 of 1,000,000 elements in registered memory, as processes") {
  for (const uint32_t odd : {0u, 1u}) {
    check({.seed = 3,
           .ranks = 2,
           .odd = odd,
           .difference = Difference::shorter,
           .registered = true,
           .from = 4,
           .processes = true});
  }
}

// Over lanes.
TEST_CASE("calls that differ: between nodes") {
  for (const Difference difference :
       {Difference::shorter, Difference::longer, Difference::far_longer, Difference::type,
        Difference::reduction}) {
    for (const uint32_t on_node : {1u, 2u}) {
      for (const uint32_t odd : {0u, 3u}) {
        for (const bool stays : {false, true}) {
          check({.seed = 11,
                 .ranks = 4,
                 .odd = odd,
                 .difference = difference,
                 .from = 5,
                 .stays = stays,
                 .on_node = on_node});
        }
      }
    }
  }
}

/// Two ranks make a call that is the same, and then each its own of `calls`.
std::vector<std::string> try_rows(const std::array<CollectiveCall, 2>& calls) {
  return threads(2, [&](Communicator& communicator) -> std::string {
    const std::vector<uint64_t> counts = {0, 3, 5, 0};
    Diagnostics diagnostics;
    const auto collectives =
        Collectives::create(communicator, compiled_in_library(), {}, diagnostics);
    const auto memory = communicator.device().allocate(1024, "rows", diagnostics);
    if (collectives == nullptr || memory == nullptr) return text(diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    for (CollectiveCall call : {CollectiveCall{.kind = CollectiveKind::alltoallv, .counts = counts},
                                calls[communicator.rank()]}) {
      call.input = memory->data();
      call.output = memory->data() + 512;
      (void)collectives->call(call, stream, diagnostics);
      (void)communicator.synchronize(stream, diagnostics);
    }
    communicator.device().destroy_stream(stream);
    return text(diagnostics);
  });
}

TEST_CASE("calls that differ: counts of an alltoallv, whose longest rows are as long") {
  const std::vector<uint64_t> one = {0, 3, 5, 0}, other = {0, 5, 3, 0}, even = {5, 5, 5, 5};
  const auto rows = [](const std::vector<uint64_t>& counts) {
    return CollectiveCall{.kind = CollectiveKind::alltoallv, .counts = counts};
  };
  const CollectiveCall plain{.kind = CollectiveKind::alltoall, .count = 5};
  for (const auto& calls : {std::array{rows(one), rows(other)}, std::array{plain, rows(one)}}) {
    for (const std::string& said : try_rows(calls)) {
      CHECK_THAT(said, Catch::Contains("which differ in the counts"));
    }
  }
  for (const auto& calls : {std::array{rows(other), rows(other)}, std::array{rows(even), plain}}) {
    CHECK(try_rows(calls) == std::vector<std::string>{"", ""});
  }
}

TEST_CASE("calls that differ: drawn ones") {
  for (uint64_t seed = 0; seed < 60; ++seed) check(draw_differing(seed));
}

}  // namespace
}  // namespace mscclc::testing
