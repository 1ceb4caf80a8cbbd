// Calls of a plan with flags beside another side that has not written the input when they begin, on
// any device, against the simulator's bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "runtime/api/communicator.h"

namespace mscclc::testing {

/// What all ranks put into calls of one size, and what the simulator gives; by call and rank.
struct KnownCalls {
  using Bytes = std::vector<uint8_t>;
  uint64_t bytes = 0, part = 0;  ///< of the message, and of a part
  bool in_place = false;
  std::vector<std::vector<Bytes>> inputs, outputs;
};
/// Of f32, whose sums are rounded. nullopt: reported.
std::optional<KnownCalls> known_calls(const Program& plan, uint64_t message, bool in_place,
                                      uint64_t calls, Diagnostics& diagnostics);

/// Who plays the other side.
enum class GemmBy : uint8_t {
  thread,  ///< GemmSide, of a device whose memory this process sees
  copies,  ///< Device::write() and read(), which go on beside what is launched
};

/// Loads the plan at a rank and makes all calls. "": each gave the simulator's bits. A thread ends
/// the process where a call fails, as it would wait forever.
std::string run_beside_gemm(Communicator& communicator, const std::shared_ptr<const Program>& plan,
                            const std::vector<KnownCalls>& sizes, GemmBy by);

}  // namespace mscclc::testing
