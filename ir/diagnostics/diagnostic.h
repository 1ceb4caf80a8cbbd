// Diagnostics are values in a list: what is wrong, where, and notes with bindings, declaration and
// remedy. Only tools/ prints them. Text is lower case, without a full stop, names in quotes.
//
//   hier.mscl:27:38: error: 'sums' has no row 1 on rank 8
//       for n in twins { put net[n].sums[node + 1] <- output[me] ; signal net[n] }
//                                        ^~~~~~~~
//   hier.mscl:27:38: note: when r = 0, n = 1
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/diagnostics/facts.h"
#include "ir/support/source.h"

namespace mscclc {

enum class Severity : uint8_t { error, warning };

struct Note {
  std::string text;
  Span span = {};         ///< invalid: no place of its own, it is shown at the diagnostic's
  std::string file = {};  ///< see Diagnostic::file
};

struct Diagnostic {
  Severity severity = Severity::error;
  std::string code;  ///< stable kebab-case name of the kind of mistake, "unknown-name"
  Span span;
  std::string message;
  std::vector<Note> notes;
  /// The file's name where Span::file means nothing: places of ops of plans and of IR text. The
  /// excerpt is shown if Sources has a file of that name.
  std::string file;
  /// Instead of a span: where in a JSON file ("plan.json: gpus[2].channels[0]").
  std::string path;
  std::vector<LoopValue> loop;         ///< at the place
  std::optional<MissingEdge> missing;  ///< of the prover
  std::vector<Patch> patches;          ///< each proved
};

/// Collects diagnostics. One mistake at one place is kept once (code + span), whatever the loop
/// bindings; without a span, one message at one path is kept once. A returned reference is valid
/// until the next diagnostic: for adding notes.
class Diagnostics {
 public:
  Diagnostic& error(std::string code, Span span, std::string message);
  Diagnostic& warning(std::string code, Span span, std::string message);
  /// Any diagnostic, already filled.
  Diagnostic& add(Diagnostic d);
  /// An error in a JSON document, at `path`.
  Diagnostic& error_at(std::string code, std::string path, std::string message);
  bool has_errors() const { return errors_ > 0; }
  const std::vector<Diagnostic>& all() const { return list_; }
  /// Adds a patch to the i-th diagnostic.
  void add_patch(size_t i, Patch patch) { list_[i].patches.push_back(std::move(patch)); }

 private:
  std::vector<Diagnostic> list_;
  std::unordered_set<std::string> seen_;
  Diagnostic repeated_;  ///< where notes of a repeated diagnostic go
  int errors_ = 0;
};

/// Renders clang-style text, at most `limit` diagnostics, then how many more there are.
std::string render_text(const Diagnostics& diagnostics, const Sources& sources, int limit = 20);
/// The same without sources and without a line break at the end, as part of another text.
std::string message_of(const Diagnostics& diagnostics);
/// Renders one JSON object per line, as docs/diagnostics.md describes it. Keys of what is not known
/// are omitted.
std::string render_json(const Diagnostics& diagnostics, const Sources& sources);
/// The candidate nearest to `name` by edit distance (the first of several), "" if none is near
/// enough for 'did you mean'. A swap of neighbours counts as one edit.
std::string nearest(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace mscclc
