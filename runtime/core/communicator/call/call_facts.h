// What all ranks must say alike of a call. A collective bind() compares it; every launch does among
// the ranks of a machine (CallBoard), and with MSCCLC_CHECK_CALLS=1 among all.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/ops.h"
#include "runtime/core/calls/call_board.h"
#include "runtime/core/communicator/call/placement.h"
#include "runtime/core/group/buffer_overlaps.h"

namespace mscclc {

/// A call, and the name of its plan, for messages.
struct CallFacts {
  /// CallRecord::placement, where a rank's buffers lie; `free`: they cannot lie in each other, so
  /// any rank agrees.
  enum class Placement : uint8_t { free, apart, in_place };

  CallRecord record;
  std::string plan;
};

/// Notes in the record of a symmetric call where a buffer lies that any rank's ops address at
/// others. REQUIRES: it is registered.
void place_in(CallRecord& record, Side side, const BufferPlace& place);

/// Of counts of an alltoallv: other ones have another digest, except for one of 2^24. 0: there are
/// none, or all are the same, as in an alltoall.
std::array<uint8_t, 3> digest_of_counts(std::span<const uint64_t> counts);

void encode(const CallFacts& facts, std::vector<uint8_t>& to);
/// Takes facts from the front; false if they are not such.
[[nodiscard]] bool decode(std::span<const uint8_t>& from, CallFacts& facts);

/// False: its numbers name no types, reduction or placement.
bool is_possible(const CallRecord& record);

/// Two ranks' calls that differ.
struct DifferingCalls {
  uint32_t rank;
  const CallFacts& call;
  uint32_t other_rank;
  const CallFacts& other;
};
/// Reports (call-differs) what they differ in; if that is where registered buffers lie, and
/// `overlaps` say that such a place lies in two, that, too.
void report_differing_calls(const DifferingCalls& calls, std::string_view doing,
                            const BufferOverlaps& overlaps, Diagnostics& diagnostics);
/// True if all ranks make the same call. Else an error (call-differs) that names the first rank
/// whose call is another one than rank 0's, and describes both; the same on all ranks. `doing`:
/// "bind".
[[nodiscard]] bool same_calls(const std::vector<CallFacts>& by_rank, std::string_view doing,
                              const BufferOverlaps& overlaps, Diagnostics& diagnostics);

}  // namespace mscclc
