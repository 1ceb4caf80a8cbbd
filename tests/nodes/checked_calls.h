// For tests: calls of one plan that a rank makes, each of which must be right.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {

struct CheckedCalls {
  std::shared_ptr<const Program> plan;
  std::vector<RunSpec> specs;
  bool zero_copy = false;
  uint64_t max_bytes = 0;  ///< of calls that the plan is loaded for; 0: the largest of `specs`

  /// "", or which call went wrong, and how.
  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    uint64_t most = max_bytes;
    if (most == 0) {
      for (const RunSpec& spec : specs) most = std::max(most, spec.bytes);
    }
    RankRunner runner(communicator, plan,
                      {.load = {.max_bytes = most,
                                .dtype = specs.front().dtype,
                                .zero_copy = zero_copy,
                                .proof = ProofPolicy::skip}});
    if (!runner.load(diagnostics)) return text(diagnostics);
    for (const RunSpec& spec : specs) {
      if (runner.run(spec, diagnostics).run.status != RunStatus::right) {
        return fmt::format("{}: {}", mscclc::text(spec), text(diagnostics));
      }
    }
    return "";
  }
};

/// The sizes of the library's tests up to so many bytes, in place and not.
inline CheckedCalls checked_calls(const CompiledWorld& world,
                                  uint64_t most_bytes = std::numeric_limits<uint64_t>::max()) {
  CheckedCalls calls{std::make_shared<const Program>(world.program()), {}};
  const Dtype dtype = world.dtypes().front();
  for (const RunSize& size : run_sizes()) {
    const uint64_t bytes = world.bytes(size, dtype);
    if (bytes > most_bytes) continue;
    const bool in_place = world.in_place()[calls.specs.size() % world.in_place().size()];
    calls.specs.push_back({.bytes = bytes, .dtype = dtype, .in_place = in_place, .iterations = 3});
  }
  return calls;
}

}  // namespace mscclc::testing
