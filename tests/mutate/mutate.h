// Mutants: finished programs with one thing changed that an author, or a pass, might get wrong. The
// same change is made on one rank, or on all ranks alike: what only one rank does wrong mostly
// hangs, what all do wrong may well run through.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "ir/program/program.h"

namespace mscclc {

enum class Mutation : uint8_t {
  drop,           ///< an op
  duplicate,      ///< an op
  move,           ///< an op, elsewhere in its block
  swap,           ///< an op and its neighbour
  retarget,       ///< a signal, wait, release, acquire or barrier: other channel, semaphore, block
  untie,          ///< a signal with the wait that takes it, a release with its acquire
  relax,          ///< a signal or wait, or make it strict
  chunk,          ///< an operand begins elsewhere
  count,          ///< an op moves more chunks, or fewer
  buffer,         ///< an operand is in another buffer
  drop_source,    ///< of a sum
  shrink_chunks,  ///< scratch has a chunk less
  shrink_copies,  ///< scratch has a copy less
  shrink_units,   ///< scratch holds a unit less
  credit,         ///< a semaphore begins with one more; a signal, and its wait, are done once more
  slot,           ///< packets go to another slot, or are looked for there
};
inline constexpr size_t kMutations = 16;
std::string_view name(Mutation mutation);

struct Mutant {
  Mutation mutation;
  std::string what;  ///< the change, for people
  Program program;
};

/// Makes mutants of a program at random, no two alike, and none like the program.
class Mutator {
 public:
  /// REQUIRES: program.split; it outlives the mutator.
  Mutator(const Program& program, uint64_t seed) : program_(program), random_(seed) {}
  /// Nothing if no new one is found.
  std::optional<Mutant> next();

 private:
  std::optional<Mutant> attempt();

  const Program& program_;
  std::mt19937_64 random_;
  std::set<std::string> made_;  ///< as IR text
};

}  // namespace mscclc
