// Plots as SVG: lines over message sizes, both axes logarithmic. Plain shapes and text, readable on
// light and dark pages, no scripts.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench/results/comparison.h"

namespace mscclc::bench {

struct Line {
  enum class Style : uint8_t { bold, plain, dashed };
  std::string name;
  Series points;  ///< those that have no place on logarithmic axes are left out
  Style style = Style::plain;
};

struct Plot {
  std::string title, x_title, y_title;
  std::vector<Line> lines;
};

/// One SVG document. Lines without points are left out.
std::string svg(const Plot& plot);

/// Latency and bus bandwidth of every table, ours (the fastest plan of each size) and all others:
/// file names and documents.
std::vector<std::pair<std::string, std::string>> plots_of(std::span<const Result> results,
                                                          const std::string& machine);

}  // namespace mscclc::bench
