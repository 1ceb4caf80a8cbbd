// Calibrations of machines that exist only as figures: the timer is the cost model.
#include "tools/calibrate/calibration.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "executor/cost/model.h"
#include "ir/support/sanitized.h"

namespace mscclc::calibrate {
namespace {

/// A machine whose calls take what the model makes of its figures.
class ModelTimer : public CallTimer {
 public:
  explicit ModelTimer(Machine machine) : machine_(std::move(machine)) {}

  std::optional<CallTime> time(const TimedCall& call, Diagnostics& diagnostics) override {
    ++calls;
    cost::Model model(*call.plan);
    const auto timeline =
        model.predict(cost::call_of(*call.plan, call.bytes, call.dtype), machine_, diagnostics);
    if (!timeline) return std::nullopt;
    return CallTime{.ns = timeline->back_to_back_ns * (calls > slower_after ? 1.5 : 1),
                    .wrong = calls == wrong_at ? 7u : 0u};
  }

  size_t calls = 0, slower_after = ~size_t{0}, wrong_at = 0;

 private:
  const Machine machine_;
};

Machine pair_of(const char* name) {
  Diagnostics diagnostics;
  Machine machine = find_machine(name, diagnostics).value();
  machine.nodes = 1;
  machine.gpus = 2;
  return machine;
}

/// Figures that are none of a machine we have.
Machine other_machine() {
  Machine machine = pair_of("4xH200");
  machine.nvlink_latency_ns = 900;
  machine.nvlink_mb_per_s = 120000;
  machine.block_remote_mb_per_s = 5000;
  machine.block_local_mb_per_s = 20000;
  machine.step_fence_ns = 1500;
  machine.launch_call_ns = 3000;
  machine.proxy_post_ns = 9000;
  machine.copy_engine_mb_per_s = 60000;
  return machine;
}

/// `most`: of the probes, so many are measured.
std::optional<Calibration> run(CallTimer& timer, size_t most, Diagnostics& diagnostics,
                               std::vector<std::string>* pieces = nullptr) {
  std::vector<Probe> probes = probes_for({.max_bytes = 64 << 20, .max_blocks = 64});
  if (probes.size() > most) probes.resize(most);
  return calibrate(
      timer, probes, {pair_of("4xH200"), fields_to_find(false)},
      [&](const std::string& piece) {
        if (pieces != nullptr) pieces->push_back(piece);
      },
      diagnostics);
}

bool near(uint64_t value, uint64_t wanted) {
  return std::abs(static_cast<double>(value) / static_cast<double>(wanted) - 1) <= 0.15;
}

}  // namespace

TEST_CASE("the figures of a machine are found again") {
  if (testing::kSanitized) return;  // too slow; the other cases go through the same code
  const Machine truth = other_machine();
  ModelTimer timer(truth);
  Diagnostics diagnostics;
  std::vector<std::string> pieces;
  const auto calibration = run(timer, 1000, diagnostics, &pieces);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(calibration);
  INFO(calibration_text(*calibration, 0.1));
  const Machine& found = calibration->fit.machine;
  INFO(machine_text(found));
  CHECK(near(found.nvlink_latency_ns, truth.nvlink_latency_ns));
  CHECK(near(found.nvlink_mb_per_s, truth.nvlink_mb_per_s));
  CHECK(near(found.block_remote_mb_per_s, truth.block_remote_mb_per_s));
  CHECK(near(found.block_local_mb_per_s, truth.block_local_mb_per_s));
  CHECK(near(found.copy_engine_mb_per_s, truth.copy_engine_mb_per_s));
  size_t good = 0;
  for (const ProbeTimes& probe : calibration->probes) good += probe.off() <= 0.05;
  CHECK(good * 10 >= calibration->probes.size() * 9);
  CHECK(count_apart(*calibration, 0.001) == 0);
  CHECK(timer.calls == 2 * calibration->probes.size());
  CHECK(pieces.size() <= calibrate::pieces(calibration->probes.size()));
}

TEST_CASE("a second measurement that differs is named") {
  ModelTimer timer(other_machine());
  timer.slower_after = 8 + 3;
  Diagnostics diagnostics;
  const auto calibration = run(timer, 8, diagnostics);
  REQUIRE(calibration);
  const size_t apart = count_apart(*calibration, 0.1);
  CHECK(apart == calibration->probes.size() - 3);
  CHECK(count_apart(*calibration, 0.6) == 0);
  const std::string text = calibration_text(*calibration, 0.1);
  CHECK(text.find("second time differs by more than 10 %: " + std::to_string(apart) + " of ") !=
        std::string::npos);
}

TEST_CASE("a probe with a wrong result ends the calibration") {
  ModelTimer timer(other_machine());
  timer.wrong_at = 2;
  Diagnostics diagnostics;
  CHECK_FALSE(run(timer, 8, diagnostics));
  REQUIRE(diagnostics.has_errors());
  CHECK(diagnostics.all().front().code == "wrong-data");
  CHECK(diagnostics.all().front().message.find("7 wrong elements") != std::string::npos);
}

TEST_CASE("figures of the network are found only between nodes") {
  const auto has = [](bool network, std::string_view group) {
    for (const MachineField* field : fields_to_find(network)) {
      if (field->group == group) return true;
    }
    return false;
  };
  CHECK(has(true, "nic"));
  CHECK_FALSE(has(false, "nic"));
  CHECK_FALSE(has(false, "sum"));
  CHECK(has(false, "nvlink"));
  CHECK_FALSE(has(true, "nvlink"));
  CHECK(has(true, "proxy"));
  CHECK_FALSE(has(false, "switch"));
}

}  // namespace mscclc::calibrate
