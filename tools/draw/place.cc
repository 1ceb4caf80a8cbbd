// Where everything stands: bands beside each other, a row for each level, room for arrows between
// rows.

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/draw/layout_parts.h"
#include "tools/draw/words.h"

namespace mscclc::draw {
namespace {

constexpr double kMargin = 24, kScreen = 1920;
constexpr double kLeastColumn = 100, kMaxColumn = 340;
constexpr double kColumnGap = 10, kBandGap = 12, kBandPad = 6;
constexpr double kOthers = 150;  // the band of ranks that are not drawn
constexpr double kTitle = 30, kFact = 17, kBandHead = 22, kColumnHead = 16;
constexpr double kStrip = 12, kName = 14, kLine = 11, kPad = 5;
constexpr double kCharacter = 6.05;  // of the fixed font in boxes
constexpr double kGap = 10, kOrderGap = 18, kDataGap = 25, kBusGap = 18, kFrameGap = 15;
constexpr double kAlong = 15, kTightAlong = 13;  // for an arrow along a row
constexpr double kLegend = 46;
constexpr size_t kNarrow = 24;  // characters: such columns need more lines

class Placer {
 public:
  explicit Placer(Picture& picture) : out_(picture) {}

  void run() {
    place_bands();
    size_boxes();
    place_rows();
    if (out_.height > kScreenHeight) {
      tight_ = 0.8;
      place_rows();
    }
    place_frames();
    for (Arrow& arrow : out_.arrows) route(arrow);
    for (Bus& bus : out_.buses) stretch(bus);
  }

 private:
  void place_bands() {
    size_t columns = 0;
    double bands = 0, others = 0;
    for (const RankBand& band : out_.bands) {
      if (band.others) {
        others += band.is_used ? kOthers + kBandGap : 0;
      } else {
        columns += std::max<size_t>(band.columns.size(), 1);
        ++bands;
      }
    }
    const double n = static_cast<double>(columns);
    const double gaps = (n - bands) * kColumnGap + bands * 2 * kBandPad + (bands - 1) * kBandGap +
                        2 * kMargin + others;
    column_ = std::clamp(std::floor((kScreen - gaps) / n), kLeastColumn, kMaxColumn);
    const double top = kMargin + kTitle + kFact * static_cast<double>(out_.facts.size());
    double x = kMargin;
    for (RankBand& band : out_.bands) {
      band.at = {x, top, 0, 0};
      if (band.others) {
        band.at.w = band.is_used ? kOthers : 0;
        x += band.is_used ? kOthers + kBandGap : 0;
        continue;
      }
      x += kBandPad;
      for (size_t c = 0; c < std::max<size_t>(band.columns.size(), 1); ++c) {
        if (c > 0) x += kColumnGap;
        if (c < band.columns.size()) band.columns[c].at = {x, top + kBandHead, column_, 0};
        x += column_;
      }
      x += kBandPad;
      band.at.w = x - band.at.x;
      x += kBandGap;
    }
    out_.width = std::max(x - kBandGap + kMargin, 760.0);
    for (const std::string& fact : out_.facts) {
      const double words = 2 * kMargin + 6.8 * static_cast<double>(characters(fact));
      out_.width = std::max(out_.width, std::min(words, kScreen));
    }
    rows_top_ = top + kBandHead + kColumnHead;
  }

  void size_boxes() {
    const size_t most = static_cast<size_t>((column_ - 14) / kCharacter);
    for (Box& box : out_.boxes) {
      fit(box, most);
      const double strips = kStrip * static_cast<double>(box.before.size() + box.after.size());
      const double body =
          box.name.empty() ? 0 : kName + kLine * static_cast<double>(box.lines.size()) + kPad;
      const Area& head = out_.bands[box.band].columns[box.column].at;
      box.at = {head.x, 0, head.w, strips + body + (box.name.empty() ? 4 : 0)};
    }
    level_heights();
  }

  /// Boxes of a row that are nearly as high as each other become so.
  void level_heights() {
    std::vector<double> most(out_.rows);
    for (const Box& box : out_.boxes) {
      if (!box.name.empty()) most[box.row] = std::max(most[box.row], box.at.h);
    }
    for (Box& box : out_.boxes) {
      if (!box.name.empty() && most[box.row] - box.at.h <= kLine) box.at.h = most[box.row];
    }
  }

  /// The chunks of a box in one line or two.
  static void fit(Box& box, size_t most) {
    if (!box.lines.empty()) {
      const std::string to = box.lines[0], from = box.lines[1];
      const std::string one = to + " ← " + from;
      if (characters(one) <= most) {
        box.lines = {one};
      } else {
        const size_t lines = most < kNarrow ? 2 : 1;
        box.lines = wrapped(to, most, lines);
        for (std::string& line : wrapped("← " + from, most, lines)) box.lines.push_back(line);
      }
    }
    for (const std::string& line : box.lines) box.is_cut |= line.ends_with("…");
    for (auto* strips : {&box.before, &box.after}) {
      for (std::string& strip : *strips) {
        const size_t at = strip.find(" all others");
        if (at != std::string::npos && characters(strip) > most) strip.erase(at, 4);
        box.is_cut |= characters(strip) > most;
        strip = shortened(strip, most);
      }
    }
  }

  /// The room that each row takes, and that above and below it.
  struct Rows {
    std::vector<double> height, above, below;
  };

  Rows rows_needed() {
    Rows rows{std::vector<double>(out_.rows), std::vector<double>(out_.rows),
              std::vector<double>(out_.rows, kGap * tight_)};
    for (const Box& box : out_.boxes) {
      rows.height[box.row] = std::max(rows.height[box.row], box.at.h);
    }
    for (const Frame& frame : out_.frames) rows.above[out_.boxes[frame.first].row] = kFrameGap;
    framed_ = rows.above;
    for (const Arrow& arrow : out_.arrows) {
      if (arrow.bus != kNowhere || arrow.kind == ArrowKind::meeting || is_half(arrow)) continue;
      if (arrow.from_band == arrow.to_band) continue;
      double& below = rows.below[out_.boxes[arrow.from].row];
      below = std::max(below, (arrow.label.empty() ? kOrderGap : kDataGap) * tight_);
    }
    return rows;
  }

  void place_rows() {
    Rows rows = rows_needed();
    level_others(rows.above, rows.below);
    const std::map<size_t, double> levels = bus_levels(rows.below);
    out_.begin_y = rows_top_ + 8;
    double y = rows_top_ + 26;
    std::vector<double> tops(out_.rows);
    bottom_.resize(out_.rows);
    for (uint32_t row = 0; row < out_.rows; ++row) {
      tops[row] = y + rows.above[row];
      bottom_[row] = tops[row] + rows.height[row];
      y = bottom_[row] + rows.below[row];
    }
    for (Box& box : out_.boxes) box.at.y = tops[box.row];
    for (const auto& [bus, level] : levels) {
      const uint32_t row = out_.boxes[out_.buses[bus].from[0]].row;
      out_.buses[bus].y = bottom_[row] + kBusGap + level;
    }
    out_.end_y = y + 14;
    for (RankBand& band : out_.bands) band.at.h = out_.end_y + 10 - band.at.y;
    out_.height = out_.end_y + 26 + kLegend;
  }

  /// Arrows from and to ranks that are not drawn go along rows, one below the other.
  void level_others(std::vector<double>& above, std::vector<double>& below) {
    std::vector<uint32_t> over(out_.rows), under(out_.rows);
    for (Arrow& arrow : out_.arrows) {
      if (!is_half(arrow)) continue;
      const bool leaves = arrow.from != kNowhere;
      const uint32_t row = out_.boxes[leaves ? arrow.from : arrow.to].row;
      arrow.level = (leaves ? under : over)[row]++;
    }
    for (uint32_t row = 0; row < out_.rows; ++row) {
      if (over[row] > 0) above[row] += along() * over[row] + 4;
      if (under[row] > 0) below[row] = std::max(below[row], along() * under[row] + 6);
    }
    over_ = over;
  }

  double along() const { return tight_ < 1 ? kTightAlong : kAlong; }

  static bool is_half(const Arrow& arrow) { return arrow.from == kNowhere || arrow.to == kNowhere; }

  /// The buses of a row below each other; makes room for them.
  std::map<size_t, double> bus_levels(std::vector<double>& below) const {
    std::map<size_t, double> levels;
    std::map<uint32_t, std::map<std::pair<uint32_t, ArrowKind>, double>> by_row;
    for (size_t b = 0; b < out_.buses.size(); ++b) {
      const Bus& bus = out_.buses[b];
      const uint32_t row = out_.boxes[bus.from[0]].row, to = out_.boxes[bus.to[0]].row;
      auto& of_row = by_row[row];
      const double next = kBusGap * static_cast<double>(of_row.size());
      const double level = of_row.try_emplace({to, bus.kind}, next).first->second;
      levels[b] = level;
      below[row] = std::max(below[row], kGap + level + kBusGap + 4);
    }
    return levels;
  }

  void place_frames() {
    for (Frame& frame : out_.frames) {
      const Area& first = out_.boxes[frame.first].at;
      const Area& last = out_.boxes[frame.last].at;
      frame.at = {first.x - 4, first.y - kFrameGap, first.w + 8,
                  last.bottom() + 4 - first.y + kFrameGap};
      const size_t most = static_cast<size_t>((column_ - 4) / 4.9);
      if (characters(frame.label) > most)
        frame.label = frame.label.substr(frame.label.find(": ") + 2);
      frame.label = shortened(frame.label, most);
      label_end_[frame.first] =
          std::min(12 + 5.1 * static_cast<double>(characters(frame.label)), first.w - 7);
    }
  }

  /// Where an arrow comes to a box: not through a frame's label.
  double entry(const Box& box, double x) const {
    const auto at = label_end_.find(index_of(box));
    return at == label_end_.end() ? x : std::max(x, box.at.x + at->second);
  }

  /// Where an arrow turns down to a box: above a frame's label.
  double turn(const Box& box) const {
    return box.at.y - (label_end_.contains(index_of(box)) ? kFrameGap + 3 : 9);
  }

  uint32_t index_of(const Box& box) const {
    return static_cast<uint32_t>(&box - out_.boxes.data());
  }

  /// Where an arrow leaves or enters a box: towards the other end's band.
  double port(const Box& box, uint32_t band, double share) const {
    const double side = band > box.band ? 1 : band < box.band ? -1 : 0;
    return box.at.middle() + side * share * box.at.w;
  }

  void route(Arrow& arrow) {
    if (arrow.bus != kNowhere) return;
    if (arrow.from == kNowhere || arrow.to == kNowhere) return route_loose(arrow);
    const Box& from = out_.boxes[arrow.from];
    const Box& to = out_.boxes[arrow.to];
    if (arrow.kind == ArrowKind::meeting) return route_meeting(arrow, from, to);
    const bool same = arrow.from_band == arrow.to_band;
    const Point start{port(from, to.band, 0.24), from.at.bottom()};
    const Point end{entry(to, port(to, from.band, 0.24)), to.at.y};
    const bool next_row = to.row == from.row + 1;
    if (same) return route_columns(arrow, from, to);
    const size_t bands = out_.bands.size();
    const uint32_t apart = from.band > to.band ? from.band - to.band : to.band - from.band;
    if (next_row && bands >= 4 && apart == bands - 1)
      return route_around(arrow, start, end, from.band > 0);
    if (next_row) {
      arrow.points = {start, {start.x, bottom_[from.row]}, end};
      if (start.y == bottom_[from.row]) arrow.points.erase(arrow.points.begin() + 1);
      return;
    }
    const double gutter = to.at.x - (to.band > from.band ? 5 : -to.at.w - 5);
    const double below = bottom_[from.row] + 12;
    arrow.points = {start, {start.x, bottom_[from.row]}, {gutter, below}, {gutter, turn(to)}, end};
  }

  /// Within a band: across in the room below the row, down in the one between columns.
  void route_columns(Arrow& arrow, const Box& from, const Box& to) {
    const double side = to.column > from.column ? 1 : -1;
    const double gutter = to.at.middle() - side * (to.at.w / 2 + 5);
    const Point start{from.at.middle() + side * 0.36 * from.at.w, from.at.bottom()};
    const Point end{entry(to, to.at.middle() - side * 0.42 * to.at.w), to.at.y};
    const double across = bottom_[from.row] + 7;
    arrow.points = {
        start, {start.x, across}, {gutter, across}, {gutter, turn(to)}, {end.x, turn(to)}, end};
    if (to.row == from.row + 1) arrow.points = {start, {start.x, across}, {end.x, across}, end};
  }

  void route_meeting(Arrow& arrow, const Box& from, const Box& to) const {
    const bool right = to.at.x > from.at.x;
    const double y = std::min(from.at.y, to.at.y) + 8;
    arrow.points = {{right ? from.at.x + from.at.w : from.at.x, y},
                    {right ? to.at.x : to.at.x + to.at.w, y}};
  }

  /// To the next band, were the bands in a ring.
  void route_around(Arrow& arrow, Point start, Point end, bool to_the_right) const {
    arrow.around = true;
    // As seen from the other side.
    const double out = 2 * out_.boxes[arrow.from].at.middle() - start.x;
    const Box& to = out_.boxes[arrow.to];
    const double in = entry(to, 2 * to.at.middle() - end.x);
    const double edge = to_the_right ? out_.width - 4 : 4,
                 other = to_the_right ? 4 : out_.width - 4;
    const double y = start.y + (end.y - start.y) / 2;
    arrow.points = {{out, start.y}, {edge, y}, {other, y}, {in, end.y}};
  }

  /// From a box to a band as such, or the other way: along the row.
  void route_loose(Arrow& arrow) const {
    const bool leaves = arrow.from != kNowhere;
    const Box& box = out_.boxes[leaves ? arrow.from : arrow.to];
    const RankBand& band = out_.bands[leaves ? arrow.to_band : arrow.from_band];
    const double side = band.at.x > box.at.x ? 1 : -1;
    const double x = side > 0 ? band.at.x : band.at.x + band.at.w;
    const double level = along() * (arrow.level + 1);
    const double share = leaves ? 0.42 : 0.05;
    double port = box.at.middle() + side * (share * box.at.w - 7 * arrow.level);
    if (!leaves) port = entry(box, port);
    if (leaves) {
      const double y = bottom_[box.row] + level - 3;
      arrow.points = {{port, box.at.bottom()}, {port, y}, {x, y}};
    } else {
      const double y = box.at.y - frame_above(box) - along() * (over_[box.row] - arrow.level) + 8;
      arrow.points = {{x, y}, {port, y}, {port, box.at.y}};
    }
  }

  /// The room that the frame takes which begins with the row of this box.
  double frame_above(const Box& box) const { return framed_[box.row]; }

  void stretch(Bus& bus) const {
    bus.left = out_.width;
    const auto reach = [&](double x) {
      bus.left = std::min(bus.left, x);
      bus.right = std::max(bus.right, x);
    };
    const uint32_t row = out_.boxes[bus.from[0]].row;
    for (const uint32_t b : bus.from) reach(out_.boxes[b].at.middle() - 8);
    for (const uint32_t b : bus.to) {
      const Box& box = out_.boxes[b];
      if (box.row == row + 1) {
        const double x = entry(box, box.at.middle() + 8);
        bus.ways.push_back({{x, bus.y}, {x, box.at.y}});
      } else {  // down beside the boxes between
        const double x = box.at.x - 5;
        const double in = entry(box, box.at.x + 14);
        bus.ways.push_back({{x, bus.y}, {x, turn(box)}, {in, turn(box)}, {in, box.at.y}});
      }
      reach(bus.ways.back()[0].x);
    }
    const bool several = bus.from.size() > 1;
    const double next = several ? out_.boxes[bus.from[1]].at.middle() : bus.right;
    bus.room = next - out_.boxes[bus.from[0]].at.middle() - 14;
  }

  Picture& out_;
  double column_ = 0, rows_top_ = 0;
  double tight_ = 1;                      // less than 1: rows closer together
  std::vector<double> bottom_, framed_;   // of each row: its end, room for a frame's label above it
  std::map<uint32_t, double> label_end_;  // of frames, by their first box: how far labels go
  std::vector<uint32_t> over_;            // arrows that come along above it
};

}  // namespace

void place(Picture& picture) { Placer(picture).run(); }

}  // namespace mscclc::draw
