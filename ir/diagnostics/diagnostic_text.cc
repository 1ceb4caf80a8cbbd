// Diagnostics as text for people, in the shape that clang made familiar.
#include "ir/diagnostics/diagnostic.h"
#include "ir/diagnostics/excerpt.h"
#include "ir/diagnostics/printable.h"

namespace mscclc {
namespace {

std::string_view name(Severity severity) {
  return severity == Severity::error ? "error" : "warning";
}

std::string place_text(const std::optional<ResolvedPlace>& place) {
  if (!place) return {};
  std::string out = printable_line(place->file);
  if (!out.empty()) out += ':';
  out += std::to_string(place->line) + ':' + std::to_string(place->column) + ": ";
  return out;
}

void render(const Diagnostic& d, const Sources& sources, std::string& out) {
  const auto place = resolve(d.span, d.file, sources);
  const std::string where = d.path.empty() ? place_text(place) : printable_line(d.path) + ": ";
  out += where;
  out += name(d.severity);
  out += ": " + printable_line(d.message) + '\n';
  if (place) out += excerpt(*place);
  for (const Note& note : d.notes) {
    const auto own = resolve(note.span, note.file, sources);
    out += own ? place_text(own) : where;
    out += "note: " + printable_line(note.text) + '\n';
  }
}

/// "3 more errors", "1 more warning"
std::string more(int count, std::string_view what) {
  return std::to_string(count) + " more " + std::string(what) + (count == 1 ? "" : "s");
}

}  // namespace

std::string render_text(const Diagnostics& diagnostics, const Sources& sources, int limit) {
  std::string out;
  int shown = 0, errors = 0, warnings = 0;
  for (const Diagnostic& d : diagnostics.all()) {
    if (shown < limit) {
      render(d, sources, out);
      ++shown;
    } else {
      ++(d.severity == Severity::error ? errors : warnings);
    }
  }
  if (errors > 0) out += more(errors, "error");
  if (errors > 0 && warnings > 0) out += ", ";
  if (warnings > 0) out += more(warnings, "warning");
  if (errors + warnings > 0) out += '\n';
  return out;
}

std::string message_of(const Diagnostics& diagnostics) {
  std::string text = render_text(diagnostics, Sources{});
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace mscclc
