#include "runtime/devices/host/cpu_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "executor/interpreter/numbers.h"
#include "executor/interpreter/part_sum.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

bool is_operand(Dtype type) {
  return type == Dtype::f32 || type == Dtype::f16 || type == Dtype::bf16 || type == Dtype::e4m3 ||
         type == Dtype::e5m2;
}

bool is_result(Dtype type) {
  return type == Dtype::f32 || type == Dtype::f16 || type == Dtype::bf16;
}

template <Dtype T>
void read_values(const void* from, uint64_t count, float* to) {
  const auto* bits = static_cast<const typename device::Element<T>::Bits*>(from);
  for (uint64_t i = 0; i < count; ++i) to[i] = device::Element<T>::read(bits[i]);
}

/// REQUIRES: is_operand().
void read_row(Dtype type, const void* row, uint64_t first, uint64_t count, float* to) {
  precondition(is_operand(type));
  const auto* const at = static_cast<const uint8_t*>(row) + first * info(type).bytes;
  switch (type) {
    case Dtype::f16:
      return read_values<Dtype::f16>(at, count, to);
    case Dtype::bf16:
      return read_values<Dtype::bf16>(at, count, to);
    case Dtype::e4m3:
      return read_values<Dtype::e4m3>(at, count, to);
    case Dtype::e5m2:
      return read_values<Dtype::e5m2>(at, count, to);
    default:
      return read_values<Dtype::f32>(at, count, to);
  }
}

template <Dtype T>
void write_values(const float* from, uint64_t count, void* to) {
  auto* bits = static_cast<typename device::Element<T>::Bits*>(to);
  for (uint64_t i = 0; i < count; ++i) bits[i] = device::Element<T>::write(from[i]);
}

/// REQUIRES: is_result().
void write_row(Dtype type, const float* from, uint64_t count, void* to) {
  precondition(is_result(type));
  switch (type) {
    case Dtype::f16:
      return write_values<Dtype::f16>(from, count, to);
    case Dtype::bf16:
      return write_values<Dtype::bf16>(from, count, to);
    default:
      return write_values<Dtype::f32>(from, count, to);
  }
}

const uint8_t* row_of(const void* matrix, uint64_t row, uint64_t stride, Dtype type) {
  return static_cast<const uint8_t*>(matrix) + row * stride * info(type).bytes;
}

/// b [k, n] as floats, however it lies.
std::vector<float> read_b(const Gemm& gemm) {
  std::vector<float> b(gemm.k * gemm.n);
  if (!gemm.b_transposed) {
    for (uint64_t k = 0; k < gemm.k; ++k) {
      read_row(gemm.b_dtype, row_of(gemm.b, k, gemm.b_stride, gemm.b_dtype), 0, gemm.n,
               &b[k * gemm.n]);
    }
    return b;
  }
  std::vector<float> row(gemm.k);
  for (uint64_t n = 0; n < gemm.n; ++n) {
    read_row(gemm.b_dtype, row_of(gemm.b, n, gemm.b_stride, gemm.b_dtype), 0, gemm.k, row.data());
    for (uint64_t k = 0; k < gemm.k; ++k) b[k * gemm.n + n] = row[k];
  }
  return b;
}

}  // namespace

bool check_cpu_gemm(const Gemm& gemm, Diagnostics& diagnostics) {
  if (is_operand(gemm.a_dtype) && is_operand(gemm.b_dtype) && is_result(gemm.d_dtype)) return true;
  diagnostics.error(
      "bad-call", {},
      fmt::format("the host multiplies f32, f16, bf16, e4m3 and e5m2 to f32, f16 or bf16, not {} "
                  "by {} to {}",
                  info(gemm.a_dtype).name, info(gemm.b_dtype).name, info(gemm.d_dtype).name));
  return false;
}

void cpu_gemm(const Gemm& gemm) {
  precondition(is_operand(gemm.a_dtype) && is_operand(gemm.b_dtype) && is_result(gemm.d_dtype));
  const std::vector<float> b = read_b(gemm);
  std::vector<float> a(gemm.k), sums(gemm.n), more(gemm.n);
  const float scale = (gemm.a_scale != nullptr ? *gemm.a_scale : 1.0f) *
                      (gemm.b_scale != nullptr ? *gemm.b_scale : 1.0f);
  const auto add_row = [&](const void* row) {
    read_row(gemm.d_dtype, row, 0, gemm.n, more.data());
    for (uint64_t n = 0; n < gemm.n; ++n) sums[n] += more[n];
  };
  for (uint64_t m = 0; m < gemm.m; ++m) {
    read_row(gemm.a_dtype, row_of(gemm.a, m, gemm.a_stride, gemm.a_dtype), 0, gemm.k, a.data());
    std::ranges::fill(sums, 0.0f);
    for (uint64_t k = 0; k < gemm.k; ++k) {
      for (uint64_t n = 0; n < gemm.n; ++n) sums[n] += a[k] * b[k * gemm.n + n];
    }
    for (float& sum : sums) sum *= scale;
    void* const row = const_cast<uint8_t*>(row_of(gemm.d, m, gemm.d_stride, gemm.d_dtype));
    if (gemm.accumulate) add_row(row);
    if (gemm.bias != nullptr) add_row(gemm.bias);
    write_row(gemm.d_dtype, sums.data(), gemm.n, row);
  }
}

void cpu_add_parts(const PartSum& sum) {
  precondition(is_result(sum.dtype));
  const device::PartSum all{.dtype = sum.dtype,
                            .to = sum.to,
                            .from = sum.from,
                            .parts = sum.parts,
                            .bias = sum.bias,
                            .count = sum.rows * sum.columns,
                            .columns = sum.columns,
                            .gelu = sum.activation == Activation::gelu,
                            .before = sum.before};
  for (uint64_t at = 0; at < all.count; ++at) {
    switch (sum.dtype) {
      case Dtype::f32:
        device::add_parts_at<Dtype::f32, 1>(all, at);
        break;
      case Dtype::f16:
        device::add_parts_at<Dtype::f16, 1>(all, at);
        break;
      default:
        device::add_parts_at<Dtype::bf16, 1>(all, at);
    }
  }
}

}  // namespace mscclc
