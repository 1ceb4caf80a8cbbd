// Execution plans as JSON: MSCCL++'s format plus our one extra key, described in FORMAT.md.
// The same program gives the same bytes on every machine and run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "plans/format/proof_record.h"
#include "plans/format/target.h"

namespace mscclc {

/// The version of what the extra key holds. A reader refuses all others.
inline constexpr uint32_t kPlanSchema = 2;

/// Writes `program` as one line of compact JSON. REQUIRES: program.split, verify_structure.
/// Reports what `target` cannot run; nullopt then. `proof`: what the prover says of this program,
/// if it was asked; it is written into the plan. REQUIRES: proof->proved.
[[nodiscard]] std::optional<std::string> write_plan(const Program& program, const Target& target,
                                                    Diagnostics& diagnostics,
                                                    const Proof* proof = nullptr);

/// The same without holding the text: passes it on block by block, in order. After an error (false)
/// what has been passed on is worthless. `sink` returns false to stop: that is an error too,
/// but the sink's to report.
/// Large plans are written by several threads (`threads`: see thread_count,
/// ir/program/rank_parts.h), of which one at a time calls `sink`; the bytes are the same.
[[nodiscard]] bool write_plan(const Program& program, const Target& target,
                              const std::function<bool(std::string_view)>& sink,
                              Diagnostics& diagnostics, const Proof* proof = nullptr,
                              uint32_t threads = 0);

/// Does the target run all thread blocks of a rank at once? They wait for one another. True where
/// only a call can say so, of a plan with row functions. False: reported as by write_plan().
/// REQUIRES: program.split.
[[nodiscard]] bool runs_at_once(const Program& program, const Target& target,
                                Diagnostics& diagnostics);

/// Writes what names a plan: what write_plan() writes, of no target, without a proof and without
/// the hash (FORMAT.md, §5). Equal for equal plans, wherever they were compiled or read.
[[nodiscard]] bool write_canonical(const Program& program,
                                   const std::function<bool(std::string_view)>& sink,
                                   Diagnostics& diagnostics);

/// What a plan for `target` says about its proof.
ProofRecord proof_record(const Program& program, const Target& target, const Proof& proof);

/// Reads a plan, ours or MSCCL++'s, into split IR. `name` is the file's, for messages.
/// Every error names the JSON path. A content hash that does not match is an error. The record of a
/// proof is put into `proof`: it is a claim by the writer of the plan, and no more.
/// `canonical` is handed what write_canonical() would write of a plan of ours, while its hash is
/// found; nothing of a plan without our extra key. After an error it is worth nothing.
[[nodiscard]] std::optional<Program> read_plan(
    std::string_view json, const std::string& name, Diagnostics& diagnostics,
    std::optional<ProofRecord>* proof = nullptr,
    const std::function<bool(std::string_view)>* canonical = nullptr);

}  // namespace mscclc
