// The externals of a call: checked against what the plan declares, and where each lies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/block_programs.h"
#include "ir/contract/contract.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "runtime/api/call.h"

namespace mscclc {

/// What of a call its externals must fit. REQUIRES: check_call() has seen it.
struct ExternalsOfCall {
  struct Memory {
    const void* data = nullptr;
    uint64_t bytes = 0;
  };
  const Program& plan;
  uint32_t rank = 0;
  Dtype dtype = Dtype::f32;
  const Chunking& chunking;
  Memory input = {}, output = {};  ///< this rank's
};

/// By external of the plan. False: reported (bad-external), with what the call should give. What a
/// plan writes overlaps nothing else that the call reads or writes.
[[nodiscard]] bool place_externals(const ExternalsOfCall& call,
                                   std::span<const CallExternal> externals,
                                   std::vector<BlockPrograms::Places::External>& places,
                                   Diagnostics& diagnostics);

}  // namespace mscclc
