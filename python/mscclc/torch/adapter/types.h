// torch's element types and reductions as libmscclc's.
#pragma once

#include <ATen/ATen.h>
#include <mscclc.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

namespace mscclc::torch_adapter {

/// A reduction of the library, of `times` numbers an element.
struct Reduction {
  mscclc_dtype_t dtype;
  mscclc_op_t op;
  uint64_t times = 1;
};

/// Throws NoPlan, which names what there is, where the library does not add up such elements.
Reduction reduction_of(at::ScalarType type, c10d::ReduceOp::RedOpType op);

/// What elements that are only moved are moved as: `times` of a type as wide, or narrower.
struct Moved {
  mscclc_dtype_t dtype;
  uint64_t times;
};
Moved moved_as(const at::Tensor& tensor);

/// BAND, BOR, BXOR: reductions that torch computes.
bool is_bitwise(c10d::ReduceOp::RedOpType op);
/// Reduces `into` with `other`, element by element.
void reduce_bitwise(at::Tensor into, const at::Tensor& other, c10d::ReduceOp::RedOpType op);

/// "PREMUL_SUM"
const char* name_of(c10d::ReduceOp::RedOpType op);

}  // namespace mscclc::torch_adapter
