#include "compiler/evaluate/steps.h"

#include <fmt/format.h>

namespace mscclc {

bool Steps::too_long(ast::TextRange place) {
  if (!stopped_) {
    context_.fail("too-many-steps", place,
                  fmt::format("the program has not ended after {} steps", max_steps_));
  }
  stopped_ = true;
  return false;
}

bool Steps::too_many(uint64_t rounds, const ast::TextRange& place) {
  if (!stopped_) {
    context_.fail(
        "too-many-steps", place,
        fmt::format("a loop of {} rounds in all, where {} of the program's {} steps are left",
                    rounds, left(), max_steps_));
  }
  stopped_ = true;
  return false;
}

}  // namespace mscclc
