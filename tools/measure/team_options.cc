#include "tools/measure/team_options.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include "runtime/api/gpu.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/settings/settings.h"

namespace mscclc {
namespace {

constexpr uint32_t kMaxRanks = 64;  ///< threads that wait for one another on one machine

}  // namespace

bool TeamChoice::gpus() const { return device.empty() ? cuda::has_gpu_part() : device == "cuda"; }

void add_team_options(CommandLine& line, CLI::App& app, TeamChoice& choice, bool several) {
  line.takes(app.add_option("--device", choice.device,
                            "cuda: GPUs; threads: the host device. Ranks are threads of this "
                            "process (cuda, where this mscclc has its GPU part)")
                 ->type_name("DEVICE")
                 ->check(CLI::IsMember({"cuda", "threads"})),
             {"cuda", "threads"});
  CLI::Option* ranks =
      line.takes_text(app.add_option("--ranks", choice.ranks,
                                     several ? "how many, several numbers separated by commas (the "
                                               "GPUs, or 2 threads)"
                                             : "how many (the GPUs, or 2 threads)")
                          ->type_name(several ? "LIST" : "N")
                          ->check(CLI::Range(uint32_t{2}, kMaxRanks)));
  if (several) {
    ranks->delimiter(',')->allow_extra_args(false);
  } else {
    ranks->expected(1);
  }
  line.takes_text(
      app.add_option("--repeats", choice.batches, "batches of calls, whose median counts (5)")
          ->type_name("N")
          ->check(CLI::Range(1u, 1000u)));
  app.add_flag("--eager", choice.eager,
               "launch calls one by one, and not in CUDA graphs, which only GPUs have");
}

Result<std::vector<uint32_t>> ranks_of(const TeamChoice& choice, Diagnostics& diagnostics) {
  const std::vector<uint32_t> none;
  if (!check_settings(Environment::of_process(), diagnostics)) return none;
  if (choice.gpus() && !cuda::has_gpu_part()) {
    return Error{
        "--device cuda: this mscclc was built without its GPU part; with CUDA's nvcc: "
        "bazel build --config=cuda //tools:mscclc"};
  }
  if (!choice.gpus()) return choice.ranks.empty() ? std::vector<uint32_t>{2} : choice.ranks;
  const auto there = static_cast<uint32_t>(cuda::count_gpus(diagnostics));
  if (there == 0) return none;
  const std::vector<uint32_t> ranks =
      choice.ranks.empty() ? std::vector<uint32_t>{there} : choice.ranks;
  for (const uint32_t n : ranks) {
    if (n >= 2 && n <= there) continue;
    return Error{
        fmt::format("--ranks {}: this machine has {} GPUs, and two at least are needed", n, there)};
  }
  return ranks;
}

TeamOptions options_of(const TeamChoice& choice, uint32_t ranks) {
  TeamOptions options{.ranks = ranks, .batches = choice.batches};
  options.devices.gpus = choice.gpus();
  options.graphs = choice.gpus() && !choice.eager;
  options.between = choice.between;
  options.nccl = choice.nccl;
  return options;
}

std::unique_ptr<RankTeam> start_team(const TeamChoice& choice, uint32_t ranks,
                                     uint32_t ranks_per_node, Diagnostics& diagnostics) {
  TeamOptions options = options_of(choice, ranks);
  if (ranks_per_node != 0) options.devices.ranks_per_node = ranks_per_node;
  return RankTeam::start(options, diagnostics);
}

}  // namespace mscclc
