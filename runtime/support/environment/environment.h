// Environment variables, read strictly: a value that is not allowed is an error that names the
// variable, the value and what is allowed. runtime/support/environment/environment.def lists them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/contract/order.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/diagnostics/printable.h"

namespace mscclc {

enum class Variable : uint8_t {
#define ENV(name, group, kind, fallback, least, most, help) name,
#include "runtime/support/environment/environment.def"
#undef ENV
};

enum class VariableGroup : uint8_t { ours, nccl, cuda, torchrun, openmpi, slurm, system };
enum class VariableKind : uint8_t { count, seconds, text, secret };

struct VariableInfo {
  Variable variable;
  std::string_view name;
  VariableGroup group;
  VariableKind kind;
  std::string_view fallback;
  uint64_t least, most;
  std::string_view help;
};

/// All rows, in the order of the table.
std::span<const VariableInfo> variable_table();
const VariableInfo& info(Variable variable);
/// What its value may be, where that is one of some words; else empty.
std::vector<std::string_view> words_of(Variable variable);

/// A time limit that means none: 49 days, the longest that ranks can send each other.
inline constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 49);

/// The variables of a process at one time. Thread safety: an immutable value.
class Environment {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;

  /// Adds to the variables of the process what is set elsewhere. Called from any thread.
  using Complete = void (*)(Values& values);

  /// What is set now. Do not call it while another thread changes the environment.
  static Environment of_process();
  /// The same without what complete_with() has added.
  static Values values_of_process();
  /// From now on of_process() has `more` add to what it finds: for a library with other settings
  /// than ours, when it is loaded.
  static void complete_with(Complete more);
  explicit Environment(Values values) : values_(std::move(values)) {}

  bool has(Variable variable) const { return !raw(variable).empty(); }
  /// As it is set, whether it is allowed or not; empty: not set.
  std::string_view raw(Variable variable) const;
  /// The value, or the fallback. nullopt: neither is there, or the value is wrong (reported). The
  /// text of a variable that has words is one of them.
  /// Errors (bad-variable).
  [[nodiscard]] std::optional<uint64_t> number(Variable variable, Diagnostics& diagnostics) const;
  [[nodiscard]] std::optional<std::string> text(Variable variable, Diagnostics& diagnostics) const;
  /// MSCCLC_ORDER: what sums of calls keep to that do not say it. nullopt: it is wrong (reported).
  [[nodiscard]] std::optional<SumOrder> order(Diagnostics& diagnostics) const;
  /// MSCCLC_TIMEOUT; 0 there is kForever.
  [[nodiscard]] std::optional<std::chrono::milliseconds> timeout(Diagnostics& diagnostics) const;

  /// Whether all variables of ours that are set have values that are allowed, also those that this
  /// process does not need. Errors (bad-variable).
  [[nodiscard]] bool check_ours(Diagnostics& diagnostics) const;

  /// Warns of variables that begin with MSCCLC_ but are not read: most are misspelt.
  void warn_of_unknown(Diagnostics& diagnostics) const;

 private:
  void check(const VariableInfo& row, Diagnostics& diagnostics) const;

  Values values_;
};

/// Environment::warn_of_unknown() for the first that asks in a process; nothing for all others. A
/// child of fork() counts as one with its parent. Thread safety: from any thread.
void warn_of_unknown_once(const Environment& environment, Diagnostics& diagnostics);
/// The next asks first again. For tests.
void forget_unknown_warning();

}  // namespace mscclc
