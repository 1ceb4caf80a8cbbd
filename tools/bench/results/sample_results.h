// Results for tests of what is made of them.
#pragma once

#include <string>

#include "tools/bench/results/result.h"

namespace mscclc::bench {

/// An allreduce of f32 over 4 ranks in a graph; in place it takes a µs more.
inline Result sample(uint64_t bytes, const std::string& who, Role role, double time) {
  Result r;
  r.collective = "allreduce";
  r.dtype = "f32";
  r.op = "sum";
  r.mode = "graph";
  r.bytes = bytes;
  r.count = bytes / 4;
  r.ranks = 4;
  r.who = who;
  r.role = role;
  r.ordered_by = role == Role::plan ? "copies" : "";
  r.bus_factor = 1.5;
  r.out_of_place = Times{.time = time, .p50 = time, .p99 = time * 2, .wrong = 0, .checked = true};
  r.in_place = r.out_of_place;
  r.in_place->time += 1;
  return r;
}

}  // namespace mscclc::bench
