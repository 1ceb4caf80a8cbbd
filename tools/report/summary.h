// A plan at a glance: what `mscclc compile --emit=summary` and ./quickstart show.
#pragma once

#include <string>

#include "ir/program/program.h"
#include "ir/program/proof.h"

namespace mscclc {

/// Six lines: collective and ranks, blocks, ops, channels, scratch, message sizes.
std::string summarize(const Program& program);

/// Bytes that all ranks' buffers take for a message of `bytes`. In floating point, because the
/// answer may be absurd.
double memory_needed(const Program& program, uint64_t bytes);

/// How a plan adds up: "sums in rank order", and whether types that are added up in a wider one are
/// rounded before the end; "" if it does not. REQUIRES: proof.proved.
std::string sums_text(const Proof& proof);

/// "out of place and in place, sums in rank order, input kept": what is proved. REQUIRES:
/// proof.proved.
std::string summarize(const Proof& proof);

/// What keeps two calls of a plan apart, as a sentence. REQUIRES: it is of a plan that is proved.
std::string between_calls_text(BetweenCalls between);

}  // namespace mscclc
