// Kinds of step, and the table of what they are (step_kinds.def). A `switch` over StepKind or
// StepFamily has no `default`, so that one which lacks a kind does not compile.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace mscclc::device {

enum class StepKind : uint8_t {
#define STEP(name, ...) name,
#include "executor/interpreter/step_kinds.def"
#undef STEP
};

enum class StepFamily : uint8_t {
  plain,
  packets,
  sent,
  switched,
  rows,
  target,
  block,
  loop,
  flags
};

/// One row of the table.
struct StepInfo {
  std::string_view name;
  StepFamily family;
  bool adds;  ///< several sources are added up
};

inline constexpr StepInfo kStepTable[] = {
#define STEP(name, family, adds) {#name, StepFamily::family, adds},
#include "executor/interpreter/step_kinds.def"
#undef STEP
};

/// All rows; index by StepKind.
constexpr std::span<const StepInfo> step_table() { return kStepTable; }
constexpr const StepInfo& info(StepKind kind) { return kStepTable[static_cast<size_t>(kind)]; }

/// How many kinds a family has.
constexpr uint32_t kinds_of(StepFamily family) {
  uint32_t count = 0;
  for (const StepInfo& step : kStepTable) count += step.family == family ? 1 : 0;
  return count;
}

/// True for steps whose operands are data; the others have targets, or none.
constexpr bool moves_data(StepKind kind) {
  switch (info(kind).family) {
    case StepFamily::plain:
    case StepFamily::packets:
    case StepFamily::sent:
    case StepFamily::switched:
    case StepFamily::rows:
      return true;
    case StepFamily::target:
    case StepFamily::block:
    case StepFamily::loop:
    case StepFamily::flags:
      break;
  }
  return false;
}

}  // namespace mscclc::device
