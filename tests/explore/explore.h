// An independent judge of tiny plans: every interleaving of a few successive calls, tried one by
// one. It shares no code with the prover and none with the host machine; it is slow and plain.
//
// Every thread block is two lanes that split each op's bytes; every port has a proxy, every rank a
// caller that fills inputs, destroys outputs and reads them. Memory is cells: a third of a chunk
// (or less), which hold multisets of contributions. An access is an *event*. Lanes hand on, by what
// synchronises them, the events that they know of; two conflicting accesses are a race if they can
// come one after the other, the later not knowing of the earlier, before the earlier one's kernel
// has ended.
//
// Steps that may block, and writes of packets, are put in every order. What follows them up to the
// next such step of the same lane runs at once: signals can be moved forward past what others do,
// and plain accesses too, unless they are in a race, which is told whichever comes first.
#pragma once

#include <cstdint>
#include <string>

#include "ir/program.h"

namespace mscclc {

enum class Verdict : uint8_t {
  right,
  wrong_data,
  deadlock,
  race,
  unsupported,  ///< pipelines, alltoallv
  too_large,    ///< more states, or events, than are looked at
};
std::string_view name(Verdict verdict);

struct Exploration {
  Verdict verdict = Verdict::right;
  std::string reason;   ///< what is wrong, and where
  uint64_t states = 0;  ///< looked at
};

struct ExploreOptions {
  uint32_t calls = 2;
  bool in_place = false;
  uint64_t most_states = 100000;
};

/// REQUIRES: program.split, verify_structure(), a contract that allows `in_place`.
Exploration explore(const Program& program, const ExploreOptions& options = {});

}  // namespace mscclc
