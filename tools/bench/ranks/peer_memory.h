// Memory of every rank as this rank's kernels address it: for kernels that need no plan.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/result.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"

namespace mscclc::bench {

/// One pointer a rank, as kernels take them.
struct PeerPointers {
  static constexpr uint32_t kMaxRanks = 8;
  uint8_t* of[kMaxRanks] = {};
};

class PeerMemory {
 public:
  /// Collective: maps what every rank gives. Errors: what the device reports; too-many-ranks.
  [[nodiscard]] static std::unique_ptr<PeerMemory> share(Communicator& communicator,
                                                         uint8_t* address, uint64_t bytes,
                                                         Diagnostics& diagnostics);
  /// Where every rank's memory begins.
  const PeerPointers& pointers() const { return pointers_; }
  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return ranks_; }

 private:
  uint32_t rank_ = 0, ranks_ = 0;
  PeerPointers pointers_;
  std::vector<std::unique_ptr<Memory>> mapped_;
};

/// Collective: true if all ranks are able. Else `why` is what the first that is not has reported.
std::optional<Error> any_unable(Communicator& communicator, bool able, const Diagnostics& own);

}  // namespace mscclc::bench
