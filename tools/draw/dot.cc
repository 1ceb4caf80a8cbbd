#include "tools/draw/dot.h"

#include <fmt/format.h>

#include "ir/diagnostics/printable.h"
#include "tools/draw/svg.h"

namespace mscclc::draw {
namespace {

constexpr double kInch = 72;

/// A string of the language. `\l` in it ends a line that begins at the left.
std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\l";
    } else {
      out += c;
    }
  }
  return out + '"';
}

class DotWriter {
 public:
  explicit DotWriter(const Picture& picture) : picture_(picture) {}

  std::string run() {
    out_ = fmt::format("digraph {} {{\n", quoted_text(picture_.name));
    std::string label = picture_.title;
    for (const std::string& fact : picture_.facts) label += "\n" + fact;
    out_ += "  layout=nop; outputorder=nodesfirst; label=" + quoted_text(label) + ";\n";
    out_ += "  node [shape=box, fontname=monospace, fontsize=9, style=filled];\n";
    out_ += "  edge [fontname=monospace, fontsize=8];\n";
    for (size_t l = 0; l < picture_.bands.size(); ++l) write_band(l);
    for (size_t b = 0; b < picture_.boxes.size(); ++b) write_box(b);
    write_order();
    for (const Arrow& arrow : picture_.arrows) write_arrow(arrow);
    return std::move(out_) + "}\n";
  }

 private:
  /// `pos`, `width` and `height`; Graphviz counts upward.
  std::string place(const Area& at) const {
    return fmt::format("pos=\"{:.0f},{:.0f}\", width={:.2f}, height={:.2f}, fixedsize=true",
                       at.middle(), picture_.height - at.y - at.h / 2, at.w / kInch, at.h / kInch);
  }

  void write_band(size_t l) {
    const RankBand& band = picture_.bands[l];
    if (!band.is_used) return;
    out_ += fmt::format(
        "  lane{} [label={}, labelloc=t, fillcolor=\"#f8fafc\", color=\"#d5dbe3\", {}];\n", l,
        quoted_text(band.title), place(band.at));
  }

  void write_box(size_t b) {
    const Box& box = picture_.boxes[b];
    std::string words;
    for (const std::string& strip : box.before) words += strip + "\n";
    if (!box.name.empty()) words += box.name + "\n";
    for (const std::string& line : box.lines) words += line + "\n";
    for (const std::string& strip : box.after) words += strip + "\n";
    std::string ops;
    for (const std::string& op : box.ops) ops += op + "\n";
    out_ += fmt::format("  box{} [label={}, tooltip={}, fillcolor=\"{}\", color=\"{}\", {}];\n", b,
                        quoted_text(words), quoted_text(ops), fill_of(box.colour),
                        line_of(box.colour), place(box.at));
  }

  /// A block's boxes, one after the other.
  void write_order() {
    for (size_t b = 1; b < picture_.boxes.size(); ++b) {
      const Box& before = picture_.boxes[b - 1];
      const Box& box = picture_.boxes[b];
      if (before.band != box.band || before.column != box.column) continue;
      out_ += fmt::format("  box{} -> box{} [color=\"#cbd5e1\"];\n", b - 1, b);
    }
  }

  static std::string end(uint32_t box, uint32_t band) {
    return box == kNowhere ? fmt::format("lane{}", band) : fmt::format("box{}", box);
  }

  void write_arrow(const Arrow& arrow) {
    out_ +=
        fmt::format("  {} -> {}", end(arrow.from, arrow.from_band), end(arrow.to, arrow.to_band));
    switch (arrow.kind) {
      case ArrowKind::data:
        out_ += fmt::format(" [color=\"{0}\", fontcolor=\"{0}\", label={1}];\n",
                            line_of(arrow.colour), quoted_text(arrow.label));
        break;
      case ArrowKind::order:
        out_ += " [color=grey];\n";
        break;
      case ArrowKind::meeting:
        out_ += " [color=grey, dir=none, style=dotted];\n";
        break;
    }
  }

  const Picture& picture_;
  std::string out_;
};

}  // namespace

std::string dot_of(const Picture& picture) { return DotWriter(picture).run(); }

}  // namespace mscclc::draw
