// Diagnostics as JSON for editors: one object per line.
#include "ir/diagnostics/diagnostic.h"
#include "ir/diagnostics/excerpt.h"
#include "ir/diagnostics/printable.h"

namespace mscclc {
namespace {

/// Bytes of the UTF-8 character at the start of `text`, 0 if it is not one.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (n == 1) return 1;
  if (first < 0xc2 || first > 0xf4 || text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond Unicode: decided by the second byte.
  const unsigned char second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return n;
}

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

void append_member(std::string& out, std::string_view key, std::string_view value) {
  if (out.back() != '{') out += ',';
  append_string(out, key);
  out += ':';
  append_string(out, value);
}

void append_member(std::string& out, std::string_view key, uint32_t value) {
  out += ',';
  append_string(out, key);
  out += ':' + std::to_string(value);
}

void append_place(std::string& out, const std::optional<ResolvedPlace>& place) {
  if (!place) return;
  append_member(out, "file", place->file);
  append_member(out, "line", place->line);
  append_member(out, "column", place->column);
  append_member(out, "end_column", place->end_column);
}

}  // namespace

std::string render_json(const Diagnostics& diagnostics, const Sources& sources) {
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) {
    out += '{';
    append_member(out, "severity", d.severity == Severity::error ? "error" : "warning");
    append_member(out, "code", d.code);
    append_place(out, resolve(d.span, d.file, sources));
    append_member(out, "message", d.message);
    if (!d.path.empty()) append_member(out, "path", d.path);
    out += ",\"notes\":[";
    for (const Note& note : d.notes) {
      if (&note != &d.notes.front()) out += ',';
      out += '{';
      append_member(out, "message", note.text);
      append_place(out, resolve(note.span, note.file, sources));
      out += '}';
    }
    out += "]}\n";
  }
  return out;
}

}  // namespace mscclc
