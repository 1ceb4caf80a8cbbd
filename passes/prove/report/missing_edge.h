// What is missing between the two accesses of a finding: in words, and as facts for programs.
#pragma once

#include <string>

#include "ir/diagnostics/facts.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// What would order two accesses.
struct Remedy {
  MissingKind kind = MissingKind::none;
  std::string text;
};
/// "use 2 copies of the buffer in turn (copies: 2)"
std::string copies_text(uint32_t copies);
/// Of a race: where a signal, semaphore or sync is missing.
Remedy remedy(const System& system, const Finding& finding);
/// "tiles[3]": a flag, by its number over all arrays.
std::string flag_name_of(const Program& program, uint32_t number);
/// The two accesses of a race, of packets that are put twice, or of a read before any write;
/// `chunk`: how it is named. Others have none that is known.
MissingEdge missing_edge(const System& system, const Finding& finding, const std::string& chunk);
/// Of an end of a channel, or a semaphore, that does not balance: an op that gives, or takes, too
/// often.
MissingEdge unbalanced_edge(const Program& program, const Finding& finding);

}  // namespace mscclc::proof
