// Is a changed program right? It is compiled and proved: for the parameters that are given, for
// other numbers of ranks that it takes, and with each other parameter changed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/fix/outline.h"
#include "compiler/unroll/front_end_options.h"
#include "ir/diagnostics/diagnostic.h"
#include "passes/registry.h"

namespace mscclc::fix {

/// How far a program comes.
enum class Stage : uint8_t { read, parsed, compiled, proved };

struct Verdict {
  uint32_t world = 0;  ///< the first one in which it is not proved
  Stage stage = Stage::read;
  size_t errors = 0;
  bool proved = false;  ///< in all worlds
  /// Does it come further than the other?
  bool better_than(const Verdict& other) const;
};

/// How long a search may take.
struct TimeLimit {
  double seconds = 0;
  std::function<double()> elapsed;  ///< seconds since it began
  bool has_left(double more) const { return elapsed() + more < seconds; }
};

class Judge {
 public:
  /// `file`: how errors name the program. `original`: what is to be fixed. What took longer for
  /// another text than is left of `time` is not begun, and counts as not proved.
  Judge(std::string file, const Outline& original, FrontEndOptions front, PassOptions passes,
        TimeLimit time);

  Verdict judge(const std::string& text);
  /// What is wrong for the given parameters; nothing: it is proved, or time does not suffice.
  Diagnostics errors(const std::string& text);
  /// Ops of all programs that were proved, or not: what judging has cost.
  uint64_t ops() const { return ops_; }

 private:
  using Defines = std::vector<std::pair<std::string, std::string>>;
  struct Outcome {
    Stage stage = Stage::read;
    Diagnostics diagnostics;
    bool applies = true;  ///< false: the program is not for such parameters
  };
  void add_worlds(const Outline& original);
  void add_world(const std::vector<std::string>& names, const std::string& value);
  void add_other_parameters(const Outline& original, const std::vector<std::string>& ranks);
  bool has_time(size_t world) const { return time_.has_left(costs_[world]); }
  Outcome run(const std::string& text, size_t world, bool try_copies);
  Outcome compile_and_prove(const std::string& text, const Defines& defines, bool try_copies);
  bool is_for_others(const std::string& text, const Diagnostics& diagnostics) const;

  const std::string file_;
  FrontEndOptions front_;
  PassOptions passes_;
  const TimeLimit time_;
  std::vector<Defines> worlds_;  ///< small ones first
  std::vector<double> costs_;    ///< of each, seconds of the text that took longest
  size_t given_ = 0;             ///< the one with the given parameters
  std::string promises_;
  uint64_t ops_ = 0;
};

}  // namespace mscclc::fix
