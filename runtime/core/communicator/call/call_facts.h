// What all ranks must say alike of a call. A collective bind() compares it; every launch does among
// the ranks of a machine (CallBoard), and with MSCCLC_CHECK_CALLS=1 among all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/ops.h"
#include "runtime/core/communicator/call/placement.h"
#include "runtime/core/group/call_board.h"

namespace mscclc {

struct CallFacts {
  /// Where a rank's buffers lie; `free`: they cannot lie in each other, so any rank agrees.
  enum class Placement : uint8_t { free, apart, in_place };

  uint64_t number = 0;      ///< of the bind or launch
  uint64_t executable = 0;  ///< number of the load() that made it, the same on all ranks
  std::string plan;         ///< its name
  uint64_t bytes = 0;
  uint64_t row_pitch = 0;  ///< CallOptions::row_pitch
  Dtype dtype = Dtype::f32;
  /// Of collectives that reduce: `call` where they do not.
  ReduceOp reduce = ReduceOp::call;
  Dtype accumulate = Dtype::f32;
  Placement placement = Placement::free;
  bool is_load = false;  ///< only which load it is for is known
  uint64_t bind = 0;  ///< of calls that ranks have bound together, not symmetric ones: its number
  /// Of symmetric calls: where buffers lie that any rank's ops address at others.
  RankPlaces symmetric;
};

void encode(const CallFacts& facts, std::vector<uint8_t>& to);
/// Takes facts from the front; false if they are not such.
[[nodiscard]] bool decode(std::span<const uint8_t>& from, CallFacts& facts);

/// What a CallBoard compares. A launch numbers it.
CallRecord record_of(const CallFacts& facts);
/// False: its numbers name no types, reduction or placement.
bool is_possible(const CallRecord& record);
/// `plan`: the name of the record's. REQUIRES: is_possible().
CallFacts facts_of(const CallRecord& record, const std::string& plan);

/// Reports (call-differs) two calls that differ, with what they differ in.
void report_differing_calls(uint32_t rank, const CallFacts& call, uint32_t other_rank,
                            const CallFacts& other, std::string_view doing,
                            Diagnostics& diagnostics);
/// True if all ranks make the same call. Else an error (call-differs) that names the first rank
/// whose call is another one than rank 0's, and describes both; the same on all ranks. `doing`:
/// "bind".
[[nodiscard]] bool same_calls(const std::vector<CallFacts>& by_rank, std::string_view doing,
                              Diagnostics& diagnostics);

}  // namespace mscclc
