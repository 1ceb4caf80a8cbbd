// Classes of pipelines: those whose unit is the same part of their bytes have equally many rounds
// for every message; for two others there is a message that distinguishes them.
#pragma once

#include <cstdint>

#include "ir/program/program.h"

namespace mscclc::proof {

/// Has `a` more rounds than `b` for every message that is long enough?
inline bool finer(const Loop& a, const Loop& b) {
  using Wide = unsigned __int128;  // units are any 64 bits
  return Wide{a.chunks} * b.unit > Wide{b.chunks} * a.unit;
}
inline bool same_rate(const Loop& a, const Loop& b) { return !finer(a, b) && !finer(b, a); }

}  // namespace mscclc::proof
