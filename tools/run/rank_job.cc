#include "tools/run/rank_job.h"

#include <algorithm>
#include <map>

#include "ir/diagnostics/diagnostic_codes.h"
#include "tools/io/progress.h"
#include "tools/run/rank_report.h"
#include "tools/run/run_timeline.h"

namespace mscclc {
namespace {

bool has_cause_in_job(const Diagnostics& diagnostics) {
  return std::ranges::any_of(diagnostics.all(),
                             [](const Diagnostic& d) { return is_of_job(d.code); });
}

class RankJob {
 public:
  RankJob(const RunOptions& options, Input& input, const std::vector<RunSpec>& specs,
          Communicator& communicator, const std::string& how, Speaker who)
      : options_(options),
        how_(how),
        input_(input),
        plan_(std::make_shared<const Program>(input.program)),
        specs_(specs),
        communicator_(communicator),
        who_(who) {
    for (const Rank& rank : plan_->ranks) {
      for (const Buffer& b : rank.buffers) sentinels_ |= is_sentinel(b.packets);
    }
  }

  /// All rows; false if the ranks cannot go on together: the reason is in the input's diagnostics.
  bool run(Totals& totals);

 private:
  RankRunner* runner_for(Dtype dtype);
  bool run_one(const RunSpec& spec, Totals& totals);
  bool prepare_timeline();
  void write_timeline(const std::vector<RankReport>& reports, Totals& totals);

  const RunOptions& options_;
  const std::string& how_;
  std::optional<RunTimeline> timeline_;
  Input& input_;
  const std::shared_ptr<const Program> plan_;
  const std::vector<RunSpec>& specs_;
  Communicator& communicator_;
  const Speaker who_;
  bool sentinels_ = false;
  /// Sentinel packets serve one width of elements; all other plans need one runner.
  std::map<uint32_t, std::unique_ptr<RankRunner>> runners_;
};

RankRunner* RankJob::runner_for(Dtype dtype) {
  auto& runner = runners_[sentinels_ ? info(dtype).bytes : 0];
  if (runner != nullptr) return runner.get();
  uint64_t most = 0;
  for (const RunSpec& spec : specs_) most = std::max(most, spec.bytes);
  runner = std::make_unique<RankRunner>(
      communicator_, plan_,
      RunnerOptions{.load = {.max_bytes = most, .dtype = dtype, .zero_copy = true},
                    .stamp_words = timeline_ ? timeline_->stamp_words() : 0});
  return runner->load(input_.diagnostics) ? runner.get() : nullptr;
}

bool RankJob::run_one(const RunSpec& spec, Totals& totals) {
  RankRunner* runner = runner_for(spec.dtype);
  if (runner == nullptr) return false;
  RankReport own{runner->run(spec, input_.diagnostics), {}};
  if (own.result.run.status == RunStatus::hung) return false;
  const RunResult sizes = own.result.run;
  const Diagnostics seen = input_.diagnostics;
  own.diagnostics = input_.diagnostics.all();
  std::vector<std::vector<uint8_t>> messages;
  if (!communicator_.bootstrap().all_gather(encode(own), "compare results", messages,
                                            input_.diagnostics)) {
    return false;
  }
  std::vector<RankReport> reports(messages.size());
  for (size_t r = 0; r < messages.size(); ++r) {
    if (decode(messages[r], reports[r])) continue;
    input_.diagnostics.error("bad-message", {}, "a rank's result is cut off");
    return false;
  }
  input_.diagnostics = Diagnostics();  // its own come back with those of all
  if (timeline_) write_timeline(reports, totals);
  RunResult all = merge(std::move(reports), plan_->contract, input_.diagnostics);
  all.bytes = sizes.bytes;
  all.count = sizes.count;
  all.in_place = sizes.in_place;
  count_result(all, totals);
  const bool refused = all.status == RunStatus::refused;
  if (refused && has_cause_in_job(input_.diagnostics)) totals.code = kWrongResult;
  if (communicator_.rank() == 0) {
    print_result(plan_->contract, spec, all, totals);
    input_.report();
    return true;
  }
  input_.diagnostics = refused && who_ == Speaker::all ? seen : Diagnostics();
  input_.report();
  return true;
}

/// Every rank works out how many stamps there will be; rank 0 writes the files.
bool RankJob::prepare_timeline() {
  if (!options_.timeline.asked()) return true;
  timeline_ = RunTimeline::make(options_, *plan_, specs_.front(), input_.diagnostics);
  return timeline_.has_value();
}

void RankJob::write_timeline(const std::vector<RankReport>& reports, Totals& totals) {
  if (communicator_.rank() != 0) return;
  std::vector<timeline::RankStamps> ranks;
  for (const RankReport& report : reports) {
    if (report.result.run.status == RunStatus::refused) return;
    ranks.push_back({report.result.stamps, report.result.stamp_words});
  }
  const auto written = timeline_->write(ranks, how_);
  if (!written) totals.code = Input::usage(written.error());
}

bool RankJob::run(Totals& totals) {
  if (!prepare_timeline()) return false;
  std::optional<Progress> progress;
  if (communicator_.rank() == 0) progress.emplace("run", specs_.size());
  for (const RunSpec& spec : specs_) {
    if (progress) progress->next(spec_text(spec));
    if (!run_one(spec, totals)) return false;
  }
  return true;
}

}  // namespace

int run_rank(const RunOptions& options, Input& input, const std::vector<RunSpec>& specs,
             std::unique_ptr<Bootstrap> bootstrap, std::shared_ptr<Device> device,
             std::chrono::milliseconds timeout, const std::string& how, Speaker who) {
  auto communicator = Communicator::create(std::move(bootstrap), std::move(device),
                                           {.timeout = timeout}, input.diagnostics);
  if (communicator == nullptr) {
    input.report();
    return kWrongResult;
  }
  if (communicator->rank() == 0) {
    print_heading(options, input.program, *specs.front().in_place, options.iterations, how,
                  "# times are from the launch of a call to its end, of the slowest rank\n");
  }
  Totals totals;
  if (!RankJob(options, input, specs, *communicator, how, who).run(totals)) {
    const bool refused = std::ranges::any_of(
        input.diagnostics.all(), [](const Diagnostic& d) { return d.code == "not-proved"; });
    input.report();
    return refused ? kWrongProgram : kWrongResult;
  }
  if (communicator->rank() == 0) print_totals(totals);
  return totals.code;
}

}  // namespace mscclc
