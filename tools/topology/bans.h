// Plans that leave links out: the ranks of a program are renumbered so that no channel joins two
// ranks whose link is banned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/result.h"

namespace mscclc::topology {

/// A link that no channel may use, in either direction.
struct Ban {
  uint32_t a = 0, b = 0;  ///< ranks, a < b
  bool operator==(const Ban&) const = default;
};

/// Reads "0-3,1-2".
Result<std::vector<Ban>> parse_bans(std::string_view text, uint32_t ranks);
/// "0-3,1-2"
std::string bans_text(const std::vector<Ban>& bans);

/// The first ban that a channel of the program breaks, a switch's between any of its ranks among
/// them; nullopt: none.
std::optional<Ban> broken_ban(const Program& program, const std::vector<Ban>& bans);

/// Is a collective the same when its ranks have other numbers, all but the root?
bool can_be_renumbered(const Contract& contract);

/// A number for each rank of the program with which no ban is broken, the least in the order of
/// numbers; nullopt: there is none, or it was not found in a million steps. REQUIRES:
/// can_be_renumbered().
std::optional<std::vector<uint32_t>> numbers_without(const Program& program,
                                                     const std::vector<Ban>& bans);

/// The program whose rank `numbers[r]` does what rank r did. Places of ops still have the values of
/// loop variables that they had.
Program renumbered(const Program& program, const std::vector<uint32_t>& numbers);

}  // namespace mscclc::topology
