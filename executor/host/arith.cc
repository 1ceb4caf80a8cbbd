#include "executor/host/arith.h"

#include "executor/interpreter/arith.h"

namespace mscclc {
namespace {

using device::ValueOf;

template <Dtype T, class A>
void start(void* sums, const uint8_t* row, uint32_t n) {
  device::start_row<T>(static_cast<A*>(sums), row, n);
}

template <Dtype T, class A, ReduceOp R>
void add(void* sums, const uint8_t* row, uint32_t n) {
  device::combine_row<T, A, R>(static_cast<A*>(sums), row, n);
}

template <Dtype T, class A>
void finish(uint8_t* row, const void* sums, uint32_t n) {
  device::finish_row<T>(row, static_cast<const A*>(sums), n);
}

template <class A>
void divide(void* sums, uint32_t n, uint32_t by) {
  device::divide_row(static_cast<A*>(sums), n, by);
}

template <Dtype T, class A>
RowArith with_reduction(ReduceOp reduce) {
  RowArith out{start<T, A>, add<T, A, ReduceOp::sum>, finish<T, A>, divide<A>};
  if (reduce == ReduceOp::min) out.add = add<T, A, ReduceOp::min>;
  if (reduce == ReduceOp::max) out.add = add<T, A, ReduceOp::max>;
  if (reduce == ReduceOp::prod) out.add = add<T, A, ReduceOp::prod>;
  return out;
}

template <Dtype T>
RowArith with_accumulate(Dtype accumulate, ReduceOp reduce) {
  switch (accumulate) {
#define DTYPE(name, ...)                                      \
  case Dtype::name:                                           \
    if constexpr (device::sums_fit<T, Dtype::name>()) {       \
      return with_reduction<T, ValueOf<Dtype::name>>(reduce); \
    }                                                         \
    break;
#include "ir/dtypes.def"
#undef DTYPE
  }
  return {};
}

}  // namespace

RowArith row_arith(Dtype dtype, Dtype accumulate, ReduceOp reduce) {
  switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return with_accumulate<Dtype::name>(accumulate, reduce);
#include "ir/dtypes.def"
#undef DTYPE
  }
  return {};
}

}  // namespace mscclc
