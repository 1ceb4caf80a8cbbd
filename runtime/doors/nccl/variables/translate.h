// Values of NCCL's variables as values of ours. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/support/environment/environment.h"

namespace mscclc::nccl {

/// nullopt: the value stands for what holds where nothing is set. What comes out may be no value
/// that ours allows. `values`: all that is set.
using Translate = std::optional<std::string> (*)(std::string_view value,
                                                 const Environment::Values& values);

/// The translation of this name, as nccl_variables.def has them. nullptr: none.
Translate translation(std::string_view name);

/// A number as NCCL reads it: base 8, 10 or 16, whatever follows it; nullopt: it begins with none.
std::optional<long long> read_number(std::string_view text);

/// A CTA policy as NCCL reads it: bits of NCCL_CTA_POLICY_…, as words in any case that '|' joins,
/// or as a number; words that it does not know are ignored. nullopt: no word is known.
std::optional<int> read_cta_policy(std::string_view text);

/// Whether a distance is the one at which nothing is reached: LOC, or 0.
bool is_level_none(std::string_view level);

}  // namespace mscclc::nccl
