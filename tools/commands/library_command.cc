// mscclc library: compiles all plans that the library picks for some numbers of ranks, and writes
// them with their table into a folder, from which jobs pick plans at run time
// (runtime/api/plan_registry.h).
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "plans/format/plan_json.h"
#include "tools/base/command_line.h"
#include "tools/base/files.h"
#include "tools/base/input.h"
#include "tools/base/library.h"
#include "tools/base/progress.h"

namespace mscclc {
namespace {

struct LibraryOptions {
  std::vector<uint32_t> ranks, roots, nodes = {1};
  std::vector<int64_t> shifts;
  std::vector<std::string> collectives;
  std::string library, output, target = "sm_90", diagnostics = "text";
  uint32_t max_blocks = 0;  ///< of a rank, below the target's; 0: that
  bool programs = false;    ///< the library itself, once all its plans are proved
};

/// A call that a row of ours fits, of any size.
LibraryCall call_of(const LibraryRow& row) {
  return {.kind = row.kind,
          .ranks = row.min_ranks,
          .root = row.root.value_or(0),
          .shift = row.shift.value_or(1),
          .nodes = row.min_nodes};
}

std::string file_name(const LibraryRow& row) { return row.choice.plan_file(call_of(row)); }

using Params = decltype(LibraryChoice::params);

uint32_t most_blocks(const Program& program) {
  uint32_t most = 0;
  for (const Rank& rank : program.ranks) most = std::max(most, rank.blocks);
  return most;
}

class LibraryWriter {
 public:
  LibraryWriter(const LibraryOptions& options, const Library& library, const Target& target)
      : options_(options), library_(library), target_(target) {}

  int run(const std::vector<CollectiveKind>& kinds) {
    std::error_code failed;
    std::filesystem::create_directories(options_.output, failed);
    if (failed) {
      return Input::usage(fmt::format("cannot make '{}': {}", options_.output, failed.message()));
    }
    Progress progress("library", kinds.size() * options_.ranks.size() * options_.nodes.size());
    for (const CollectiveKind kind : kinds) {
      for (const uint32_t ranks : options_.ranks) {
        for (const uint32_t nodes : options_.nodes) {
          progress.next(fmt::format("{} over {} ranks", name(kind), ranks));
          if (ranks % nodes != 0) continue;
          if (const int code = write_all(kind, ranks, nodes); code != kFine) return code;
        }
      }
    }
    if (options_.programs) return copy_library();
    // Last: a folder with a table has all that the table names.
    const auto written = write_file(path_of("library.json"), library_table_text(rows_));
    if (!written) return Input::usage(written.error());
    put(fmt::format("{} plans, {} bytes, for {} rows of {}\n", written_.size(), bytes_,
                    rows_.size(), path_of("library.json")));
    return kFine;
  }

 private:
  std::string path_of(const std::string& file) const {
    return options_.output + (options_.output.ends_with('/') ? "" : "/") + file;
  }

  /// The table and its programs, whose plans are proved: jobs compile them again.
  int copy_library() {
    std::set<std::string> files;
    for (const LibraryRow& row : library_.table.rows()) files.insert(row.choice.program + ".mscl");
    Result<void> copied;
    for (const std::string& file : files) {
      if (copied) copied = copy_file(file);
    }
    if (copied) copied = copy_file("library.json");
    if (!copied) return Input::usage(copied.error());
    put(fmt::format("{} plans are proved; {} programs, {} bytes, with {}\n", written_.size(),
                    files.size(), bytes_, path_of("library.json")));
    return kFine;
  }

  Result<void> copy_file(const std::string& name) {
    const auto text = library_.read(name);
    if (!text) return text.error();
    auto written = write_file(path_of(name), *text);
    if (written) bytes_ += text->size();
    return written;
  }

  int write_all(CollectiveKind kind, uint32_t ranks, uint32_t nodes) {
    if (has_root(kind)) {
      for (uint32_t root = 0; root < ranks; ++root) {
        if (!options_.roots.empty() && std::ranges::count(options_.roots, root) == 0) continue;
        if (const int code = write_rows(kind, ranks, nodes, root, {}); code != kFine) return code;
      }
      return kFine;
    }
    if (kind != CollectiveKind::sendrecv) {
      return write_rows(kind, ranks, nodes, {}, {});
    }
    for (uint32_t shift = 1; shift < ranks; ++shift) {
      const bool wanted = std::ranges::any_of(options_.shifts, [&](int64_t s) {
        return (s - static_cast<int64_t>(shift)) % static_cast<int64_t>(ranks) == 0;
      });
      if (!options_.shifts.empty() && !wanted) continue;
      if (const int code = write_rows(kind, ranks, nodes, {}, shift); code != kFine) return code;
    }
    return kFine;
  }

  /// The rows of the library for these ranks, nodes, root and shift.
  int write_rows(CollectiveKind kind, uint32_t ranks, uint32_t nodes, std::optional<uint32_t> root,
                 std::optional<uint32_t> shift) {
    const size_t first = rows_.size();
    for (const LibraryRow& row : library_.table.rows()) {
      if (row.kind != kind || !row.for_ranks(ranks) || !row.for_nodes(nodes)) continue;
      LibraryRow made = row;
      made.min_ranks = made.max_ranks = ranks;
      made.min_nodes = made.max_nodes = nodes;
      made.root = root;
      made.shift = shift;
      const auto covers = [&](const LibraryRow& earlier) { return earlier.covers(made); };
      if (std::any_of(rows_.begin() + static_cast<ptrdiff_t>(first), rows_.end(), covers)) continue;
      if (const int code = write_plan_of(made); code != kFine) return code;
      LibraryChoice plan;
      plan.plan = file_name(made);
      made.choice = std::move(plan);
      rows_.push_back(std::move(made));
    }
    return kFine;
  }

  InputOptions program_of(const LibraryRow& row) const {
    InputOptions program{
        .file = library_.path_of(row.choice), .defines = {}, .diagnostics = options_.diagnostics};
    for (const auto& [key, value] : row.choice.defines(call_of(row))) {
      program.defines.push_back(key + "=" + value);
    }
    return program;
  }

  /// Compiles a row's program, and changes the row's parameters if the target has room for fewer
  /// blocks than they ask for. Proves and writes the plan, unless another row has the same.
  int write_plan_of(LibraryRow& row) {
    const auto [known, fresh] = fitting_.try_emplace(file_name(row));
    if (!fresh) {
      row.choice.params = known->second;
      return kFine;
    }
    PassOptions pipeline;
    pipeline.limits = target_.op_limits();
    for (;;) {
      const InputOptions program = program_of(row);
      Input input(program);
      ProofGate gate;
      if (const int code = input.load_to_write(pipeline, &gate); code != kFine) return code;
      if (!gate.proof) return Input::usage(program.file + ": IR text must be 'split' to be a plan");
      if (row.choice.lower_blocks(most_blocks(input.program), target_.max_blocks)) continue;
      known->second = row.choice.params;
      const std::string name = file_name(row);
      const bool write = written_.insert(name).second && !options_.programs;
      return write ? write_plan_file(name, input, *gate.proof) : kFine;
    }
  }

  int write_plan_file(const std::string& name, Input& input, const Proof& proof) {
    FileWriter file(path_of(name));
    const auto sink = [&](std::string_view block) {
      bytes_ += block.size();
      return file.write(block);
    };
    const bool fine = write_plan(input.program, target_, sink, input.diagnostics, &proof);
    input.report();
    if (!fine && file.error().empty()) return kWrongProgram;
    return file.write("\n") && file.finish() ? kFine : Input::usage(file.error());
  }

  const LibraryOptions& options_;
  const Library& library_;
  const Target& target_;
  std::vector<LibraryRow> rows_;
  std::set<std::string> written_;
  /// By file name as asked for: what the target has room for.
  std::map<std::string, Params> fitting_;
  uint64_t bytes_ = 0;
};

int refuse(const std::string& why) {
  put_error(fmt::format("mscclc library: {}\ntry 'mscclc library --help'\n", why));
  return kUsage;
}

int run_library(const LibraryOptions& options) {
  Diagnostics diagnostics;
  const auto library = open_library(options.library, diagnostics);
  auto target = library ? find_target(options.target, diagnostics) : std::nullopt;
  if (!target) {
    put_error(render_text(diagnostics, Sources(), 1));
    return kUsage;
  }
  std::vector<CollectiveKind> kinds;
  for (const std::string& word : options.collectives) {
    const auto kind = find_collective(word);
    if (!kind) return refuse(fmt::format("unknown collective '{}'", word));
    const auto known = library->table.collectives();
    if (std::ranges::find(known, *kind) == known.end()) {
      return refuse(fmt::format("the library has no row for {}", word));
    }
    kinds.push_back(*kind);
  }
  if (kinds.empty()) kinds = library->table.collectives();
  for (const LibraryRow& row : library->table.rows()) {
    if (!row.choice.plan.empty()) return refuse("the library holds plans, not programs");
  }
  const uint32_t most = std::ranges::max(options.ranks);
  for (const uint32_t root : options.roots) {
    if (root >= most) return refuse(fmt::format("no rank {}", root));
  }
  for (const int64_t shift : options.shifts) {
    const auto to_itself = [&](uint32_t ranks) { return shift % int64_t{ranks} == 0; };
    if (!std::ranges::all_of(options.ranks, to_itself)) continue;
    return refuse(fmt::format("--shift {}: a rank does not send to itself", shift));
  }
  for (const uint32_t nodes : options.nodes) {
    const auto whole = [&](uint32_t ranks) { return ranks % nodes == 0; };
    if (std::ranges::any_of(options.ranks, whole)) continue;
    return refuse(fmt::format("no number of ranks is a multiple of {} nodes", nodes));
  }
  if (options.max_blocks != 0 &&
      (target->max_blocks == 0 || options.max_blocks < target->max_blocks)) {
    target->max_blocks = options.max_blocks;
  }
  return LibraryWriter(options, *library, *target).run(kinds);
}

}  // namespace

void add_library(CommandLine& line) {
  Command& command = line.add(
      "library", "compile every plan that the library picks, for jobs to load",
      "  mscclc library --ranks 4 -o /opt/plans\n"
      "  mscclc library --ranks 2,4,8 --collective allreduce,broadcast --root 0 -o /opt/plans\n"
      "  mscclc library --ranks 4 --max-thread-blocks 108 -o /opt/plans\n"
      "  mscclc library --ranks 8 --programs -o /opt/programs\n");
  auto options = std::make_shared<LibraryOptions>();
  CLI::App& app = *command.app;
  line.takes_text(app.add_option("--ranks", options->ranks, "numbers of ranks, separated by commas")
                      ->type_name("LIST")
                      ->delimiter(',')
                      ->check(CLI::Range(1, 65536))
                      ->required());
  app.add_option("-o,--output", options->output, "folder for the plans and library.json")
      ->type_name("FOLDER")
      ->required();
  line.takes_text(app.add_option("--nodes", options->nodes,
                                 "numbers of nodes, with equally many ranks on each (1)")
                      ->type_name("LIST")
                      ->delimiter(',')
                      ->check(CLI::Range(1, 65536)));
  line.takes_text(app.add_option("--collective", options->collectives,
                                 "allreduce, allgather ..., separated by commas (all)")
                      ->type_name("LIST")
                      ->delimiter(','));
  line.takes_text(
      app.add_option("--root", options->roots, "ranks that send to all, or receive from all (all)")
          ->type_name("LIST")
          ->delimiter(','));
  line.takes_number<int64_t>(
      app.add_option("--shift", options->shifts,
                     "sendrecv: how many ranks further the receiver is (all)")
          ->type_name("LIST")
          ->delimiter(','));
  app.add_option("--library", options->library,
                 "folder of the library (MSCCLC_LIBRARY, or plans beside mscclc or here)")
      ->type_name("FOLDER");
  add_target_option(line, app, options->target, "sm_90");
  app.add_flag("--programs", options->programs,
               "compile and prove the plans, but write the programs and their table: a thousandth "
               "of the size, for jobs that compile what they pick");
  line.takes_text(app.add_option("--max-thread-blocks", options->max_blocks,
                                 "thread blocks that a rank may have: programs that ask for more "
                                 "get fewer (the target's)")
                      ->type_name("N")
                      ->check(CLI::Range(1, 65536)));
  add_diagnostics_option(line, app, options->diagnostics);
  command.run = [options] { return run_library(*options); };
}

}  // namespace mscclc
