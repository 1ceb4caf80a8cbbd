#include "tools/bench/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/io/xml_text.h"

namespace mscclc::bench {
namespace {

constexpr double kWidth = 860, kHeight = 520;
constexpr double kLeft = 78, kRight = 230, kTop = 48, kBottom = 64;
constexpr double kMarker = 2.6;

// Colours that colour-blind readers can distinguish (Okabe and Ito).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b"};

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

/// A logarithmic axis: values from `low` to `high` onto pixels.
struct Axis {
  double low = 1, high = 10, from = 0, to = 0;
  double at(double value) const {
    return from +
           (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) * (to - from);
  }
};

struct Axes {
  Axis x, y;
};

/// What has no place on a logarithmic axis, such as the bus bandwidth of one rank.
bool is_off_axes(const std::pair<uint64_t, double>& point) {
  constexpr double kLeast = 1e-30, kMost = 1e30;
  const auto& [bytes, y] = point;
  return bytes == 0 || bytes > kMostBytes || !(y >= kLeast && y <= kMost);
}

Axes axes_of(const std::vector<Line>& lines) {
  double x_low = 1e300, x_high = 0, y_low = 1e300, y_high = 0;
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) {
      x_low = std::min(x_low, static_cast<double>(x));
      x_high = std::max(x_high, static_cast<double>(x));
      y_low = std::min(y_low, y);
      y_high = std::max(y_high, y);
    }
  }
  if (x_low >= x_high) {
    x_low /= 2;
    x_high *= 2;
  }
  return {{x_low, x_high, kLeft, kWidth - kRight},
          {y_low / 1.15, y_high * 1.15, kHeight - kBottom, kTop}};
}

std::string label(double x, double y, const char* anchor, const std::string& text,
                  const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, xml_escaped(text));
}

std::string grid(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#e3e3e3\"/>\n", x1,
      y1, x2, y2);
}

// Powers of 4 from the first size on, so that labels do not run into each other.
std::string x_axis(const Axes& axes) {
  std::string out;
  const auto first = static_cast<uint64_t>(std::exp2(std::ceil(std::log2(axes.x.low) - 1e-9)));
  for (uint64_t value = std::max<uint64_t>(first, 1);
       static_cast<double>(value) <= axes.x.high * 1.0001; value *= 4) {
    const double at = axes.x.at(static_cast<double>(value));
    out += grid(at, kTop, at, kHeight - kBottom);
    out += label(at, kHeight - kBottom + 18, "middle", size_text(value));
  }
  return out;
}

std::string y_axis(const Axes& axes) {
  std::string out;
  for (double decade = std::pow(10, std::floor(std::log10(axes.y.low))); decade <= axes.y.high;
       decade *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double value = decade * step;
      if (value < axes.y.low || value > axes.y.high) continue;
      const double at = axes.y.at(value);
      out += grid(kLeft, at, kWidth - kRight, at);
      out += label(kLeft - 8, at + 4, "end", fmt::format("{:g}", value));
    }
  }
  return out;
}

std::string stroke(const Line& line, const char* colour) {
  const char* width = line.style == Line::Style::bold ? "3" : "1.6";
  const char* dashes = line.style == Line::Style::dashed ? " stroke-dasharray=\"6 4\"" : "";
  return fmt::format("stroke=\"{}\" stroke-width=\"{}\"{}", colour, width, dashes);
}

std::string draw(const Line& line, const Axes& axes, const char* colour) {
  std::string points, markers;
  for (const auto& [bytes, y] : line.points) {
    const double at_x = axes.x.at(static_cast<double>(bytes)), at_y = axes.y.at(y);
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", at_x, at_y);
    markers += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", at_x,
                           at_y, kMarker, colour);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", points, stroke(line, colour)) +
         markers;
}

std::string legend(const Line& line, size_t row, const char* colour) {
  const double x = kWidth - kRight + 18, y = kTop + 8 + 20.0 * static_cast<double>(row);
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x, y,
                     x + 26, y, stroke(line, colour)) +
         label(x + 34, y + 4, "start", line.name);
}

void add_line(Plot& plot, std::string name, Series points, Line::Style style) {
  if (!points.empty()) plot.lines.push_back({std::move(name), std::move(points), style});
}

Series bandwidths(Series times, double bus_factor) {
  for (auto& [bytes, value] : times) value = gigabytes_per_second(bytes, value) * bus_factor;
  return times;
}

/// All contenders but our plans, in the order of their first results.
std::vector<const Result*> others(const BySize& sizes) {
  std::vector<const Result*> found;
  for (const auto& [bytes, results] : sizes) {
    for (const Result* r : results) {
      const bool known =
          std::ranges::any_of(found, [&](const Result* f) { return f->who == r->who; });
      if (!known && r->role != Role::plan) found.push_back(r);
    }
  }
  return found;
}

}  // namespace

std::string svg(const Plot& plot) {
  Plot shown = plot;
  for (Line& line : shown.lines) std::erase_if(line.points, is_off_axes);
  std::erase_if(shown.lines, [](const Line& line) { return line.points.empty(); });
  const Axes axes = axes_of(shown.lines);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  out += label(kLeft, 26, "start", shown.title, " font-size=\"15\" font-weight=\"bold\"");
  if (!shown.lines.empty()) out += x_axis(axes) + y_axis(axes);
  out += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n", kLeft,
      kTop, kWidth - kLeft - kRight, kHeight - kTop - kBottom);
  out += label((kLeft + kWidth - kRight) / 2, kHeight - 22, "middle", shown.x_title);
  out += fmt::format(
      "<text transform=\"translate(22 {:.1f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      (kTop + kHeight - kBottom) / 2, xml_escaped(shown.y_title));
  for (size_t i = 0; i < shown.lines.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    out += draw(shown.lines[i], axes, colour) + legend(shown.lines[i], i, colour);
  }
  return out + "</svg>\n";
}

std::vector<std::pair<std::string, std::string>> plots_of(std::span<const Result> results,
                                                          const std::string& machine) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [key, sizes] : tables_of(results)) {
    for (const bool in_place : {false, true}) {
      const std::string name = table_name(key) + (in_place ? "_in_place" : "");
      const std::string title = fmt::format("{}, {}", name, machine);
      Plot latency{title + ": latency", "message size", "µs of a call", {}};
      Plot bandwidth{title + ": bus bandwidth", "message size", "GB/s", {}};
      const Series ours = fastest_plans(sizes, in_place);
      const double factor = sizes.begin()->second.front()->bus_factor;
      add_line(latency, "mscclc, fastest plan", ours, Line::Style::bold);
      add_line(bandwidth, "mscclc, fastest plan", bandwidths(ours, factor), Line::Style::bold);
      for (const Result* r : others(sizes)) {
        const Series times = times_of(sizes, r->who, in_place);
        const auto style = r->role == Role::floor ? Line::Style::dashed : Line::Style::plain;
        add_line(latency, r->who, times, style);
        add_line(bandwidth, r->who, bandwidths(times, factor), style);
      }
      if (latency.lines.empty()) continue;
      files.emplace_back(name + "_latency.svg", svg(latency));
      files.emplace_back(name + "_busbw.svg", svg(bandwidth));
    }
  }
  return files;
}

}  // namespace mscclc::bench
