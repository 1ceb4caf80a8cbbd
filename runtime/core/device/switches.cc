#include "runtime/core/device/switches.h"

#include <algorithm>

namespace mscclc {
namespace {

/// A channel's ranks in ascending order: teams do not depend on the order that a plan names.
std::vector<uint32_t> team_of(const Program& plan, const Channel& channel) {
  std::vector<uint32_t> team;
  for (const int64_t member : plan.values(channel.group)) {
    team.push_back(static_cast<uint32_t>(member));
  }
  std::sort(team.begin(), team.end());
  return team;
}

std::vector<std::vector<uint32_t>> all_teams(const Program& plan) {
  std::vector<std::vector<uint32_t>> teams;
  for (const Rank& rank : plan.ranks) {
    for (const Channel& channel : rank.channels) {
      if (channel.kind != ChannelKind::switch_) continue;
      std::vector<uint32_t> team = team_of(plan, channel);
      const bool known = std::find(teams.begin(), teams.end(), team) != teams.end();
      if (!known && team.size() > 1) teams.push_back(std::move(team));
    }
  }
  return teams;
}

}  // namespace

bool Switches::join(const Program& plan, uint32_t rank, const RankProgram& program,
                    const JoinTeam& join_team) {
  members_ = all_teams(plan);
  for (const Members& members : members_) {
    if (!join_team(members, teams_.emplace_back())) return false;
  }
  for (const device::DeviceOperand& operand : program.operands) {
    if (operand.members < 2) continue;
    const auto team = std::find(members_.begin(), members_.end(),
                                team_of(plan, plan.ranks[rank].channels[operand.channel]));
    operands_.push_back(
        {operand.base, operand.members, static_cast<size_t>(team - members_.begin())});
  }
  return true;
}

void Switches::fill(const RankProgram& program, const FindSpot& find_spot,
                    const FindTeam& find_team, std::vector<device::BaseAddress>& bases) const {
  for (const SwitchOperand& operand : operands_) {
    const device::Base& first = program.bases[operand.base];
    const std::optional<Spot> spot = find_spot(first.rank, first.buffer);
    bool same = spot.has_value();
    for (uint32_t m = 1; same && m < operand.members; ++m) {
      const device::Base& base = program.bases[operand.base + m];
      same = find_spot(base.rank, base.buffer) == spot && base.copies == first.copies &&
             base.copy_stride == first.copy_stride;
    }
    if (!same) continue;
    const SwitchTeam* team = spot->registered ? find_team(spot->region, members_[operand.team])
                                              : teams_[operand.team].get();
    uint8_t* address =
        team == nullptr ? nullptr : team->address(spot->registered ? 0 : spot->region);
    if (address != nullptr) bases[operand.base].multicast = address + spot->offset;
  }
}

}  // namespace mscclc
