// mscclc library: compiles all plans that the library picks for some numbers of ranks, and writes
// them with their table into a folder, from which jobs pick plans at run time
// (runtime/api/plan_registry.h).
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <optional>
#include <string>

#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/library.h"
#include "tools/library/plan_folder.h"
#include "tools/library/program_list.h"

namespace mscclc {
namespace {

constexpr const char* kLibraryExamples = R"(  mscclc library --ranks 4 -o /opt/plans
  mscclc library --ranks 2,4,8 --collective allreduce,broadcast --root 0 -o /opt/plans
  mscclc library --ranks 4 --max-thread-blocks 108 -o /opt/plans
  mscclc library --ranks 8 --programs -o /opt/programs
  mscclc library --list)";

struct LibraryOptions : PlanFolder {
  std::vector<std::string> collectives;
  std::string library, target = "sm_90";
  uint32_t max_blocks = 0;  ///< of a rank, below the target's; 0: that
  bool list = false, json = false;
};

int refuse(const std::string& why) {
  put_error(fmt::format("mscclc library: {}\ntry 'mscclc library --help'\n", why));
  return kUsage;
}

int run_library(const LibraryOptions& options) {
  if (options.list) {
    const auto programs = list_programs();
    put(options.json ? list_json(programs) : list_text(programs));
    return kFine;
  }
  if (options.ranks.empty()) return refuse("--ranks is required");
  if (options.output.empty()) return refuse("--output is required");
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
    if (!kind) return refuse(unknown_collective(word));
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
  if (!options.roots.empty() && std::ranges::none_of(kinds, has_root)) {
    return refuse("--root: no collective of the list has one");
  }
  if (!options.shifts.empty() && std::ranges::count(kinds, CollectiveKind::sendrecv) == 0) {
    return refuse("--shift is for sendrecv, which is not in the list");
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
  return write_plan_folder(options, *library, *target, kinds);
}

void library_options(CommandLine& line, CLI::App& app, LibraryOptions& options) {
  line.takes_text(app.add_option("--ranks", options.ranks, "numbers of ranks, separated by commas")
                      ->type_name("LIST")
                      ->delimiter(',')
                      ->check(CLI::Range(1, 65536)));
  app.add_option("-o,--output", options.output, "folder for the plans and library.json")
      ->type_name("FOLDER");
  line.takes_text(app.add_option("--nodes", options.nodes,
                                 "numbers of nodes, with equally many ranks on each (1)")
                      ->type_name("LIST")
                      ->delimiter(',')
                      ->check(CLI::Range(1, 65536)));
  line.takes_text(app.add_option("--collective", options.collectives,
                                 "allreduce, allgather ..., separated by commas (all)")
                      ->type_name("LIST")
                      ->delimiter(','));
  line.takes_text(
      app.add_option("--root", options.roots, "ranks that send to all, or receive from all (all)")
          ->type_name("LIST")
          ->delimiter(','));
  line.takes_number<int64_t>(
      app.add_option("--shift", options.shifts,
                     "sendrecv: how many ranks further the receiver is (all)")
          ->type_name("LIST")
          ->delimiter(','));
  app.add_option("--library", options.library,
                 "folder of the library (MSCCLC_LIBRARY, or plans beside mscclc or here)")
      ->type_name("FOLDER");
  add_target_option(line, app, options.target, "sm_90");
  app.add_flag("--programs", options.programs,
               "compile and prove the plans, but write the programs and their table: a thousandth "
               "of the size, for jobs that compile what they pick");
  line.takes_text(app.add_option("--max-thread-blocks", options.max_blocks,
                                 "thread blocks that a rank may have: programs that ask for more "
                                 "get fewer (the target's)")
                      ->type_name("N")
                      ->check(CLI::Range(1, 65536)));
  const std::vector<CLI::Option*> of_plans =
      app.get_options([](const CLI::Option* option) { return !option->check_name("--help"); });
  CLI::Option* list =
      app.add_flag("--list", options.list,
                   "write nothing; list the programs that commands take by name, and what they do");
  for (CLI::Option* const option : of_plans) list->excludes(option);
  app.add_flag("--json", options.json, "the list as JSON, one object per line")->needs(list);
  add_diagnostics_option(line, app, options.diagnostics);
}

}  // namespace

void add_library(CommandLine& line) {
  line.add("library", "compile every plan that the library picks, for jobs to load",
           kLibraryExamples, library_options, run_library);
}

}  // namespace mscclc
