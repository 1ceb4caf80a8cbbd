#include "tools/bench/support/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tools/io/files.h"
#include "tools/io/sizes.h"

namespace mscclc::bench {
namespace {

constexpr const char* kExamples = R"(
Examples:
  The plans that the library picks, beside NCCL on four GPUs, 1 KiB to 1 GiB, in CUDA graphs:
    mscclc-bench -g 4 -b 1K -e 1G --graph --contender nccl
  All-reduce plans beside NCCL on four GPUs, eager, 1 KiB to 16 MiB:
    mscclc-bench -g 4 -b 1K -e 16M --contender nccl plans/allreduce_*.mscl
  As published: CUDA graphs, every contender, the fastest of our plans at each size, files for later:
    mscclc-bench -g 4 -b 1K -e 1G --graph --best --every-size \
      --contender nccl,nccl-symmetric,torch,copy,handwritten --json r.jsonl --svg plots plans/*.mscl
  What calls cost between kernels of 2 us, as in a model, beside NCCL:
    mscclc-bench -g 2 -b 1K -e 1M --graph --between 2 --placement out-of-place --contender nccl
  Another instance count of a program beside it:
    mscclc-bench -g 4 --graph plans/allreduce_2shot.mscl plans/allreduce_2shot.mscl:I=4
  Only NCCL, no plan of ours:
    mscclc-bench -g 4 --collective allgather,broadcast --contender nccl --no-library
  A recorded run, without a GPU: plots, and whether time jumps between sizes:
    mscclc-bench --from-json r.jsonl --svg plots --cliffs
)";

// As the command line says it, before it is looked at.
struct Words {
  std::string begin = "1K", end = "16M", step, factor = "2";
  std::vector<std::string> dtypes = {"f32"}, ops = {"sum"}, collectives, contenders;
  std::string placement = "both";
  int graphs = -1, check = 2, blocking = 0;
  bool graph = false, both = false;
};

std::vector<std::string> split_commas(const std::vector<std::string>& items) {
  std::vector<std::string> parts;
  for (const std::string& item : items) {
    for (size_t from = 0; from <= item.size();) {
      const size_t to = std::min(item.find(',', from), item.size());
      parts.push_back(item.substr(from, to - from));
      from = to + 1;
    }
  }
  return parts;
}

void add_nccl_options(CLI::App& app, Options& o, Words& w) {
  app.add_option("-g,--ngpus", o.gpus, "ranks, each on a GPU of its own (default: 2)")
      ->check(CLI::Range(1, 64));
  app.add_option("-b,--minbytes", w.begin, "smallest message (default: 1K)");
  app.add_option("-e,--maxbytes", w.end, "largest message (default: 16M)");
  app.add_option("-f,--stepfactor", w.factor, "factor from one size to the next (default: 2)");
  app.add_option("-i,--stepbytes", w.step, "step from one size to the next, in bytes");
  app.add_option("-n,--iters", o.iterations, "calls of a batch (default: by size, 200 to 4)");
  app.add_option("-m,--agg_iters", o.aggregate,
                 "calls timed together for p50 and p99 (default: a graph, or 10)");
  app.add_option("-w,--warmup_iters", o.warmup, "batches before the measured ones (default: 2)");
  app.add_option("-c,--check", w.check, "calls whose results are compared; 0: none (default: 2)")
      ->check(CLI::Range(0, 7));
  app.add_option(
         "-G,--cudagraph", w.graphs,
         "capture a batch in a CUDA graph and replay it this many times; 0: eager (default)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("-d,--datatype", w.dtypes, "data types: float, half, bfloat16, f32, … or all")
      ->allow_extra_args(false);
  app.add_option("-o,--op", w.ops, "reductions: sum, prod, min, max, avg, or all")
      ->allow_extra_args(false);
  app.add_option("-r,--root", o.root, "root of broadcast and reduce (default: 0)");
  app.add_option("-z,--blocking", w.blocking, "1: the host waits for each call (or graph)")
      ->check(CLI::Range(0, 1));
  app.add_option(
      "-T,--timeout", o.timeout,
      "seconds that a step may take before the run is ended; 0: no limit (default: 120)");
  app.add_option("-J,--json", o.json, "write results to this file, one JSON object a line");
}

CLI::Validator busy_time() {
  return CLI::Validator(
      [](std::string& text) {
        double time = 0;
        const bool good = CLI::detail::lexical_cast(text, time) && time >= 0.5 && time <= 1000;
        return good ? std::string() : "a kernel takes 0.5 to 1000 microseconds, not " + text;
      },
      "US");
}

void add_own_options(CLI::App& app, Options& o, Words& w) {
  app.add_flag("--graph", w.graph, "CUDA graphs, with a number of replays that suits the size");
  app.add_flag("--both", w.both, "eager and CUDA graphs, one after the other");
  app.add_option("--repeats", o.repeats, "measured batches; the median is shown (default: 9)")
      ->check(CLI::PositiveNumber);
  app.add_option("--collective", w.collectives, "allreduce, allgather, …, or all (default)")
      ->allow_extra_args(false);
  app.add_option("--contender,--peer", w.contenders,
                 "nccl, nccl-symmetric, torch, copy, handwritten")
      ->allow_extra_args(false);
  app.add_option("--recorded", o.recorded,
                 "a file of --json with baselines that were measured earlier, shown as well")
      ->allow_extra_args(false);
  app.add_option("--placement", w.placement, "out-of-place, in-place, or both (default)")
      ->check(CLI::IsMember({"out-of-place", "in-place", "both"}));
  app.add_option("--offset", o.offset,
                 "shift buffers by this many bytes, a multiple of the element size");
  app.add_flag("--every-size", o.every_size, "also sizes outside a plan's 'select'");
  app.add_option("--library", o.library,
                 "folder of the library, whose plans run if none are given (default: "
                 "MSCCLC_LIBRARY, or plans beside mscclc-bench or here)");
  app.add_flag("--no-library", o.no_library, "no plans of ours");
  app.add_option("--ranks-per-node", o.ranks_per_node,
                 "divide the machine into nodes of N ranks, connected by sockets; for baselines, "
                 "NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 does the same")
      ->check(CLI::PositiveNumber);
  app.add_option("--ranks-per-gpu", o.ranks_per_gpu,
                 "ranks that share a GPU, under NVIDIA's MPS: to compare plans with kernels by "
                 "hand, without NVLink (default: 1)")
      ->check(CLI::PositiveNumber);
  app.add_flag("--best", o.best, "show only the fastest of our plans for each size");
  app.add_option("--svg", o.svg, "draw latency and bus bandwidth into this folder");
  app.add_option("--from-json", o.from_json, "measure nothing; show the results in this file");
  app.add_flag("--clocks", o.clocks,
               "show where the time of our plans' thread blocks goes, in cycles");
  app.add_option("--between", o.between,
                 "also show what a call costs between two kernels of so many microseconds on all "
                 "multiprocessors, of which one writes its input, the other reads its output")
      ->check(busy_time());
  app.add_flag("--between-early", o.between_early,
               "and between such kernels that use programmatic launches and let the next kernel "
               "begin early");
  app.add_flag("--cliffs", o.cliffs, "fail if time jumps between neighbouring sizes");
  app.add_option("plans", o.plans,
                 "programs or plans; prog.mscl:B=4,I=2 sets parameters (default: what the library "
                 "picks for each call)");
}

mscclc::Result<void> parse_dtypes(const Words& w, Options& o) {
  for (const std::string& text : split_commas(w.dtypes)) {
    if (text == "all") {
      for (const DtypeInfo& d : dtype_table()) o.dtypes.push_back(d.dtype);
    } else if (const auto dtype =
                   find_dtype(text.starts_with("f8") ? "fp8_" + text.substr(2) : text)) {
      o.dtypes.push_back(*dtype);
    } else {
      return Error{fmt::format("unknown data type '{}'", text)};
    }
  }
  return {};
}

mscclc::Result<void> parse_ops(const Words& w, Options& o) {
  for (const std::string& text : split_commas(w.ops)) {
    const auto op = find_reduce_op(text);
    if (text == "all") {
      for (const ReduceOp each :
           {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min, ReduceOp::avg}) {
        o.ops.push_back(each);
      }
    } else if (op && *op != ReduceOp::call) {
      o.ops.push_back(*op);
    } else {
      return Error{fmt::format("unknown reduction '{}'", text)};
    }
  }
  return {};
}

mscclc::Result<void> parse_collectives(const Words& w, Options& o) {
  for (const std::string& text : split_commas(w.collectives)) {
    if (text == "all") {
      o.collectives.clear();
      return {};
    }
    const auto kind = find_collective(text);
    if (!kind) return Error{fmt::format("unknown collective '{}'", text)};
    o.collectives.push_back(*kind);
  }
  return {};
}

mscclc::Result<void> parse_contenders(const Words& w, Options& o) {
  static const std::vector<std::string> kKnown = {"nccl", "nccl-symmetric", "torch", "copy",
                                                  "handwritten"};
  for (const std::string& text : split_commas(w.contenders)) {
    if (std::ranges::find(kKnown, text) == kKnown.end()) {
      return Error{
          fmt::format("unknown contender '{}'; there are {}", text, fmt::join(kKnown, ", "))};
    }
    if (!o.has_contender(text)) o.contenders.push_back(text);
  }
  return {};
}

mscclc::Result<void> parse_sizes_and_modes(const Words& w, Options& o) {
  const std::string by = w.step.empty() ? w.factor : "+" + w.step;
  const auto sizes = parse_sizes(fmt::format("{}:{}:{}", w.begin, w.end, by));
  if (!sizes) return sizes.error();
  o.sizes = *sizes;
  o.graph = w.graph || w.both || w.graphs > 0;
  o.eager = w.both || !o.graph;
  o.replays = w.graphs > 0 ? static_cast<uint32_t>(w.graphs) : 0;
  o.check = static_cast<uint32_t>(w.check);
  o.blocking = w.blocking != 0;
  o.out_of_place = w.placement != "in-place";
  o.in_place = w.placement != "out-of-place";
  if (o.root >= o.gpus)
    return Error{fmt::format("the root {} is not one of the {} ranks", o.root, o.gpus)};
  if (o.ranks_per_node > 0 && o.gpus % o.ranks_per_node != 0) {
    return Error{fmt::format("--ranks-per-node {}: {} ranks do not fill whole nodes",
                             o.ranks_per_node, o.gpus)};
  }
  if (o.ranks_per_gpu > 1 && o.ranks_per_node > 0) {
    return Error{
        "--ranks-per-gpu is for ranks of one node; nodes share GPUs where there are too few"};
  }
  if (o.gpus % o.ranks_per_gpu != 0) {
    return Error{fmt::format("--ranks-per-gpu {}: {} ranks do not fill whole GPUs", o.ranks_per_gpu,
                             o.gpus)};
  }
  if (o.no_library && !o.plans.empty()) return Error{"--no-library is for runs without plans"};
  if (o.no_library && o.from_json.empty() && (o.contenders.empty() || o.collectives.empty())) {
    return Error{"nothing to measure: --no-library needs contenders and collectives"};
  }
  if (o.between_early && o.between == 0) return Error{"--between-early needs --between"};
  for (const Dtype dtype : o.dtypes) {
    if (o.offset % info(dtype).bytes == 0) continue;
    return Error{fmt::format("--offset {} is not a multiple of an element of {}", o.offset,
                             info(dtype).name)};
  }
  return {};
}

/// Results replace a file: it must be none that is read.
mscclc::Result<void> check_output(const Words&, Options& o) {
  for (const auto* read : {&o.recorded, &o.plans}) {
    for (const std::string& file : *read) {
      if (!same_file(o.json, file)) continue;
      return Error{fmt::format("--json would replace '{}', which is read", file)};
    }
  }
  return {};
}

}  // namespace

bool Options::has_contender(const std::string& name) const {
  return std::ranges::find(contenders, name) != contenders.end();
}

mscclc::Result<CommandLine> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  Words words;
  CLI::App app("Times plans and other libraries on this machine's GPUs, in one run",
               "mscclc-bench");
  app.footer(kExamples);
  add_nccl_options(app, options, words);
  add_own_options(app, options, words);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return CommandLine{.options = {}, .help = app.help()};
  } catch (const CLI::ParseError& e) {
    return Error{e.what()};
  }
  for (const auto parse : {parse_dtypes, parse_ops, parse_collectives, parse_contenders,
                           parse_sizes_and_modes, check_output}) {
    if (const auto parsed = parse(words, options); !parsed) return parsed.error();
  }
  return CommandLine{.options = std::move(options), .help = {}};
}

std::string_view nccl_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return "float";
    case Dtype::f16:
      return "half";
    case Dtype::bf16:
      return "bfloat16";
    case Dtype::f64:
      return "double";
    case Dtype::i32:
      return "int32";
    case Dtype::u32:
      return "uint32";
    case Dtype::i64:
      return "int64";
    case Dtype::u64:
      return "uint64";
    case Dtype::i8:
      return "int8";
    case Dtype::u8:
      return "uint8";
    case Dtype::e4m3:
      return "f8e4m3";
    case Dtype::e5m2:
      return "f8e5m2";
    default:
      return info(dtype).name;
  }
}

}  // namespace mscclc::bench
