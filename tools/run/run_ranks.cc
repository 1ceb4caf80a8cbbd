#include "tools/run/run_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "runtime/api/gpu.h"
#include "runtime/api/in_process.h"
#include "runtime/api/launcher.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/process/quiet_thread.h"
#include "runtime/support/settings/settings.h"
#include "tools/io/files.h"
#include "tools/run/distinct_texts.h"
#include "tools/run/rank_device.h"
#include "tools/run/rank_job.h"
#include "tools/run/rank_processes.h"

namespace mscclc {
namespace {

/// What is the same for all ways to start ranks.
struct Start {
  const RunOptions& options;
  Input& input;
  const std::vector<RunSpec>& specs;
  JobTimes times;
  uint32_t ranks() const { return static_cast<uint32_t>(input.program.ranks.size()); }
};

int run_on_device(const Start& start, std::unique_ptr<Bootstrap> bootstrap, uint32_t local,
                  const std::string& how, Speaker who = Speaker::rank_0) {
  std::shared_ptr<Device> device;
  if (bootstrap != nullptr) {
    device = open_rank_device(
        {start.options.device == "cuda", start.options.ranks_per_node, start.options.lane},
        bootstrap->rank(), local, start.input.diagnostics);
  }
  if (bootstrap == nullptr) {
    start.input.report();
    return kWrongResult;
  }
  // Without a device too: the other ranks learn why.
  return run_rank(start.options, start.input, start.specs, std::move(bootstrap), std::move(device),
                  start.times.timeout, how, who);
}

/// What started the processes of a job.
std::string starter(const LaunchedRank& launch) {
  return launch.launcher == "MSCCLC_RANK" ? "the user" : launch.launcher;
}

int run_launched(const Start& start, const LaunchedRank& launch) {
  if (launch.size != start.ranks()) {
    const std::string others = launch.launcher == "MSCCLC_RANK"
                                   ? fmt::format("MSCCLC_WORLD_SIZE is {}", launch.size)
                                   : fmt::format("{} has started {}", launch.launcher, launch.size);
    return Input::usage(fmt::format("the program is for {} ranks; {}", start.ranks(), others));
  }
  return run_on_device(
      start, make_bootstrap(launch, start.input.diagnostics),
      launch.local_rank.value_or(launch.rank),
      fmt::format("on {} processes that {} has started", launch.size, starter(launch)),
      Speaker::all);
}

/// "4 processes of this machine, a GPU each"
std::string ranks_text(const Start& start, const char* what) {
  const auto per_node = start.options.ranks_per_node;
  return fmt::format("on {} {}{}{}", start.ranks(), what,
                     start.options.device == "cuda" ? ", a GPU each" : "",
                     per_node ? fmt::format(", {} to a node", *per_node) : "");
}

int run_forked(const Start& start) {
  const auto be_rank = [&](uint32_t rank, std::unique_ptr<Bootstrap> bootstrap,
                           Diagnostics& problems) {
    start.input.diagnostics = problems;
    return run_on_device(start, std::move(bootstrap), rank,
                         ranks_text(start, "processes of this machine"));
  };
  const int code = run_job({.ranks = start.ranks(), .failed = kWrongResult}, start.times, be_rank,
                           start.input.diagnostics);
  start.input.report();
  return code;
}

/// Ranks as threads of this process; what they report comes out in rank order, without repetitions.
int run_threads(const Start& start) {
  auto bootstraps = make_in_process_bootstraps(start.ranks(), start.times.timeout);
  std::vector<Input> inputs(start.ranks(), start.input);
  std::vector<std::string> said(start.ranks());
  std::vector<int> codes(start.ranks(), kWrongResult);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < start.ranks(); ++r) {
    inputs[r].report_into(said[r]);
    threads.push_back(quiet_thread("mscclc-rank", [&, r] {
      const Start rank{start.options, inputs[r], start.specs, start.times};
      codes[r] = run_on_device(rank, std::move(bootstraps[r]), r,
                               ranks_text(start, "threads of this process"));
    }));
    if (has_started(threads.back(), fmt::format("rank {}", r), inputs[r].diagnostics)) continue;
    inputs[r].report();
    threads.pop_back();
    for (uint32_t absent = r; absent < start.ranks(); ++absent) bootstraps[absent].reset();
    break;
  }
  for (std::thread& thread : threads) thread.join();
  DistinctTexts once;
  for (uint32_t r = 0; r < start.ranks(); ++r) put_error(once.add(r, said[r]));
  put_error(once.ranks_left_out());
  return *std::ranges::max_element(codes);
}

/// True if a diagnostic of this kind is there.
bool says(const Diagnostics& diagnostics, std::string_view code) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.code == code) return true;
  }
  return false;
}

}  // namespace

int run_ranks(const RunOptions& options, Input& input, const std::vector<RunSpec>& specs) {
  if (options.device == "cuda" && !cuda::has_gpu_part()) {
    return Input::usage(
        "--device cuda: this mscclc was built without its GPU part; with CUDA's nvcc: "
        "bazel build --config=cuda //tools:mscclc");
  }
  if (const auto per_node = options.ranks_per_node) {
    const size_t ranks = input.program.ranks.size();
    if (ranks % *per_node != 0) {
      return Input::usage(fmt::format(
          "--ranks-per-node {}: the program has {} ranks, which do not fill whole nodes", *per_node,
          ranks));
    }
  }
  const Environment environment = Environment::of_process();
  warn_of_unknown_once(environment, input.diagnostics);
  const bool allowed = check_settings(environment, input.diagnostics);
  input.report();
  if (!allowed) return kUsage;
  Diagnostics none;  // what is allowed can be read
  const auto timeout = environment.timeout(none);
  const auto silence = environment.number(Variable::MSCCLC_SILENCE, none);
  if (!timeout || !silence) return kUsage;
  const Start start{options, input, specs, {*timeout, std::chrono::seconds(*silence)}};
  Diagnostics launcher;
  const auto launch = read_launch("", launcher);
  if (launch && options.threads) {
    return Input::usage(
        fmt::format("--threads: {} has started a process for each rank", starter(*launch)));
  }
  if (launch) {
    for (const Diagnostic& warning : launcher.all()) input.diagnostics.add(warning);
    return run_launched(start, *launch);
  }
  if (says(launcher, "no-launcher")) {
    if (!options.lane.empty() && !options.ranks_per_node) {
      return Input::usage("--lane: all ranks are of one node; --ranks-per-node makes several");
    }
    return options.threads ? run_threads(start) : run_forked(start);
  }
  input.diagnostics = launcher;
  input.report();
  return kUsage;
}

}  // namespace mscclc
