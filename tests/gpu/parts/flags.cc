// Plans with flags whose other side goes on beside them: copies write the input, region by region,
// and raise flags in a random order, after the call has begun; what flags of the output are for is
// read before it ends. The simulator's bits, by the interpreter and by compiled kernels.
#include <fmt/format.h>

#include <cstdio>

#include "tests/gpu/parts.h"
#include "tests/overlap/beside_gemm.h"
#include "tests/overlap/flag_plans.h"

namespace mscclc::testing {
namespace {

constexpr uint64_t kCallsOfASize = 8;

struct FlagsCase {
  std::string name;
  std::shared_ptr<const Program> plan;
  std::vector<KnownCalls> sizes;
};

FlagsCase flags_case(const StageOptions& options, const char* name) {
  const FlagDefines defines = {{"R", std::to_string(options.ranks)}, {"T", "512"}};
  FlagsCase made{
      name,
      std::make_shared<const Program>(flag_plan(of_system_scope(overlap_text(name)), defines)),
      {}};
  for (const uint64_t bytes : {uint64_t{1} << 12, uint64_t{1} << 20, uint64_t{1000}}) {
    Diagnostics diagnostics;
    auto known = known_calls(*made.plan, message_for(*made.plan, bytes),
                             in_place_for(*made.plan, false), kCallsOfASize, diagnostics);
    if (!known) {
      std::fputs(text(diagnostics).c_str(), stderr);
      std::abort();
    }
    made.sizes.push_back(*std::move(known));
  }
  return made;
}

}  // namespace

bool check_flags(const StageOptions& options) {
  std::vector<FlagsCase> cases;
  for (const char* const name : kOverlapPrograms) cases.push_back(flags_case(options, name));
  const Tally tally = run_series(
      options, cases.size(),
      [&](Communicator& communicator, size_t i) {
        return run_beside_gemm(communicator, cases[i].plan, cases[i].sizes, GemmBy::copies);
      },
      [&](size_t i, const std::string& fault) {
        fmt::print("{}: FAILED\n{}\n", cases[i].name, fault);
        std::fflush(stdout);
      });
  fmt::print("flags at {}: {} right, {} wrong{}\n", text(options), tally.right, tally.wrong,
             left_out(tally.late));
  return tally.wrong == 0 && tally.right > 0;
}

}  // namespace mscclc::testing
