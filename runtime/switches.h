// The switches of a plan as one rank uses them: teams of ranks whose memory the device may reach at
// once (Device::join_switch()), and which switch operands of a call that holds for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "executor/launch.h"
#include "executor/lower.h"
#include "runtime/device.h"

namespace mscclc {

class Switches {
 public:
  /// Where a buffer lies: `offset` bytes into the region of that number of its rank.
  struct Spot {
    size_t region;
    uint64_t offset;
    bool operator==(const Spot&) const = default;
  };
  /// Collective: what Device::join_switch() does for the regions of this rank.
  using JoinTeam =
      std::function<bool(const std::vector<uint32_t>& members, std::unique_ptr<SwitchTeam>& team)>;
  /// Where a buffer of a rank lies in this call; nullopt: in none of the regions.
  using FindSpot = std::function<std::optional<Spot>(uint32_t rank, uint32_t buffer)>;

  /// Collective: joins each team of the plan once, however many channels it has, in the same order
  /// on all ranks. False: join_team() failed.
  bool join(const Program& plan, uint32_t rank, const RankProgram& program,
            const JoinTeam& join_team);
  /// Sets BaseAddress::multicast of the switch operands whose buffers lie at the same spot on all
  /// members. `bases` are those of `program`, as patched.
  void fill(const RankProgram& program, const FindSpot& find_spot,
            std::vector<device::BaseAddress>& bases) const;

 private:
  struct SwitchOperand {
    uint32_t base, members;
    size_t team;
  };
  std::vector<std::unique_ptr<SwitchTeam>> teams_;
  std::vector<SwitchOperand> operands_;
};

}  // namespace mscclc
