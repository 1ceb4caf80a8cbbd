// The rows of two GPUs are found again, or faster ones, from tables that have lost or spoilt them:
// by the times that the cost model gives on the machine file of 2 x H200. And under a contract
// about sums nothing else is found, whatever rows say of themselves.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "compiler/compile.h"
#include "executor/cost/machines.h"
#include "ir/support/sanitized.h"
#include "tools/tune/predicted_timer.h"
#include "tools/tune/small_library_test.h"
#include "tools/tune/tuner.h"

namespace mscclc::tune {
namespace {

using Rows = std::vector<LibraryRow>;

constexpr CollectiveKind kTuned[] = {CollectiveKind::allreduce, CollectiveKind::allgather,
                                     CollectiveKind::reducescatter, CollectiveKind::alltoall,
                                     CollectiveKind::broadcast};
const auto kGrid = testing::kThorough
                       ? std::vector<uint64_t>{1u << 10, 1u << 13, 1u << 16, 1u << 19,
                                               1u << 22, 1u << 25, 1u << 28}
                       : std::vector<uint64_t>{1u << 10, 1u << 16, 1u << 22, 1u << 28};

Rows shipped_rows() { return {whole_library().rows().begin(), whole_library().rows().end()}; }

LibraryTable table_of(const Rows& rows) {
  Diagnostics diagnostics;
  auto table = LibraryTable::parse(library_table_text(rows), "a test's", diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(table);
  return *std::move(table);
}

/// Without the rows of two ranks, and two to four; of a program that no other row has, one is left.
Rows removed() {
  const auto of_two = [](const LibraryRow& row) {
    return row.min_nodes == 1 && row.for_ranks(2) && row.max_ranks <= 4;
  };
  std::set<std::string> left;
  Rows rows;
  for (const LibraryRow& row : shipped_rows()) {
    if (!of_two(row)) left.insert(row.choice.program);
  }
  for (const LibraryRow& row : shipped_rows()) {
    if (!of_two(row) || left.insert(row.choice.program).second) rows.push_back(row);
  }
  return rows;
}

/// With one thread block of one warp in all plans of one node.
Rows spoilt() {
  Rows rows = shipped_rows();
  for (LibraryRow& row : rows) {
    for (auto& [name, value] : row.choice.params) {
      if (row.min_nodes != 1) continue;
      if (name == "B") value = "1";
      if (name == "T") value = "32";
    }
  }
  return rows;
}

/// Where rows for some sizes say 'tree' or 'exact', and their plans add up in the order of the
/// ranks.
Rows wrong_about_orders() {
  Rows rows = shipped_rows();
  for (LibraryRow& row : rows) {
    if (row.bytes == ~uint64_t{0}) continue;
    std::erase_if(row.choice.params, [](const auto& param) {
      return param.first == "tree" || param.first == "exact";
    });
  }
  return rows;
}

Machine machine_of(uint32_t ranks) {
  Diagnostics diagnostics;
  return find_machine(ranks == 2 ? "2xH200" : "4xH200", diagnostics).value();
}

/// Breaks at some call, as if the run were ended there.
class EndedTimer final : public CallTimer {
 public:
  EndedTimer(Machine machine, size_t last) : timer_(std::move(machine)), left_(last) {}
  std::optional<CallTime> time(const TimedCall& call, Diagnostics& diagnostics) override {
    ended_ = left_ == 0;
    if (ended_) diagnostics.error("hang", {}, "the run was ended");
    if (ended_) return std::nullopt;
    --left_;
    return timer_.time(call, diagnostics);
  }
  bool broken() const override { return ended_; }
  std::string nccl() const override { return ""; }
  size_t left() const { return left_; }

 private:
  PredictedTimer timer_;
  size_t left_;
  bool ended_ = false;
};

/// Compiled and predicted once for all cases.
Plans& plans_of(uint32_t ranks) {
  static std::map<uint32_t, Plans> plans;
  return plans.try_emplace(ranks, program_of_library, machine_of(ranks), kLimits).first->second;
}

/// Runs with one file of trials.
class PredictedRuns {
 public:
  explicit PredictedRuns(uint32_t ranks) : machine_(machine_of(ranks)), plans_(plans_of(ranks)) {
    std::filesystem::remove(path_);
  }
  ~PredictedRuns() { std::filesystem::remove(path_); }

  std::optional<std::vector<SizeResult>> tune(const LibraryTable& table, const LibraryCall& call,
                                              const std::vector<uint64_t>& sizes,
                                              CallTimer* timer = nullptr) {
    auto log = TrialLog::open(path_, "test");
    REQUIRE(log);
    PredictedTimer whole(machine_);
    Tuner tuner(timer == nullptr ? whole : *timer, table, plans_, kLimits, *log, options);
    Diagnostics diagnostics;
    auto results = tuner.tune(
        call, sizes, [](const LibraryCall&) {}, diagnostics);
    if (timer == nullptr) CHECK(render_text(diagnostics, Sources{}) == "");
    return results;
  }
  double predicted(const LibraryChoice& choice, const LibraryCall& call) {
    return plans_.predict(choice, call).value();
  }

  const TuneOptions options = {};

 private:
  const std::string path_ = std::filesystem::temp_directory_path() /
                            ("mscclc_found_again_" + std::to_string(::getpid()) + ".jsonl");
  const Machine machine_;
  Plans& plans_;
};

LibraryCall captured_call(CollectiveKind kind, uint32_t ranks) {
  return {.kind = kind, .ranks = ranks, .captured = true};
}

void check_found_again(const Rows& rows) {
  const LibraryTable table = table_of(rows);
  for (const CollectiveKind kind : kTuned) {
    PredictedRuns runs(2);
    const auto results = runs.tune(table, captured_call(kind, 2), kGrid);
    REQUIRE(results);
    REQUIRE(results->size() == kGrid.size());
    for (const SizeResult& r : *results) {
      const LibraryChoice& shipped = *whole_library().choose(r.call);
      INFO(name(kind) << " of " << r.call.bytes << ": " << text_of(r.best.row.choice)
                      << ", shipped: " << text_of(shipped));
      // What is faster by less is no faster to the search.
      CHECK(r.best.ns * (1 - runs.options.gain) <= runs.predicted(shipped, r.call));
      CHECK(r.best.ns <= r.library.ns);
    }
  }
}

/// What is proved of a choice's sums.
Proof proof_of(const LibraryChoice& choice, const LibraryCall& call) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("a.mscl", program_of_library(choice.program).value());
  FrontEndOptions options;
  options.defines = choice.defines(call);
  ProofGate gate;
  const bool proved = compile(sources, file, options, {}, diagnostics, &gate).has_value();
  INFO(render_text(diagnostics, sources));
  REQUIRE((proved && gate.proof));
  return *gate.proof;
}

}  // namespace

TEST_CASE("plans for two GPUs are found again without their rows") { check_found_again(removed()); }

TEST_CASE("plans for two GPUs are found again where all rows are bad") {
  check_found_again(spoilt());
}

TEST_CASE("a search that was ended, wherever, finds the same when it goes on") {
  const LibraryTable table = table_of(spoilt());
  const LibraryCall call = captured_call(CollectiveKind::alltoall, 2);
  const std::vector<uint64_t> sizes = {1u << 13, 1u << 25};
  PredictedRuns whole(2);
  EndedTimer never(machine_of(2), 1'000'000);
  const auto expected = whole.tune(table, call, sizes, &never);
  REQUIRE(expected);
  const size_t calls = 1'000'000 - never.left();
  for (const size_t last : {size_t{1}, calls / 3, calls / 2, calls - 1}) {
    INFO(last << " of " << calls);
    PredictedRuns runs(2);
    EndedTimer ended(machine_of(2), last), rest(machine_of(2), 1'000'000);
    CHECK_FALSE(runs.tune(table, call, sizes, &ended));
    const auto results = runs.tune(table, call, sizes, &rest);
    REQUIRE(results);
    CHECK(1'000'000 - rest.left() == calls - last);
    for (size_t i = 0; i < sizes.size(); ++i) {
      CHECK((*results)[i].best.row.choice == (*expected)[i].best.row.choice);
      CHECK((*results)[i].best.ns == (*expected)[i].best.ns);
      CHECK((*results)[i].trials == (*expected)[i].trials);
    }
  }
}

TEST_CASE("no plan is picked that breaks the contract about sums, whatever rows say") {
  for (const Rows& rows : {shipped_rows(), wrong_about_orders()}) {
    const LibraryTable table = table_of(rows);
    for (const SumOrder order : {SumOrder::ranks, SumOrder::tree, SumOrder::exact}) {
      for (const CollectiveKind kind : {CollectiveKind::allreduce, CollectiveKind::reducescatter}) {
        PredictedRuns runs(4);
        LibraryCall call = captured_call(kind, 4);
        call.order = order;
        const auto results = runs.tune(table, call, {1u << 16});
        REQUIRE(results);
        for (const SizeResult& r : *results) {
          INFO(name(kind) << " " << name(order) << ": " << text_of(r.best.row.choice));
          CHECK(r.best.ns > 0);
          CHECK(keeps_order(proof_of(r.best.row.choice, call), call));
        }
      }
    }
  }
}

}  // namespace mscclc::tune
