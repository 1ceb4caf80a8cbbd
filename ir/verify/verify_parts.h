// The stages of verify_structure: program and declarations, then ops, which rely on them.
#pragma once

#include "ir/program/program.h"
#include "ir/report/program_report.h"

namespace mscclc {

/// Contract, launch, groups, loops.
void verify_contract(const Program& program, ProgramReport& report);
/// Buffers, channels and semaphores of a rank.
void verify_declarations(const Program& program, uint32_t rank, ProgramReport& report);
/// Ops of a rank. REQUIRES: contract and all declarations are right.
void verify_ops(const Program& program, uint32_t rank, ProgramReport& report);

}  // namespace mscclc
