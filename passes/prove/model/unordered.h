// Where to look for a schedule that goes wrong.
#pragma once

#include <cstdint>
#include <optional>

namespace mscclc {

/// Two ops of a refused plan that nothing orders, or one op and the caller: where to look for a
/// schedule that goes wrong. `op`: index in Program::ranks[rank].ops.
struct Unordered {
  struct OpInCall {
    uint32_t rank = 0, op = 0, call = 0;
  };
  OpInCall first;
  std::optional<OpInCall> second;
};

}  // namespace mscclc
