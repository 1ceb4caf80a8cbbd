// Compares this rank's calls with those of the ranks beside it, on the same machine (CallBoard).
// What differs ends the communicator: a rank that has launched its call waits for one that will not
// come.
#pragma once

#include <optional>
#include <string>

#include "runtime/api/lane.h"
#include "runtime/core/group/group.h"

namespace mscclc {

/// The rank is about to launch a call of those that are compared on `board`. False: reported
/// (call-differs, rank-behind, or what the communicator has failed with).
[[nodiscard]] bool same_beside(RankGroup& group, CallBoard& board, CallRecord call,
                               Diagnostics& diagnostics);

/// The same, of calls that lanes of this rank take along: compared with what far ranks have noted
/// of `calls`. `note`: what its lanes have to say of it first; nullopt: nothing, it is like the
/// call before.
[[nodiscard]] bool same_far(RankGroup& group, FarCalls& calls, CallRecord call,
                            std::optional<LaneNote>& note, Diagnostics& diagnostics);
/// What a far rank has noted. "": it is the same call as this rank's, as far as that is known;
/// otherwise the communicator has failed with this.
std::string take_far_note(RankGroup& group, FarCalls& calls, uint32_t rank, const LaneNote& note);

/// The rank waits to load a plan for a call that is some launches away, until all ranks do so, too.
class LoadBeside {
 public:
  /// `ahead`, `call`: LoadOptions.
  LoadBeside(RankGroup& group, uint32_t executable, uint64_t ahead, const std::string& call)
      : group_(group), executable_(executable), ahead_(ahead), call_(call) {}
  ~LoadBeside() { end(); }
  LoadBeside(const LoadBeside&) = delete;
  LoadBeside& operator=(const LoadBeside&) = delete;
  /// As same_beside().
  [[nodiscard]] bool begin(Diagnostics& diagnostics);
  /// All ranks have come. REQUIRES: a step of all ranks follows, so that none goes on before.
  void end();

 private:
  void note_far() const;

  RankGroup& group_;
  const uint32_t executable_;
  const uint64_t ahead_;
  const std::string& call_;
  bool begun_ = false;
};

}  // namespace mscclc
