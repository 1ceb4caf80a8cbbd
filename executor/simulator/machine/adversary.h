// The adversarial mode of the simulator: what it may do besides choosing what runs next.
//
//  - A thread block is run by several *strands*, which split every op as the threads of a GPU block
//    do and meet only where the plan makes them: a missing `sync` shows.
//  - A plain access may be *late*: it is done when something in the plan's order forces it, not
//    when its strand comes by. A relaxed signal that carries data shows.
//
// With a seed both are left to chance. *Holds* make one such choice on purpose: that is how a
// schedule (schedule.h) says what goes wrong. docs/design/witnesses.md has the whole model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mscclc {

/// One thing that is delayed until nothing else can move (an access: or until it is forced).
struct Hold {
  enum class What : uint8_t {
    op,      ///< the strand lingers before the op
    access,  ///< the strand goes on; what the op reads and writes is done late
    proxy,   ///< the proxy lingers before the transfers that the op has posted
    call,    ///< the rank enters the call late; `op` and `strand` mean nothing
  };
  static constexpr uint32_t kAllStrands = 0xffffffffu;

  What what = What::op;
  uint32_t rank = 0;
  uint32_t op = 0;  ///< index in Program::ranks[rank].ops
  uint32_t strand = kAllStrands;
  uint64_t call = 0;
  std::string note = {};  ///< for people: the op, and its line in the program
  bool operator==(const Hold&) const = default;
};

inline constexpr std::string_view kHoldNames[] = {"op", "access", "proxy", "call"};
inline std::string_view name(Hold::What what) { return kHoldNames[static_cast<size_t>(what)]; }

struct Adversary {
  static constexpr uint32_t kMaxStrands = 8;
  uint32_t strands = 2;  ///< at each thread block, 1 to kMaxStrands
  /// When nothing can move, the first of those that still wait is released.
  std::vector<Hold> holds = {};
};

}  // namespace mscclc
