// mscclc select: which program of the library a call of a job would get, and the command that
// compiles it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <optional>

#include "ir/contract/contract.h"
#include "runtime/api/nearest_plan.h"
#include "runtime/api/pick_for_job.h"
#include "runtime/choice/overlap/kinds.h"
#include "tools/commands/library/library_job.h"
#include "tools/commands/library/open_registry.h"
#include "tools/commands/library/select_overlap.h"
#include "tools/commands/library/select_rows.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/library.h"
#include "tools/io/sizes.h"

namespace mscclc {
namespace {

constexpr const char* kSelectExamples =
    R"(  mscclc select --collective allreduce --ranks 4 --bytes 1M
  mscclc select --collective alltoall --ranks 8 --dtype bf16 --in-place
  mscclc select --collective allreduce --ranks 16 --nodes 2 --bytes 64K --why
  mscclc select --collective allreduce_norm --ranks 2 --columns 6144 --rows 6 --dtype bf16
  mscclc select --collective allgather_gemm --ranks 2 --m 8192 --k 8192 --n 3584 --dtype bf16 --why)";

constexpr const char* kDefaultLinks = "nvlink";

struct SelectOptions {
  std::string collective, bytes, dtype = "f32", links = kDefaultLinks, library, order;
  uint32_t ranks = 0, root = 0, nodes = 1;
  int64_t shift = 1;
  std::optional<uint64_t> columns, rows;
  uint64_t m = 0, k = 0;
  std::vector<uint64_t> n;
  bool in_place = false, captured = false, why = false;
};

int refuse(const std::string& why) {
  put_error(fmt::format("mscclc select: {}\ntry 'mscclc select --help'\n", why));
  return kUsage;
}

/// "mscclc compile plans/x.mscl -D R=4 -D B=16", or the name of a compiled plan.
std::string command_of(const Library& library, const LibraryChoice& choice,
                       const LibraryCall& call) {
  if (!choice.plan.empty()) return library.path_of(choice);
  std::string text = fmt::format("mscclc compile {}", library.path_of(choice));
  for (const auto& [name, value] : choice.defines(call)) {
    const bool usual = (name == "root" && value == "0") || (name == "shift" && value == "1");
    if (!usual) text += fmt::format(" -D {}={}", name, value);
  }
  return text;
}

/// " under 'tree'" of a call that has no plan so; " under any order" if no other would help.
std::string under_text(const LibraryCall& call, const std::vector<Note>& nearest) {
  return nearest.empty() ? " under any order" : fmt::format(" under '{}'", name(call.order));
}

/// "the library has no row for reduce over several nodes under 'tree'", and the nearest plan.
std::string why_no_row(const Library& library, const LibraryCall& call) {
  const auto pick = [&](const LibraryCall& weaker) -> std::optional<ServingPlan> {
    const auto rows = library.table.rows();
    const auto row =
        std::ranges::find_if(rows, [&](const LibraryRow& r) { return r.fits(weaker); });
    if (row == rows.end()) return std::nullopt;
    return ServingPlan{library.path_of(row->choice), row->order};
  };
  const std::vector<Note> nearest = nearest_plan_notes(call, pick);
  std::string text = fmt::format("the library has no row for {}{}{}", name(call.kind),
                                 call.nodes == 1 ? "" : " over several nodes",
                                 order_matters(call) ? under_text(call, nearest) : "");
  for (const Note& note : nearest) text += "\nnote: " + note.text;
  return text;
}

std::string pieces_text(uint64_t bytes) { return fmt::format("in pieces of {} bytes", bytes); }

/// The choices for all sizes, a line each.
int show_all(const Library& library, const LibraryCall& call, Diagnostics& diagnostics) {
  const auto ranges = LibraryJob(library).ranges(call, diagnostics);
  if (!ranges) return kWrongProgram;
  for (const PickedRange& range : *ranges) {
    const std::string sizes = range.max == ~uint64_t{0}
                                  ? fmt::format("{} bytes and more", range.min)
                                  : fmt::format("{} to {} bytes", range.min, range.max);
    const std::string pieces = range.piece ? ", " + pieces_text(*range.piece) : "";
    put(fmt::format("# {}{}\n{}\n", sizes, pieces, command_of(library, *range.choice, call)));
  }
  return kFine;
}

/// The choice for one call.
int show_choice(const Library& library, const LibraryCall& call, Diagnostics& diagnostics) {
  const auto pick = LibraryJob(library).pick(call, diagnostics);
  if (!pick) return kWrongProgram;
  if (pick->choice == nullptr) return refuse(why_no_row(library, call));
  if (pick->bytes < call.bytes) put(fmt::format("# {}\n", pieces_text(pick->bytes)));
  put(command_of(library, *pick->choice, call) + "\n");
  return kFine;
}

/// What a job gets from the library, for one size or all.
int show(const LibraryCall& call, bool all_sizes, const std::string& folder) {
  Diagnostics diagnostics;
  const auto library = open_library(folder, diagnostics);
  if (!library) {
    put_error(render_text(diagnostics, Sources(), 1));
    return kUsage;
  }
  if (library->table.choose(call) == nullptr) return refuse(why_no_row(*library, call));
  const int code =
      all_sizes ? show_all(*library, call, diagnostics) : show_choice(*library, call, diagnostics);
  put_error(render_text(diagnostics, Sources()));
  return code;
}

/// What a job would pick, and why not the others: registered plans (MSCCLC_PLAN_PATH) before the
/// library, which is compiled in or lies in --library.
int show_why(const LibraryCall& call, const SelectOptions& options) {
  Diagnostics diagnostics;
  std::vector<PassedOver> passed_over;
  JobChoice choice;
  const auto registry = open_registry(options.library, true, diagnostics);
  if (registry != nullptr)
    choice = pick_for_job(*registry, {.call = call}, &passed_over, diagnostics);
  const PickedPlan* const picked = choice.picked.get();
  put_error(render_text(diagnostics, Sources()));
  if (registry == nullptr) return kUsage;
  if (diagnostics.has_errors()) return kWrongProgram;
  if (picked != nullptr) {
    put(fmt::format("{}: {}\n", picked->name, picked->why));
    if (choice.bytes < call.bytes) put(pieces_text(choice.bytes) + "\n");
  } else {
    const std::vector<Note> nearest = nearest_plan_notes(*registry, {.call = call});
    put("no plan" + (order_matters(call) ? under_text(call, nearest) : "") + "\n");
    for (const Note& note : nearest) put(note.text + "\n");
  }
  put(reasons_text(passed_over));
  return kFine;
}

/// Collectives with a function of their rows have another table.
int run_select_rows(const SelectOptions& options, SumOrder order) {
  const auto dtype = find_dtype(options.dtype);
  if (!dtype) return refuse(fmt::format("unknown data type '{}'", options.dtype));
  if (!options.columns) return refuse(fmt::format("{} needs --columns", options.collective));
  if (options.nodes != 1 || !options.bytes.empty()) {
    return refuse("collectives of rows are for one node, and have --rows instead of --bytes");
  }
  if (options.in_place || options.captured || options.links != kDefaultLinks) {
    return refuse("--links, --in-place and --captured do not count for collectives of rows");
  }
  if (options.root != 0 || options.shift != 1) {
    return refuse("--root and --shift are of collectives without rows");
  }
  if (options.why && !options.rows) return refuse("--why needs --rows");
  return select_rows({.call = {.name = options.collective,
                               .ranks = options.ranks,
                               .columns = *options.columns,
                               .dtype = *dtype,
                               .order = order},
                      .rows = options.rows,
                      .library = options.library,
                      .why = options.why});
}

/// GEMMs that overlap have a table of measured backends.
int run_select_overlap(const SelectOptions& options, SumOrder order) {
  const auto dtype = find_dtype(options.dtype);
  if (!dtype) return refuse(fmt::format("unknown data type '{}'", options.dtype));
  if (options.m == 0 || options.k == 0 || options.n.empty()) {
    return refuse(fmt::format("{} needs --m, --k and --n, each at least 1", options.collective));
  }
  const bool more = options.columns || options.rows || options.in_place || options.root != 0 ||
                    options.shift != 1 || options.links != kDefaultLinks;
  if (more || options.nodes != 1 || !options.bytes.empty()) {
    return refuse(
        "of a GEMM that overlaps only --m, --k, --n, --ranks, --dtype, --order, --captured and "
        "--library count");
  }
  const Dtype out = info(*dtype).bytes == 1 ? Dtype::bf16 : *dtype;
  return select_overlap({.config = {.kind = overlap::find_kind(options.collective)->kind,
                                    .m = options.m,
                                    .k = options.k,
                                    .n = options.n,
                                    .a_dtype = *dtype,
                                    .b_dtype = *dtype,
                                    .out_dtype = out,
                                    .order = order},
                         .ranks = options.ranks,
                         .library = options.library,
                         .captured = options.captured,
                         .why = options.why});
}

int run_select(const SelectOptions& options) {
  Diagnostics diagnostics;
  const auto order = order_of_calls(options.order, diagnostics);
  put_error(render_text(diagnostics, Sources()));
  if (!order) return kUsage;
  std::vector<std::string> others = overlap::kind_names();
  if (std::ranges::find(others, options.collective) != others.end()) {
    return run_select_overlap(options, *order);
  }
  if (options.m != 0 || options.k != 0 || !options.n.empty()) {
    return refuse(fmt::format("--m, --k and --n are for {}, not for {}", fmt::join(others, ", "),
                              options.collective));
  }
  if (is_of_rows(options.collective)) return run_select_rows(options, *order);
  const auto kind = find_collective(options.collective);
  if (!kind) {
    const std::vector<std::string> of_rows = builtin_row_table().names();
    others.insert(others.begin(), of_rows.begin(), of_rows.end());
    return refuse(unknown_collective(options.collective, others));
  }
  if (options.columns || options.rows) {
    return refuse(fmt::format("--columns and --rows are for collectives of rows, not for {}",
                              options.collective));
  }
  const auto dtype = find_dtype(options.dtype);
  if (!dtype) return refuse(fmt::format("unknown data type '{}'", options.dtype));
  std::optional<uint64_t> bytes;
  if (!options.bytes.empty()) {
    bytes = parse_bytes(options.bytes);
    if (!bytes) return refuse(fmt::format("'{}' is no size", options.bytes));
  }
  const auto links = find_link_kind(options.links);
  if (!links) {
    return refuse(
        fmt::format("'{}' is not a kind of link: expected nvlink or pcie", options.links));
  }
  if (options.root != 0 && !has_root(*kind)) {
    return refuse(fmt::format("--root: {} has none", options.collective));
  }
  if (options.shift != 1 && *kind != CollectiveKind::sendrecv) {
    return refuse(fmt::format("--shift is for sendrecv, not for {}", options.collective));
  }
  if (options.in_place && !info(*kind).can_alias) {
    return refuse(fmt::format("--in-place: {} is never in place", options.collective));
  }
  if (options.root >= options.ranks) return refuse(fmt::format("no rank {}", options.root));
  if (*kind == CollectiveKind::sendrecv && options.shift % int64_t{options.ranks} == 0) {
    return refuse(fmt::format("--shift {}: a rank does not send to itself", options.shift));
  }
  if (options.ranks % options.nodes != 0) {
    return refuse(fmt::format("{} ranks cannot be spread evenly over {} nodes", options.ranks,
                              options.nodes));
  }
  const LibraryCall call = as_jobs_ask({.kind = *kind,
                                        .ranks = options.ranks,
                                        .bytes = bytes.value_or(0),
                                        .dtype = *dtype,
                                        .in_place = options.in_place,
                                        .root = options.root,
                                        .shift = options.shift,
                                        .links = *links,
                                        .nodes = options.nodes,
                                        .order = *order,
                                        .captured = options.captured});
  if (options.why) return bytes ? show_why(call, options) : refuse("--why needs --bytes");
  return show(call, !bytes, options.library);
}

void select_options(CommandLine& line, CLI::App& app, SelectOptions& options) {
  line.takes_text(app.add_option("--collective", options.collective,
                                 "allreduce, allgather ...; of rows: allreduce_norm ...; of GEMMs "
                                 "that overlap: allgather_gemm ...")
                      ->type_name("NAME")
                      ->required());
  line.takes_text(app.add_option("--ranks", options.ranks, "how many ranks call")
                      ->type_name("N")
                      ->check(CLI::Range(1, 65536))
                      ->required());
  line.takes_text(app.add_option("--nodes", options.nodes,
                                 "nodes that the ranks are on, equally many on each (1)")
                      ->type_name("N")
                      ->check(CLI::Range(1, 65536)));
  line.takes_text(app.add_option("--bytes", options.bytes,
                                 "the larger of input and output of a rank, such as 1M; left out: "
                                 "all sizes")
                      ->type_name("SIZE"));
  line.takes_number<uint64_t>(
      app.add_option("--columns", options.columns, "of a collective of rows: values in a row")
          ->type_name("N"));
  line.takes_number<uint64_t>(
      app.add_option("--rows", options.rows, "the same: rows of a message; left out: all")
          ->type_name("N"));
  line.takes_number<uint64_t>(
      app.add_option("--m", options.m, "of a GEMM that overlaps: rows of a rank's GEMM")
          ->type_name("N"));
  line.takes_number<uint64_t>(
      app.add_option("--k", options.k, "the same: what it adds up over")->type_name("N"));
  line.takes_number<uint64_t>(
      app.add_option("--n", options.n, "the same: columns of each B, separated by commas")
          ->delimiter(',')
          ->type_name("N"));
  line.takes_text(app.add_option("--dtype", options.dtype,
                                 "data type (f32); of A and B, where out is then bf16 if it has 8 "
                                 "bits")
                      ->type_name("TYPE"));
  app.add_flag("--in-place", options.in_place,
               "the smaller of input and output is inside the larger");
  app.add_flag("--captured", options.captured, "the call is captured into a CUDA graph");
  line.takes_text(
      app.add_option("--root", options.root, "rank that sends to all, or receives from all (0)")
          ->type_name("RANK"));
  line.takes_number<int64_t>(app.add_option("--shift", options.shift,
                                            "sendrecv: how many ranks further the receiver is (1)")
                                 ->type_name("N"));
  line.takes_text(app.add_option("--links", options.links,
                                 "the slowest link between the GPUs: nvlink (default), or pcie, "
                                 "which carries no LL128 packets")
                      ->type_name("KIND"));
  add_order_option(line, app, options.order,
                   "what the bits of sums keep to (MSCCLC_ORDER, or replicated)");
  app.add_option("--library", options.library,
                 "folder of the library (MSCCLC_LIBRARY, or plans beside mscclc or here); of a "
                 "GEMM that overlaps: "
                 "with an overlap.json")
      ->type_name("FOLDER");
  app.add_flag("--why", options.why,
               "show what a job would pick from MSCCLC_PLAN_PATH and the compiled-in library (or "
               "--library), and why it passes over the other plans");
}

}  // namespace

void add_select(CommandLine& line) {
  line.add("select", "show which program of the library a call gets", kSelectExamples,
           select_options, run_select);
}

}  // namespace mscclc
