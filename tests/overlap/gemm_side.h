// The other side of a plan's flags on a device whose memory this process sees: a thread that stands
// for a GEMM. It goes through the flags in a random order, late, and as the assumptions of
// docs/design/overlap.md allow: before it has written a region of the input that holds rubbish, and
// what a region of the output holds is what was there when its flag was complete.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "ir/contract/contract.h"
#include "ir/program/program.h"
#include "runtime/api/call.h"

namespace mscclc::testing {

/// Words for all arrays of a plan, 0.
class FlagMemory {
 public:
  explicit FlagMemory(const Program& program);
  /// CollectiveCall::flags.
  const std::vector<CallFlags>& given() const { return given_; }
  /// Adds to a word of an array, as a release.
  void raise(uint32_t array, uint32_t flag, uint64_t times = 1);
  /// A word, as an acquire.
  uint64_t word(uint32_t array, uint32_t flag) const;

 private:
  const Program& program_;
  std::vector<std::vector<uint64_t>> words_;
  std::vector<CallFlags> given_;
};

/// One rank's, in one call.
class GemmSide {
 public:
  struct SideCall {
    uint64_t number;  ///< from 0
    const Chunking& chunking;
    uint8_t *input, *output;
    const uint8_t* made;  ///< what it writes to the input
    uint64_t seed;
  };
  /// Spoils the input, and starts. All must outlive it. `missing`: so many raises of the last flag
  /// of the input are left out.
  GemmSide(const Program& program, uint32_t rank, FlagMemory& flags, const SideCall& call,
           uint32_t missing = 0);
  /// Waits for its end. What was wrong with the output when it was notified; "": nothing. REQUIRES:
  /// the plan's call has ended, and what it gives is still there.
  std::string end();

 private:
  struct Region {
    uint32_t array, flag;
    uint8_t* at;
    uint64_t bytes;
    std::vector<uint8_t> taken;
  };
  /// One thing to do: raise a flag, or take what one is for.
  struct FlagAction {
    Region* region;
    bool last;  ///< raise: the region is there from then on
  };
  void run(uint64_t seed);
  bool take(Region& region);
  uint64_t goal(const Region& region) const;

  const Program& program_;
  FlagMemory& flags_;
  const SideCall call_;
  std::vector<Region> regions_;
  std::vector<FlagAction> raises_;
  std::thread thread_;
};

}  // namespace mscclc::testing
