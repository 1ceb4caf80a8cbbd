// Times that the cost model gives: those of the machine that is named, for every rank count of it.
#include "tools/tune/predicted_timer.h"

#include "executor/cost/machines.h"
#include "tools/tune/candidate.h"
#include "tools/tune/small_library_test.h"

namespace mscclc::tune {
namespace {

LibraryChoice push() {
  return *whole_library().choose(
      {.kind = CollectiveKind::allreduce, .ranks = 8, .bytes = uint64_t{1} << 22});
}

std::optional<CallTime> time_on(const char* machine_name, uint32_t ranks, uint64_t bytes,
                                Diagnostics& diagnostics) {
  Machine machine = find_machine(machine_name, diagnostics).value();
  const LibraryCall call{.kind = CollectiveKind::allreduce, .ranks = 8, .bytes = bytes};
  Plans plans(program_of_library, machine, kLimits);
  const auto program = plans.of(push(), call).program;
  REQUIRE(program != nullptr);
  cost::resize(machine, ranks);
  PredictedTimer timer(machine);
  CHECK(timer.nccl().empty());
  return timer.time({.plan = program, .bytes = bytes}, diagnostics);
}

}  // namespace

TEST_CASE("a predicted time is that of the machine, and grows with the message") {
  Diagnostics diagnostics;
  const auto small = time_on("8xH200", 8, 1 << 22, diagnostics);
  const auto large = time_on("8xH200", 8, 1 << 26, diagnostics);
  REQUIRE((small && large));
  CHECK(small->wrong == 0);
  CHECK(large->ns > 4 * small->ns);
  CHECK(large->ns < 64 * small->ns);
}

TEST_CASE("a machine that is too small for the plan is an error") {
  Diagnostics diagnostics;
  CHECK_FALSE(time_on("8xH200", 4, 1 << 22, diagnostics));
  REQUIRE(diagnostics.has_errors());
  CHECK(diagnostics.all().front().code == "machine-ranks");
}

}  // namespace mscclc::tune
