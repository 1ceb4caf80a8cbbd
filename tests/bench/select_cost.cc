// What it costs to compile and prove each program that `mscclc select` names: user time on one
// core, peak memory and size of the plan of a whole `mscclc compile`, against the limits that
// docs/records/performance_host.md gives for 8, 16, 72 and 1024 ranks. Exit code 1 if one is
// exceeded.
//
//   bazel run //tests/bench:select_cost                      all
//   bazel run //tests/bench:select_cost -- alltoall          programs with this word
//   bazel run //tests/bench:select_cost -- '' 72             all at 72 ranks
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/read_file.h"
#include "plans/format/library_table.h"

extern char** environ;

namespace {

using namespace mscclc;
namespace fs = std::filesystem;

constexpr const char* kMscclc = "tools/mscclc";
constexpr const char* kTable = "plans/library.json";

struct World {
  uint32_t ranks, nodes;
};
constexpr World kWorlds[] = {{8, 1},  {8, 2},  {8, 4},  {8, 8},  {16, 1},
                             {16, 2}, {16, 4}, {72, 1}, {72, 9}, {1024, 128}};

struct Limits {
  double seconds, megabytes;
};

Limits limits_at(uint32_t ranks) {
  if (ranks <= 8) return {0.04, 500};
  if (ranks <= 16) return {0.2, 500};
  if (ranks <= 72) return {2, 500};
  return {10, 8000};
}

/// The command line of a compilation, and what it says of itself.
struct Case {
  std::string program, params;
  World world;
  std::vector<std::string> arguments;
};

void add_case(const LibraryChoice& choice, const LibraryCall& call, std::vector<Case>& all) {
  Case c{choice.program, {}, {call.ranks, call.nodes}, {}};
  c.arguments = {kMscclc, "compile", fmt::format("plans/{}.mscl", choice.program)};
  for (const auto& [name, value] : choice.defines(call)) {
    c.arguments.insert(c.arguments.end(), {"-D", name + "=" + value});
    if (name != "R") c.params += fmt::format("{}{}={}", c.params.empty() ? "" : ",", name, value);
  }
  const auto same = [&](const Case& other) { return other.arguments == c.arguments; };
  if (std::ranges::none_of(all, same)) all.push_back(std::move(c));
}

/// Every choice of the table at these worlds, each once.
std::vector<Case> cases(const LibraryTable& table) {
  std::vector<Case> all;
  for (const World& world : kWorlds) {
    for (const CollectiveKind kind : table.collectives()) {
      for (const LinkKind links : {LinkKind::nvlink, LinkKind::pcie}) {
        LibraryCall call{.kind = kind, .ranks = world.ranks, .links = links, .nodes = world.nodes};
        if (table.choose(call) == nullptr) continue;
        for (const LibraryRange& range : table.ranges(call)) add_case(*range.choice, call, all);
      }
    }
  }
  return all;
}

struct Cost {
  double seconds = 1e9, megabytes = 0;
  uint64_t bytes = 0;
};

/// Runs the command once; nothing if it failed.
std::optional<Cost> run_once(const Case& c, const std::string& plan) {
  std::vector<std::string> words = c.arguments;
  words.insert(words.end(), {"-o", plan});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  int status = -1;
  rusage usage{};
  if (posix_spawn(&child, kMscclc, nullptr, nullptr, argv.data(), environ) == 0) {
    wait4(child, &status, 0, &usage);
  }
  if (status != 0) return std::nullopt;
  const auto seconds = static_cast<double>(usage.ru_utime.tv_sec) +
                       1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
  return Cost{seconds, static_cast<double>(usage.ru_maxrss) / 1024, fs::file_size(plan)};
}

/// The least user time of several runs; slow programs run once.
std::optional<Cost> measure(const Case& c, const std::string& plan) {
  Cost least;
  for (int run = 0; run < 3; ++run) {
    const auto cost = run_once(c, plan);
    if (!cost) return std::nullopt;
    if (cost->seconds < least.seconds) least = *cost;
    if (least.seconds > 0.5) break;
  }
  return least;
}

/// Prints a line; false if the program failed or costs too much.
bool report(const Case& c, const std::string& plan) {
  const auto cost = measure(c, plan);
  fmt::print("| {} | {} | {} | {} |", c.program, c.world.ranks, c.world.nodes, c.params);
  if (!cost) return fmt::print(" failed | | | |\n"), false;
  const Limits limits = limits_at(c.world.ranks);
  const bool fine = cost->seconds <= limits.seconds && cost->megabytes <= limits.megabytes;
  fmt::print(" {:.3f} | {:.0f} | {} |{}\n", cost->seconds, cost->megabytes, cost->bytes,
             fine ? "" : " too much");
  std::fflush(stdout);
  return fine;
}

/// This process and those that it starts run on one core.
void use_one_core() {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  sched_setaffinity(0, sizeof one, &one);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  const auto ranks = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 0);
  Diagnostics diagnostics;
  const auto table = LibraryTable::parse(read_file(kTable).value_or(""), kTable, diagnostics);
  if (!table) return std::fputs(render_text(diagnostics, Sources()).c_str(), stderr), 2;
  use_one_core();
  const std::string plan = fs::temp_directory_path() / fmt::format("select_cost.{}", getpid());
  fmt::print("| program | ranks | nodes | parameters | user s | peak MiB | JSON bytes |\n");
  fmt::print("|---|--:|--:|---|--:|--:|--:|\n");
  size_t looked_at = 0, too_much = 0;
  for (const Case& c : cases(*table)) {
    if (c.program.find(word) == std::string::npos) continue;
    if (ranks != 0 && c.world.ranks != ranks) continue;
    ++looked_at;
    too_much += report(c, plan) ? 0 : 1;
  }
  std::error_code none;
  fs::remove(plan, none);
  fmt::print("{} programs, {} of which cost too much\n", looked_at, too_much);
  return too_much == 0 ? 0 : 1;
}
