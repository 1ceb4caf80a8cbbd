#include "tests/rows/row_inputs.h"

#include <cstring>

namespace mscclc::rows {
namespace {

/// Bits of the sign and mantissa of a value of this type, with an exponent near that of 1.
uint32_t ordinary(Type type, Dtype t, Dice& dice) {
  struct Format {
    uint32_t mantissa, bias, sign;
  };
  const Format format =
      type == Type::e4m3                                            ? Format{3, 7, 7}
      : type == Type::e5m2                                          ? Format{2, 15, 7}
      : type == Type::e8m0                                          ? Format{0, 127, 31}
      : type == Type::f16 || (type == Type::T && t == Dtype::f16)   ? Format{10, 15, 15}
      : type == Type::bf16 || (type == Type::T && t == Dtype::bf16) ? Format{7, 127, 15}
                                                                    : Format{23, 127, 31};
  const uint32_t exponent = format.bias - 4 + dice.below(7);
  const auto random = static_cast<uint32_t>(dice.next());
  const uint32_t mantissa = random & ((1u << format.mantissa) - 1);
  return (exponent << format.mantissa) | mantissa | (random >> 31 << format.sign);
}

}  // namespace

std::vector<std::vector<uint8_t>> row_inputs(const Function& function, Dtype t, uint32_t columns,
                                             bool any, Dice& dice) {
  std::vector<std::vector<uint8_t>> inputs;
  for (const Stored& param : function.params) {
    const uint32_t bytes = bytes_of(param.type, t);
    std::vector<uint8_t>& row = inputs.emplace_back();
    row.resize(size_t{values_of(param.kind, param.group, columns)} * bytes);
    for (size_t at = 0; at < row.size(); at += bytes) {
      const uint32_t bits =
          any ? static_cast<uint32_t>(dice.next()) : ordinary(param.type, t, dice);
      std::memcpy(&row[at], &bits, bytes);
    }
  }
  return inputs;
}

}  // namespace mscclc::rows
