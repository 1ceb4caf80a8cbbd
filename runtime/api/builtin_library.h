// The library that is part of the program: no files, no installation. What is picked is compiled
// and proved when it is first needed (docs/plan_selection.md).
//
//   const std::shared_ptr<PlanProvider> library = builtin_library({}, problems);
//   const auto picked = library->pick({.call = call}, nullptr, problems);
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/plan_provider.h"
#include "runtime/api/proof_policy.h"

namespace mscclc {

struct LibraryOptions {
  /// The folder of library.json and its programs; "": what is compiled in.
  std::string folder = {};
  /// Whether plans must be proved; nullopt: as MSCCLC_PROOF says.
  std::optional<ProofPolicy> proof = {};
};

/// Picks among the library's programs, and compiles and proves what is picked: once for each, at
/// its first pick, which other threads that pick the same wait for. It gives the same plans on all
/// ranks that run this version, whatever their machines. nullptr: reported. Errors: bad-variable,
/// and for a folder no-registry and those of LibraryTable::parse(). Of pick(): those of a program
/// that does not compile, not-proved, memory.
[[nodiscard]] std::shared_ptr<PlanProvider> builtin_library(const LibraryOptions& options,
                                                            Diagnostics& diagnostics);

}  // namespace mscclc
