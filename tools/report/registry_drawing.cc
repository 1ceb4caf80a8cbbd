// The coverage of a registry as SVG: plain shapes and text, readable on light and dark pages.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/io/xml_text.h"
#include "tools/report/registry_coverage.h"

namespace mscclc {
namespace {

constexpr double kLeft = 300, kWidth = 640, kRight = 20, kTop = 70, kRow = 26, kBar = 16;
/// Sizes from 1 byte to 4 GiB, each doubling as wide as the others.
constexpr double kDoublings = 32;

// Colours that colour-blind readers can distinguish (Okabe and Ito).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b"};

double place(uint64_t bytes) {
  const double doublings = bytes == 0 ? 0 : std::log2(static_cast<double>(bytes));
  return kLeft + std::min(doublings, kDoublings) / kDoublings * kWidth;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     xml_escaped(text));
}

std::string bar(const CoveredSizes& sizes, double y, const char* colour) {
  const double x = place(sizes.min), end = place(sizes.max);
  const bool gap = sizes.plan.empty();
  std::string others;
  for (const std::string& other : sizes.others) others += "; also " + other;
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\" stroke=\"{}\">"
      "<title>{}</title></rect>\n",
      x, y, std::max(end - x, 1.0), kBar, gap ? "url(#gap)" : colour,
      gap || sizes.others.empty() ? "none" : "#888888",
      xml_escaped(fmt::format("{}: {}{}", sizes_text(sizes.min, sizes.max),
                              gap ? "no plan" : sizes.plan, others)));
}

std::string scale(double bottom) {
  std::string text;
  constexpr const char* kUnits[] = {"1 B", "1 KiB", "1 MiB", "1 GiB"};
  for (int i = 0; i < 4; ++i) {
    const double x = place(uint64_t{1} << 10 * i);
    text += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" "
        "stroke=\"#888888\" stroke-opacity=\"0.4\"/>\n",
        x, kTop - 6, bottom);
    text += text_at(x, kTop - 10, "middle", kUnits[i]);
  }
  return text;
}

}  // namespace

std::string coverage_drawing(const Coverage& coverage, const std::string& title) {
  const double bottom = kTop + kRow * static_cast<double>(coverage.calls.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#888888\">\n"
      "<defs><pattern id=\"gap\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><rect width=\"2\" height=\"6\" fill=\"#d00000\"/></pattern>"
      "</defs>\n",
      kLeft + kWidth + kRight, bottom + 20);
  text += text_at(kLeft, 24, "start", title) + scale(bottom);
  std::map<std::string, const char*> colours;
  for (size_t i = 0; i < coverage.calls.size(); ++i) {
    const CoveredCalls& calls = coverage.calls[i];
    const double y = kTop + kRow * static_cast<double>(i);
    text += text_at(kLeft - 8, y + 12, "end",
                    fmt::format("{}, {}{}", calls_text(calls.call), info(calls.dtypes[0]).name,
                                calls.dtypes.size() > 1 ? " …" : ""));
    for (const CoveredSizes& s : calls.sizes) {
      const auto [at, fresh] =
          colours.try_emplace(s.plan, kColours[colours.size() % std::size(kColours)]);
      text += bar(s, y, at->second);
    }
  }
  return text + "</svg>\n";
}

}  // namespace mscclc
