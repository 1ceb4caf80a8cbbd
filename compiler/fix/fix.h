// Patches: changes of a program after which it is proved. Candidates are made by rule from what is
// wrong (candidates.h), applied to the text in memory, compiled and proved (judge.h). What is
// offered is proved for the given parameters and for other numbers of ranks, and leaves everything
// outside of the bodies of ranks and definitions as it is: the collective, what it promises,
// parameters and requirements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/unroll/front_end_options.h"
#include "ir/diagnostics/diagnostic.h"
#include "passes/registry.h"

namespace mscclc {

/// Bounds of a search, which make it end soon. Without the last one it would find the same each
/// time.
struct FixLimits {
  uint32_t candidates = 2000;  ///< that are tried
  uint64_t ops = 2'000'000;    ///< that the plans tried have, all together
  uint32_t steps = 3;          ///< changes that are made one after another
  uint64_t bytes = 256 << 10;  ///< of a program
  double seconds =
      20;  ///< of processors; no proof is begun that would take longer, as far as known
};

/// What was found, and what it has cost.
struct FixResult {
  std::string text = {};   ///< proved; empty: nothing is found
  std::string title = {};  ///< what has been changed
  uint32_t tried = 0;
  std::string refused = {};  ///< why there was no search: "is IR text; fix its program"
};

/// Looks for a patch of `text`, whose errors name it `file`.
FixResult find_fix(const std::string& file, const std::string& text, const FrontEndOptions& front,
                   const PassOptions& passes, const FixLimits& limits = {});

/// Adds the patch of a program that is found, if one is, to the first of its errors.
void offer_patch(Diagnostics& diagnostics, const Sources& sources, FileId file,
                 const FrontEndOptions& front, const PassOptions& passes,
                 const FixLimits& limits = {});

}  // namespace mscclc
