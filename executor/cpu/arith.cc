#include "executor/cpu/arith.h"

#include <array>

#include "executor/cpu/tiles.h"
#include "executor/interpreter/exact.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

using device::Element;
using device::SumOf;
using device::ValueOf;

/// Floats of one byte: looking the value up takes a quarter of the time of working it out.
template <Dtype T>
constexpr bool kLookedUp = Element<T>::kIsFloat && sizeof(typename Element<T>::Bits) == 1;

template <Dtype T>
const auto kValues = [] {
  std::array<ValueOf<T>, 256> values;
  for (uint32_t code = 0; code < 256; ++code) {
    values[code] = Element<T>::read(static_cast<uint8_t>(code));
  }
  return values;
}();

template <Dtype T, class A>
void start(void* sums, const uint8_t* row, uint32_t n) {
  if constexpr (kLookedUp<T>) {
    for (uint32_t i = 0; i < n; ++i) static_cast<A*>(sums)[i] = A{kValues<T>[row[i]]};
  } else {
    device::start_row<T>(static_cast<A*>(sums), row, n);
  }
}

template <Dtype T, class A, ReduceOp R>
void add(void* sums, const uint8_t* row, uint32_t n) {
  if constexpr (kLookedUp<T>) {
    A* const all = static_cast<A*>(sums);
    for (uint32_t i = 0; i < n; ++i) all[i] = device::combine<R>(all[i], A{kValues<T>[row[i]]});
  } else {
    device::combine_row<T, A, R>(static_cast<A*>(sums), row, n);
  }
}

template <Dtype T, class A>
void finish(uint8_t* row, const void* sums, uint32_t n) {
  device::finish_row<T>(row, static_cast<const A*>(sums), n);
}

template <class A, ReduceOp R>
void merge(void* sums, const void* more, uint32_t n) {
  device::merge_row<R>(static_cast<A*>(sums), static_cast<const A*>(more), n);
}

template <class A>
void divide(void* sums, uint32_t n, uint32_t by) {
  device::divide_row(static_cast<A*>(sums), n, by);
}

template <Dtype T, class A, ReduceOp R>
constexpr RowArith kRowArith = {start<T, A>, add<T, A, R>, merge<A, R>, finish<T, A>, divide<A>};

template <Dtype T, class A>
RowArith with_reduction(ReduceOp reduce) {
  if (reduce == ReduceOp::min) return kRowArith<T, A, ReduceOp::min>;
  if (reduce == ReduceOp::max) return kRowArith<T, A, ReduceOp::max>;
  if (reduce == ReduceOp::prod) return kRowArith<T, A, ReduceOp::prod>;
  return kRowArith<T, A, ReduceOp::sum>;
}

template <Dtype T>
RowArith with_accumulate(Dtype accumulate, ReduceOp reduce) {
  switch (accumulate) {
#define DTYPE(name, ...)                                    \
  case Dtype::name:                                         \
    if constexpr (device::sums_fit<T, Dtype::name>()) {     \
      return with_reduction<T, SumOf<Dtype::name>>(reduce); \
    }                                                       \
    break;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return {};
}

template <Dtype T>
using TileSums = device::ExactSums<T, kTileBytes / sizeof(typename Element<T>::Bits)>;

template <Dtype T>
void start_exactly(void* sums, const uint8_t* row, uint32_t n) {
  static_cast<TileSums<T>*>(sums)->start(row, n);
}
template <Dtype T>
void add_exactly(void* sums, const uint8_t* row, uint32_t n) {
  static_cast<TileSums<T>*>(sums)->add(row, n);
}
template <Dtype T, class A>
void finish_exactly(uint8_t* row, void* sums, uint32_t n, uint32_t divisor) {
  static_cast<TileSums<T>*>(sums)->template finish<A>(row, n, divisor);
}

template <Dtype T>
ExactArith exact_in(Dtype accumulate) {
  if constexpr (Element<T>::kIsFloat) {
    switch (accumulate) {
#define DTYPE(name, ...)                                                               \
  case Dtype::name:                                                                    \
    if constexpr (device::sums_fit<T, Dtype::name>()) {                                \
      return {start_exactly<T>, add_exactly<T>, finish_exactly<T, SumOf<Dtype::name>>, \
              sizeof(TileSums<T>)};                                                    \
    }                                                                                  \
    break;
#include "ir/ops/dtypes.def"
#undef DTYPE
    }
  }
  return {};
}

}  // namespace

ExactArith exact_arith(Dtype dtype, Dtype accumulate) {
  precondition(info(dtype).kind == DtypeKind::kFloat);
  switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return exact_in<Dtype::name>(accumulate);
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return {};
}

RowArith row_arith(Dtype dtype, Dtype accumulate, ReduceOp reduce) {
  switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return with_accumulate<Dtype::name>(accumulate, reduce);
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return {};
}

}  // namespace mscclc
