// The library's programs, the worlds they are tried in, and the choices of a run: what the CI test
// (every pair of choices) and the recorded run (all of them) share.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/simulator/run.h"
#include "ir/program/program.h"

namespace mscclc {

/// `-D` options of one world: {"R", "8"}.
using Defines = std::vector<std::pair<std::string, std::string>>;

/// How a program is changed before it is compiled.
struct Variant {
  bool without_blocks = false;     ///< nothing says which thread block an op is for
  bool blocked = false;            ///< `policy: blocked`, else what the program says
  uint32_t max_thread_blocks = 0;  ///< as --max-thread-blocks
};

struct LibraryProgram {
  std::string_view name;  ///< plans/<name>.mscl
  std::vector<Defines> worlds;
};

/// Every program of plans/, at 2, 3, 4, 5, 8 and 16 ranks where it allows them.
const std::vector<LibraryProgram>& library();

/// Every program of plans/examples, named "examples/<name>", at 2, 3, 4, 5, 7, 8 and 16 ranks where
/// it allows them, and with other parameters.
const std::vector<LibraryProgram>& examples();

/// Text of plans/<name>.mscl; "" if it cannot be read. REQUIRES: runs in the repository root.
std::string library_text(std::string_view name);

/// The program with `tb` and `group` taken away: the compiler places its ops.
std::string without_blocks(const std::string& text);

/// A message size: so many elements in every rank's part, or (0 elements) about so many bytes.
struct RunSize {
  uint64_t elements, bytes;
};
/// Nothing, one element, odd numbers of elements, around a packet line, odd bytes, up to 1 MiB.
const std::vector<RunSize>& run_sizes();
inline constexpr uint64_t kScheduleSeeds = 20;
/// Calls in a row: enough for scratch with two copies to be used again.
inline constexpr uint32_t kCalls = 4;

/// One program compiled for one world, and the machine that runs it.
class CompiledWorld {
 public:
  CompiledWorld(std::string_view name, const Defines& defines, const Variant& variant = {});
  /// What the compiler said; "" if it compiled.
  const std::string& errors() const { return errors_; }
  const Program& program() const { return *program_; }
  /// Data types, reductions and in-place modes that the contract and `select` allow.
  std::vector<Dtype> dtypes() const;
  std::vector<ReduceOp> reductions() const;
  std::vector<bool> in_place() const;
  /// `size` in bytes of a message of this program.
  uint64_t bytes(const RunSize& size, Dtype dtype) const;
  /// Runs as many calls as `spec` says; "" if every element is right, else what went wrong.
  std::string run(const RunSpec& spec);

 private:
  std::unique_ptr<Program> program_;
  std::unique_ptr<Simulator> runner_;
  std::string errors_;
};

std::string text(const Defines& defines);
std::string text(const RunSpec& spec);

/// Rows of levels (one per factor, row[i] < levels[i]) in which every pair of levels of every two
/// factors occurs. Greedy and deterministic.
std::vector<std::vector<uint32_t>> pairwise(const std::vector<uint32_t>& levels);

}  // namespace mscclc
