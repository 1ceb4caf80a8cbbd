#include "tools/draw/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/base/xml_text.h"
#include "tools/draw/words.h"

namespace mscclc::draw {
namespace {

struct Colour {
  std::string_view fill, line;
};

// Hues that most people can distinguish, light enough for black text.
constexpr std::array<Colour, 10> kColours = {{{"#dbeafe", "#2563a8"},
                                              {"#fde8cf", "#c2690c"},
                                              {"#d8f3dc", "#2d7d46"},
                                              {"#fbdcdc", "#b93a3a"},
                                              {"#e8dcf7", "#7047a8"},
                                              {"#fdf3c0", "#94760a"},
                                              {"#d3f1f4", "#177f8a"},
                                              {"#fadcec", "#b03a7c"},
                                              {"#e6eac8", "#66741b"},
                                              {"#e7dfd8", "#7a5a43"}}};
constexpr Colour kNoColour = {"#eef0f3", "#6b7280"};

const Colour& colour_at(uint32_t colour) {
  return colour == kNowhere ? kNoColour : kColours[colour % kColours.size()];
}

struct Class {
  CostClass cost;
  std::string_view colour, words;
};
constexpr Class kClasses[] = {{CostClass::kMove, "#2563a8", "moves data"},
                              {CostClass::kReduce, "#b93a3a", "adds up"},
                              {CostClass::kPacket, "#2d7d46", "packets"}};

std::string_view stripe_of(CostClass cost) {
  for (const Class& c : kClasses) {
    if (c.cost == cost) return c.colour;
  }
  return "#9ca3af";
}

constexpr std::string_view kStyle =
    "text{font-family:'DejaVu Sans','Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2937}"
    ".t{font-size:19px;font-weight:bold}.f{font-size:12px;fill:#4b5563}"
    ".h{font-size:14px;font-weight:bold}.c{font-size:10px;fill:#6b7280}"
    ".n{font-size:11px;font-weight:bold}"
    ".m{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:10px}"
    ".s{font-size:10px;fill:#4b5563}"
    ".l{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:10px;"
    "paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".b{font-size:10px;fill:#6b7280;font-style:italic}"
    ".lane{fill:#f8fafc;stroke:#d5dbe3}.far{stroke-dasharray:4 4}.ctl{fill:#fff;stroke:#b6bfca}"
    ".frame{fill:none;stroke:#8b5cf6;stroke-width:1.2;stroke-dasharray:5 3}"
    ".fl{font-size:9px;fill:#6d3fd1;paint-order:stroke;stroke:#f8fafc;stroke-width:3px}"
    ".data{fill:none;stroke-width:1.8}.order{fill:none;stroke:#9aa4b2;stroke-width:1.1}"
    ".meet{fill:none;stroke:#6b7280;stroke-width:1.2;stroke-dasharray:2 3}"
    ".port{stroke-dasharray:7 3}.edge{stroke:#94a3b8;stroke-dasharray:1 4;stroke-width:2}";

class Writer {
 public:
  Writer(const Picture& picture, Detail detail) : picture_(picture), detail_(detail) {}

  std::string run() {
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<style>{2}</style>\n",
        picture_.width, picture_.height, kStyle);
    out_ += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    write_title();
    for (const Lane& lane : picture_.lanes) write_lane(lane);
    write_borders();
    for (const Frame& frame : picture_.frames) rect(frame.at, "frame", 6);
    for (size_t i = 0; i < picture_.arrows.size(); ++i) write_arrow(picture_.arrows[i]);
    for (const Bus& bus : picture_.buses) write_bus(bus);
    for (const Box& box : picture_.boxes) write_box(box);
    for (const Frame& frame : picture_.frames) {
      text(frame.at.x + 6, frame.at.y + 10, "fl", frame.label);
    }
    for (const Arrow& arrow : picture_.arrows) write_label(arrow);
    write_legend();
    return std::move(out_) + "</svg>\n";
  }

 private:
  void text(double x, double y, std::string_view style, const std::string& words,
            std::string_view more = "") {
    out_ += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" class=\"{}\"{}>{}</text>\n", x, y, style,
                        more, xml_escaped(words));
  }

  void rect(const Area& at, std::string_view style, double round, std::string_view more = "") {
    out_ += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"{}\"{}{}/>\n",
        at.x, at.y, at.w, at.h, round, style.empty() ? "" : fmt::format(" class=\"{}\"", style),
        more);
  }

  void write_title() {
    text(24, 36, "t", picture_.title);
    double y = 54;
    for (const std::string& fact : picture_.facts) {
      text(24, y, "f", fact);
      y += 17;
    }
  }

  void write_lane(const Lane& lane) {
    if (!lane.is_used) return;
    rect(lane.at, lane.others ? "lane far" : "lane", 6);
    const std::string note = lane.note.empty() ? "" : " (" + lane.note + ")";
    text(lane.at.middle(), lane.at.y + 17, "h", lane.title + note, " text-anchor=\"middle\"");
    for (const ColumnHead& column : lane.columns) {
      const size_t most = static_cast<size_t>(column.at.w / 5.6);
      text(column.at.middle(), column.at.y + 11, "c", shortened(column.label, most),
           " text-anchor=\"middle\"");
    }
  }

  void write_borders() {
    for (const bool begin : {true, false}) {
      const double y = begin ? picture_.begin_y : picture_.end_y;
      out_ +=
          fmt::format("<path d=\"M24 {0:.0f}H{1:.0f}\" class=\"edge\"/>\n", y, picture_.width - 24);
      text(28, begin ? y + 12 : y - 4, "b", begin ? picture_.begins : picture_.ends,
           " style=\"paint-order:stroke;stroke:#fff;stroke-width:3px\"");
    }
  }

  std::string path_of(const std::vector<Point>& points) const {
    std::string d;
    for (size_t i = 0; i < points.size(); ++i) {
      d += fmt::format("{}{:.0f} {:.0f}", i == 0 ? "M" : "L", points[i].x, points[i].y);
    }
    return d;
  }

  void write_arrow(const Arrow& arrow) {
    if (arrow.bus != kNowhere) return;
    if (arrow.around) {
      const auto& p = arrow.points;
      stroke(arrow, {p[0], p[1]}, false);
      stroke(arrow, {p[2], p[3]}, true);
    } else {
      stroke(arrow, arrow.points, arrow.kind != ArrowKind::meeting);
    }
  }

  void stroke(const Arrow& arrow, const std::vector<Point>& points, bool head) {
    std::string style = arrow.kind == ArrowKind::data      ? "data"
                        : arrow.kind == ArrowKind::meeting ? "meet"
                                                           : "order";
    if (arrow.port) style += " port";
    std::string more;
    if (arrow.kind == ArrowKind::data) {
      more = fmt::format(" stroke=\"{}\"", colour_at(arrow.colour).line);
    }
    out_ += fmt::format("<path d=\"{}\" class=\"{}\"{}{}/>\n", path_of(points), style, more,
                        data(arrow));
    if (head) write_head(arrow, points[points.size() - 2], points.back());
  }

  void write_head(const Arrow& arrow, Point before, Point at) {
    const std::string_view fill =
        arrow.kind == ArrowKind::data ? colour_at(arrow.colour).line : "#9aa4b2";
    head(before, at, fill, data(arrow));
  }

  void head(Point before, Point at, std::string_view fill, const std::string& more) {
    const double dx = at.x - before.x, dy = at.y - before.y;
    const double length = std::max(std::hypot(dx, dy), 0.01);
    const double ux = dx / length * 7, uy = dy / length * 7;
    out_ += fmt::format("<path d=\"M{:.0f} {:.0f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z\" fill=\"{}\"{}/>\n",
                        at.x, at.y, at.x - ux - uy * 0.45, at.y - uy + ux * 0.45,
                        at.x - ux + uy * 0.45, at.y - uy - ux * 0.45, fill, more);
  }

  /// The chunks: above the arrow where it has left its box.
  void write_label(const Arrow& arrow) {
    if (arrow.bus != kNowhere || arrow.label.empty() || arrow.points.size() < 2) return;
    const auto& p = arrow.points;
    Point at;
    bool left = false;
    size_t most = 40;
    const bool half = arrow.from == kNowhere || arrow.to == kNowhere;
    if (half && picture_.lanes[arrow.from == kNowhere ? arrow.from_lane : arrow.to_lane].others) {
      left = arrow.from == kNowhere;  // in the lane of the other ranks
      at = left ? Point{p[0].x - 4, p[0].y + 3} : Point{p.back().x + 4, p.back().y + 3};
      most = 23;
    } else if (arrow.from == kNowhere) {  // along a row
      at = {p[0].x + 2, p[0].y - 4};
    } else if (arrow.to == kNowhere) {
      left = p.back().x > p[0].x;
      at = {p.back().x - (left ? 9 : -9), p.back().y - 4};
    } else if (arrow.around) {
      left = p[1].x > p[0].x;
      at = {p[1].x, p[1].y + 9};
    } else {
      const size_t first = p.size() > 2 && p[0].x == p[1].x;
      const Point a = p[first], b = p[first + 1];
      const double share = std::min(1.0, 13 / std::max(b.y - a.y, 1.0));
      left = b.x < a.x;
      at = {a.x + (b.x - a.x) * share + (left ? -6 : 6), a.y + (b.y - a.y) * share - 1};
    }
    text(at.x, at.y, "l", shortened(arrow.label, most),
         fmt::format(" style=\"fill:{}\"{}{}", colour_at(arrow.colour).line,
                     left ? " text-anchor=\"end\"" : "", data(arrow)));
  }

  void write_bus(const Bus& bus) {
    const std::string_view colour = bus.kind == ArrowKind::data ? "#475569" : "#9aa4b2";
    const double width = bus.kind == ArrowKind::data ? 2.4 : 1.2;
    out_ += fmt::format("<path d=\"M{:.0f} {:.0f}H{:.0f}\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
                        bus.left, bus.y, bus.right, colour, width);
    for (const uint32_t b : bus.from) {
      const Area& at = picture_.boxes[b].at;
      out_ += fmt::format("<path d=\"M{:.0f} {:.0f}V{:.0f}\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
                          at.middle() - 8, at.bottom(), bus.y, colour, width);
    }
    for (const std::vector<Point>& way : bus.ways) {
      out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
                          path_of(way), colour, width);
      head(way[way.size() - 2], way.back(), colour, "");
    }
    const std::string each = bus.from.size() == 1 ? "to each"
                             : bus.to.size() == 1 ? "from each"
                                                  : "each to all";
    const std::string words = bus.label.empty() ? each : each + ": " + bus.label;
    const double x = picture_.boxes[bus.from[0]].at.middle();
    const size_t most = static_cast<size_t>(std::clamp(bus.room / 6.05, 6.0, 60.0));
    text(x, bus.y - 4, "l", shortened(words, most),
         bus.kind == ArrowKind::data ? "" : " style=\"fill:#8691a1\"");
  }

  void write_box(const Box& box) {
    const Lane& lane = picture_.lanes[box.lane];
    if (detail_ == Detail::page) {
      std::string chunks, ops;
      for (const std::string& chunk : box.touched) chunks += chunk + " ";
      for (const std::string& op : box.ops) ops += op + "\n";
      out_ += fmt::format(
          "<g class=\"box\" data-rank=\"{}\" data-tb=\"{}\" data-chunks=\"{}\" data-op=\"{}\" "
          "data-row=\"{}\"><title>{}</title>\n",
          lane.rank, xml_escaped(lane.columns[box.column].blocks), xml_escaped(chunks),
          xml_escaped(box.name), box.row, xml_escaped(ops));
    }
    if (box.name.empty()) {
      rect(box.at, "ctl", 7);
    } else {
      const Colour& colour = colour_at(box.colour);
      rect(box.at, "", 3, fmt::format(" fill=\"{}\" stroke=\"{}\"", colour.fill, colour.line));
      rect({box.at.x, box.at.y, 4, box.at.h}, "", 1,
           fmt::format(" fill=\"{}\"", stripe_of(box.cost)));
    }
    write_words(box);
    if (detail_ == Detail::page) out_ += "</g>\n";
  }

  void write_words(const Box& box) {
    const double x = box.at.x + 9;
    double y = box.at.y + (box.name.empty() ? 12 : 11);
    for (const std::string& strip : box.before) {
      text(x, y, "s", strip);
      y += 12;
    }
    if (!box.name.empty()) {
      const double wide = 6.9 * static_cast<double>(box.name.size());
      const double size = std::clamp(11 * (box.at.w - 12) / wide, 9.0, 11.0);
      const size_t most = static_cast<size_t>((box.at.w - 10) / (0.62 * size));
      text(x, y + 1, "n", shortened(box.name, most),
           size < 11 ? fmt::format(" style=\"font-size:{:.1f}px\"", size) : "");
      y += 13;
      for (const std::string& line : box.lines) {
        text(x, y, "m", line);
        y += 11;
      }
    }
    for (const std::string& strip : box.after) {
      text(x, y + (box.name.empty() ? 0 : 1), "s", strip);
      y += 12;
    }
  }

  void write_legend() {
    double x = 24;
    const double y = picture_.end_y + 34;
    for (const Class& c : kClasses) {
      rect({x, y - 10, 4, 13}, "", 1, fmt::format(" fill=\"{}\"", c.colour));
      text(x + 8, y, "c", std::string(c.words));
      x += 20 + 5.8 * static_cast<double>(c.words.size());
    }
    legend_line(x, y, "data", "data, with the chunks that have come", " stroke=\"#2563a8\"");
    legend_line(x, y, "order", "order alone", "");
    for (const Arrow& arrow : picture_.arrows) {
      if (!arrow.port) continue;
      legend_line(x, y, "data port", "through a port", " stroke=\"#2563a8\"");
      break;
    }
    for (const Box& box : picture_.boxes) {
      if (!has_credits(box)) continue;
      text(x, y, "c", "↻ meets another round; ↻2 with 2 credits");
      x += 235;
      break;
    }
    write_chunks(x, y);
  }

  static bool has_credits(const Box& box) {
    for (const auto* strips : {&box.before, &box.after}) {
      for (const std::string& strip : *strips) {
        if (strip.starts_with("↻")) return true;
      }
    }
    return false;
  }

  void legend_line(double& x, double y, std::string_view style, std::string_view words,
                   std::string_view more) {
    out_ += fmt::format("<path d=\"M{:.0f} {:.0f}h22\" class=\"{}\"{}/>\n", x, y - 3, style, more);
    text(x + 27, y, "c", std::string(words));
    x += 42 + 5.6 * static_cast<double>(words.size());
  }

  void write_chunks(double x, double y) {
    if (picture_.colours.empty()) return;
    text(x, y, "c", "chunk");
    x += 38;
    for (uint32_t i = 0; i < picture_.colours.size() && i < kColours.size(); ++i) {
      const double w = 12 + 6 * static_cast<double>(picture_.colours[i].size());
      if (x + w + 20 > picture_.width) break;
      rect({x, y - 11, w, 15}, "", 3,
           fmt::format(" fill=\"{}\" stroke=\"{}\"", kColours[i].fill, kColours[i].line));
      text(x + w / 2, y, "c", picture_.colours[i], " text-anchor=\"middle\"");
      x += w + 4;
    }
    if (picture_.colours.size() > kColours.size()) text(x, y, "c", "…");
  }

  /// What the script of a page finds an arrow by.
  std::string data(const Arrow& arrow) const {
    if (detail_ != Detail::page) return "";
    return fmt::format(" data-from=\"{}\" data-to=\"{}\" data-chunks=\"{}\"",
                       picture_.lanes[arrow.from_lane].rank, picture_.lanes[arrow.to_lane].rank,
                       xml_escaped(arrow.label));
  }

  const Picture& picture_;
  const Detail detail_;
  std::string out_;
};

}  // namespace

std::string_view fill_of(uint32_t colour) { return colour_at(colour).fill; }
std::string_view line_of(uint32_t colour) { return colour_at(colour).line; }

std::string svg_of(const Picture& picture, Detail detail) { return Writer(picture, detail).run(); }

}  // namespace mscclc::draw
