// Which runs of a communicator follow one another. Plans with flags hold multiprocessors while they
// wait for GEMMs, so only as many run at once as leave room (kAtOnce): each object takes one of so
// many chains, in the order in which all ranks make them. Communicators share none: ranks may make
// the objects of several in any order, and runs that follow one another here but not there would
// wait for each other.
#pragma once

#include <array>
#include <memory>

#include "runtime/api/device.h"
#include "runtime/core/overlap/choice.h"

namespace mscclc {

class OverlapTurns {
 public:
  /// nullptr: reported.
  std::shared_ptr<StreamChain> take(Device& device, Diagnostics& diagnostics) {
    std::shared_ptr<StreamChain>& chain = chains_[next_++ % chains_.size()];
    if (chain == nullptr) chain = device.chain_streams(Replays::ordered, diagnostics);
    return chain;
  }

 private:
  std::array<std::shared_ptr<StreamChain>, overlap::kAtOnce> chains_;
  size_t next_ = 0;
};

}  // namespace mscclc
