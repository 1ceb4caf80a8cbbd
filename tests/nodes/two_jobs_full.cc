// A recorded run: pairs of jobs of one name that start at the same time on one machine. Their ranks
// begin in any order, some later than others, as programs do that take their time to load. A job
// may succeed or be refused; none may receive anything of the other's ranks. Prints the pairs that
// did, or that did not end, and counts.
//
//   bazel run //tests/nodes:two_jobs_full -- --pairs 100
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>

#include "runtime/api/launcher.h"
#include "tests/long_run/long_run.h"

namespace {

using namespace mscclc;
using namespace std::chrono_literals;

enum Count : size_t { kBoth, kOne, kNone, kMixed, kHung, kDied };
const std::vector<std::string> kNames = {"both_right",  "one_right", "both_refused",
                                         "mixed_pairs", "hung",      "crashed"};

/// How a rank ended.
enum Exit : int { kRight = 0, kRefused = 10, kGotOther = 11 };

constexpr const char* kJob = "TWO_JOBS_JOB";      ///< which of the two this rank belongs to
constexpr const char* kDelay = "TWO_JOBS_DELAY";  ///< milliseconds before it looks for the others

/// A rank: some steps in which all ranks say whose they are.
int be_rank() {
  const auto job = static_cast<uint8_t>(std::atoi(std::getenv(kJob)));
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(std::getenv(kDelay))));
  Diagnostics diagnostics;
  const auto launch = read_launch("", diagnostics);
  const auto bootstrap = launch ? make_bootstrap(*launch, diagnostics) : nullptr;
  if (!bootstrap) return kRefused;
  for (int step = 0; step < 3; ++step) {
    std::vector<std::vector<uint8_t>> all;
    if (!bootstrap->all_gather(std::vector<uint8_t>{job}, "whose", all, diagnostics)) {
      return kRefused;
    }
    for (const auto& said : all) {
      if (said != std::vector<uint8_t>{job}) return kGotOther;
    }
  }
  return kRight;
}

/// What a launcher says: an id that both jobs were given, torchrun on one machine, and addresses
/// that may be of several.
std::vector<std::string> launch_as(uint64_t how, uint64_t name, uint32_t rank, uint32_t size) {
  const auto r = std::to_string(rank), n = std::to_string(size);
  switch (how % 3) {
    case 0:
      return {"MSCCLC_RANK=" + r, "MSCCLC_WORLD_SIZE=" + n,
              fmt::format("MSCCLC_ID=mscclc1/127.0.0.1/{}/{:032x}", 20'000 + name % 10'000, name)};
    case 1:
      return {"RANK=" + r, "WORLD_SIZE=" + n, "LOCAL_WORLD_SIZE=" + n, "MASTER_ADDR=127.0.0.1",
              fmt::format("MASTER_PORT={}", 20'000 + name % 10'000)};
    default:
      return {"RANK=" + r, "WORLD_SIZE=" + n, "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1",
              fmt::format("MASTER_PORT={}", 20'000 + name % 10'000)};
  }
}

pid_t start_rank(std::vector<std::string> environment) {
  std::vector<char*> entries;
  for (std::string& entry : environment) entries.push_back(entry.data());
  entries.push_back(nullptr);
  char program[] = "/proc/self/exe", name[] = "two_jobs_full";
  char* const arguments[] = {name, nullptr};
  pid_t process = -1;
  if (::posix_spawn(&process, program, nullptr, nullptr, arguments, entries.data()) != 0) return -1;
  return process;
}

/// Exit codes; nullopt in place of what has not ended in time.
std::vector<std::optional<int>> wait_for(std::vector<pid_t> processes) {
  std::vector<std::optional<int>> codes(processes.size());
  const auto end = std::chrono::steady_clock::now() + 60s;
  for (size_t i = 0; i < processes.size(); ++i) {
    int status = 0;
    while (::waitpid(processes[i], &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() >= end) break;
      std::this_thread::sleep_for(2ms);
      status = -1;
    }
    if (status == -1) {
      ::kill(processes[i], SIGKILL);
      ::waitpid(processes[i], &status, 0);
    } else {
      codes[i] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
  }
  return codes;
}

void try_pair(uint64_t seed, Counts counts) {
  std::mt19937_64 random(seed);
  const uint32_t size = 2 + random() % 3;
  const uint64_t how = random(), name = random() % 1'000'000'007;
  const uint64_t spread = 1 + random() % 400;  // milliseconds
  std::vector<uint32_t> order(2 * size);
  std::iota(order.begin(), order.end(), 0);
  // Launchers start one rank after the other, side by side or in turn.
  const bool in_turn = random() % 2 == 0;
  if (!in_turn) {
    std::stable_sort(order.begin(), order.end(),
                     [size](uint32_t a, uint32_t b) { return a % size < b % size; });
  }
  std::vector<pid_t> processes(2 * size);
  for (const uint32_t i : order) {
    auto environment = launch_as(how, name, i % size, size);
    environment.push_back(fmt::format("{}={}", kJob, i / size));
    environment.push_back(fmt::format("{}={}", kDelay, random() % spread));
    environment.push_back("MSCCLC_TIMEOUT=50");
    processes[i] = start_rank(std::move(environment));
  }
  const auto codes = wait_for(processes);
  uint32_t right = 0;
  bool mixed = false, hung = false, died = false;
  for (uint32_t job = 0; job < 2; ++job) {
    uint32_t good = 0;
    for (uint32_t r = 0; r < size; ++r) {
      const auto code = codes[job * size + r];
      good += code == kRight ? 1 : 0;
      mixed |= code == kGotOther;
      hung |= !code;
      died |= code && *code != kRight && *code != kRefused && *code != kGotOther;
    }
    right += good == size ? 1 : 0;
  }
  ++counts[right == 2 ? kBoth : right == 1 ? kOne : kNone];
  counts[kMixed] += mixed ? 1 : 0;
  counts[kHung] += hung ? 1 : 0;
  counts[kDied] += died ? 1 : 0;
  if (!mixed && !hung && !died) return;
  std::string text;
  for (const auto& code : codes) text += code ? fmt::format(" {}", *code) : " hung";
  fmt::print("pair {}: way {}, {} ranks each, spread {} ms:{}\n", seed, how % 3, size, spread,
             text);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (std::getenv(kJob) != nullptr) return be_rank();
  CLI::App app("Pairs of jobs of one name");
  LongRun options;
  uint64_t pairs = 100;
  add_long_run_options(app, options);
  app.add_option("--pairs", pairs);
  CLI11_PARSE(app, argc, argv);
  const auto work = [] {
    return Work([](uint64_t seed, Counts counts) { try_pair(seed, counts); });
  };
  const LongRunResult result = run_pieces(options, pairs, kNames, work);
  fmt::print("{}", summary(result, pairs, kNames));
  const bool fine = result.counts[kMixed] + result.counts[kHung] + result.counts[kDied] == 0;
  return fine && result.whole() ? 0 : 1;
}
