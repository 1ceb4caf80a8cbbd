// A race where a signal is there, but orders nothing: it is relaxed, sent too early, or taken in
// another block. Its author believes that it does, so it is reported.
#pragma once

#include <optional>
#include <string>

#include "ir/program/program.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

struct NearMiss {
  uint32_t rank = 0, op = 0;  ///< the signal, or the wait, that does not do
  std::string why;
};

/// Of two ops of blocks of different ranks, `first` meant to come first, or of an op and the caller
/// of another rank: a signal from the one's block to the other's rank that does not order them.
/// REQUIRES: the system is of one plan.
std::optional<NearMiss> near_miss(const System& system, const Event& first, const Event& second);

}  // namespace mscclc::proof
