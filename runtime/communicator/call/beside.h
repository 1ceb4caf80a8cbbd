// Compares this rank's calls with those of the ranks beside it, on the same machine (CallBoard).
// What differs ends the communicator: a rank that has launched its call waits for one that will not
// come.
#pragma once

#include <string>

#include "runtime/group/group.h"

namespace mscclc {

/// The rank is about to launch a call of those that are compared on `board`. False: reported
/// (call-differs, rank-behind, or what the communicator has failed with).
[[nodiscard]] bool same_beside(Group& group, CallBoard& board, CallRecord call,
                               Diagnostics& diagnostics);

/// The rank waits to load a plan for a call that is some launches away, until all ranks do so, too.
class LoadBeside {
 public:
  /// `ahead`, `call`: LoadOptions.
  LoadBeside(Group& group, uint32_t executable, uint64_t ahead, const std::string& call)
      : group_(group), executable_(executable), ahead_(ahead), call_(call) {}
  ~LoadBeside() { end(); }
  LoadBeside(const LoadBeside&) = delete;
  LoadBeside& operator=(const LoadBeside&) = delete;
  /// As same_beside().
  [[nodiscard]] bool begin(Diagnostics& diagnostics);
  /// All ranks have come. REQUIRES: a step of all ranks follows, so that none goes on before.
  void end();

 private:
  Group& group_;
  const uint32_t executable_;
  const uint64_t ahead_;
  const std::string& call_;
  bool begun_ = false;
};

}  // namespace mscclc
