// Diagnostics as JSON for editors: one object per line.
#include <algorithm>

#include "ir/diagnostics/diagnostic.h"
#include "ir/diagnostics/excerpt.h"
#include "ir/diagnostics/printable.h"
#include "ir/support/utf8.h"

namespace mscclc {
namespace {

void append_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char c = text[0];
    size_t length = utf8_length(text);
    if (length == 0) {
      out += "\\ufffd";
      length = 1;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (const Character shown = first_character(text); is_control(shown)) {
      out += "\\u";  // none of them lies beyond four digits
      for (int shift = 12; shift >= 0; shift -= 4) out += kHex[shown.code >> shift & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void append_key(std::string& out, std::string_view key) {
  if (out.back() != '{') out += ',';
  append_string(out, key);
  out += ':';
}

void append_member(std::string& out, std::string_view key, std::string_view value) {
  append_key(out, key);
  append_string(out, value);
}

void append_number(std::string& out, std::string_view key, int64_t value) {
  append_key(out, key);
  out += std::to_string(value);
}

/// "key":[…], an element for each of `list`.
template <class List, class Append>
void append_list(std::string& out, std::string_view key, const List& list, Append append) {
  append_key(out, key);
  out += '[';
  for (const auto& item : list) {
    if (out.back() != '[') out += ',';
    out += '{';
    append(item);
    out += '}';
  }
  out += ']';
}

void append_place(std::string& out, const std::optional<ResolvedPlace>& place) {
  if (!place) return;
  append_member(out, "file", place->file);
  append_number(out, "line", place->line);
  append_number(out, "column", place->column);
  append_number(out, "end_line", place->last_line);
  append_number(out, "end_column", place->last_column);
}

void append_loop(std::string& out, const std::vector<LoopValue>& loop) {
  if (loop.empty()) return;
  append_key(out, "loop");
  out += '{';
  for (const LoopValue& variable : loop) append_number(out, variable.name, variable.value);
  out += '}';
}

void append_access(std::string& out, std::string_view key, const EdgeEnd& access,
                   const Sources& sources) {
  if (!access.known()) return;
  append_key(out, key);
  out += '{';
  append_member(out, "does", access.does);
  if (!access.op.empty()) append_member(out, "op", access.op);
  append_number(out, "rank", access.rank);
  if (!access.block.empty()) append_member(out, "block", access.block);
  append_number(out, "call", access.call);
  append_loop(out, access.loop);
  append_place(out, resolve(access.span, access.file, sources));
  out += '}';
}

void append_edge(std::string& out, const MissingEdge& edge, const Sources& sources) {
  append_key(out, "missing");
  out += '{';
  append_member(out, "kind", name(edge.kind));
  if (!edge.chunk.empty()) append_member(out, "chunk", edge.chunk);
  if (edge.copies != 0) append_number(out, "copies", edge.copies);
  append_access(out, "first", edge.first, sources);
  append_access(out, "second", edge.second, sources);
  out += '}';
}

/// Line and column of a byte.
struct Position {
  int64_t line = 1, column = 1;
};
Position position(std::string_view text, uint32_t byte) {
  const std::string_view before = text.substr(0, byte);
  const size_t newline = before.rfind('\n');
  return {1 + std::ranges::count(before, '\n'),
          static_cast<int64_t>(newline == std::string_view::npos ? byte + 1 : byte - newline)};
}

void append_edit(std::string& out, const TextEdit& edit, const Sources& sources) {
  const SourceFile& file = sources.file(edit.file);
  const Position begin = position(file.text, edit.begin), end = position(file.text, edit.end);
  append_member(out, "file", file.name);
  append_number(out, "begin", edit.begin);
  append_number(out, "end", edit.end);
  append_number(out, "line", begin.line);
  append_number(out, "column", begin.column);
  append_number(out, "end_line", end.line);
  append_number(out, "end_column", end.column);
  append_member(out, "text", edit.text);
}

void append_facts(std::string& out, const Diagnostic& d, const Sources& sources) {
  append_loop(out, d.loop);
  if (d.missing) append_edge(out, *d.missing, sources);
  append_list(out, "notes", d.notes, [&](const Note& note) {
    append_member(out, "message", note.text);
    append_place(out, resolve(note.span, note.file, sources));
  });
  if (d.patches.empty()) return;
  append_list(out, "patches", d.patches, [&](const Patch& patch) {
    append_member(out, "title", patch.title);
    append_list(out, "edits", patch.edits,
                [&](const TextEdit& edit) { append_edit(out, edit, sources); });
  });
}

}  // namespace

std::string_view name(MissingKind kind) {
  constexpr std::string_view kNames[] = {"unknown",   "signal", "sync",
                                         "semaphore", "flush",  "packets"};
  return kNames[static_cast<size_t>(kind)];
}

std::string render_json(const Diagnostics& diagnostics, const Sources& sources) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) {
    out += '{';
    append_member(out, "severity", d.severity == Severity::error ? "error" : "warning");
    append_member(out, "code", d.code);
    append_place(out, resolve(d.span, d.file, sources));
    append_member(out, "message", d.message);
    if (!d.path.empty()) append_member(out, "path", d.path);
    append_facts(out, d, sources);
    out += "}\n";
  }
  return out;
}

}  // namespace mscclc
