// Data types and reductions: enums and their tables, made from dtypes.def.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace mscclc {

enum class DtypeKind : uint8_t { kFloat, kSigned, kUnsigned };

enum class Dtype : uint8_t {
#define DTYPE(name, ...) name,
#include "ir/ops/dtypes.def"
#undef DTYPE
};

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;
  uint32_t bytes;
  DtypeKind kind;
  Dtype accumulate;
  std::string_view aliases;
};

std::span<const DtypeInfo> dtype_table();
inline const DtypeInfo& info(Dtype t) { return dtype_table()[static_cast<size_t>(t)]; }
/// Finds a data type by name or alias.
std::optional<Dtype> find_dtype(std::string_view name);

/// A reduction; `call` means the one that the caller asks for.
enum class ReduceOp : uint8_t { call, sum, min, max, prod, avg };
std::string_view name(ReduceOp op);
std::optional<ReduceOp> find_reduce_op(std::string_view name);
/// Minima and maxima are not rounded: every order gives the same.
constexpr bool is_extremum(ReduceOp op) { return op == ReduceOp::min || op == ReduceOp::max; }
/// Is a sum of floats rounded to their type wherever an op stores it, before it is complete? It is
/// where sums are made in another type, by their own accumulation or by the call's, `accumulate`.
inline bool rounds_on_the_way(Dtype dtype, Dtype accumulate) {
  return info(dtype).kind == DtypeKind::kFloat &&
         (info(dtype).accumulate != dtype || accumulate != dtype);
}

}  // namespace mscclc
