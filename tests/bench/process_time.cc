// How long a whole `mscclc compile` process takes, from exec to exit, for every program of the
// library at its default number of ranks: the time that a build system or a script sees.
//
//   bazel run //tests/bench:process_time            200 runs of each
//   bazel run //tests/bench:process_time -- 1000    1000 runs of each
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

extern char** environ;

namespace {

namespace fs = std::filesystem;

constexpr const char* kMscclc = "tools/mscclc";

// Milliseconds of one process; negative if it failed.
double run_once(const std::string& program) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  const char* const argv[] = {kMscclc, "compile", program.c_str(), nullptr};
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = 0;
  int status = -1;
  if (posix_spawn(&child, kMscclc, &actions, nullptr, const_cast<char**>(argv), environ) == 0) {
    waitpid(child, &status, 0);
  }
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  posix_spawn_file_actions_destroy(&actions);
  return status == 0 ? time.count() : -1;
}

bool measure(const std::string& program, int runs) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const double time = run_once(program);
    if (time < 0) {
      std::printf("%-44s failed\n", program.c_str());
      return false;
    }
    times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  std::printf("%-44s %8.3f %8.3f %8.3f\n", program.c_str(), times.front(), times[times.size() / 2],
              times[times.size() * 9 / 10]);
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
  std::printf("%-44s %8s %8s %8s  (ms, %d runs)\n", "program", "min", "median", "p90", runs);
  bool fine = !programs.empty();
  for (const std::string& program : programs) fine = measure(program, runs) && fine;
  return fine ? 0 : 1;
}
