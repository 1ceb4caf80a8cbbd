// What `mscclc select` says of GEMMs that overlap with collectives: which backend `auto` takes.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/api/overlap.h"

namespace mscclc {

struct OverlapSelection {
  OverlapConfig config;
  uint32_t ranks = 1;
  std::string library = {};  ///< a folder with an overlap.json, or ""
  bool captured = false, why = false;
};

/// Prints what a job gets by the tables of MSCCLC_PLAN_PATH, then of the folder, then by what is
/// compiled in; and why if that is asked for. The exit code.
int select_overlap(const OverlapSelection& selection);

}  // namespace mscclc
