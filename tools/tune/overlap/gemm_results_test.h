// Shapes and results for tests.
#pragma once

#include "tools/tune/overlap/gemm_tuner.h"

namespace mscclc::tune {

inline OverlapConfig shape_of(OverlapKind kind, uint64_t m, uint64_t k, uint64_t n) {
  return {.kind = kind, .m = m, .k = k, .n = {n}, .b_transposed = true};
}

/// A result in which `best` takes `ns`, and `serial` 1000.
inline GemmResult result_of(const OverlapConfig& shape, const GemmWay& best, double ns = 800,
                            overlap::RunMode mode = overlap::RunMode::captured) {
  GemmResult result{.shape = shape, .ranks = 2, .mode = mode};
  result.times = {{{overlap::kSerial}, 1000}};
  result.best = result.times.front();
  if (best.backend == overlap::kSerial) return result;
  result.times.push_back({best, ns});
  result.best = result.times.back();
  return result;
}

}  // namespace mscclc::tune
