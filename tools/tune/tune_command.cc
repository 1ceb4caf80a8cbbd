// mscclc tune: measures plans of the library on this machine, or predicts them for another, and
// writes a folder of the fastest, which MSCCLC_PLAN_PATH takes; or backends of GEMMs that overlap.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <filesystem>
#include <set>

#include "executor/cost/machines.h"
#include "ir/support/fnv.h"
#include "runtime/choice/overlap/kinds.h"
#include "runtime/support/version.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/library.h"
#include "tools/io/progress.h"
#include "tools/io/sizes.h"
#include "tools/library/plan_folder.h"
#include "tools/measure/team_options.h"
#include "tools/tune/overlap/tune_gemms.h"
#include "tools/tune/predicted_timer.h"
#include "tools/tune/tuned_table.h"

namespace mscclc {
namespace {

constexpr const char* kTuneExamples = R"(  mscclc tune -o /opt/tuned
  mscclc tune --ranks 2,4 --collective allreduce --bytes 1K:1M --order ranks -o tuned
  mscclc tune --device threads --collective allreduce --bytes 1K,64K -o tuned
  MSCCLC_NCCL=/opt/nccl/lib/libnccl.so.2 mscclc tune --between -o tuned
  mscclc tune --predict --machine 8xH200 --ranks 5,6,7,8 --bytes 1K:1G -o eight
  mscclc tune --collective gemm_reducescatter --m 1024,2048,8192 --k 3584 --n 8192 -o layers
  mscclc tune --collective allgather_gemm --m 512,4096 --layer 8192:3584 --layer 4096:6144,512 -o layers
  MSCCLC_PLAN_PATH=/opt/tuned python train.py)";

struct TuneCommand {
  TeamChoice team;
  bool no_nccl = false, predict = false;
  std::vector<std::string> collectives = {"allreduce", "allgather", "reducescatter", "alltoall",
                                          "broadcast"};
  std::string bytes = "1K:64M", dtype, order, library, machine = "4xH200", output;
  tune::TuneOptions search;
  tune::GemmOptions gemms;
  std::vector<const CLI::Option*> of_collectives, of_gemms;  ///< options that the others have not
};

int refuse_tuning(const Diagnostics& diagnostics, ExitCode code) {
  put_error(render_text(diagnostics, Sources()));
  return code;
}

/// What is asked for, once the options are found to be right.
struct TuneWork {
  std::vector<CollectiveKind> kinds;
  std::vector<OverlapKind> gemms;  ///< instead of these
  std::vector<uint64_t> sizes;
  Dtype dtype = Dtype::f32;
  SumOrder order = kDefaultOrder;
};

/// What is to be tuned: collectives, or GEMMs that overlap.
Result<void> parse_kinds(const TuneCommand& options, TuneWork& work) {
  const std::vector<std::string> gemms = overlap::kind_names();
  for (const std::string& word : options.collectives) {
    const auto kind = find_collective(word);
    const overlap::KindInfo* const gemm = overlap::find_kind(word);
    if (!kind && gemm == nullptr) return Error{"--collective: " + unknown_collective(word, gemms)};
    if (kind) work.kinds.push_back(*kind);
    if (gemm != nullptr) work.gemms.push_back(gemm->kind);
  }
  work.kinds = without_repeats(work.kinds);
  work.gemms = without_repeats(work.gemms);
  if (!work.kinds.empty() && !work.gemms.empty()) {
    return Error{
        fmt::format("--collective must have collectives, or GEMMs that overlap; it has {} and {}: "
                    "tune them one after the other",
                    name(work.kinds.front()), name(work.gemms.front()))};
  }
  const bool of_gemms = !work.gemms.empty();
  for (const CLI::Option* option : of_gemms ? options.of_collectives : options.of_gemms) {
    if (option->count() == 0) continue;
    if (!of_gemms) {
      return Error{fmt::format("{} is for {}, not for {}", option->get_name(),
                               fmt::join(gemms, ", "), name(work.kinds.front()))};
    }
    return Error{
        fmt::format("{} is for collectives; of {} --m, --k, --n, --layer, --dtype, "
                    "--order, --device, --ranks, --repeats, --eager and --no-nccl count",
                    option->get_name(), name(work.gemms.front()))};
  }
  return {};
}

Result<void> parse_tuning(const TuneCommand& options, TuneWork& work) {
  if (const auto fine = parse_kinds(options, work); !fine) return fine.error();
  const auto sizes = parse_sizes(options.bytes);
  if (!sizes) return Error{"--bytes: " + sizes.error().text()};
  work.sizes = *sizes;
  std::ranges::sort(work.sizes);
  const auto again = std::ranges::unique(work.sizes);
  work.sizes.erase(again.begin(), again.end());
  if (work.sizes.front() == 0) return Error{"--bytes: a call of nothing takes no time"};
  const std::string usual = work.gemms.empty() ? "f32" : "bf16";
  const auto dtype = find_dtype(options.dtype.empty() ? usual : options.dtype);
  if (!dtype) return Error{fmt::format("--dtype: unknown type '{}'", options.dtype)};
  work.dtype = *dtype;
  if (!options.order.empty()) work.order = find_sum_order(options.order).value();
  return {};
}

/// What times the calls of so many ranks, and what there is to say of it.
struct Bench {
  std::unique_ptr<CallTimer> timer;
  std::string about;  ///< what its times depend on: times of another do not go on from them
  std::string facts;  ///< how it times
  LinkKind links = LinkKind::nvlink;
  uint32_t max_blocks = 0;  ///< of a rank, at once; 0: any number
  bool captured = false;    ///< calls are in graphs
};

class TuneRun {
 public:
  TuneRun(const TuneCommand& options, const TuneWork& work, const Library& library, Machine machine,
          Target target)
      : options_(options),
        work_(work),
        library_(library),
        machine_(std::move(machine)),
        target_(std::move(target)) {}

  /// Returns the exit code.
  int run(const std::vector<uint32_t>& ranks) {
    std::error_code failed;
    std::filesystem::create_directories(options_.output, failed);
    if (failed) {
      return Input::usage(fmt::format("cannot make '{}': {}", options_.output, failed.message()));
    }
    for (const uint32_t n : ranks) {
      if (const int code = measure(n); code != kFine) return code;
    }
    for (const auto& sizes : results_) put(tune::results_text(sizes) + "\n");
    put(facts_ + (options_.predict ? "" : model_text()));
    if (const int code = write(ranks); code != kFine) return code;
    const bool wrong = std::ranges::any_of(results_, [](const auto& sizes) {
      return std::ranges::any_of(sizes, [](const auto& r) { return !r.wrong.empty(); });
    });
    return wrong ? kWrongResult : kFine;
  }

 private:
  /// Ranks of this machine. nullopt: reported.
  std::optional<Bench> start(uint32_t ranks, Diagnostics& diagnostics) const {
    TeamChoice choice = options_.team;
    choice.nccl = !options_.no_nccl;
    auto team = start_team(choice, ranks, 0, diagnostics);
    if (team == nullptr) return std::nullopt;
    const std::string nccl = team->nccl();
    Bench bench{.timer = nullptr,
                .about = fmt::format("{}, calls {}", team->device(), team->launches()),
                .facts = fmt::format("calls {}; {}", team->launches(),
                                     nccl.empty() ? "NCCL was not timed: " + team->why_no_nccl()
                                                  : "in turn with " + nccl),
                .links = team->links() == LinkKind::pcie ? LinkKind::pcie : LinkKind::nvlink,
                .max_blocks = team->multiprocessors(),
                .captured = choice.gpus() && !choice.eager};
    bench.timer = std::move(team);
    return bench;
  }

  /// The cost model in place of ranks.
  Bench predicted(const Machine& machine) const {
    const std::string calls = fmt::format("predicted for '{}'", options_.machine);
    Fnv figures;
    figures.add(machine_text(machine));
    return {.timer = std::make_unique<tune::PredictedTimer>(machine),
            .about = fmt::format("no device, {} with figures {}", calls, figures.hex()),
            .facts = fmt::format("calls {}; nothing was measured", calls),
            .links = machine.links,
            .max_blocks = target_.max_blocks,
            .captured = true};
  }

  int measure(uint32_t ranks) {
    Diagnostics diagnostics;
    Machine machine = machine_;
    cost::resize(machine, ranks);
    auto bench = options_.predict ? predicted(machine) : start(ranks, diagnostics);
    if (!bench) return refuse_tuning(diagnostics, kWrongResult);
    const std::string file = fmt::format("{}/tune-R{}.jsonl", options_.output, ranks);
    auto log =
        tune::TrialLog::open(file, fmt::format("mscclc {}, {} ranks on {}, programs {}", kVersion,
                                               ranks, bench->about, programs_hash()));
    if (!log) return Input::usage(log.error());
    if (log->size() > 0)
      put_error(fmt::format("going on after {} trials of '{}'\n", log->size(), file));
    facts_ += fmt::format("{} ranks: {}\n", ranks, bench->facts);
    const tune::Limits limits{.max_blocks = bench->max_blocks,
                              .lines = bench->links != LinkKind::pcie};
    tune::Plans plans([this](const std::string& program) { return text_of(program); }, machine,
                      limits);
    tune::Tuner tuner(*bench->timer, library_.table, plans, limits, *log, options_.search);
    Progress progress("tune", work_.kinds.size() * work_.sizes.size());
    for (const CollectiveKind kind : work_.kinds) {
      const LibraryCall call{.kind = kind,
                             .ranks = ranks,
                             .dtype = work_.dtype,
                             .links = bench->links,
                             .order = work_.order,
                             .captured = bench->captured};
      auto results = tuner.tune(
          call, work_.sizes,
          [&](const LibraryCall& now) {
            progress.next(fmt::format("{} over {} ranks, {} bytes", name(kind), ranks, now.bytes));
          },
          diagnostics);
      if (log->error()) return Input::usage(*log->error());
      if (!results) return refuse_tuning(diagnostics, kWrongResult);
      results_.push_back(*std::move(results));
    }
    return kFine;
  }

  /// How good the cost model was that said what to try first.
  std::string model_text() const {
    tune::ModelPairs pairs;
    for (const auto& sizes : results_) {
      const tune::ModelPairs more = tune::count_pairs(sizes);
      pairs.all += more.all;
      pairs.right += more.right;
    }
    return fmt::format(
        "of {} pairs of plans for one call that differ by more than 10 %, '{}' predicts the faster "
        "of {}\n",
        pairs.all, options_.machine, pairs.right);
  }

  std::optional<std::string> text_of(const std::string& program) const {
    auto text = library_.read(program + ".mscl");
    return text ? std::optional(*std::move(text)) : std::nullopt;
  }

  /// Of the texts of all programs that the library has rows for: trials know programs by name.
  std::string programs_hash() const {
    std::set<std::string> names;
    for (const LibraryRow& row : library_.table.rows()) names.insert(row.choice.program);
    Fnv all;
    for (const std::string& name : names) {
      const std::string text = text_of(name).value_or("");
      all.add(name);
      all.add_number(text.size());
      all.add(text);
    }
    return all.hex();
  }

  /// The plans of the new table, compiled and proved.
  int write(const std::vector<uint32_t>& ranks) const {
    Diagnostics diagnostics;
    const std::string text = library_table_text(tune::tuned_rows(results_, library_.table));
    auto table = LibraryTable::parse(text, "the tuned table", diagnostics);
    if (!table) return refuse_tuning(diagnostics, kWrongProgram);
    const Library tuned{library_.folder, *std::move(table)};
    PlanFolder folder;
    folder.ranks = ranks;
    folder.output = options_.output;
    folder.keeps_others = true;
    return write_plan_folder(folder, tuned, target_, work_.kinds);
  }

  const TuneCommand& options_;
  const TuneWork& work_;
  const Library& library_;
  const Machine machine_;
  const Target target_;  ///< of the plans
  std::vector<std::vector<tune::SizeResult>> results_;
  std::string facts_;  ///< how it was timed
};

int run_tune(const TuneCommand& options) {
  TuneWork work;
  if (const auto fine = parse_tuning(options, work); !fine) return Input::usage(fine.error());
  if (!work.gemms.empty()) {
    TeamChoice team = options.team;
    team.nccl = !options.no_nccl;
    return tune::tune_gemms({.kinds = work.gemms,
                             .shapes = options.gemms,
                             .dtype = work.dtype,
                             .order = work.order,
                             .team = std::move(team),
                             .output = options.output});
  }
  Diagnostics diagnostics;
  const auto library = open_library(options.library, diagnostics);
  auto machine = library ? find_machine(options.machine, diagnostics) : std::nullopt;
  if (!machine) return refuse_tuning(diagnostics, kUsage);
  for (const LibraryRow& row : library->table.rows()) {
    if (!row.choice.plan.empty()) {
      return Input::usage("--library: it holds plans, not programs");
    }
  }
  if (const auto kept = keeps_library(*library, options.output); !kept) {
    return Input::usage(kept.error());
  }
  const auto target = find_target("sm_90", diagnostics);
  if (!target) return refuse_tuning(diagnostics, kUsage);
  std::vector<uint32_t> ranks = options.team.ranks;
  if (!options.predict) {
    const auto found = ranks_of(options.team, diagnostics);
    if (!found) return Input::usage(found.error());
    ranks = *found;
    if (ranks.empty()) return refuse_tuning(diagnostics, kUsage);
  } else if (ranks.empty()) {
    ranks = {machine->gpus};
  }
  std::ranges::sort(ranks);
  const auto again = std::ranges::unique(ranks);
  ranks.erase(again.begin(), again.end());
  return TuneRun(options, work, *library, *std::move(machine), *target).run(ranks);
}

void add_search_options(CommandLine& line, CLI::App& app, tune::TuneOptions& search) {
  line.takes_number<uint32_t>(
      app.add_option("--trials", search.trials, "plans to time for a size, at most (24)")
          ->type_name("N")
          ->check(CLI::Range(1u, 1'000'000u)));
  line.takes_number<double>(
      app.add_option("--prune", search.prune,
                     "plans that are predicted to take so many times the best are not timed (2)")
          ->type_name("TIMES")
          ->check(CLI::Range(1.0, 1e6)));
}

void tune_options(CommandLine& line, CLI::App& app, TuneCommand& options) {
  app.add_option(
         "-o,--output", options.output,
         "folder for the plans and library.json; what was measured is kept there, and a run "
         "that was ended goes on from it; of GEMMs for overlap.json")
      ->type_name("FOLDER")
      ->required();
  add_team_options(line, app, options.team, true);
  line.takes_text(
      app.add_option("--collective", options.collectives,
                     "separated by commas (allreduce,allgather,reducescatter,alltoall,broadcast); "
                     "or GEMMs that overlap: allgather_gemm,gemm_reducescatter,gemm_allreduce,"
                     "alltoall_gemm")
          ->type_name("LIST")
          ->delimiter(',')
          ->allow_extra_args(false));
  line.takes_text(app.add_option("--bytes", options.bytes,
                                 "message sizes, as of 'mscclc run'; calls in between get the plan "
                                 "of the next larger one (1K:64M)")
                      ->type_name("SIZES"));
  line.takes_text(
      app.add_option("--dtype", options.dtype, "data type of the calls (f32); of A and B (bf16)")
          ->type_name("TYPE"));
  add_order_option(line, app, options.order, "what the bits of sums must keep to (replicated)");
  app.add_option("--library", options.library,
                 "folder of the library (MSCCLC_LIBRARY, or plans beside mscclc or here)")
      ->type_name("FOLDER");
  app.add_option("--machine", options.machine,
                 "a machine, built in or of 'mscclc calibrate', whose predictions say what to try "
                 "first (4xH200)")
      ->type_name("MACHINE");
  add_search_options(line, app, options.search);
  app.add_flag("--between", options.team.between,
               "time what a call adds to kernels before and after it that use its buffers, and not "
               "calls back to back");
  app.add_flag(
      "--no-nccl", options.no_nccl,
      "do not time NCCL, which MSCCLC_NCCL names, or libnccl.so.2, in turn with the fastest");
  CLI::Option* predict =
      app.add_flag("--predict", options.predict,
                   "measure nothing: times are what the cost model predicts for --machine with so "
                   "many GPUs (its own number)");
  for (const char* const measures :
       {"--device", "--eager", "--repeats", "--between", "--no-nccl"}) {
    predict->excludes(app.get_option(measures));
  }
  options.of_gemms = tune::add_gemm_options(line, app, options.gemms);
  for (const char* const name :
       {"--bytes", "--library", "--machine", "--trials", "--prune", "--between", "--predict"}) {
    options.of_collectives.push_back(app.get_option(name));
  }
}

}  // namespace

void add_tune(CommandLine& line) {
  line.add("tune", "measure plans on this machine: a folder of the fastest, for jobs to load",
           kTuneExamples, tune_options, run_tune);
}

}  // namespace mscclc
