#include "runtime/proofs/claims.h"

namespace mscclc {

uint8_t pack(const Proof& proof) {
  return static_cast<uint8_t>((proof.deterministic ? 1 : 0) | (proof.out_of_place ? 2 : 0) |
                              (proof.in_place ? 4 : 0) | (proof.keeps_input ? 8 : 0) |
                              static_cast<int>(proof.rounding) << 4 |
                              static_cast<int>(proof.between_calls) << 6);
}

std::optional<Proof> unpack(uint8_t claims) {
  const int rounding = claims >> 4 & 3, between_calls = claims >> 6;
  if (rounding > static_cast<int>(Rounding::each_op) ||
      between_calls > static_cast<int>(BetweenCalls::signals)) {
    return std::nullopt;
  }
  return Proof{.proved = true,
               .deterministic = (claims & 1) != 0,
               .out_of_place = (claims & 2) != 0,
               .in_place = (claims & 4) != 0,
               .keeps_input = (claims & 8) != 0,
               .rounding = static_cast<Rounding>(rounding),
               .between_calls = static_cast<BetweenCalls>(between_calls)};
}

bool operator==(const Proof& a, const Proof& b) {
  return a.proved == b.proved && pack(a) == pack(b);
}

}  // namespace mscclc
