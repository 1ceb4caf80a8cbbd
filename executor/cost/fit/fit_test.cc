// Figures of a machine from times that another machine's figures gave.
#include "executor/cost/fit/fit.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace mscclc::cost {
namespace {

Machine machine_named(const char* name) {
  Diagnostics diagnostics;
  return find_machine(name, diagnostics).value();
}

const MachineField* field(std::string_view group, std::string_view name) {
  for (const MachineField& f : machine_fields()) {
    if (f.group == group && f.name == name) return &f;
  }
  return nullptr;
}

/// A message's time: latency, and the slower of a block and the link.
double time_of(const Machine& m, double bytes, double blocks) {
  const double rate = std::min(blocks * static_cast<double>(m.block_remote_mb_per_s),
                               static_cast<double>(m.nvlink_mb_per_s));
  return static_cast<double>(m.nvlink_latency_ns) + bytes * 1e3 / rate;
}

struct Size {
  double bytes, blocks;
};
constexpr Size kSizes[] = {{64, 1}, {4096, 1}, {1e6, 1}, {1e6, 8}, {64e6, 8}, {64e6, 128}};

std::vector<FitPoint> points_of(const Machine& truth) {
  std::vector<FitPoint> points;
  for (const Size& size : kSizes) {
    points.push_back({time_of(truth, size.bytes, size.blocks),
                      [size](const Machine& m) { return time_of(m, size.bytes, size.blocks); }});
  }
  return points;
}

bool near(uint64_t value, uint64_t wanted, double share) {
  return std::abs(static_cast<double>(value) / static_cast<double>(wanted) - 1) <= share;
}

}  // namespace

TEST_CASE("a fit finds figures that are a hundred times those it begins with") {
  const Machine start = machine_named("4xH200");
  Machine truth = start;
  truth.nvlink_latency_ns = 40000;
  truth.nvlink_mb_per_s = 3000;
  truth.block_remote_mb_per_s = 200;
  const std::vector<const MachineField*> fields = {
      field("nvlink", "latency_ns"), field("nvlink", "mb_per_s"), field("block", "remote_mb_per_s"),
      field("proxy", "post_ns")};
  uint32_t steps = 0;
  const Fit fit = fit_figures(start, fields, points_of(truth),
                              [&](const FitStep& step) { CHECK(step.number == ++steps); });
  CHECK(steps <= kFitSteps);
  CHECK(near(fit.machine.nvlink_latency_ns, truth.nvlink_latency_ns, 0.03));
  CHECK(near(fit.machine.nvlink_mb_per_s, truth.nvlink_mb_per_s, 0.03));
  CHECK(near(fit.machine.block_remote_mb_per_s, truth.block_remote_mb_per_s, 0.03));
  REQUIRE(fit.figures.size() == 4);
  CHECK(fit.figures[0].seen);
  // What no point depends on stays, and so does what was not asked for.
  CHECK_FALSE(fit.figures[3].seen);
  CHECK(fit.machine.proxy_post_ns == start.proxy_post_ns);
  CHECK(fit.machine.step_flag_ns == start.step_flag_ns);
  REQUIRE(fit.predicted.size() == std::size(kSizes));
  for (size_t p = 0; p < fit.predicted.size(); ++p) {
    CHECK(fit.predicted[p] ==
          Approx(time_of(truth, kSizes[p].bytes, kSizes[p].blocks)).epsilon(0.03));
  }
}

TEST_CASE("a figure that is found to be next to nothing stays so") {
  const Machine start = machine_named("4xH200");
  Machine truth = start;
  truth.nvlink_latency_ns = 1;
  const std::vector<const MachineField*> fields = {field("nvlink", "latency_ns")};
  const Fit fit = fit_figures(start, fields, points_of(truth), [](const FitStep&) {});
  CHECK(fit.machine.nvlink_latency_ns <= 5);
  CHECK(fit.figures[0].seen);
  CHECK(fit.predicted[1] == Approx(time_of(fit.machine, kSizes[1].bytes, kSizes[1].blocks)));
}

TEST_CASE("a fit finds a figure that has no slope where it begins") {
  // What is served in turn takes the longer of the two: of one of them nothing shows at first.
  const auto longer = [](const Machine& m, double times) {
    return std::max(static_cast<double>(m.copy_engine_start_ns),
                    times * static_cast<double>(m.proxy_request_ns));
  };
  Machine start = machine_named("4xH200");
  start.copy_engine_start_ns = 60000;
  start.proxy_request_ns = 600;
  Machine truth = start;
  truth.copy_engine_start_ns = 2000;
  truth.proxy_request_ns = 5000;
  std::vector<FitPoint> points;
  for (const double times : {4.0, 8.0, 16.0}) {
    points.push_back({longer(truth, times), [=](const Machine& m) { return longer(m, times); }});
  }
  const std::vector<const MachineField*> fields = {field("proxy", "request_ns"),
                                                   field("copy_engine", "start_ns")};
  const Fit fit = fit_figures(start, fields, points, [](const FitStep&) {});
  CHECK(near(fit.machine.proxy_request_ns, truth.proxy_request_ns, 0.05));
}

TEST_CASE("one time that is far off does not move the figures of the others much") {
  const Machine start = machine_named("4xH200");
  Machine truth = start;
  truth.nvlink_latency_ns = 1000;
  std::vector<FitPoint> points = points_of(truth);
  points.push_back(points[1]);
  points.back().ns *= 10;  // the machine did something else meanwhile
  const std::vector<const MachineField*> fields = {field("nvlink", "latency_ns")};
  const Fit fit = fit_figures(start, fields, points, [](const FitStep&) {});
  CHECK(near(fit.machine.nvlink_latency_ns, 1000, 0.2));
}

TEST_CASE("a fit without points or figures changes nothing") {
  const Machine start = machine_named("4xH200");
  const std::vector<const MachineField*> fields = {field("nvlink", "latency_ns")};
  CHECK(machine_text(fit_figures(start, fields, {}, [](const FitStep&) {}).machine) ==
        machine_text(start));
  CHECK(machine_text(fit_figures(start, {}, points_of(start), [](const FitStep&) {}).machine) ==
        machine_text(start));
}

}  // namespace mscclc::cost
