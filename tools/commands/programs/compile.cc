// mscclc compile: a program (or IR text, or a plan) to a plan, IR text, a picture or a summary.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>

#include "executor/compiled/emit.h"
#include "ir/print/print.h"
#include "passes/registry.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "tools/commands/programs/draw_plan.h"
#include "tools/commands/programs/kernels.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/report/pass_report.h"
#include "tools/report/summary.h"

namespace mscclc {
namespace {

constexpr const char* kCompileExamples =
    R"(  mscclc compile plans/allreduce_2shot.mscl -D R=8 -o allreduce.json
  mscclc compile ring.mscl --emit=summary
  mscclc compile ring.mscl --emit=svg -o ring.svg
  mscclc compile ring.mscl --passes=none --emit=ir > ring.ir
  mscclc compile ring.ir --passes=sync,fuse --emit=ir
  mscclc compile allreduce.json --emit=ir
  mscclc compile ring.mscl --stats --time-passes -o ring.json
  mscclc compile ring.mscl --target mscclpp --diagnostics=json
  mscclc compile ring.json --emit=cubin -o ring.sm_90.cubin)";

struct CompileOptions {
  InputOptions input;
  std::string output = "-", emit = "plan", target = "sm_90";
  std::string print_before, print_after, architecture;
  std::vector<std::string> dtypes;  ///< of kernels; none: the usual ones
  std::vector<std::string> passes;
  PictureOptions picture;
  bool verify_each = false, time_passes = false, stats = false, no_verify = false;
  uint32_t max_thread_blocks = 0;
};

void print_before(const PassInfo& pass, const Program& program, void* context) {
  const auto& options = *static_cast<const CompileOptions*>(context);
  if (options.print_before != pass.name && options.print_before != "all") return;
  put_error(fmt::format("# before {}\n{}", pass.name, print_ir(program)));
}

void print_after(const PassInfo& pass, const Program& program, void* context) {
  const auto& options = *static_cast<const CompileOptions*>(context);
  if (options.print_after != pass.name && options.print_after != "all") return;
  put_error(fmt::format("# after {}\n{}", pass.name, print_ir(program)));
}

/// "unknown pass 'fuze'; did you mean 'fuse'?", if `name` is none.
std::optional<Error> unknown_pass(const std::string& name) {
  if (find_pass(name) != nullptr) return std::nullopt;
  std::vector<std::string_view> known;
  for (const PassInfo& pass : passes()) known.push_back(pass.name);
  const std::string near = nearest(name, known);
  return Error{
      fmt::format("unknown pass '{}'", name),
      near.empty() ? "'mscclc passes' lists them" : fmt::format("did you mean '{}'?", near)};
}

std::optional<Error> unknown_pass(const CompileOptions& options) {
  for (const std::string& name : options.passes) {
    if (name == "none" && options.passes.size() == 1) continue;
    if (auto error = unknown_pass(name)) return error;
  }
  for (const std::string* name : {&options.print_before, &options.print_after}) {
    if (name->empty() || *name == "all") continue;
    if (auto error = unknown_pass(*name)) return error;
  }
  return std::nullopt;
}

PassOptions pipeline_of(CompileOptions& options) {
  PassOptions pipeline;
  pipeline.none = options.passes.size() == 1 && options.passes[0] == "none";
  if (!pipeline.none) pipeline.only = options.passes;
  pipeline.verify_each = options.verify_each;
  pipeline.max_thread_blocks = options.max_thread_blocks;
  pipeline.before = print_before;
  pipeline.after = print_after;
  pipeline.context = &options;
  return pipeline;
}

// Writes the plan while it is made: a large one is never held in memory.
int compile_plan(const CompileOptions& options, const Target& target, const Proof* proof,
                 Input& input) {
  FileWriter file(options.output);
  const auto sink = [&](std::string_view block) { return file.write(block); };
  const bool fine = write_plan(input.program, target, sink, input.diagnostics, proof);
  input.report();
  if (!fine && file.error().empty()) return kWrongProgram;
  return file.write("\n") && file.finish() ? kFine : Input::usage(file.error());
}

// The content hash stands in the last key of a plan, after all that a user wrote.
std::string_view hash_of(std::string_view plan) {
  constexpr std::string_view kKey = "\"hash\":\"";
  const size_t at = plan.rfind(kKey);
  return at == std::string_view::npos ? "" : plan.substr(at + kKey.size(), 32);
}

// Keeps of a text that comes in blocks the end, which the hash stands in.
void keep_end(std::string& end, std::string_view block) {
  constexpr size_t kKept = 64;
  end += block.substr(block.size() - std::min(block.size(), kKept));
  end.erase(0, end.size() - std::min(end.size(), kKept));
}

std::optional<std::string> summary_text(const Target& target, const Proof* proof, Input& input) {
  size_t bytes = 1;  // the newline after it
  std::string end;
  const auto sink = [&](std::string_view block) {
    bytes += block.size();
    keep_end(end, block);
    return true;
  };
  if (!write_plan(input.program, target, sink, input.diagnostics, proof)) return std::nullopt;
  const std::string proved = proof == nullptr ? "not looked at" : summarize(*proof);
  return summarize(input.program) + fmt::format("  {:<12}{}\n", "proved", proved) +
         fmt::format("  {:<12}{} bytes for {}, hash {}\n", "plan", bytes, target.name,
                     hash_of(end));
}

std::optional<std::string> emitted(const CompileOptions& options, const Target& target,
                                   const Proof* proof, Input& input) {
  if (options.emit == "ir") return print_ir(input.program);
  return summary_text(target, proof, input);
}

std::string check_kernel_dtype(const std::string& word) {
  const auto dtype = find_dtype(word);
  if (dtype && has_kernels(*dtype)) return "";
  return fmt::format("no sums of type '{}' have kernels", word);
}

// Kernels of the plan: their CUDA source, or what NVIDIA's compiler makes of it.
int compile_kernels(const CompileOptions& options, Input& input) {
  std::vector<Dtype> dtypes(usual_kernel_dtypes().begin(), usual_kernel_dtypes().end());
  if (!options.dtypes.empty()) dtypes.clear();
  for (const std::string& word : options.dtypes) dtypes.push_back(*find_dtype(word));
  const auto source = kernel_source(input.program, dtypes, input.diagnostics);
  input.report();
  if (!source) return kWrongProgram;
  if (options.emit == "cuda") {
    return Input::code_of(write_kernel_source(*source, options.output));
  }
  const auto compiler = find_cubin_compiler();
  if (!compiler) return Input::usage(compiler.error());
  const auto cubin =
      (*compiler)->compile(*source, options.architecture.empty() ? "sm_90" : options.architecture);
  if (!cubin) return Input::usage(cubin.error());
  return Input::code_of(write_file(options.output, *cubin));
}

/// Options that mean nothing where no passes run.
bool watches_passes(const CompileOptions& options) {
  return options.stats || options.verify_each || options.max_thread_blocks != 0 ||
         !options.print_before.empty() || !options.print_after.empty();
}

int run_compile(CompileOptions& options) {
  if (const auto error = unknown_pass(options)) return Input::usage(*error);
  if (options.picture.picks() && !is_picture(options.emit)) {
    return Input::usage("--rank, --tb and --chunk pick what a picture shows: --emit=svg");
  }
  const bool kernels = options.emit == "cuda" || options.emit == "cubin";
  if (!options.architecture.empty() && options.emit != "cubin") {
    return Input::usage("--arch is for --emit=cubin");
  }
  if (!options.dtypes.empty() && !kernels) {
    return Input::usage("--kernel-dtypes is for --emit=cubin and --emit=cuda");
  }
  Input input(options.input);
  const auto target = find_target(options.target, input.diagnostics);
  if (!target) {
    input.report();
    return kUsage;
  }
  std::vector<PassRecord> records;
  PassOptions pipeline = pipeline_of(options);
  pipeline.limits = target->op_limits();
  if (options.stats || options.time_passes) pipeline.records = &records;
  const bool needs_plan = options.emit == "plan" || options.emit == "summary" || kernels;
  ProofGate gate{.try_copies = true, .otherwise = "'--no-verify' writes it anyway"};
  std::vector<PassRecord> proofs;
  if (options.time_passes) gate.records = &proofs;
  const int code =
      input.load_to_write(pipeline, needs_plan && !options.no_verify ? &gate : nullptr);
  if (input.kind == InputKind::plan && pipeline.only.empty() && watches_passes(options)) {
    return Input::usage(
        "--stats, --verify-each, --print-before, --print-after and --max-thread-blocks are of "
        "passes, and a plan goes through none but those that --passes names");
  }
  if (options.stats) put_error(stats_table(records));
  if (options.time_passes) {
    records.insert(records.end(), proofs.begin(), proofs.end());
    put_error(time_table(records));
  }
  if (code != kFine) return code;
  if (needs_plan && !input.program.split) {
    return Input::usage("a plan needs the pass 'split'; use --emit=ir, or add it to --passes");
  }
  const Proof* proof = gate.proof ? &*gate.proof : nullptr;
  if (kernels) return compile_kernels(options, input);
  if (is_picture(options.emit)) {
    return draw_plan(options.emit, options.picture, options.output, input);
  }
  if (options.emit == "plan") return compile_plan(options, *target, proof, input);
  const auto text = emitted(options, *target, proof, input);
  input.report();
  if (!text) return kWrongProgram;
  return Input::code_of(write_file(options.output, *text));
}

std::vector<std::string> pass_names(const char* also) {
  std::vector<std::string> names;
  for (const PassInfo& pass : passes()) names.emplace_back(pass.name);
  names.emplace_back(also);
  return names;
}

void add_pass_options(CommandLine& line, CLI::App& app, CompileOptions& options) {
  line.takes(app.add_option("--passes", options.passes,
                            "run these passes only, in this order, separated by commas; or none")
                 ->type_name("LIST")
                 ->delimiter(',')
                 ->allow_extra_args(false),
             pass_names("none"));
  line.takes(app.add_option("--print-before", options.print_before,
                            "print the IR before this pass (or all) to standard error")
                 ->type_name("PASS"),
             pass_names("all"));
  line.takes(app.add_option("--print-after", options.print_after,
                            "print the IR after this pass (or all) to standard error")
                 ->type_name("PASS"),
             pass_names("all"));
  line.takes_text(app.add_option("--max-thread-blocks", options.max_thread_blocks,
                                 "most thread blocks of a rank, instances included; those that the "
                                 "program names stay (default: no limit)")
                      ->type_name("N")
                      ->check(CLI::Range(1u, 65536u)));
  app.add_flag("--no-verify", options.no_verify, "do not prove the plan: it then carries no proof");
  app.add_flag("--verify-each", options.verify_each, "check the IR's structure after each pass");
  app.add_flag("--time-passes", options.time_passes,
               "print how long each pass and the proof took to standard error");
  app.add_flag("--stats", options.stats,
               "print what each pass did to standard error: ops before and after, rules of fusion, "
               "syncs, semaphores and barriers");
}

void compile_options(CommandLine& line, CLI::App& app, CompileOptions& options) {
  add_input_options(line, app, options.input);
  add_columns_option(line, app, options.input);
  line.writes(app.add_option("-o,--output", options.output,
                             "where to write (default: standard output); a named pipe must get a "
                             "reader within 5 seconds")
                  ->type_name("FILE"));
  const std::vector<std::string> kinds = {"plan", "ir",      "svg",  "html",
                                          "dot",  "summary", "cuda", "cubin"};
  line.takes(
      app.add_option(
             "--emit", options.emit,
             "plan: JSON, one line (default); ir: IR text; svg, html: a picture, ranks "
             "beside each other and steps downward; dot: the same for Graphviz; summary: "
             "the plan at a glance; cuda: the plan's compiled kernels as CUDA source; cubin: "
             "these, compiled by nvcc or NVRTC")
          ->type_name("KIND")
          ->check(CLI::IsMember(kinds)),
      kinds);
  add_target_option(line, app, options.target, "sm_90");
  line.takes_text(
      app.add_option("--arch", options.architecture, "cubin: the GPU architecture (default: sm_90)")
          ->type_name("ARCH")
          ->check(CLI::Validator(check_architecture, "")));
  line.takes_text(app.add_option("--kernel-dtypes", options.dtypes,
                                 "cuda, cubin: data types whose sums get kernels, separated by "
                                 "commas (f32,f16,bf16)")
                      ->type_name("LIST")
                      ->delimiter(',')
                      ->check(CLI::Validator(check_kernel_dtype, "")));
  add_picture_options(line, app, options.picture);
  add_pass_options(line, app, options);
}

}  // namespace

void add_compile(CommandLine& line) {
  line.add("compile", "compile a program to an execution plan", kCompileExamples, compile_options,
           run_compile);
}

}  // namespace mscclc
