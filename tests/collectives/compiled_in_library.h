// The library that is compiled in, for the ranks of a test.
#pragma once

#include <cstdlib>
#include <memory>

#include "runtime/api/builtin_library.h"

namespace mscclc::testing {

/// One for all ranks of the process. Thread-safe; ends the process where there is none, as ranks
/// ask on threads of their own, on which a test cannot fail.
inline std::shared_ptr<PlanProvider> compiled_in_library() {
  static const auto provider = [] {
    Diagnostics diagnostics;
    return builtin_library({}, diagnostics);
  }();
  if (provider == nullptr) std::abort();
  return provider;
}

}  // namespace mscclc::testing
