// How much a program may do before it must end: steps, which loops and calls take, and ops earn.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/evaluate/context.h"

namespace mscclc {

/// Steps that a call of a function counts for, and an element of a list that is made.
inline constexpr uint64_t kStepsOfCall = 8, kStepsOfElement = 2;

class Steps {
 public:
  explicit Steps(EvaluationContext& context) : context_(context) {}

  /// Counts work; false (and an error, once) when a program does not come to an end.
  bool take(const ast::TextRange& place, uint64_t n = 1) {
    return (steps_ += n) <= max_steps_ || too_long(place);
  }
  /// False (and an error, once) if a loop of n rounds, a step each, must end like that: at once.
  /// `may_do_ops`: its rounds may earn further steps.
  bool rounds(int64_t n, const ast::TextRange& place, bool may_do_ops = false) {
    const uint64_t allowed = may_do_ops ? most_left() : left();
    return static_cast<uint64_t>(n) <= allowed || too_many(static_cast<uint64_t>(n), place);
  }
  bool too_many(uint64_t rounds, const ast::TextRange& place);
  /// Counts n steps if there are as many left; reports nothing.
  bool take_if_left(int64_t n) {
    if (static_cast<uint64_t>(n) > left()) return false;
    steps_ += static_cast<uint64_t>(n);
    return true;
  }
  uint64_t taken() const { return steps_; }
  uint64_t left() const { return max_steps_ - std::min(steps_, max_steps_); }
  /// Steps left if all ops that are allowed are made.
  uint64_t most_left() const { return most_steps_ - std::min(steps_, most_steps_); }
  /// A program may take `n` steps, and, as it makes ops, up to `most`.
  void set_max(uint64_t n, uint64_t most) {
    most_steps_ = most;
    max_steps_ = std::min(n, most);
  }
  /// Work is done that allows for more steps.
  void earn(uint64_t n) { max_steps_ = std::min(max_steps_ + n, most_steps_); }
  /// Counts n steps in any case.
  void add(uint64_t n) { steps_ += n; }
  /// There were too many, as is reported.
  bool stopped() const { return stopped_; }

 private:
  bool too_long(ast::TextRange place);

  EvaluationContext& context_;
  uint64_t steps_ = 0, max_steps_ = uint64_t{1} << 30, most_steps_ = max_steps_;
  bool stopped_ = false;
};

}  // namespace mscclc
