// The search, with a timer that has times of its own: what it picks, what it asks for, and what it
// says of ways that are wrong or cannot be timed.
#include "tools/tune/overlap/gemm_tuner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tools/tune/overlap/gemm_results_test.h"
#include "tools/tune/overlap/measured_rows.h"

namespace mscclc::tune {
namespace {

using namespace overlap;

/// What is not named takes 2000.
class FakeGemmTimer : public GemmTimer {
 public:
  std::optional<CallTime> time(const OverlapConfig& config, RunMode,
                               Diagnostics& diagnostics) override {
    const std::string way = text_of({config.backend, config.chunks, config.budget});
    asked.push_back(way);
    if (way == refused) {
      diagnostics.error("memory", {}, "no room");
      return std::nullopt;
    }
    if (way == breaks) {
      broken_ = true;
      diagnostics.error("hang", {}, "rank 1 did not answer");
      return std::nullopt;
    }
    const auto found = times.find(way);
    CallTime taken{.ns = found == times.end() ? 2000 : found->second};
    if (way == lucky && std::ranges::count(asked, way) == 1) taken.ns = 100;
    if (way == wrong || (way == wrong_later && count(way) > 1)) taken.wrong = 3;
    return taken;
  }
  bool broken() const override { return broken_; }
  ptrdiff_t count(const std::string& way) const { return std::ranges::count(asked, way); }

  std::map<std::string, double> times;
  std::string refused, breaks, lucky, wrong, wrong_later;
  std::vector<std::string> asked;

 private:
  bool broken_ = false;
};

const ChoiceFacts kFacts{.ranks = 2, .multiprocessors = 132, .nccl = "it was not asked for"};
const std::string kOne = "copy_engine, chunks 1, budget 1",
                  kTwo = "copy_engine, chunks 2, budget 1";

GemmResult tune(FakeGemmTimer& timer, const OverlapConfig& shape) {
  HungWays hung;
  auto result = GemmTuner(timer, kFacts, hung).tune(shape, RunMode::captured);
  REQUIRE(result);
  return *std::move(result);
}

const OverlapConfig kShape = shape_of(OverlapKind::gemm_reducescatter, 2048, 3584, 8192);

}  // namespace

TEST_CASE("the fastest way is timed in turn with serial, and taken") {
  FakeGemmTimer timer;
  timer.times = {{"serial", 1000}, {kOne, 700}, {kTwo, 750}};
  const GemmResult result = tune(timer, kShape);
  CHECK(text_of(result.best.way) == kOne);
  CHECK(result.best.ns == 700);
  CHECK(result.serial_ns() == 1000);
  for (const std::string& way : {std::string("serial"), kOne, kTwo}) CHECK(timer.count(way) == 4);
  CHECK(timer.count("mscclc, chunks 1, budget 8") == 1);
  CHECK(std::vector(timer.asked.end() - 6, timer.asked.end()) ==
        std::vector<std::string>{"serial", kOne, kTwo, "serial", kOne, kTwo});
}

TEST_CASE("serial is taken where others are faster by less than the noise") {
  FakeGemmTimer timer;
  timer.times = {{"serial", 1000}, {kOne, 985}};
  const GemmResult result = tune(timer, kShape);
  CHECK(text_of(result.best.way) == "serial");
  timer.times[kOne] = 979;
  CHECK(text_of(tune(timer, kShape).best.way) == kOne);
}

TEST_CASE("a way that was lucky once is not taken, and those that it hid are timed in turn, too") {
  FakeGemmTimer timer;
  timer.times = {{"serial", 1000}, {kOne, 1200}};
  timer.lucky = kOne;
  CHECK(text_of(tune(timer, kShape).best.way) == "serial");
  timer = {};
  timer.times = {{"serial", 1000}, {kOne, 1200}, {kTwo, 800}};
  timer.lucky = kOne;
  CHECK(text_of(tune(timer, kShape).best.way) == kTwo);
  CHECK(timer.count(kTwo) == 4);
}

TEST_CASE("NCCL is timed where it is there, and its order is enough") {
  const auto has_nccl = [](SumOrder order) {
    OverlapConfig shape = kShape;
    shape.order = order;
    return std::ranges::count(ways_of(shape, {.ranks = 2}).ways, GemmWay{kNccl});
  };
  CHECK(has_nccl(SumOrder::replicated) == 1);
  CHECK(has_nccl(SumOrder::ranks) == 0);
}

TEST_CASE("a way whose results are wrong is named, and not taken") {
  FakeGemmTimer timer;
  timer.times = {{"serial", 1000}, {kOne, 500}};
  timer.wrong = kOne;
  const GemmResult result = tune(timer, kShape);
  CHECK(text_of(result.best.way) == "serial");
  CHECK(result.wrong == std::vector{kOne});
  CHECK(result_text(result).find("  WRONG RESULTS: " + kOne + "\n") != std::string::npos);
}

TEST_CASE("a way that is wrong in its later turns is named once, and not taken") {
  FakeGemmTimer timer;
  timer.times = {{"serial", 1000}, {kOne, 500}};
  timer.wrong_later = kOne;
  const GemmResult result = tune(timer, kShape);
  CHECK(text_of(result.best.way) == "serial");
  CHECK(result.wrong == std::vector{kOne});
}

TEST_CASE("ways that cannot be timed are said, and others are") {
  FakeGemmTimer timer;
  timer.times = {{"serial", 1000}, {kTwo, 500}};
  timer.refused = kOne;
  const GemmResult result = tune(timer, kShape);
  CHECK(text_of(result.best.way) == kTwo);
  const std::string said = result_text(result);
  CHECK(said.find("  not timed: " + kOne + ": no room\n") != std::string::npos);
  CHECK(said.find("nccl") == std::string::npos);
}

TEST_CASE("copies by copy engines are not asked for where chunks are not equal") {
  FakeGemmTimer timer;
  const GemmResult result = tune(timer, shape_of(OverlapKind::gemm_reducescatter, 6, 8, 4));
  CHECK(timer.count(kTwo) == 0);
  CHECK(std::ranges::any_of(result.left_out, [&](const std::string& why) {
    return why.starts_with(kTwo) && why.find("copy engines need") != std::string::npos;
  }));
}

TEST_CASE("budgets are those that the device has room for") {
  const auto budgets = [](uint32_t multiprocessors) {
    std::vector<std::string> all;
    for (const GemmWay& way :
         ways_of(kShape, {.ranks = 2, .multiprocessors = multiprocessors, .nccl = "none"}).ways) {
      if (way.backend == kFlagged && way.chunks == 4) all.push_back(text_of(way));
    }
    return all;
  };
  CHECK(budgets(132).size() == 3);
  CHECK(budgets(72) ==
        std::vector<std::string>{"mscclc, chunks 4, budget 8", "mscclc, chunks 4, budget 16"});
  CHECK(budgets(20).empty());
}

TEST_CASE("nothing is timed after a rank was lost") {
  FakeGemmTimer timer;
  timer.breaks = kOne;
  HungWays hung;
  CHECK_FALSE(GemmTuner(timer, kFacts, hung).tune(kShape, RunMode::eager));
  CHECK(hung == HungWays{{{kCopyEngine, 1, 1}, "rank 1 did not answer"}});
  CHECK(timer.asked.back() == kOne);
}

TEST_CASE("a shape has a line with all times, and their shares of what serial takes") {
  const GemmResult result = result_of(kShape, {kCopyEngine, 1, 1}, 800, RunMode::captured);
  CHECK(result_text(result) ==
        "gemm_reducescatter over 2 ranks, bf16, m 2048, k 3584, n 8192, in graphs: copy_engine, "
        "chunks 1, budget 1; serial: 1.00 us, 100 %; copy_engine, chunks 1, "
        "budget 1: 0.80 us, 80 %\n");
}

}  // namespace mscclc::tune
