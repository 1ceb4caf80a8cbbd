#include "tests/long_run/long_run.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t seconds_since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count());
}

/// What the processes share: the next piece, and for each of them the piece it is at, how many it
/// has done, and its counts.
class Board {
 public:
  Board(uint32_t jobs, size_t counts, uint64_t first)
      : width_(counts + 2), bytes_((1 + jobs * width_) * sizeof(uint64_t)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for the counts of a long run");
    words_ = static_cast<uint64_t*>(memory);
    words_[0] = first;
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board() { munmap(words_, bytes_); }

  /// The number of the next piece, for one process alone.
  uint64_t take() { return std::atomic_ref(words_[0]).fetch_add(1); }
  uint64_t next() const { return words_[0]; }
  uint64_t& at(uint32_t job) { return words_[1 + job * width_]; }
  uint64_t& done(uint32_t job) { return words_[1 + job * width_ + 1]; }
  uint64_t* counts(uint32_t job) { return words_ + 1 + job * width_ + 2; }

 private:
  size_t width_, bytes_;
  uint64_t* words_ = nullptr;
};

void run_job(Board& board, uint32_t job, uint64_t pieces, Clock::time_point end,
             const std::function<Work()>& begin) {
  const Work work = begin();
  while (Clock::now() < end) {
    const uint64_t piece = board.take();
    if (piece >= pieces) return;
    board.at(job) = piece;
    work(piece, Counts(board.counts(job)));
    ++board.done(job);
  }
}

pid_t start_job(Board& board, uint32_t job, uint64_t pieces, Clock::time_point end,
                const std::function<Work()>& begin) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process for a long run");
  if (child > 0) return child;
  setvbuf(stdout, nullptr, _IOLBF, 1 << 16);  // lines of several processes stay whole
  run_job(board, job, pieces, end, begin);
  std::fflush(stdout);
  _exit(0);
}

constexpr std::string_view kMark = "counts:", kSoFar = "so far:";

using NamedCounts = std::map<std::string, uint64_t>;

void add_line(const std::string& path, std::string_view text, NamedCounts& sums) {
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::runtime_error(path + ": not a count: " + word);
    sums[word.substr(0, equals)] += std::stoull(word.substr(equals + 1));
  }
}

/// The numbers after the names of all lines of counts in a file, added up. Of a run that was ended
/// from outside, what it said last.
NamedCounts read_counts(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  NamedCounts sums, so_far;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kMark)) add_line(path, line.substr(kMark.size()), sums);
    if (!line.starts_with(kSoFar)) continue;
    so_far.clear();
    add_line(path, line.substr(kSoFar.size()), so_far);
  }
  return sums.empty() ? so_far : sums;
}

std::string counts_text(std::string_view mark, const LongRunResult& result,
                        const std::vector<std::string>& names) {
  std::string text(mark);
  for (size_t i = 0; i < names.size(); ++i) {
    text += fmt::format(" {}={}", names[i], result.counts[i]);
  }
  return text + fmt::format(" pieces={} broken={} seconds={}\n", result.done,
                            result.broken.size() + result.broken_earlier, result.seconds);
}

/// What this run has done so far, at most so often: a run that is ended from outside says nothing
/// at its end.
class SoFar {
 public:
  SoFar(Board& board, uint32_t jobs, const std::vector<std::string>& names)
      : board_(board), jobs_(jobs), names_(names) {}

  void print() {
    constexpr std::chrono::seconds kPause{30};
    if (Clock::now() - last_ < kPause) return;
    last_ = Clock::now();
    LongRunResult result;
    result.counts.assign(names_.size(), 0);
    for (uint32_t job = 0; job < jobs_; ++job) {
      result.done += board_.done(job);
      for (size_t i = 0; i < names_.size(); ++i) result.counts[i] += board_.counts(job)[i];
    }
    result.seconds = seconds_since(start_);
    fmt::print("{}", counts_text(kSoFar, result, names_));
    std::fflush(stdout);
  }

 private:
  Board& board_;
  const uint32_t jobs_;
  const std::vector<std::string>& names_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

void add_earlier(const LongRun& options, const std::vector<std::string>& names,
                 LongRunResult& result) {
  for (const std::string& path : options.earlier) {
    std::map<std::string, uint64_t> sums = read_counts(path);
    for (size_t i = 0; i < names.size(); ++i) result.counts[i] += sums[names[i]];
    result.done += sums["pieces"];
    result.broken_earlier += sums["broken"];
    result.seconds += sums["seconds"];
  }
}

}  // namespace

void add_long_run_options(CLI::App& app, LongRun& options) {
  app.add_option("--jobs,--processes", options.jobs, "processes side by side (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("--seconds", options.seconds, "begin nothing later than this (0: no limit)")
      ->type_name("S");
  app.add_option("--first", options.first, "piece of the work to begin with (default 0)")
      ->type_name("PIECE");
  app.add_option("--add", options.earlier, "add the counts of earlier runs, from their output")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

bool enter_repository() {
  const char* folder = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  return folder == nullptr || chdir(folder) == 0;
}

LongRunResult run_pieces(const LongRun& options, uint64_t pieces,
                         const std::vector<std::string>& names,
                         const std::function<Work()>& begin) {
  LongRunResult result;
  result.counts.assign(names.size(), 0);
  add_earlier(options, names, result);
  const Clock::time_point start = Clock::now();
  const Clock::time_point end = options.seconds == 0
                                    ? Clock::time_point::max()
                                    : start + std::chrono::seconds(options.seconds);
  Board board(options.jobs, names.size(), options.first);
  std::vector<pid_t> children;
  for (uint32_t job = 0; job < options.jobs; ++job) {
    children.push_back(start_job(board, job, pieces, end, begin));
  }
  SoFar so_far(board, options.jobs, names);
  for (uint32_t job = 0; job < options.jobs; ++job) {
    int status = 0;
    while (waitpid(children[job], &status, WNOHANG) == 0) {
      so_far.print();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (status != 0) result.broken.push_back(board.at(job));
    for (size_t i = 0; i < names.size(); ++i) result.counts[i] += board.counts(job)[i];
  }
  result.next = std::max(options.first, std::min(board.next(), pieces));
  result.done += result.next - options.first;
  result.seconds += seconds_since(start);
  return result;
}

std::string summary(const LongRunResult& result, uint64_t pieces,
                    const std::vector<std::string>& names) {
  std::string text = counts_text(kMark, result, names);
  for (const uint64_t piece : result.broken) text += fmt::format("died at piece {}\n", piece);
  if (result.next < pieces) {
    text +=
        fmt::format("not all of it: go on with --first {} (of {} pieces)\n", result.next, pieces);
  }
  return text;
}

}  // namespace mscclc
