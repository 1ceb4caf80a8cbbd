// The search, with a timer that computes times from plans: what it finds, what it asks for, and how
// it goes on after it was ended.
#include "tools/tune/tuner.h"

#include <cmath>
#include <map>

#include "tests/helpers/files/made_up_folder.h"
#include "tools/tune/small_library_test.h"

namespace mscclc::tune {
namespace {

uint32_t blocks_of(const Program& program) { return program.ranks.front().blocks; }

/// Calls take least with 24 blocks of 256 threads.
double time_of(const Program& program, uint64_t bytes) {
  return 1000 + 500 * std::abs(std::log2(blocks_of(program) / 24.0)) +
         200 * std::abs(std::log2(program.launch.threads / 256.0)) +
         static_cast<double>(bytes) / 100;
}

class FakeTimer : public CallTimer {
 public:
  std::optional<CallTime> time(const TimedCall& call, Diagnostics& diagnostics) override {
    ++calls;
    asked.push_back(call.nccl ? "NCCL" : std::to_string(blocks_of(*call.plan)));
    if (call.nccl) return CallTime{.ns = nccl_ns, .wrong = nccl_wrong};
    const auto seen = ++times_[call.plan.get()];
    if (refused_blocks == blocks_of(*call.plan)) {
      diagnostics.error("too-many-blocks", {}, "too many blocks");
      return std::nullopt;
    }
    if (calls == breaks_at) {
      broken_ = true;
      diagnostics.error("hang", {}, "rank 1 did not answer");
      return std::nullopt;
    }
    CallTime taken{.ns = time_of(*call.plan, call.bytes)};
    if (lucky && seen == 1) taken.ns = 100 + taken.ns / 1000;
    if (lucky && seen > 1) taken.ns = 2000;
    if (wrong_blocks == blocks_of(*call.plan)) taken.wrong = 5;
    return taken;
  }
  bool broken() const override { return broken_; }
  std::string nccl() const override { return nccl_ns > 0 ? "NCCL 9.9" : ""; }

  double nccl_ns = 0;  ///< 0: there is none
  uint64_t nccl_wrong = 0;
  std::vector<std::string> asked;  ///< numbers of blocks, or NCCL
  size_t calls = 0, breaks_at = 0;
  uint32_t wrong_blocks = 0, refused_blocks = 0;
  bool lucky = false;  ///< each plan's first time is nothing to rely on

 private:
  bool broken_ = false;
  std::map<const Program*, size_t> times_;
};

/// A run with a file of trials of its own.
class Fixture {
 public:
  std::optional<std::vector<SizeResult>> tune(FakeTimer& timer, LibraryCall call,
                                              const std::vector<uint64_t>& sizes,
                                              TuneOptions options = {}) {
    auto log = TrialLog::open(folder_.file("trials.jsonl"), "test");
    REQUIRE(log);
    // Compiled and predicted once for all cases.
    static Plans plans(program_of_library, find_machine("4xH200", diagnostics).value(), kLimits);
    Tuner tuner(timer, whole_library(), plans, kLimits, *log, options);
    seen.clear();
    return tuner.tune(
        call, sizes, [&](const LibraryCall& now) { seen.push_back(now.bytes); }, diagnostics);
  }

  Diagnostics diagnostics;
  std::vector<uint64_t> seen;

 private:
  const mscclc::testing::MadeUpFolder folder_;
};

const std::vector<uint64_t> kSizes = {4096, 65536};
const TuneOptions kPatient{.trials = 300, .prune = 1e6};

}  // namespace

TEST_CASE("the search ends where no changed parameter is faster") {
  Fixture f;
  FakeTimer timer;
  const auto results = f.tune(timer, two_ranks(0), kSizes, kPatient);
  INFO(render_text(f.diagnostics, Sources{}));
  REQUIRE(results);
  CHECK(f.seen == kSizes);
  REQUIRE(results->size() == 2);
  for (const SizeResult& r : *results) {
    INFO(text_of(r.best.row.choice));
    CHECK(r.best.ns < r.library.ns);
    CHECK(r.best.ns < 1400 + static_cast<double>(r.call.bytes) / 100);
    CHECK(r.wrong.empty());
    CHECK(text_of(r.library.row.choice) == text_of(*whole_library().choose(r.call)));
  }
}

TEST_CASE("a run that was ended goes on from its file") {
  Fixture f;
  FakeTimer first;
  const auto whole = f.tune(first, two_ranks(0), kSizes);
  REQUIRE(whole);
  FakeTimer second;
  const auto again = f.tune(second, two_ranks(0), kSizes);
  REQUIRE(again);
  CHECK(second.calls == 0);
  for (size_t i = 0; i < kSizes.size(); ++i) {
    CHECK((*again)[i].best.ns == (*whole)[i].best.ns);
    CHECK((*again)[i].best.row.choice == (*whole)[i].best.row.choice);
  }
}

TEST_CASE("a rank that hangs ends the run, and what was measured is kept") {
  Fixture f;
  FakeTimer hangs;
  hangs.breaks_at = 5;
  CHECK_FALSE(f.tune(hangs, two_ranks(0), kSizes));
  REQUIRE(f.diagnostics.has_errors());
  CHECK(f.diagnostics.all().front().code == "hang");
  Fixture fresh;
  FakeTimer rest, all;
  REQUIRE(f.tune(rest, two_ranks(0), kSizes));
  REQUIRE(fresh.tune(all, two_ranks(0), kSizes));
  CHECK(rest.calls + hangs.calls - 1 == all.calls);
}

TEST_CASE("no more plans are timed than asked for, and the library's own is the first") {
  Fixture f;
  FakeTimer timer;
  const auto results = f.tune(timer, two_ranks(0), {4096}, {.trials = 1, .comparisons = 3});
  REQUIRE(results);
  CHECK(timer.calls == 1);
  CHECK(results->front().best.row.choice == results->front().library.row.choice);
}

TEST_CASE("plans with wrong results, and plans that cannot be loaded, are not picked") {
  Fixture f;
  FakeTimer timer;
  timer.wrong_blocks = 24;
  timer.refused_blocks = 27;
  const auto results = f.tune(timer, two_ranks(0), {4096}, kPatient);
  REQUIRE(results);
  for (const std::string& plan : results->front().wrong)
    CHECK(plan.find("B=24") != std::string::npos);
  const std::string best = text_of(results->front().best.row.choice);
  CHECK(best.find("B=24,") == std::string::npos);
  CHECK(best.find("B=27,") == std::string::npos);
}

TEST_CASE("what was only lucky is not picked") {
  Fixture f;
  FakeTimer timer;
  timer.lucky = true;
  const auto results = f.tune(timer, two_ranks(0), {4096}, kPatient);
  REQUIRE(results);
  CHECK(results->front().best.row.choice == results->front().library.row.choice);
}

TEST_CASE("the fastest, the library's pick and NCCL are timed in turn") {
  Fixture f;
  FakeTimer timer;
  timer.nccl_ns = 5000;
  const auto results = f.tune(timer, two_ranks(0), {4096}, kPatient);
  REQUIRE(results);
  const SizeResult& r = results->front();
  CHECK(r.nccl_ns == 5000);
  CHECK(r.best.ns < r.library.ns);
  REQUIRE(timer.asked.size() > 9);
  const std::vector<std::string> turns(timer.asked.end() - 9, timer.asked.end());
  for (size_t i = 0; i < turns.size(); ++i) {
    CHECK(turns[i] == turns[i % 3]);
    CHECK((turns[i] == "NCCL") == (i % 3 == 2));
  }
  CHECK(turns[0] != turns[1]);

  // The same again asks for nothing.
  FakeTimer second;
  second.nccl_ns = 1;
  const auto again = f.tune(second, two_ranks(0), {4096}, kPatient);
  REQUIRE(again);
  CHECK(second.calls == 0);
  CHECK(again->front().nccl_ns == 5000);
}

TEST_CASE("NCCL is timed beside the library's pick where nothing is faster") {
  Fixture f;
  FakeTimer timer;
  timer.nccl_ns = 5000;
  const auto results = f.tune(timer, two_ranks(0), {4096}, {.trials = 1, .comparisons = 2});
  REQUIRE(results);
  CHECK(timer.calls == 1 + 2 * 2);
  CHECK(results->front().nccl_ns == 5000);
  CHECK(results->front().best.ns == results->front().library.ns);
}

TEST_CASE("wrong results of NCCL are named, and no time of it") {
  Fixture f;
  FakeTimer timer;
  timer.nccl_ns = 5000;
  timer.nccl_wrong = 3;
  const auto results = f.tune(timer, two_ranks(0), {4096}, {.trials = 1, .comparisons = 1});
  REQUIRE(results);
  CHECK(results->front().nccl_ns == 0);
  CHECK(results->front().wrong == std::vector<std::string>{"NCCL 9.9"});
}

TEST_CASE("under a contract about sums only plans that keep it are timed") {
  Fixture f;
  FakeTimer timer;
  LibraryCall call = two_ranks(0);
  call.ranks = 4;  // of two, every sum is exact
  call.order = SumOrder::exact;
  const auto results = f.tune(timer, call, {4096});
  REQUIRE(results);
  CHECK(text_of(results->front().best.row.choice).find("exact=true") != std::string::npos);
}

}  // namespace mscclc::tune
