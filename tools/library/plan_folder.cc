#include "tools/library/plan_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "ir/diagnostics/printable.h"
#include "plans/format/plan_json.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/progress.h"

namespace mscclc {
namespace {

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
  LibraryWriter(const PlanFolder& options, const Library& library, const Target& target)
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
    if (options_.keeps_others && !keep_others(kinds)) return kUsage;
    const std::string text = library_table_text(rows_), path = path_of("library.json");
    Diagnostics diagnostics;
    const bool right = LibraryTable::parse(text, path, diagnostics).has_value();
    report(diagnostics);
    if (!right) return kWrongProgram;
    // Last: a folder with a table has all that the table names.
    const auto written = write_file(path, text);
    if (!written) return Input::usage(written.error());
    put(fmt::format("{} plans, {} bytes, for {} rows of {}\n", written_.size(), bytes_,
                    rows_.size(), path));
    return kFine;
  }

 private:
  void report(const Diagnostics& diagnostics) const {
    put_diagnostics(diagnostics_text(diagnostics, Sources(), options_.diagnostics),
                    options_.diagnostics);
  }

  std::string path_of(const std::string& file) const {
    return options_.output + (options_.output.ends_with('/') ? "" : "/") + file;
  }

  /// Rows of the folder's table for other collectives and ranks stay. False: reported.
  bool keep_others(const std::vector<CollectiveKind>& kinds) {
    const std::string path = path_of("library.json");
    if (!std::filesystem::exists(path)) return true;
    const auto text = read_input(path);
    if (!text) return Input::usage(text.error()) == kFine;
    Diagnostics diagnostics;
    const auto table = LibraryTable::parse(*text, path, diagnostics);
    report(diagnostics);
    if (!table) return false;
    for (const LibraryRow& row : table->rows()) {
      const bool tuned = std::ranges::count(kinds, row.kind) > 0 &&
                         std::ranges::any_of(options_.ranks, [&](uint32_t ranks) {
                           return row.for_ranks(ranks) && row.for_nodes(1);
                         });
      if (!tuned) rows_.push_back(row);
    }
    return true;
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

  const PlanFolder& options_;
  const Library& library_;
  const Target& target_;
  std::vector<LibraryRow> rows_;
  std::set<std::string> written_;
  /// By file name as asked for: what the target has room for.
  std::map<std::string, Params> fitting_;
  uint64_t bytes_ = 0;
};

}  // namespace

Result<void> keeps_library(const Library& library, const std::string& output) {
  std::error_code none;
  if (library.folder.empty() || !std::filesystem::equivalent(output, library.folder, none)) {
    return {};
  }
  return Error{fmt::format("--output {} would replace the library that is read",
                           quoted(output, output.size()))};
}

int write_plan_folder(const PlanFolder& folder, const Library& library, const Target& target,
                      const std::vector<CollectiveKind>& kinds) {
  if (const auto kept = keeps_library(library, folder.output); !kept) {
    return Input::usage(kept.error());
  }
  PlanFolder once = folder;
  once.ranks = without_repeats(folder.ranks);
  once.nodes = without_repeats(folder.nodes);
  return LibraryWriter(once, library, target).run(without_repeats(kinds));
}

}  // namespace mscclc
