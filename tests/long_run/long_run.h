// Runs that take hours, on as many cores as there are: numbered pieces of work go to processes side
// by side, which count what comes of them. A run may end before its work does, and go on later or
// elsewhere: it says which piece is next, and the next run adds the counts of those before it. What
// it has done so far it says every half minute.
//
// Processes and not threads: one that crashes leaves the counts of all others, and its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mscclc {

struct LongRun {
  uint32_t jobs = 1;                      ///< processes
  uint32_t seconds = 0;                   ///< no piece begins later; 0: until all are done
  uint64_t first = 0;                     ///< piece to begin with
  std::vector<std::string> earlier = {};  ///< files with the output of runs to be added
};

/// Declares `--jobs` (or `--processes`), `--seconds`, `--first` and `--add`.
void add_long_run_options(CLI::App& app, LongRun& options);

/// Goes to the repository root if bazel runs the program: there the library's programs are.
/// REQUIRES: the working directory is the root otherwise. False if it cannot.
bool enter_repository();

/// The counts of one process, which outlive it.
class Counts {
 public:
  explicit Counts(uint64_t* numbers) : numbers_(numbers) {}
  /// REQUIRES: below the number of names that `run_pieces` was given.
  uint64_t& operator[](size_t i) const { return numbers_[i]; }

 private:
  uint64_t* numbers_;
};

struct LongRunResult {
  std::vector<uint64_t> counts;  ///< of all processes and earlier runs
  uint64_t done = 0;             ///< pieces, those of earlier runs included
  uint64_t next = 0;             ///< first piece that was not begun
  uint64_t seconds = 0;          ///< that it took, all runs together
  std::vector<uint64_t> broken;  ///< pieces at which a process of this run died
  uint64_t broken_earlier = 0;

  bool whole() const { return broken.empty() && broken_earlier == 0; }
};

/// Work on one piece. A process gets pieces in ascending order.
using Work = std::function<void(uint64_t piece, Counts counts)>;

/// Does pieces `options.first` up to `pieces` (not included), and counts what `names` says.
/// `begin` runs once in each process and gives what does its work there.
/// Throws std::runtime_error if an earlier run cannot be read or the system gives no process.
LongRunResult run_pieces(const LongRun& options, uint64_t pieces,
                         const std::vector<std::string>& names, const std::function<Work()>& begin);

/// The counts of what went wrong, and whether all pieces were done: a program's exit status.
inline int exit_status(const LongRunResult& result, size_t wrong) {
  return result.counts[wrong] == 0 && result.whole() ? 0 : 1;
}

/// "counts: a=1 b=2 pieces=10 broken=0 seconds=3", which `--add` reads, and below it where to go
/// on and what broke.
std::string summary(const LongRunResult& result, uint64_t pieces,
                    const std::vector<std::string>& names);

}  // namespace mscclc
