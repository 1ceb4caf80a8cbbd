// The switches of a plan as one rank uses them: teams of ranks whose memory the device may reach at
// once (Device::join_switch()), and which switch operands of a call that holds for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "executor/launch.h"
#include "executor/lower.h"
#include "ir/program/program.h"
#include "runtime/api/device.h"

namespace mscclc {

class Switches {
 public:
  using Members = std::vector<uint32_t>;  ///< ranks of a team, in ascending order
  /// Where a buffer lies: `offset` bytes into the region of that number of its rank, or into the
  /// registered buffer of that number.
  struct Spot {
    size_t region;
    uint64_t offset;
    bool registered = false;
    bool operator==(const Spot&) const = default;
  };
  /// Collective: what Device::join_switch() does for the regions of this rank.
  using JoinTeam = std::function<bool(const Members& members, std::unique_ptr<SwitchTeam>& team)>;
  /// Where a buffer of a rank lies in this call; nullopt: in none of the regions.
  using FindSpot = std::function<std::optional<Spot>(uint32_t rank, uint32_t buffer)>;

  /// Collective: joins each team of the plan once, however many channels it has, in the same order
  /// on all ranks. False: join_team() failed.
  [[nodiscard]] bool join(const Program& plan, uint32_t rank, const RankProgram& program,
                          const JoinTeam& join_team);
  /// The team that has joined a registered buffer as its region 0; nullptr: none has.
  using FindTeam = std::function<const SwitchTeam*(uint64_t buffer, const Members& members)>;

  /// The same on all ranks.
  const std::vector<Members>& teams() const { return members_; }
  /// Sets BaseAddress::multicast of the switch operands whose buffers lie at the same spot on all
  /// members. `bases` are those of `program`, as fitted.
  void fill(const RankProgram& program, const FindSpot& find_spot, const FindTeam& find_team,
            std::vector<device::BaseAddress>& bases) const;

 private:
  struct SwitchOperand {
    uint32_t base, members;
    size_t team;
  };
  std::vector<Members> members_;
  std::vector<std::unique_ptr<SwitchTeam>> teams_;  ///< parallel to members_
  std::vector<SwitchOperand> operands_;
};

}  // namespace mscclc
