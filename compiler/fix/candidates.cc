#include "compiler/fix/candidates.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "compiler/fix/makers.h"

namespace mscclc::fix {
namespace {

constexpr size_t kMaxErrors = 3;  ///< that candidates are made for

/// The makers for some codes, in the order in which they are asked.
struct Row {
  std::vector<std::string_view> codes;
  std::vector<Maker> makers;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {{"unknown-name", "unknown-op", "unknown-option", "unknown-item", "unknown-packets",
        "no-such-buffer", "no-such-channel", "wrong-kind", "channel-kind", "no-body", "option"},
       {move_declarations, respell, rename, add_keys, fix_syntax, change_operands, change_op}},
      {{"expected", "misplaced", "unknown-character", "bad-number", "needs-parentheses",
        "unmatched-brace", "missing-brace", "nesting"},
       {respell, close_braces, fix_syntax}},
      {{"no-partner", "channel-crossed", "channel-ambiguous", "channel-to-itself", "no-such-rank"},
       {change_partner, respell, change_operands, add_signals, change_op, erase_statements,
        change_everywhere}},
      {{"packets", "packet-formats", "op-packets", "op-operands", "operands", "needs-channel",
        "needs-local"},
       {change_op, add_keys, change_packets, change_operands, respell, change_everywhere}},
      {{"race", "slot-twice"},
       {add_copies, change_relaxed, reorder, change_operands, add_signals, change_op, add_syncs,
        change_credits, change_everywhere, erase_statements}},
      {{"stuck", "unbalanced", "not-met"},
       {erase_repeated, add_signals, erase_statements, change_op, reorder, change_operands,
        change_packets, add_syncs, change_credits, change_everywhere}},
      {{"no-packets", "wrong-result", "sum-order", "unpaired-rounds", "out-of-step"},
       {change_operands, reorder, change_op, change_everywhere, add_signals, erase_statements}},
      {{"missing-order"}, {add_syncs, reorder, change_everywhere}},
  };
  return kRows;
}

/// Of codes without a row: something is named or counted wrong.
const std::vector<Maker>& other_makers() {
  static const std::vector<Maker> kMakers = {add_keys,  change_operands, respell,
                                             change_op, change_packets,  change_everywhere};
  return kMakers;
}

/// Does the prover name what orders ops of one call in a rank, or at a port?
bool wants_sync(const Diagnostic& d) {
  if (!d.missing || d.missing->first.call != d.missing->second.call) return false;
  const MissingKind kind = d.missing->kind;
  return kind == MissingKind::sync || kind == MissingKind::semaphore || kind == MissingKind::flush;
}

const std::vector<Maker>& makers(std::string_view code) {
  for (const Row& row : rows()) {
    if (std::ranges::find(row.codes, code) != row.codes.end()) return row.makers;
  }
  return other_makers();
}

}  // namespace

bool may_be_fixed(const Diagnostic& error) {
  // No proof shows which reduction is meant.
  static constexpr std::string_view kOthers[] = {"undecided",      "memory",
                                                 "too-many-ops",   "too-many-steps",
                                                 "file-too-large", "unknown-reduction"};
  return std::ranges::find(kOthers, error.code) == std::end(kOthers);
}

std::vector<Candidate> candidates(const Outline& outline, const std::string& file,
                                  const Diagnostics& diagnostics) {
  std::vector<Candidate> found;
  size_t errors = 0;
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity != Severity::error || !may_be_fixed(d)) continue;
    if (++errors > kMaxErrors) break;
    Case c(outline, file, d, found);
    if (wants_sync(d)) add_syncs(c);
    for (const Maker make : makers(d.code)) make(c);
  }
  return found;
}

}  // namespace mscclc::fix
