// What `mscclc select` says of GEMMs that overlap with collectives: which backend `auto` takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/api/overlap.h"

namespace mscclc {

struct OverlapSelection {
  OverlapConfig config;
  uint32_t ranks = 1;
  bool captured = false, why = false;
};

/// "allgather_gemm" and so on, as --collective takes them.
std::vector<std::string> overlap_kind_names();
/// REQUIRES: one of those.
OverlapKind overlap_kind_of(const std::string& name);
/// Prints what is picked, and why if that is asked for; the exit code.
int select_overlap(const OverlapSelection& selection);

}  // namespace mscclc
