// The passes' functions, one per file, and what they share about places. Only the registry, the
// passes and their tests include this; everything else asks the registry (pass.h).
#pragma once

#include <string_view>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "passes/framework/pass.h"

namespace mscclc {

#define PASS(name, summary) bool run_##name(Program& program, PassContext& context);
#include "passes/framework/passes.def"
#undef PASS

/// Makes Rank::blocks count all blocks that the rank's ops stand in. False after reporting an op
/// that stands in none, which `pass` needs.
[[nodiscard]] bool settle_blocks(Program& program, uint32_t rank, std::string_view pass,
                                 Diagnostics& diagnostics);
/// One more than the highest block that the rank has declared or uses.
uint32_t count_blocks(const Rank& rank);
/// The same, with the blocks of groups that ops stand in.
uint32_t count_named_blocks(const Program& program, const Rank& rank);
/// Interns `wish`, or `wish` with a number, so that it is a name that the program does not use.
NameId unused_name(Program& program, std::string_view wish);
/// The op's channel kind: that of its first operand with a channel. ChannelKind::memory if none.
ChannelKind channel_kind(const Program& program, uint32_t rank, const Op& op);

}  // namespace mscclc
