#include "python/mscclc/torch/adapter/types.h"

#include <string>

#include "python/mscclc/torch/adapter/communicator.h"

namespace mscclc::torch_adapter {
namespace {

using RedOp = c10d::ReduceOp::RedOpType;

/// The type that adds up such elements, or MSCCLC_DTYPE_DEFAULT.
mscclc_dtype_t dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return MSCCLC_F32;
    case at::kHalf:
      return MSCCLC_F16;
    case at::kBFloat16:
      return MSCCLC_BF16;
    case at::kDouble:
      return MSCCLC_F64;
    case at::kInt:
      return MSCCLC_I32;
    case at::kUInt32:
      return MSCCLC_U32;
    case at::kLong:
      return MSCCLC_I64;
    case at::kUInt64:
      return MSCCLC_U64;
    case at::kChar:
      return MSCCLC_I8;
    case at::kByte:
    case at::kBool:
      return MSCCLC_U8;
    case at::kFloat8_e4m3fn:
      return MSCCLC_E4M3;
    case at::kFloat8_e5m2:
      return MSCCLC_E5M2;
    default:
      return MSCCLC_DTYPE_DEFAULT;
  }
}

[[noreturn]] void refuse(at::ScalarType type, RedOp op, const std::string& why) {
  throw NoPlan(std::string("no plan reduces ") + c10::toString(type) + " by " + name_of(op) + ": " +
               why);
}

/// Of bytes that are 0 or 1.
mscclc_op_t logical(RedOp op) {
  switch (op) {
    case RedOp::SUM:
    case RedOp::MAX:
      return MSCCLC_MAX;  // or
    case RedOp::PRODUCT:
    case RedOp::MIN:
      return MSCCLC_MIN;  // and
    default:
      refuse(at::kBool, op, "there are SUM, PRODUCT, MIN, MAX, BAND, BOR and BXOR");
  }
}

/// Of pairs of real numbers.
Reduction of_complex(at::ScalarType type, RedOp op) {
  if (op != RedOp::SUM && op != RedOp::AVG && op != RedOp::PREMUL_SUM) {
    refuse(type, op, "of complex numbers there are SUM, AVG and PREMUL_SUM");
  }
  Reduction real = reduction_of(c10::toRealValueType(type), op);
  real.times = 2;
  return real;
}

}  // namespace

Reduction reduction_of(at::ScalarType type, RedOp op) {
  if (c10::isComplexType(type)) return of_complex(type, op);
  const mscclc_dtype_t dtype = dtype_of(type);
  if (dtype == MSCCLC_DTYPE_DEFAULT) {
    refuse(type, op,
           "there are Float, Half, BFloat16, Double, Float8_e4m3fn, Float8_e5m2, Char, Byte, Int, "
           "UInt32, Long, UInt64 and Bool");
  }
  if (type == at::kBool) return {dtype, logical(op)};
  switch (op) {
    case RedOp::SUM:
    case RedOp::PREMUL_SUM:
      return {dtype, MSCCLC_SUM};
    case RedOp::AVG:
      return {dtype, MSCCLC_AVG};
    case RedOp::PRODUCT:
      return {dtype, MSCCLC_PROD};
    case RedOp::MIN:
      return {dtype, MSCCLC_MIN};
    case RedOp::MAX:
      return {dtype, MSCCLC_MAX};
    default:
      refuse(type, op, "there are SUM, AVG, PRODUCT, MIN, MAX and PREMUL_SUM");
  }
}

Moved moved_as(const at::Tensor& tensor) {
  const auto width = static_cast<uint64_t>(tensor.element_size());
  if (width % 8 == 0) return {MSCCLC_I64, width / 8};
  if (width % 4 == 0) return {MSCCLC_I32, width / 4};
  if (at::isFloatingType(tensor.scalar_type()) && width == 2) return {MSCCLC_F16, 1};
  return {MSCCLC_U8, width};
}

bool is_bitwise(RedOp op) { return op == RedOp::BAND || op == RedOp::BOR || op == RedOp::BXOR; }

void reduce_bitwise(at::Tensor into, const at::Tensor& other, RedOp op) {
  if (op == RedOp::BAND) {
    into.bitwise_and_(other);
  } else if (op == RedOp::BOR) {
    into.bitwise_or_(other);
  } else {
    into.bitwise_xor_(other);
  }
}

const char* name_of(RedOp op) {
  static constexpr const char* kNames[] = {"SUM",  "AVG", "PRODUCT", "MIN",        "MAX",
                                           "BAND", "BOR", "BXOR",    "PREMUL_SUM", "UNUSED"};
  return op < std::size(kNames) ? kNames[op] : "an unknown reduction";
}

}  // namespace mscclc::torch_adapter
