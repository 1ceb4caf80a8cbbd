// Tries the runtime on the GPUs of this machine. tools/gpu_check.sh runs all of it; by hand, in the
// repository's root:
//
//   bazel build --config=cuda //tests/gpu:gpu_check
//   bazel-bin/tests/gpu/gpu_check plans --ranks 4
//
// Each part says what it has counted; the exit code is 1 if anything was wrong.
#include <CLI/CLI.hpp>

#include "tests/gpu/parts.h"
#include "tools/bench/support/hardware_queues.h"

namespace mscclc::testing {
namespace {

void add_options(CLI::App& app, StageOptions& options) {
  app.add_option("--ranks", options.ranks, "ranks of every job (default: 2)")
      ->check(CLI::Range(2, 8));
  app.add_option("--gpus", options.gpus, "GPUs that ranks are dealt out to (default: ranks)")
      ->check(CLI::Range(1, 8));
  app.add_flag("--threads", options.threads, "ranks are threads of one process");
  app.add_flag("--host", options.host, "no GPUs: this machine's processor, to try the parts");
  app.add_option_function<uint32_t>(
         "--patience", [&](uint32_t n) { options.patience = std::chrono::seconds(n); },
         "seconds that ranks wait for each other (default: 20)")
      ->check(CLI::Range(1, 3600));
  app.add_option("--filter", options.filter, "plans whose name contains this");
  app.add_option("--seconds", options.seconds, "begin nothing new after about so long");
  app.add_option("--seed", options.seed, "soak, bits: of all random choices (default: 1)");
}

/// Ranks that share a GPU share its hardware queues, too.
void take_queues(const StageOptions& options) {
  if (options.gpus >= options.ranks) return;
  ask_for_queues(options.threads ? kMaxQueues : kUsualQueues);
}

struct Check {
  const char* name;
  const char* help;
  bool (*check)(const StageOptions&);
};

constexpr Check kChecks[] = {
    {"plans", "every plan against its collective's definition", check_plans},
    {"bits", "sums that are rounded: the bits that the simulator gives", check_bits},
    {"rows", "a row in batches of every size: the bits that it has alone", check_row_batches},
    {"functions", "plans with row functions: what they compute, of any number of rows",
     check_row_functions},
    {"kernels", "plans by compiled kernels: the bits that the interpreter gives", check_kernels},
    {"flags", "plans with flags, beside copies that raise them", check_flags},
    {"graph", "patterns of graphs, and a hang in one", check_graphs},
    {"overlap", "calls on several streams, beside kernels of others", check_overlap},
    {"hang", "plans that hang, ranks that are killed", check_hangs},
    {"soak", "very many small calls, eager and in graphs", check_soak},
    {"adds", "additions by network devices to the memory of GPUs", check_remote_adds},
    {"cycles", "what is made and destroyed leaves nothing behind", check_cycles},
};

}  // namespace
}  // namespace mscclc::testing

int main(int argc, char** argv) {
  using namespace mscclc::testing;
  CLI::App app("tries the runtime on GPUs");
  StageOptions options;
  add_options(app, options);
  app.require_subcommand(1);
  app.fallthrough();
  const Check* chosen = nullptr;
  for (const Check& part : kChecks) {
    CLI::App* sub = app.add_subcommand(part.name, part.help);
    sub->callback([&chosen, &part] { chosen = &part; });
    const std::string name = part.name;
    if (name == "plans") {
      sub->add_flag("--graph", options.graph, "launch calls by graphs");
      sub->add_option("--most", options.most, "bytes of the largest message (default: 1 MiB)");
    }
    if (name == "bits") sub->add_flag("--graph", options.graph, "launch calls by graphs");
    if (name == "kernels") {
      sub->add_option("--folder", options.folder, "of 'mscclc library --kernels'")->required();
      sub->add_option("--most", options.most, "bytes of the largest message (default: 1 MiB)");
    }
    if (name == "soak") {
      sub->add_option("--calls", options.calls, "how many")->required();
      sub->add_option("--queued", options.queued,
                      "calls whose copies the host makes that are queued at most (default: 100)")
          ->check(CLI::Range(1, 1'000'000));
    }
    if (name == "cycles") {
      sub->add_option("--count", options.cycles, "of graphs, and of memory handles")->required();
    }
  }
  CLI11_PARSE(app, argc, argv);
  if (options.gpus == 0) options.gpus = options.ranks;
  take_queues(options);
  return chosen->check(options) ? 0 : 1;
}
