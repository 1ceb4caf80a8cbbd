#include "executor/oracle/tree.h"

#include "executor/interpreter/arith.h"
#include "ir/ops/trees.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

using TreeRows = std::span<const std::vector<uint8_t>>;

template <class A>
A combined(ReduceOp reduce, A a, A b) {
  switch (reduce) {
    case ReduceOp::min:
      return device::combine<ReduceOp::min>(a, b);
    case ReduceOp::max:
      return device::combine<ReduceOp::max>(a, b);
    case ReduceOp::prod:
      return device::combine<ReduceOp::prod>(a, b);
    case ReduceOp::call:
    case ReduceOp::sum:
    case ReduceOp::avg:
      break;
  }
  return device::combine<ReduceOp::sum>(a, b);
}

/// T(0, n) of element `i`.
template <Dtype T, class A>
A tree(ReduceOp reduce, TreeRows rows, uint32_t i) {
  if (rows.size() == 1) {
    return device::widen<T, A>(device::element<T>(rows[0].data(), i));
  }
  const uint32_t first = first_of_tree(static_cast<uint32_t>(rows.size()));
  return combined(reduce, tree<T, A>(reduce, rows.first(first), i),
                  tree<T, A>(reduce, rows.subspan(first), i));
}

template <Dtype T, class A>
void reduce_all(ReduceOp reduce, uint32_t divisor, TreeRows rows, std::vector<uint8_t>& out) {
  for (uint32_t i = 0; i < out.size() / info(T).bytes; ++i) {
    A sum = tree<T, A>(reduce, rows, i);
    if (divisor > 1) device::divide_row(&sum, 1, divisor);
    device::finish_row<T>(out.data() + i * info(T).bytes, &sum, 1);
  }
}

template <Dtype T>
void reduce_in(Dtype accumulate, ReduceOp reduce, uint32_t divisor, TreeRows rows,
               std::vector<uint8_t>& out) {
  switch (accumulate) {
#define DTYPE(name, ...)                                                     \
  case Dtype::name:                                                          \
    if constexpr (device::sums_fit<T, Dtype::name>()) {                      \
      reduce_all<T, device::SumOf<Dtype::name>>(reduce, divisor, rows, out); \
    }                                                                        \
    return;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
}

}  // namespace

std::vector<uint8_t> reduce_as_tree(Dtype dtype, Dtype accumulate, ReduceOp reduce,
                                    uint32_t divisor, TreeRows rows) {
  precondition(!rows.empty());
  std::vector<uint8_t> out(rows[0].size());
  switch (dtype) {
#define DTYPE(name, ...)                                            \
  case Dtype::name:                                                 \
    reduce_in<Dtype::name>(accumulate, reduce, divisor, rows, out); \
    break;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return out;
}

}  // namespace mscclc
