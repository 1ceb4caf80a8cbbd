// Which plans are chosen for collectives by name: nothing but what all ranks know counts, and
// commands say the same.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/pick_for_job.h"
#include "tests/collectives/compiled_in_library.h"
#include "tests/collectives/definition.h"
#include "tests/collectives/ranks_of_one_thread.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::kDefinedKinds;
using testing::RanksOfOneThread;
using Kind = CollectiveKind;

TEST_CASE("what is chosen depends on no pointer") {
  RanksOfOneThread ranks(2);
  Diagnostics diagnostics;
  int32_t memory[4] = {};
  for (const Kind kind : kDefinedKinds) {
    const CollectiveCall bare{.kind = kind, .count = 1 << 16};
    CollectiveCall placed = bare;
    placed.input = memory;
    placed.output = memory + 1;
    const auto a = ranks.collectives[0]->choose(bare, false, nullptr, diagnostics);
    CHECK(a != nullptr);
    CHECK(a == ranks.collectives[1]->choose(placed, false, nullptr, diagnostics));
  }
  CHECK(testing::text(diagnostics) == "");
  CHECK_FALSE(ranks.collectives[0]->needs_plan({.kind = Kind::allreduce, .count = 0}));
  CHECK_FALSE(ranks.collectives[0]->needs_plan({.kind = Kind::sendrecv, .count = 4, .shift = 2}));
  CHECK(ranks.collectives[0]->needs_plan({.kind = Kind::barrier}));
}

std::string lines_of(const std::vector<PassedOver>& all) {
  std::string text;
  for (const PassedOver& over : all) text += over.name + ": " + over.why + "\n";
  return text;
}

TEST_CASE("commands pick what jobs pick, for calls of any size") {
  Diagnostics diagnostics;
  const auto library = testing::compiled_in_library();
  size_t in_pieces = 0;
  for (const uint32_t size : {2u, 4u}) {
    RanksOfOneThread ranks(size);
    for (const Kind kind : kDefinedKinds) {
      for (uint64_t bytes = 1024; bytes <= uint64_t{1} << 31; bytes *= 2) {
        const uint64_t rows = has_rows(kind) ? size : 1;
        const CollectiveCall call{.kind = kind, .count = bytes / rows / sizeof(float)};
        const LibraryCall asked = as_jobs_ask({.kind = kind, .ranks = size, .bytes = bytes});
        std::vector<PassedOver> over, over_of_job;
        const JobChoice choice = pick_for_job(*library, {.call = asked}, &over, diagnostics);
        INFO(name(kind) << " over " << size << " ranks, " << bytes << " bytes");
        const PlanChoice of_job =
            ranks.collectives[0]->choose_once(call, false, &over_of_job, diagnostics);
        CHECK(choice.picked == of_job.picked);
        CHECK(choice.bytes == of_job.count * rows * sizeof(float));
        CHECK(lines_of(over) == lines_of(over_of_job));
        CHECK(choice.bytes <= bytes);
        in_pieces += choice.bytes < bytes ? 1 : 0;
      }
    }
  }
  CHECK(in_pieces > 0);
  CHECK(testing::text(diagnostics) == "");
}

}  // namespace
}  // namespace mscclc
