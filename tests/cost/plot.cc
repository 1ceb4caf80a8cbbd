// Draws predicted against measured calls, an SVG for each machine:
//
//   plot TABLES PLANS FOLDER
//
// writes FOLDER/predicted_MACHINE.svg. docs/design/cost_model.md shows them; plots_test.sh
// compares.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>

#include "tests/cost/measured.h"

namespace mscclc::testing {
namespace {

constexpr double kSide = 420, kLeft = 70, kTop = 30, kBottom = 50;
constexpr double kNear = 0.15;

struct Dot {
  double measured, predicted;  ///< microseconds
  std::string label;
  bool near() const { return std::abs(predicted / measured - 1) <= kNear; }
};

/// Both axes have the same scale: decades from the smallest to the largest time.
class Plot {
 public:
  Plot(const std::string& machine, const std::vector<Dot>& dots) : machine_(machine), dots_(dots) {
    for (const Dot& dot : dots) {
      least_ = std::min({least_, dot.measured, dot.predicted});
      most_ = std::max({most_, dot.measured, dot.predicted});
    }
    first_ = std::floor(std::log10(least_));
    decades_ = std::ceil(std::log10(most_)) - first_;
  }

  std::string svg() const {
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#888\">\n",
        kLeft + kSide + 20, kTop + kSide + kBottom);
    out += band() + axes();
    size_t near = 0;
    for (const Dot& dot : dots_) {
      near += dot.near();
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" fill-opacity=\"0.7\"><title>{}: "
          "measured {:.2f} us, predicted {:.2f}</title></circle>\n",
          x(dot.measured), y(dot.predicted), dot.near() ? "#2a7fd4" : "#d4542a", dot.label,
          dot.measured, dot.predicted);
    }
    out += fmt::format(
        "<text x=\"{:.0f}\" y=\"18\" font-size=\"14\">{}: {} of {} calls within 15 %"
        "</text>\n</svg>\n",
        kLeft, machine_, near, dots_.size());
    return out;
  }

 private:
  double place(double us) const { return (std::log10(us) - first_) / decades_ * kSide; }
  double x(double us) const { return kLeft + place(us); }
  double y(double us) const { return kTop + kSide - place(us); }

  std::string line(double x1, double y1, double x2, double y2, double opacity) const {
    return fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#888\" "
        "stroke-opacity=\"{}\"/>\n",
        x1, y1, x2, y2, opacity);
  }

  /// What is within 15 %.
  std::string band() const {
    const double from = std::pow(10, first_), to = std::pow(10, first_ + decades_);
    return fmt::format(
        "<clipPath id=\"in\"><rect x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" "
        "height=\"{2:.1f}\"/>"
        "</clipPath>\n<path clip-path=\"url(#in)\" fill=\"#888\" fill-opacity=\"0.2\" d=\"M{3:.1f} "
        "{4:.1f}L{5:.1f} {6:.1f}L{5:.1f} {7:.1f}L{3:.1f} {8:.1f}Z\"/>\n",
        kLeft, kTop, kSide, x(from), y(from * (1 + kNear)), x(to), y(to * (1 + kNear)),
        y(to * (1 - kNear)), y(from * (1 - kNear)));
  }

  std::string axes() const {
    std::string out;
    for (int d = 0; d <= static_cast<int>(decades_); ++d) {
      const double us = std::pow(10, first_ + d);
      out += line(x(us), kTop, x(us), kTop + kSide, 0.3);
      out += line(kLeft, y(us), kLeft + kSide, y(us), 0.3);
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{:g}</text>\n",
                         x(us), kTop + kSide + 18, us);
      out += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
                         kLeft - 6, y(us) + 4, us);
    }
    out += line(x(std::pow(10, first_)), kTop + kSide, kLeft + kSide, kTop, 0.8);
    out +=
        fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">measured, us</text>\n",
                    kLeft + kSide / 2, kTop + kSide + 38);
    out += fmt::format(
        "<text transform=\"translate(18 {:.0f}) rotate(-90)\" "
        "text-anchor=\"middle\">predicted, us</text>\n",
        kTop + kSide / 2);
    return out;
  }

  const std::string machine_;
  const std::vector<Dot>& dots_;
  double least_ = 1e300, most_ = 0, first_ = 0, decades_ = 1;
};

int run_plot(const std::filesystem::path& tables, const std::filesystem::path& plans,
             const std::filesystem::path& folder) {
  Diagnostics diagnostics;
  std::map<std::string, std::unique_ptr<MeasuredPlan>> compiled;
  std::map<std::string, std::vector<Dot>> by_machine;
  for (const MeasuredCall& call : read_measured(tables / "measured.csv")) {
    auto& plan = compiled[call.program];
    if (plan == nullptr) plan = std::make_unique<MeasuredPlan>(plans, call.program);
    const Machine machine = find_machine(call.machine, diagnostics).value();
    by_machine[call.machine].push_back(
        {call.us, plan->predict(call.bytes, machine),
         fmt::format("{} of {} bytes", call.collective, call.bytes)});
  }
  for (const auto& [machine, dots] : by_machine) {
    const std::filesystem::path path = folder / ("predicted_" + machine + ".svg");
    std::ofstream file(path);
    file << Plot(machine, dots).svg();
    file.close();
    if (file) continue;
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace mscclc::testing

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: plot TABLES PLANS FOLDER\n", stderr);
    return 2;
  }
  return mscclc::testing::run_plot(argv[1], argv[2], argv[3]);
}
