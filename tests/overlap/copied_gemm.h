// The other side of a plan's flags by copies of a device, which go on beside what is launched: for
// GPUs, whose memory this process does not see.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/contract/contract.h"
#include "ir/program/program.h"
#include "runtime/api/call.h"
#include "runtime/api/device.h"

namespace mscclc::testing {

/// Of one rank, in all calls of an executable. Its program should say `scope: system`.
class CopiedGemm {
 public:
  /// Both must outlive it.
  CopiedGemm(const Program& program, uint32_t rank, Device& device)
      : program_(program), rank_(rank), device_(device) {}
  /// Words of 0. False: reported.
  [[nodiscard]] bool allocate(Diagnostics& diagnostics);
  const std::vector<CallFlags>& given() const { return given_; }

  struct CopiedCall {
    uint64_t number;  ///< from 0
    const Chunking& chunking;
    uint8_t *input, *output;           ///< of the device
    const std::vector<uint8_t>& made;  ///< what it writes to the input
    uint64_t seed;
  };
  /// Spoils what flags of the input are for. Comes before the launch.
  [[nodiscard]] bool spoil(const CopiedCall& call, Diagnostics& diagnostics);
  /// Writes and raises in a random order, then takes what flags of the output are for. Comes after
  /// the launch. False: reported, or a flag did not come within a minute.
  [[nodiscard]] bool serve(const CopiedCall& call, Diagnostics& diagnostics);
  /// Was all that was taken what the call gave in the end? "": yes. REQUIRES: it has ended.
  std::string compare(const CopiedCall& call, const std::vector<uint8_t>& output) const;

 private:
  struct Region {
    uint32_t array, flag;
    uint64_t begin, bytes;  ///< in its buffer
  };
  std::vector<Region> regions(const CopiedCall& call, bool of_output) const;
  bool set_word(const Region& region, uint64_t value, Diagnostics& diagnostics);
  bool await_word(const Region& region, uint64_t value, Diagnostics& diagnostics);

  const Program& program_;
  const uint32_t rank_;
  Device& device_;
  std::vector<std::unique_ptr<Memory>> words_;
  std::vector<CallFlags> given_;
  std::vector<std::vector<uint8_t>> taken_;  ///< by region of the output
};

}  // namespace mscclc::testing
