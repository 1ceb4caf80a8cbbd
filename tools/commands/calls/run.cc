// mscclc run: runs a program or plan for some sizes, types and reductions, and prints the table of
// nccl-tests. Here: on the simulator, all ranks in this process; run_ranks.h has the devices.
#include "executor/simulator/run.h"

#include <fmt/format.h>

#include <CLI/App.hpp>

#include "executor/simulator/schedules/schedule.h"
#include "runtime/support/environment/environment.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/library.h"
#include "tools/io/progress.h"
#include "tools/run/run_ranks.h"
#include "tools/run/run_set.h"
#include "tools/run/run_timeline.h"
#include "tools/run/run_work.h"

namespace mscclc {
namespace {

constexpr const char* kRunExamples = R"(  mscclc run plans/allreduce_2shot.mscl --bytes 1K:1M:4
  mscclc run allreduce.json --dtype f16,bf16 --op sum,max --in-place
  mscclc run allreduce.json -b 1K -e 1M -f 4 -d half -o max
  mscclc run ring.mscl -D R=3 --bytes 0,1,7,1000 --dtype all --op all
  mscclc run ring.mscl --iters 10 --schedule-seed 7
  mscclc run ring.mscl -D R=4 --device processes
  mscclc run ring.mscl -D R=4 --device cuda --threads
  mscclc run allgather_hier.mscl -D world=4 -D gpus=2 --device processes --ranks-per-node 2
  mscclc run ring.mscl -D R=4 --device processes --html timeline.html
  mscclc run ring.mscl -D R=4 --trace timeline.json --machine 4xH200
  mscclc run ring.json --schedule witness.json
  mscclc run row.json@0,1 row.json@2,3 all.json --schedule witness.json)";

std::vector<std::string_view> devices() { return {"host", "processes", "cuda"}; }
std::vector<std::string_view> lanes() { return {"sockets", "verbs"}; }

std::string schedule_text(const RunOptions& options) {
  if (!options.schedule.empty()) return fmt::format("schedule '{}'", options.schedule);
  const std::string text = fmt::format("schedule seed {}", options.schedule_seed());
  const auto adversary = options.adversary();
  return adversary ? fmt::format("{}, adversarial, {} strands", text, adversary->strands) : text;
}

void print_simulator_heading(const RunOptions& options, const Program& program, bool in_place,
                             uint32_t calls) {
  print_heading(options, program, in_place, calls, schedule_text(options),
                "# times are of this machine simulating all ranks: they compare programs here, and "
                "say\n# nothing about a GPU\n");
}

// One row. Returns false if there is no point in going on.
bool run_one(Simulator& runner, Input& input, const RunSpec& spec, Totals& totals) {
  const RunResult result = runner.run(spec, input.diagnostics);
  print_result(input.program.contract, spec, result, totals);
  count_result(result, totals);
  input.report();
  return result.status != RunStatus::hung;
}

/// Replays a schedule.
int run_schedule(const RunOptions& options) {
  Input input(options.input);
  if (const int code = load_to_run(options, input); code != kFine) return code;
  const auto text = read_input(options.schedule);
  if (!text) return Input::usage(text.error());
  const auto schedule = read_schedule(*text, options.schedule, input.program, input.diagnostics);
  input.report();
  if (!schedule) return kWrongProgram;
  const RunSpec& spec = schedule->spec;
  if (const auto lack = lack_of_memory(input.program, {&spec, 1})) return Input::usage(*lack);
  print_simulator_heading(options, input.program, *spec.in_place, spec.iterations);
  Simulator runner(input.program);
  Totals totals;
  run_one(runner, input, spec, totals);
  print_totals(totals);
  return totals.code;
}

/// The simulator's blocks take turns in one thread: their timeline is that of virtual time.
int write_timeline(const RunOptions& options, Input& input, const RunSpec& spec) {
  const auto timeline = RunTimeline::make(options, input.program, spec, input.diagnostics);
  input.report();
  if (!timeline) return kWrongProgram;
  return Input::code_of(timeline->write({}, ""));
}

int run_run(RunOptions& options) {
  options.input.file = options.files.front();
  const bool scheduled = options.seed || options.adversarial || !options.schedule.empty();
  if (options.device != "host" && scheduled) {
    return Input::usage(
        fmt::format("--device {}: only the simulator follows a schedule", options.device));
  }
  if (options.device == "host" && options.threads) {
    return Input::usage("--threads: the simulator has no ranks of its own; use it with --device");
  }
  if (options.device == "host" && options.ranks_per_node) {
    return Input::usage(
        "--ranks-per-node: only ranks of --device processes and cuda can be spread over nodes");
  }
  if (options.device != "processes" && !options.lane.empty()) {
    return Input::usage("--lane: it is for --device processes; GPUs take MSCCLC_LANE");
  }
  const bool several = options.files.size() > 1;
  if (several && options.schedule.empty()) {
    return Input::usage("several FILEs run together only with --schedule");
  }
  if (!options.schedule.empty() && options.timeline.asked()) {
    return Input::usage("--trace and --html: a schedule has no times");
  }
  if (!options.schedule.empty() && !options.machine.empty()) {
    return Input::usage("--machine: a schedule has no times");
  }
  if (!options.schedule.empty()) return several ? run_set_schedule(options) : run_schedule(options);
  const auto parsed = parse_work(options);
  if (!parsed) return Input::usage(parsed.error());
  const Work& work = *parsed;
  Input input(options.input);
  if (const int code = load_to_run(options, input); code != kFine) return code;
  const Program& program = input.program;
  if (const auto why = why_not_in_place(options, program.contract)) return Input::usage(*why);
  const std::vector<RunSpec> specs = specs_of(options, work, program.contract);
  if (const auto lack = lack_of_memory(program, specs)) return Input::usage(*lack);
  if (const auto why = why_no_rows(options, program, specs)) return Input::usage(*why);
  if (const auto why = why_no_timeline(options, specs)) return Input::usage(*why);
  if (const int code = machine_fits(options, input); code != kFine) return code;
  if (options.device != "host") return run_ranks(options, input, specs);
  if (Environment::of_process().has(Variable::MSCCLC_TRACE)) {
    put_error("mscclc run: MSCCLC_TRACE: only ranks of --device write their calls down\n");
  }
  const bool in_place = options.in_place || program.contract.in_place == InPlace::yes;
  print_simulator_heading(options, program, in_place, options.iterations);
  Simulator runner(program);
  Totals totals;
  Progress progress("run", specs.size());
  for (const RunSpec& spec : specs) {
    progress.next(spec_text(spec));
    if (!run_one(runner, input, spec, totals)) break;
  }
  print_totals(totals);
  if (options.timeline.asked() && totals.code == kFine) {
    return write_timeline(options, input, specs.front());
  }
  return totals.code;
}

std::vector<std::string> strings(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

std::vector<std::string> with_all(const std::vector<std::string_view>& names) {
  std::vector<std::string> list = strings(names);
  list.emplace_back("all");
  return list;
}

void add_run_options(CommandLine& line, CLI::App& app, RunOptions& options) {
  line.takes_text(app.add_option("--bytes", options.bytes,
                                 "message sizes, the larger of input and output: 64K, 1K:1M "
                                 "(doubling), 1K:1M:4 (times 4), 1K:9K:+2K (plus 2K), or a list "
                                 "of these separated by commas; K, M, G are powers of 1024 "
                                 "(default: 1M)")
                      ->type_name("SIZES"));
  CLI::Option* first =
      line.takes_text(app.add_option("-b", options.first_bytes,
                                     "as in nccl-tests: the smallest size, or the only one")
                          ->type_name("SIZE")
                          ->excludes(app.get_option("--bytes")));
  CLI::Option* last =
      line.takes_text(app.add_option("-e", options.last_bytes, "as in nccl-tests: the largest size")
                          ->type_name("SIZE")
                          ->needs(first));
  line.takes_text(
      app.add_option("-f", options.factor, "as in nccl-tests: the factor between sizes (2)")
          ->type_name("FACTOR")
          ->needs(last));
  line.takes(app.add_option("-d,--dtype", options.dtypes,
                            "data types, separated by commas, or all (default: f32): " +
                                fmt::format("{}", fmt::join(dtype_names(), ", ")))
                 ->type_name("LIST")
                 ->delimiter(',')
                 ->allow_extra_args(false),
             with_all(dtype_names()));
  line.takes(app.add_option("-o,--op", options.ops,
                            "reductions, separated by commas, or all (default: sum): " +
                                fmt::format("{}", fmt::join(op_names(), ", ")))
                 ->type_name("LIST")
                 ->delimiter(',')
                 ->allow_extra_args(false),
             with_all(op_names()));
  line.takes(
      app.add_option("--accumulate", options.accumulate,
                     "the type to accumulate in (default: f32 for floats of 32 bits and less, "
                     "else the data type)")
          ->type_name("TYPE"),
      strings(dtype_names()));
}

void add_schedule_options(CommandLine& line, CLI::App& app, RunOptions& options) {
  line.takes_number<uint64_t>(app.add_option("--schedule-seed", options.seed,
                                             "seed that decides which block runs next; 0: each "
                                             "runs until it must wait (default: 0)")
                                  ->type_name("S"));
  app.add_flag("--adversarial", options.adversarial,
               "split blocks into strands that meet only where the plan makes them, and delay "
               "accesses as long as the memory model allows, both at random (default seed: 1)");
  CLI::Option* schedule =
      app.add_option(
             "--schedule", options.schedule,
             "replay a schedule that 'mscclc verify --witness' wrote; it also says what to run")
          ->type_name("FILE");
  for (const char* name : {"--bytes", "-b", "--dtype", "--op", "--accumulate", "--in-place",
                           "--iters", "--schedule-seed", "--adversarial", "--rows"}) {
    schedule->excludes(app.get_option(name));
  }
}

void run_options(CommandLine& line, CLI::App& app, RunOptions& options) {
  app.add_option("FILE", options.files,
                 "a program (.mscl), IR text or a plan (.json); '-' reads standard input. With "
                 "--schedule, several run together; FILE@0,1 is for these ranks")
      ->type_name("FILE")
      ->required();
  add_define_option(line, app, options.input);
  add_target_option(line, app, options.target, "no limits",
                    "whose limits ops are compiled for, as by 'mscclc verify --target'");
  add_diagnostics_option(line, app, options.input.diagnostics);
  line.takes(app.add_option("--device", options.device,
                            "host: this process simulates all ranks; processes: each rank is a "
                            "process with shared memory, of this machine or started by torchrun, "
                            "mpirun or srun; cuda: GPUs (default: host)")
                 ->type_name("DEVICE")
                 ->check(CLI::IsMember(strings(devices()))),
             strings(devices()));
  app.add_flag("--threads", options.threads,
               "ranks are threads of this process, with a device each, not processes");
  line.takes_text(
      app.add_option("--ranks-per-node", options.ranks_per_node,
                     "divide this machine into nodes of N ranks, which share no memory; ports "
                     "between them go over --lane, or on GPUs MSCCLC_LANE")
          ->type_name("N")
          ->check(CLI::Range(1u, 65536u)));
  line.takes(app.add_option("--lane", options.lane,
                            "what connects nodes: sockets (TCP), or verbs (InfiniBand and RoCE); "
                            "the same on all ranks (default: MSCCLC_LANE, or sockets)")
                 ->type_name("LANE")
                 ->check(CLI::IsMember(strings(lanes()))),
             strings(lanes()));
  add_run_options(line, app, options);
  add_columns_option(line, app, options.input);
  line.takes_text(app.add_option("--rows", options.rows,
                                 "of a collective of rows: how many a message has, as "
                                 "--bytes says sizes, instead of that")
                      ->type_name("SIZES")
                      ->excludes(app.get_option("--bytes"))
                      ->excludes(app.get_option("-b")));
  app.add_flag("--in-place", options.in_place, "let input and output coincide");
  line.takes_text(app.add_option("--iters", options.iterations,
                                 "calls in succession, each checked; the time is their mean "
                                 "(default: 3)")
                      ->type_name("N")
                      ->check(CLI::Range(1u, 1000000u)));
  timeline::add_timeline_options(
      line, app, options.timeline,
      "the last call as a device ran it, or without one as it is predicted");
  timeline::add_machine_option(app, options.machine);
  add_schedule_options(line, app, options);
}

}  // namespace

void add_run(CommandLine& line) {
  line.add("run", "run a program or plan and check the result", kRunExamples, run_options, run_run);
}

}  // namespace mscclc
