// What was proved of a plan, in 16 bits: as the table of known plans and the user's cache keep it.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/program/proof.h"

namespace mscclc {

/// REQUIRES: proof.proved.
uint16_t pack(const Proof& proof);
/// nullopt: pack() gives no such number.
[[nodiscard]] std::optional<Proof> unpack(uint16_t claims);

bool operator==(const Proof& a, const Proof& b);

}  // namespace mscclc
