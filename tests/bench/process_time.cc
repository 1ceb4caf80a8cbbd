// How long a whole `mscclc compile` process takes, from exec to exit, for every program of the
// library at its default number of ranks: CPU time (the process's own, user and system), and the
// time that a build system or a script sees, which on a busy machine is mostly that of others.
// Compiling alone (--no-verify), and with the proof of the plan.
//
//   bazel run //tests/bench:process_time            200 runs of each
//   bazel run //tests/bench:process_time -- 1000    1000 runs of each
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

extern char** environ;

namespace {

namespace fs = std::filesystem;

constexpr const char* kMscclc = "tools/mscclc";

struct Times {
  double cpu, wall;  ///< milliseconds
};

double milliseconds(const timeval& t) {
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
}

// Runs one process; nothing if it failed.
std::optional<Times> run_once(const std::string& program, bool proved) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  const char* const argv[] = {kMscclc, "compile", program.c_str(), proved ? nullptr : "--no-verify",
                              nullptr};
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = 0;
  int status = -1;
  rusage usage{};
  if (posix_spawn(&child, kMscclc, &actions, nullptr, const_cast<char**>(argv), environ) == 0) {
    wait4(child, &status, 0, &usage);
  }
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) return std::nullopt;
  return Times{milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime), wall.count()};
}

/// Prints least and median of CPU and wall time.
bool measure(const std::string& program, bool proved, int runs) {
  std::vector<double> cpu, wall;
  for (int i = 0; i < runs; ++i) {
    const std::optional<Times> times = run_once(program, proved);
    if (!times) {
      std::printf(" failed");
      return false;
    }
    cpu.push_back(times->cpu);
    wall.push_back(times->wall);
  }
  std::sort(cpu.begin(), cpu.end());
  std::sort(wall.begin(), wall.end());
  const size_t middle = cpu.size() / 2;
  std::printf(" %9.3f %9.3f %9.3f %9.3f", cpu.front(), cpu[middle], wall.front(), wall[middle]);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 200;
  std::vector<std::string> programs;
  for (const auto& entry : fs::directory_iterator("plans")) {
    if (entry.path().extension() == ".mscl") programs.push_back(entry.path().string());
  }
  std::sort(programs.begin(), programs.end());
  std::printf("%-36s %39s %39s\n", "", "without proof: CPU, wall", "with proof: CPU, wall");
  std::printf("%-36s %9s %9s %9s %9s %9s %9s %9s %9s  (ms, %d runs)\n", "program", "least",
              "median", "least", "median", "least", "median", "least", "median", runs);
  bool fine = !programs.empty();
  for (const std::string& program : programs) {
    std::printf("%-36s", program.c_str());
    for (const bool proved : {false, true}) fine = measure(program, proved, runs) && fine;
    std::printf("\n");
    std::fflush(stdout);
  }
  return fine ? 0 : 1;
}
