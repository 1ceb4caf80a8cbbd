// What is proved about a plan. The prover finds it, plans carry it, and a registry may rely on it.
#pragma once

#include <cstdint>
#include <string>

#include "ir/contract/order.h"

namespace mscclc {

/// Version of the rules by which plans are accepted. In a source file, as a new one would else have
/// everything compiled again.
extern const uint32_t kProverVersion;

/// Where the sums of a plan are rounded to the data type.
enum class Rounding : uint8_t {
  none,    ///< nothing is reduced
  once,    ///< one op adds up all contributions, in the type that the call accumulates in
  each_op  ///< ops pass partial sums on, in the data type
};

/// What keeps successive calls apart.
enum class BetweenCalls : uint8_t {
  meeting,  ///< no rank leaves a call before all are in it
  copies,   ///< calls use copies of scratch in turn; a rank may be some calls ahead
  signals   ///< ranks that exchange data wait for one another; others may be any calls apart
};

struct Proof {
  bool proved = false;
  SumOrders orders = {};      ///< which contracts its sums keep
  bool out_of_place = false;  ///< right where the caller's buffers are apart
  bool in_place = false;      ///< right where they coincide
  bool keeps_input = false;   ///< out of place the caller's input is left as it was
  Rounding rounding = Rounding::none;
  BetweenCalls between_calls = BetweenCalls::signals;
  /// What the sums are, as text that is equal for equal sums (docs/bits.md), by sums_of(). "":
  /// there are none, it cannot be said, or it was not asked for.
  std::string sums = {};
};

}  // namespace mscclc
