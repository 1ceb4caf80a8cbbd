// Matrices of GEMMs that overlap, for tests: what each rank gives, and what must come out, computed
// by plain loops over all ranks' matrices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/api/overlap.h"

namespace mscclc::testing {

using MatrixBytes = std::vector<uint8_t>;

/// Where values come from.
enum class MatrixValues : uint8_t {
  small,  ///< -1, 0, 1: all sums are exact in all types
  real    ///< floats whose sums are rounded
};

/// What a rank gives to one run.
struct RankMatrices {
  MatrixBytes a;
  std::vector<MatrixBytes> b, bias;
  float a_scale = 1;
  std::vector<float> b_scale;
};

/// One object's runs, over all ranks.
class GemmWorld {
 public:
  GemmWorld(const OverlapConfig& config, uint32_t ranks, MatrixValues values)
      : config_(config), ranks_(ranks), values_(values) {}
  RankMatrices matrices(uint32_t rank, uint32_t run) const;
  /// What all ranks' parts of A give at a rank: [m, k]; its own A where sums are made.
  MatrixBytes gathered(uint32_t rank, uint32_t run) const;
  /// out[weight] of a rank. REQUIRES: MatrixValues::small.
  MatrixBytes expected(uint32_t rank, uint32_t run, size_t weight) const;
  /// What the activation is of, in the same way.
  MatrixBytes before_activation(uint32_t rank, uint32_t run, size_t weight) const;
  uint64_t a_rows() const;
  uint64_t out_rows() const;

 private:
  std::vector<float> product(uint32_t rank, uint32_t run, size_t weight) const;

  const OverlapConfig config_;
  const uint32_t ranks_;
  const MatrixValues values_;
};

}  // namespace mscclc::testing
