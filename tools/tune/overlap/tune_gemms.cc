#include "tools/tune/overlap/tune_gemms.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/core/overlap/config.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/progress.h"
#include "tools/tune/overlap/measured_rows.h"
#include "tools/tune/overlap/team_gemm_timer.h"

namespace mscclc::tune {
namespace {

using overlap::RunMode;

/// Runs of GEMMs take longer than calls of plans.
constexpr std::chrono::microseconds kBatch{10'000};

class GemmTuneRun {
 public:
  GemmTuneRun(const GemmTuning& tuning, std::vector<OverlapConfig> shapes)
      : tuning_(tuning), shapes_(std::move(shapes)) {
    if (tuning.team.gpus() && !tuning.team.eager) modes_.push_back(RunMode::captured);
  }

  /// Returns the exit code.
  int run(const std::vector<uint32_t>& ranks) {
    for (const uint32_t n : ranks) {
      Diagnostics diagnostics;
      if (measure(n, diagnostics)) continue;
      put_error(render_text(diagnostics, Sources()));
      return kWrongResult;
    }
    put(facts_);
    if (const int code = write(); code != kFine) return code;
    const bool wrong =
        std::ranges::any_of(results_, [](const auto& r) { return !r.wrong.empty(); });
    return wrong || has_hung_ ? kWrongResult : kFine;
  }

 private:
  bool measure(uint32_t ranks, Diagnostics& diagnostics) {
    TeamOptions options = options_of(tuning_.team, ranks);
    options.batch = kBatch;
    auto timer = TeamGemmTimer::start(options, diagnostics);
    if (timer == nullptr) return false;
    const std::string why_no_nccl = timer->why_no_nccl();
    facts_ += fmt::format(
        "{} ranks: runs on {}, eager{}; {}\n", ranks, timer->device(),
        modes_.size() > 1 ? " and in CUDA graphs" : "",
        why_no_nccl.empty() ? "NCCL was timed, too" : "NCCL was not timed: " + why_no_nccl);
    const overlap::ChoiceFacts facts{
        .ranks = ranks, .multiprocessors = timer->multiprocessors(), .nccl = why_no_nccl};
    HungWays hung;
    Progress progress("tune", shapes_.size() * modes_.size());
    for (const OverlapConfig& shape : shapes_) {
      for (const RunMode mode : modes_) {
        progress.next(fmt::format("{} over {} ranks, {} rows", name(shape.kind), ranks, shape.m));
        std::optional<GemmResult> result;
        while (!(result = GemmTuner(*timer, facts, hung).tune(shape, mode))) {
          has_hung_ = true;
          timer.reset();  // without what hung, by other ranks
          timer = TeamGemmTimer::start(options, diagnostics);
          if (timer == nullptr) return false;
        }
        put(result_text(*result));
        results_.push_back(*std::move(result));
        if (!measured_rows(results_).empty()) (void)write_rows();  // what was had outlasts a crash
      }
    }
    return true;
  }

  std::string file() const { return tuning_.output + "/" + overlap::kMeasuredFile; }
  Result<void> write_rows() const {
    return write_file(file(), overlap::measured_text(measured_rows(results_)));
  }

  int write() const {
    const auto rows = measured_rows(results_);
    if (rows.empty()) {
      put_error("nothing could be timed, so there is no table: see the lines above\n");
      return kWrongResult;
    }
    if (const auto written = write_rows(); !written) return Input::usage(written.error());
    put(fmt::format("{} rows of {}; jobs take them with MSCCLC_PLAN_PATH={}\n", rows.size(), file(),
                    tuning_.output));
    return kFine;
  }

  const GemmTuning& tuning_;
  const std::vector<OverlapConfig> shapes_;
  std::vector<RunMode> modes_ = {RunMode::eager};
  std::vector<GemmResult> results_;
  bool has_hung_ = false;
  std::string facts_;  ///< how it was timed
};

/// Makes the folder, and finds that there is no table yet.
Result<void> make_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error{fmt::format("cannot make '{}': {}", folder, failed.message())};
  const std::string file = folder + "/" + overlap::kMeasuredFile;
  if (std::filesystem::exists(file, failed)) {
    return Error{fmt::format(
        "--output: there must be no table yet, and '{}' is there: remove it, or name another "
        "folder",
        file)};
  }
  return could_write(file);
}

}  // namespace

int tune_gemms(const GemmTuning& tuning) {
  Diagnostics diagnostics;
  const auto found = ranks_of(tuning.team, diagnostics);
  if (!found) return Input::usage(found.error());
  std::vector<uint32_t> ranks = *found;
  std::ranges::sort(ranks);
  const auto again = std::ranges::unique(ranks);
  ranks.erase(again.begin(), again.end());
  std::vector<OverlapConfig> all;
  for (const OverlapKind kind : tuning.kinds) {
    const auto shapes = shapes_of(tuning, kind);
    if (!shapes) return Input::usage(shapes.error());
    for (const OverlapConfig& shape : *shapes) {
      for (const uint32_t n : ranks) (void)overlap::check_config(shape, n, diagnostics);
      all.push_back(shape);
    }
  }
  if (ranks.empty() || diagnostics.has_errors()) {
    put_error(render_text(diagnostics, Sources(), 1));
    return kUsage;
  }
  if (const auto made = make_folder(tuning.output); !made) return Input::usage(made.error());
  return GemmTuneRun(tuning, std::move(all)).run(ranks);
}

}  // namespace mscclc::tune
