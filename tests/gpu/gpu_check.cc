// Tries the runtime on the GPUs of this machine. Run by hand, in the repository's root:
//
//   bazel build --config=cuda //tests/gpu:gpu_check
//   bazel-bin/tests/gpu/gpu_check plans --ranks 4
//
// Each part says what it has counted; the exit code is 1 if anything was wrong.
#include <CLI/CLI.hpp>

#include "tests/gpu/stage.h"

int main(int argc, char** argv) {
  using namespace mscclc::testing;
  CLI::App app("tries the runtime on GPUs");
  StageOptions options;
  app.add_option("--ranks", options.ranks, "ranks of every job (default: 2)");
  app.add_option("--gpus", options.gpus, "GPUs that ranks are dealt out to (default: ranks)")
      ->default_val(0);
  app.add_flag("--threads", options.threads, "ranks are threads of one process");
  app.add_option("--filter", options.filter, "plans whose name contains this");
  app.require_subcommand(1);
  app.fallthrough();
  CLI::App* plans = app.add_subcommand("plans", "every plan against its collective's definition");
  CLI11_PARSE(app, argc, argv);
  if (options.gpus == 0) options.gpus = options.ranks;
  bool right = true;
  if (plans->parsed()) right = check_plans(options);
  return right ? 0 : 1;
}
