// Sums of matrices that GEMMs have made: a piece of elements at a time, on host and device.
//
// In f32, in the order of the parts, rounded once: the bits of a plan under `order: ranks`.
#pragma once

#include <cmath>
#include <cstdint>

#include "executor/interpreter/numbers.h"

namespace mscclc::device {

/// to [count] = the sum of parts [count], which follow one another; plus bias [columns], if there
/// is one, for each row of `columns`, rounded once more; of that, if asked for, gelu().
struct PartSum {
  Dtype dtype;  ///< f32, f16 or bf16
  void* to;     ///< may be `from`, of one part
  const void* from;
  uint32_t parts;
  const void* bias;  ///< nullptr: none
  uint64_t count, columns;
  bool gelu;     ///< to gets the activation
  void* before;  ///< gets what the activation is of; nullptr: nothing does
};

/// The approximation by tanh, which GEMM libraries have: Hendrycks and Gimpel, "Gaussian Error
/// Linear Units", 2016.
MSCCLC_HD inline float gelu(float x) {
  constexpr float kSlope = 0.7978845608f, kCubic = 0.044715f;  // sqrt(2 / pi)
  return 0.5f * x * (1.0f + tanhf(kSlope * (x + kCubic * x * x * x)));
}

/// Elements of 16 bytes.
template <Dtype T>
inline constexpr uint32_t kPieceOf = 16 / sizeof(typename Element<T>::Bits);

/// Whether every part and row begins at a whole piece, at a multiple of 16 bytes. A tile of a
/// matrix may begin elsewhere.
template <Dtype T>
MSCCLC_HD bool has_whole_pieces(const PartSum& sum) {
  const void* const pointers[] = {sum.to, sum.from, sum.bias, sum.before};
  for (const void* const pointer : pointers) {
    if (reinterpret_cast<uintptr_t>(pointer) % 16 != 0) return false;
  }
  return sum.count % kPieceOf<T> == 0 && (sum.bias == nullptr || sum.columns % kPieceOf<T> == 0);
}

/// Elements at .. at + kPiece. REQUIRES: kPiece is 1, or has_whole_pieces() and `at` is at one.
template <Dtype T, uint32_t kPiece>
MSCCLC_HD void add_parts_at(const PartSum& sum, uint64_t at) {
  using E = Element<T>;
  using Bits = typename E::Bits;
  struct alignas(kPiece * sizeof(Bits)) Piece {
    Bits bits[kPiece];
  };
  const auto piece = [](const void* of, uint64_t element) {
    return *reinterpret_cast<const Piece*>(static_cast<const Bits*>(of) + element);
  };
  Piece next = piece(sum.from, at);
  float total[kPiece];
  for (uint32_t e = 0; e < kPiece; ++e) total[e] = E::read(next.bits[e]);
  for (uint32_t part = 1; part < sum.parts; ++part) {
    next = piece(sum.from, part * sum.count + at);
    for (uint32_t e = 0; e < kPiece; ++e) total[e] += E::read(next.bits[e]);
  }
  if (sum.bias != nullptr) {
    next = piece(sum.bias, at % sum.columns);
    for (uint32_t e = 0; e < kPiece; ++e) {
      total[e] = E::read(E::write(total[e])) + E::read(next.bits[e]);
    }
  }
  const auto store = [&](void* to) {
    *reinterpret_cast<Piece*>(static_cast<Bits*>(to) + at) = next;
  };
  for (uint32_t e = 0; e < kPiece; ++e) next.bits[e] = E::write(total[e]);
  if (sum.before != nullptr) store(sum.before);
  if (sum.gelu) {
    for (uint32_t e = 0; e < kPiece; ++e) next.bits[e] = E::write(gelu(E::read(next.bits[e])));
  }
  store(sum.to);
}

}  // namespace mscclc::device
