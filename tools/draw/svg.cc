#include "tools/draw/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "tools/draw/words.h"
#include "tools/io/xml_text.h"

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
constexpr Colour kNoColour = {"#eef0f3", "#475569"};  // of several chunks, or none

const Colour& colour_at(uint32_t colour) {
  return colour == kNowhere ? kNoColour : kColours[colour % kColours.size()];
}

struct Class {
  CostClass cost;
  std::string_view style, words;
};
// Without hues, which are those of chunks.
constexpr Class kClasses[] = {{CostClass::kMove, "mv", "moves data"},
                              {CostClass::kReduce, "ad", "adds up"},
                              {CostClass::kPacket, "pk", "packets"}};

constexpr std::string_view kStyle =
    "svg{max-width:100%;height:auto}"
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
    ".stripe{stroke-width:4}.mv{stroke:#a3acb9}.ad{stroke:#111827}"
    ".pk{stroke:#111827;stroke-dasharray:2 2}"
    ".frame{fill:none;stroke:#4b5563;stroke-width:1.2;stroke-dasharray:5 3}"
    ".fl{font-size:9px;fill:#374151;paint-order:stroke;stroke:#f8fafc;stroke-width:3px}"
    ".data{fill:none;stroke-width:1.8}.order{fill:none;stroke:#9aa4b2;stroke-width:1.1}"
    ".meet{fill:none;stroke:#6b7280;stroke-width:1.2;stroke-dasharray:2 3}"
    ".port{stroke-dasharray:7 3}.edge{stroke:#94a3b8;stroke-dasharray:1 4;stroke-width:2}";

constexpr std::string_view kTextEnd = "</text>\n";

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
    for (const RankBand& band : picture_.bands) write_band(band);
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

  /// Words that are cut if need be, and then come whole under the mouse.
  void cut_text(double x, double y, std::string_view style, const std::string& words, size_t most,
                const std::string& more = "", const std::string& whole = "") {
    const std::string shown = shortened(words, most);
    const std::string& all = whole.empty() ? words : whole;
    text(x, y, style, shown, more);
    if (shown != words || shown.ends_with("…") || shown.find(" … (") != std::string::npos) {
      out_.insert(out_.size() - kTextEnd.size(), "<title>" + xml_escaped(all) + "</title>");
    }
  }

  void stripe(const Area& at, std::string_view style) {
    out_ += fmt::format("<path d=\"M{:.0f} {:.0f}v{:.0f}\" class=\"stripe {}\"/>\n", at.x + 2, at.y,
                        at.h, style);
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

  void write_band(const RankBand& band) {
    if (!band.is_used) return;
    rect(band.at, band.others ? "lane far" : "lane", 6);
    const std::string note = band.note.empty() ? "" : " (" + band.note + ")";
    text(band.at.middle(), band.at.y + 17, "h", band.title + note, " text-anchor=\"middle\"");
    for (const ColumnHead& column : band.columns) {
      const size_t most = static_cast<size_t>(column.at.w / 5.6);
      cut_text(column.at.middle(), column.at.y + 11, "c", column.label, most,
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
    if (half && picture_.bands[arrow.from == kNowhere ? arrow.from_band : arrow.to_band].others) {
      left = arrow.from == kNowhere;  // in the band of the other ranks
      at = left ? Point{p[0].x - 4, p[0].y + 3} : Point{p.back().x + 4, p.back().y + 3};
      most = 23;
    } else if (arrow.from == kNowhere) {  // along a row
      at = {p[0].x + 2, p[0].y - 4};
    } else if (arrow.to == kNowhere) {
      left = p.back().x > p[0].x;
      at = {p.back().x - (left ? 9 : -9), p.back().y - 4};
    } else if (arrow.around) {
      left = p[1].x > p[0].x;
      at = {p[1].x, p[1].y + 8};
    } else {
      const size_t first = p.size() > 2 && p[0].x == p[1].x;
      const Point a = p[first], b = p[first + 1];
      const double share = std::min(1.0, 13 / std::max(b.y - a.y, 1.0));
      left = b.x < a.x;
      at = {a.x + (b.x - a.x) * share + (left ? -6 : 6), a.y + (b.y - a.y) * share - 1};
    }
    const std::string style = fmt::format(" style=\"fill:{}\"", colour_at(arrow.colour).line);
    const std::string whole = fmt::format("{}", fmt::join(arrow.chunks, ", "));
    std::string words = arrow.label;
    if (arrow.around) {
      words += fmt::format(" to {}", picture_.bands[arrow.to_band].rank);
      const bool right = p[2].x > p[3].x;
      text(p[2].x, p[2].y - 2, "l", fmt::format("from {}", picture_.bands[arrow.from_band].rank),
           style + (right ? " text-anchor=\"end\"" : "") + data(arrow));
    }
    cut_text(at.x, at.y, "l", words, most,
             style + (left ? " text-anchor=\"end\"" : "") + data(arrow), half ? words : whole);
  }

  void write_bus(const Bus& bus) {
    const std::string_view colour = bus.kind == ArrowKind::data ? "#475569" : "#9aa4b2";
    const double width = bus.kind == ArrowKind::data ? 2.4 : 1.2;
    const std::string trunk = data(bus, kNowhere);
    out_ += fmt::format("<path d=\"M{:.0f} {:.0f}H{:.0f}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                        bus.left, bus.y, bus.right, colour, width, trunk);
    for (const uint32_t b : bus.from) {
      const Area& at = picture_.boxes[b].at;
      out_ +=
          fmt::format("<path d=\"M{:.0f} {:.0f}V{:.0f}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                      at.middle() - 8, at.bottom(), bus.y, colour, width, data(bus, b));
    }
    for (size_t i = 0; i < bus.ways.size(); ++i) {
      const std::vector<Point>& way = bus.ways[i];
      const std::string part = data(bus, bus.to[i]);
      out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                          path_of(way), colour, width, part);
      head(way[way.size() - 2], way.back(), colour, part);
    }
    const std::string each = bus.from.size() == 1 ? "to each"
                             : bus.to.size() == 1 ? "from each"
                                                  : "each to all";
    const std::string words = bus.label.empty() ? each : each + ": " + bus.label;
    const double x = picture_.boxes[bus.from[0]].at.middle();
    const size_t most = static_cast<size_t>(std::clamp(bus.room / 6.05, 6.0, 60.0));
    cut_text(x, bus.y - 4, "l", words, most,
             (bus.kind == ArrowKind::data ? "" : " style=\"fill:#8691a1\"") + trunk,
             fmt::format("{}: {}", each, fmt::join(bus.chunks, ", ")));
  }

  void write_box(const Box& box) {
    const RankBand& band = picture_.bands[box.band];
    const bool grouped = detail_ == Detail::page || box.is_cut;
    if (detail_ == Detail::page) {
      out_ += fmt::format(
          "<g class=\"box\" data-rank=\"{}\" data-tb=\"{}\" data-reads=\"{}\" data-writes=\"{}\" "
          "data-op=\"{}\" data-row=\"{}\">",
          band.rank, xml_escaped(band.columns[box.column].blocks), lines(box.reads),
          lines(box.writes), xml_escaped(box.name), box.row);
    } else if (grouped) {
      out_ += "<g>";
    }
    if (grouped) out_ += "<title>" + lines(box.ops) + "</title>\n";
    if (box.name.empty()) {
      rect(box.at, "ctl", 7);
    } else {
      filled(box.at, colour_at(box.colour));
      for (const Class& c : kClasses) {
        if (c.cost == box.cost) stripe(box.at, c.style);
      }
    }
    write_words(box);
    if (grouped) out_ += "</g>\n";
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

  /// The place of the legend's next part, which is so wide.
  Point next_part(double width) {
    if (legend_.x + width > picture_.width - 20) legend_ = {24, legend_.y + 17};
    legend_.x += width;
    return {legend_.x - width, legend_.y};
  }

  void write_legend() {
    legend_ = {24, picture_.end_y + 34};
    for (const Class& c : kClasses) {
      if (std::ranges::none_of(picture_.boxes,
                               [&](const Box& b) { return !b.name.empty() && b.cost == c.cost; })) {
        continue;
      }
      const Point at = next_part(20 + 5.8 * static_cast<double>(c.words.size()));
      stripe({at.x, at.y - 10, 4, 13}, c.style);
      text(at.x + 8, at.y, "c", std::string(c.words));
    }
    const std::string grey = fmt::format(" stroke=\"{}\"", kNoColour.line);
    if (std::ranges::count(picture_.arrows, ArrowKind::data, &Arrow::kind) > 0) {
      legend_line("data", "data, with the chunks that have come", grey);
    }
    if (std::ranges::count(picture_.arrows, ArrowKind::order, &Arrow::kind) > 0) {
      legend_line("order", "order alone", "");
    }
    if (std::ranges::count(picture_.arrows, true, &Arrow::port) > 0) {
      legend_line("data port", "through a port", grey);
    }
    if (std::ranges::any_of(picture_.boxes, has_credits)) {
      const Point at = next_part(235);
      text(at.x, at.y, "c", "↻ meets another round; ↻2 with 2 credits");
    }
    write_chunks();
  }

  static bool has_credits(const Box& box) {
    for (const auto* strips : {&box.before, &box.after}) {
      for (const std::string& strip : *strips) {
        if (strip.starts_with("↻")) return true;
      }
    }
    return false;
  }

  void legend_line(std::string_view style, std::string_view words, std::string_view more) {
    const Point at = next_part(42 + 5.6 * static_cast<double>(words.size()));
    out_ += fmt::format("<path d=\"M{:.0f} {:.0f}h22\" class=\"{}\"{}/>\n", at.x, at.y - 3, style,
                        more);
    text(at.x + 27, at.y, "c", std::string(words));
  }

  void write_chunks() {
    if (std::ranges::any_of(picture_.boxes,
                            [](const Box& b) { return !b.name.empty() && b.colour == kNowhere; })) {
      const Point at = next_part(172);
      filled({at.x, at.y - 11, 18, 15}, kNoColour);
      text(at.x + 23, at.y, "c", "several chunks, or scratch");
    }
    for (uint32_t i = 0; i < picture_.colours.size() && i < kColours.size(); ++i) {
      const double w = 12 + 6 * static_cast<double>(picture_.colours[i].size());
      Point at = next_part(w + (i == 0 ? 42 : 4));
      if (i == 0) text(at.x, at.y, "c", "chunk");
      at.x += i == 0 ? 38 : 0;
      filled({at.x, at.y - 11, w, 15}, kColours[i]);
      text(at.x + w / 2, at.y, "c", picture_.colours[i], " text-anchor=\"middle\"");
    }
    if (picture_.colours.size() > kColours.size()) text(legend_.x, legend_.y, "c", "…");
  }

  void filled(const Area& at, const Colour& colour) {
    rect(at, "", 3, fmt::format(" fill=\"{}\" stroke=\"{}\"", colour.fill, colour.line));
  }

  template <typename Texts>
  static std::string lines(const Texts& texts) {
    return xml_escaped(fmt::format("{}", fmt::join(texts, "\n")));
  }

  /// What the script of a page finds an arrow by: ranks, boxes, chunks.
  std::string data(const Arrow& arrow) const {
    if (detail_ != Detail::page) return "";
    std::vector<uint32_t> ends;
    for (const uint32_t b : {arrow.from, arrow.to}) {
      if (b != kNowhere) ends.push_back(b);
    }
    return fmt::format(" data-from=\"{}\" data-to=\"{}\" data-ends=\"{}\" data-chunks=\"{}\"",
                       picture_.bands[arrow.from_band].rank, picture_.bands[arrow.to_band].rank,
                       fmt::join(ends, " "), lines(arrow.chunks));
  }

  /// Of a bus: the part at a box, or what all have in common.
  std::string data(const Bus& bus, uint32_t box) const {
    if (detail_ != Detail::page) return "";
    std::set<uint32_t> from, to, ends;
    std::set<std::string> chunks;
    for (const Arrow& arrow : picture_.arrows) {
      if (arrow.bus != static_cast<size_t>(&bus - picture_.buses.data())) continue;
      if (box != kNowhere && arrow.from != box && arrow.to != box) continue;
      from.insert(picture_.bands[arrow.from_band].rank);
      to.insert(picture_.bands[arrow.to_band].rank);
      ends.insert({arrow.from, arrow.to});
      chunks.insert(arrow.chunks.begin(), arrow.chunks.end());
    }
    const std::string at = box == kNowhere ? "" : fmt::format("{}", box);
    return fmt::format(
        " data-at=\"{}\" data-from=\"{}\" data-to=\"{}\" data-ends=\"{}\" data-chunks=\"{}\"", at,
        fmt::join(from, " "), fmt::join(to, " "), fmt::join(ends, " "), lines(chunks));
  }

  const Picture& picture_;
  const Detail detail_;
  Point legend_;  // where its next part comes
  std::string out_;
};

}  // namespace

std::string_view fill_of(uint32_t colour) { return colour_at(colour).fill; }
std::string_view line_of(uint32_t colour) { return colour_at(colour).line; }

std::string svg_of(const Picture& picture, Detail detail) { return Writer(picture, detail).run(); }

}  // namespace mscclc::draw
