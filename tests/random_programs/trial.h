// Judges random programs: what the prover says, and what the simulator and the explorer find.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/program/program.h"
#include "ir/support/result.h"
#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {

/// Program number `piece` of a seed: the sketch, and how it is written down and read. Of any
/// family, or one: another program, then.
struct RandomProgram {
  Sketch sketch;
  Form form = Form::ir;
  bool by_json = false;  ///< judged is what plan JSON gives back
  std::string text() const { return random_programs::text(sketch, form); }
};
RandomProgram random_program(uint64_t seed, uint64_t piece, const Family* family = nullptr);

enum class Outcome : uint8_t {
  malformed,      ///< no program: refused before the prover sees it
  refused,        ///< and not seen wrong by the few schedules that were tried
  refused_wrong,  ///< and seen wrong
  undecided,
  proved,  ///< and not seen wrong
  hole,    ///< proved, and seen wrong
};
inline constexpr size_t kOutcomes = 6;
std::string_view name(Outcome outcome);

struct TrialOptions {
  uint32_t runs = 24;         ///< on the simulator, of what is proved
  uint32_t refused_runs = 3;  ///< of what is refused
  uint32_t explorations = 2;  ///< of what is proved; what is too large is left
  uint64_t most_states = 3000;
  /// The explorer takes messages whose chunks end with a granule: it has no other way to see that
  /// packets are the same whose chunks have something else beyond the end of a smaller message.
  bool whole_granules = false;
  /// What else is asked of programs that are proved: what is wrong, or nothing.
  std::function<std::optional<std::string>(const Program&, uint64_t number)> also = {};
};

struct Tried {
  Outcome outcome = Outcome::malformed;
  std::string why = {};   ///< what is wrong, and how it shows
  bool explored = false;  ///< to the end
};

/// The program as text gives it.
Result<Program> load(const RandomProgram& random);
/// `number` chooses sizes and schedules.
Tried try_program(const Program& program, uint64_t number, const TrialOptions& options);

/// What is wrong with the program at some sizes, under some schedules of the simulator, several
/// calls in a row; nothing if all goes well.
std::optional<std::string> fault_on_host(const Program& program, uint64_t number, uint32_t runs);

}  // namespace mscclc::random_programs
