#include "runtime/core/overlap/products.h"

#include <set>

namespace mscclc::overlap {
namespace {

/// Row `row` of a matrix whose row 0 may lie before all memory that there is.
void* at_row(const void* matrix, uint64_t row, uint64_t columns, Dtype type) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(matrix) +
                                 row * columns * mscclc::info(type).bytes);
}

}  // namespace

/// A sum's bias comes after the collective. That of f32 products of 8-bit floats does after each:
/// neither cuBLASLt nor torch adds it.
bool Products::adds_bias() const {
  return config_.bias && !info(config_.kind).sums && mscclc::info(config_.a_dtype).bytes == 1 &&
         config_.out_dtype == Dtype::f32;
}

Gemm Products::shape_of(const Tile& tile, size_t weight) const {
  const uint64_t n = config_.n[weight];
  return {.m = tile.rows,
          .n = n,
          .k = config_.k,
          .a_stride = config_.k,
          .b_stride = config_.b_transposed ? config_.k : n,
          .d_stride = n,
          .b_transposed = config_.b_transposed,
          .a_dtype = config_.a_dtype,
          .b_dtype = config_.b_dtype,
          .d_dtype = config_.out_dtype,
          .multiprocessors = multiprocessors_,
          .has_bias = config_.bias && !info(config_.kind).sums && !adds_bias(),
          .has_scales = mscclc::info(config_.a_dtype).bytes == 1};
}

bool Products::prepare(const std::vector<Tile>& tiles, Diagnostics& diagnostics) {
  std::set<std::pair<uint64_t, uint64_t>> made;  // rows and columns
  for (const Tile& tile : tiles) {
    for (size_t w = 0; w < config_.n.size(); ++w) {
      if (!made.emplace(tile.rows, config_.n[w]).second) continue;
      const Gemm shape = shape_of(tile, w);
      if (!provider_.prepare(shape, diagnostics) ||
          !streams_.warm_up(provider_, shape, diagnostics)) {
        return false;
      }
    }
  }
  return true;
}

bool Products::run(const Tile& tile, const OverlapCall& call, const void* a,
                   const std::vector<void*>& d, const GemmScratch& scratch, StreamHandle stream,
                   Diagnostics& diagnostics) {
  for (size_t w = 0; w < config_.n.size(); ++w) {
    Gemm gemm = shape_of(tile, w);
    gemm.a = at_row(a, tile.row, config_.k, config_.a_dtype);
    gemm.b = call.b[w];
    gemm.d = at_row(d[w], tile.row, gemm.n, config_.out_dtype);
    if (gemm.has_bias) gemm.bias = call.bias[w];
    gemm.a_scale = call.a_scale;
    if (!call.b_scale.empty()) gemm.b_scale = call.b_scale[w];
    gemm.workspace = scratch.data;
    gemm.workspace_bytes = scratch.bytes;
    if (!streams_.multiply(provider_, gemm, stream, failed_, diagnostics) ||
        !finish(tile, call, w, gemm.d, stream, diagnostics)) {
      return false;
    }
  }
  return true;
}

bool Products::finish(const Tile& tile, const OverlapCall& call, size_t weight, void* out,
                      StreamHandle stream, Diagnostics& diagnostics) {
  const bool activates = config_.activation != Activation::none && !info(config_.kind).sums;
  if (!activates && !adds_bias()) return true;
  PartSum step{.to = out,
               .from = out,
               .bias = adds_bias() ? call.bias[weight] : nullptr,
               .rows = tile.rows,
               .columns = config_.n[weight],
               .dtype = config_.out_dtype,
               .activation = config_.activation};
  if (!call.pre_activation.empty()) {
    step.before = at_row(call.pre_activation[weight], tile.row, step.columns, config_.out_dtype);
  }
  return streams_.add_parts(step, stream, diagnostics);
}

}  // namespace mscclc::overlap
