#include "runtime/choice/proofs/claims.h"

#include "ir/support/precondition.h"

namespace mscclc {

uint16_t pack(const Proof& proof) {
  precondition(proof.proved);
  const auto bit = [](bool set, int place) { return (set ? 1 : 0) << place; };
  return static_cast<uint16_t>(
      bit(proof.orders.replicated, 0) | bit(proof.out_of_place, 1) | bit(proof.in_place, 2) |
      bit(proof.keeps_input, 3) | static_cast<int>(proof.rounding) << 4 |
      static_cast<int>(proof.between_calls) << 6 | bit(proof.orders.ranks, 8) |
      bit(proof.orders.tree, 9) | bit(proof.orders.exact, 10));
}

std::optional<Proof> unpack(uint16_t claims) {
  const int rounding = claims >> 4 & 3, between_calls = claims >> 6 & 3;
  const auto bit = [&](int place) { return (claims >> place & 1) != 0; };
  if (rounding > static_cast<int>(Rounding::each_op) ||
      between_calls > static_cast<int>(BetweenCalls::signals) || claims >> 11 != 0) {
    return std::nullopt;
  }
  return Proof{.proved = true,
               .orders = {.replicated = bit(0), .ranks = bit(8), .tree = bit(9), .exact = bit(10)},
               .out_of_place = bit(1),
               .in_place = bit(2),
               .keeps_input = bit(3),
               .rounding = static_cast<Rounding>(rounding),
               .between_calls = static_cast<BetweenCalls>(between_calls)};
}

bool operator==(const Proof& a, const Proof& b) {
  return a.proved == b.proved && pack(a) == pack(b);
}

}  // namespace mscclc
