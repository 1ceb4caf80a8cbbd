#include "compiler/rows/library.h"

#include "compiler/rows/read_rows.h"
#include "ir/support/precondition.h"

namespace mscclc::rows {

std::string_view library_text() {
  return R"(# x is what the collective gives. T(x) is where the unfused chain stores it.

# The residual stream.
row add(x: row T, residual: row T) {
  out y: row T = T(x) + residual
}

row add_bias(x: row T, bias: columns T) {
  out y: row T = T(x) + bias
}

row rmsnorm(x: row T, weight: columns T, eps: scalar f32) {
  let v = T(x)
  out y: row T = v * rsqrt(mean(v * v) + eps) * weight
}

row rmsnorm_without_weight(x: row T, eps: scalar f32) {
  let v = T(x)
  out y: row T = v * rsqrt(mean(v * v) + eps)
}

# As Gemma keeps its weights: what they differ from 1.
row gemma_rmsnorm(x: row T, weight: columns T, eps: scalar f32) {
  let v = T(x)
  out y: row T = v * rsqrt(mean(v * v) + eps) * (1 + weight)
}

row layernorm(x: row T, weight: columns T, bias: columns T, eps: scalar f32) {
  let v = T(x)
  let centred = v - mean(v)
  out y: row T = centred * rsqrt(mean(centred * centred) + eps) * weight + bias
}

# The residual stream, and the norm of it.
row add_rmsnorm(x: row T, residual: row T, weight: columns T, eps: scalar f32) {
  let stream = T(T(x) + residual)
  out residual_out: row T = stream
  out y: row T = stream * rsqrt(mean(stream * stream) + eps) * weight
}

row add_gemma_rmsnorm(x: row T, residual: row T, weight: columns T, eps: scalar f32) {
  let stream = T(T(x) + residual)
  out residual_out: row T = stream
  out y: row T = stream * rsqrt(mean(stream * stream) + eps) * (1 + weight)
}

# q * scale is nearly x: one scale for the tensor, given.
row quantize(x: row T, scale: scalar f32) {
  out q: row e4m3 = T(x) * (1 / scale)
}

# A scale for each row, at least `least`.
row quantize_per_token(x: row T, least: scalar f32) {
  let v = T(x)
  let s = max(max(abs(v)) / 448, least)
  out q: row e4m3 = v / s
  out scale: token f32 = s
}

# A scale for each 128 columns.
row quantize_per_group(x: row T) {
  let v = T(x)
  let s = max(max(abs(v) for 128), 1e-10) / 448
  out q: row e4m3 = v / s
  out scale: groups(128) f32 = s
}

# MXFP8: a power of two for each 32 columns, the least by which nothing goes beyond 448.
row quantize_mxfp8(x: row T) {
  let v = T(x)
  let s = e8m0(max(abs(v) for 32) / 448)
  out q: row e4m3 = v / s
  out scale: groups(32) e8m0 = s
}

row add_rmsnorm_quantize(x: row T, residual: row T, weight: columns T, eps: scalar f32, scale: scalar f32) {
  let stream = T(T(x) + residual)
  let norm = T(stream * rsqrt(mean(stream * stream) + eps) * weight)
  out residual_out: row T = stream
  out q: row e4m3 = norm * (1 / scale)
}

row add_rmsnorm_quantize_per_token(x: row T, residual: row T, weight: columns T, eps: scalar f32, least: scalar f32) {
  let stream = T(T(x) + residual)
  let norm = T(stream * rsqrt(mean(stream * stream) + eps) * weight)
  let s = max(max(abs(norm)) / 448, least)
  out residual_out: row T = stream
  out q: row e4m3 = norm / s
  out scale: token f32 = s
}
# The same by a scale for each 128 columns.
row add_rmsnorm_quantize_per_group(x: row T, residual: row T, weight: columns T, eps: scalar f32) {
  let stream = T(T(x) + residual)
  let norm = T(stream * rsqrt(mean(stream * stream) + eps) * weight)
  let s = max(max(abs(norm) for 128), 1e-10) / 448
  out residual_out: row T = stream
  out q: row e4m3 = norm / s
  out scale: groups(128) f32 = s
}

# MXFP8: by a power of two for each 32 columns.
row add_rmsnorm_quantize_mxfp8(x: row T, residual: row T, weight: columns T, eps: scalar f32) {
  let stream = T(T(x) + residual)
  let norm = T(stream * rsqrt(mean(stream * stream) + eps) * weight)
  let s = e8m0(max(abs(norm) for 32) / 448)
  out residual_out: row T = stream
  out q: row e4m3 = norm / s
  out scale: groups(32) e8m0 = s
}

# Scales that have come from elsewhere, for the caller, and where they lie.
row keep_token(x: token f32) {
  out scale: token f32 = x
  out kept: token f32 = x
}

row keep_groups(x: groups(128) f32) {
  out scale: groups(128) f32 = x
  out kept: groups(128) f32 = x
}

row keep_mxfp8(x: groups(32) e8m0) {
  out scale: groups(32) e8m0 = x
  out kept: groups(32) e8m0 = x
}
)";
}

std::vector<Function> library() {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("rows of the library", std::string(library_text()));
  auto functions = read_rows(sources, file, diagnostics);
  precondition(functions.has_value());
  return *std::move(functions);
}

Function library_function(std::string_view name) {
  for (Function& function : library()) {
    if (function.name == name) return std::move(function);
  }
  precondition(false);
  return {};
}

}  // namespace mscclc::rows
