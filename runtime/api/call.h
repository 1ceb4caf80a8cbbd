// One call of a collective, as a rank asks for it: from whichever door it comes, for the choice of
// a plan, and for the binder that fits the plan to it.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>

#include "ir/contract/collectives.h"
#include "ir/contract/order.h"
#include "ir/ops/ops.h"
#include "ir/rows/row_function.h"

namespace mscclc {

/// What stands for an external of the plan in a call: a tensor whose rows follow one another
/// without gaps, or a scalar. What the plan declares of it (type, columns, and the rows that the
/// message has) must be so.
struct CallExternal {
  std::string_view name;
  rows::Type type = rows::Type::T;  ///< T: the call's type
  /// Memory that the device can address; rows, and values of columns, begin at multiples of 16
  /// bytes, others at multiples of their own. nullptr: a scalar that is `value`.
  void* data = nullptr;
  /// What there is: more rows than the call has are allowed. Of what has no rows 1, of what has one
  /// value a row 1 column; of `groups` their number.
  uint64_t rows = 1, columns = 1;
  float value = 0;  ///< rounded to `type`
  /// To the bit: 1 / -0 is not 1 / 0.
  bool operator==(const CallExternal& other) const {
    return std::tie(name, type, data, rows, columns) ==
               std::tie(other.name, other.type, other.data, other.rows, other.columns) &&
           std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(other.value);
  }
};

/// What stands for an array of flags of the plan in a call (docs/design/overlap.md). All calls of
/// an executable have the same arrays, whose words are 0 when the first one is launched.
struct CallFlags {
  std::string_view name;
  /// Memory that the device can address, at a multiple of a word's size. Both sides change it.
  void* words = nullptr;
  uint64_t count = 0;  ///< of words; more than the plan has flags are allowed
  uint32_t bits = 32;  ///< of a word: 32 or 64
  bool operator==(const CallFlags&) const = default;
};

/// What the caller promises of a plan with flags and their other side.
enum class LaunchOrder : uint8_t {
  other_first,  ///< nothing: the other side may hold its room before the plan has begun
  plan_first,   ///< all blocks of the plan are resident before the other side begins
  other_only,   ///< of plans that bind apart: something else does the call, which is compared
};

/// One call of a collective, as one rank makes it: by name (Collectives), or of a plan
/// (Executable::bind()). Counts are in elements, as NCCL counts them.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::none;  ///< of a plan: none, or the plan's
  /// By name: of the part of one rank: the input of allgather and gather, the output of
  /// reducescatter and scatter, one of the rows of alltoall; the whole message of allreduce,
  /// reduce, broadcast and sendrecv. 0: a call that does nothing. Ignored by alltoallv and barrier.
  uint64_t count = 0;
  /// Of a plan: message size: bytes of the larger of input and output.
  uint64_t bytes = 0;
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;           ///< ignored by collectives that reduce nothing
  std::optional<Dtype> accumulate = {};  ///< type to add up in; default: the data type's own
  /// By name: what the bits of its sums must keep to (docs/bits.md); default:
  /// CollectivesOptions::order.
  std::optional<SumOrder> order = {};
  uint32_t root = 0;  ///< ignored by collectives without a root, and where a plan has its own
  /// sendrecv: to the rank so many places on; 0 and multiples of the ranks: to itself.
  int64_t shift = 1;
  /// Memory that the device can address; any alignment. nullptr where this rank has no such
  /// buffer. In place: one is inside the other, where NCCL, or the contract, says.
  const void* input = nullptr;
  void* output = nullptr;
  /// Of a plan: the call is a piece of a longer one: in buffers that have a row for every rank,
  /// rows begin so many bytes apart. 0: they follow one another. Only of plans that do
  /// takes_pieces().
  uint64_t row_pitch = 0;
  /// Of a plan, in graphs: the kernel before the call lets it begin early
  /// (let_next_call_begin.cuh). As MSCCLC_EARLY_LAUNCH=2, for this call only; after other kernels
  /// it begins a little later.
  bool previous_allows_early = false;
  /// Of a plan: a promise: of all calls of the device that are bound so, the largest on each stream
  /// have room beside one another. Ranks may then launch those of several communicators in
  /// different orders.
  bool any_order = false;
  /// A promise: on all ranks both buffers are inside the same registered ones, at the same offsets;
  /// registered buffers that overlap do so alike on all of them.
  /// By name those are of Collectives::register_buffer(), and calls need no copies of their own;
  /// collectives with a root ignore it. Of a plan that is loaded for zero copy bind() then is
  /// local, where bind_waits() does not say otherwise. Launches compare
  /// where the buffers lie (call-differs): data would go elsewhere in them.
  bool registered = false;
  /// alltoallv: counts[s * ranks + d] elements go from rank s to rank d, the same on all ranks:
  /// launches compare a digest of them.
  std::span<const uint64_t> counts = {};
  /// alltoallv: where the row for, or of, each rank begins in this rank's buffers, in elements;
  /// empty: rows follow one another.
  std::span<const uint64_t> input_offsets = {}, output_offsets = {};
  /// Of a plan with row functions: each external that it declares, once, in any order.
  std::span<const CallExternal> externals = {};
  /// Of a plan with flags: each array that it declares, once, in any order.
  std::span<const CallFlags> flags = {};
  /// Of a plan with flags: multiprocessors that its blocks may hold, one each, while the other side
  /// needs room; 0: not known.
  uint32_t budget = 0;
  LaunchOrder launch_order = LaunchOrder::other_first;
  std::string_view tag = {};  ///< PlanRequest::tag
  /// By name: thread blocks that this call allows a plan, besides CollectivesOptions::most_blocks;
  /// 0: any number. The same on all ranks.
  uint32_t most_blocks = 0;
};

/// True if the input or the output has a row for every rank.
inline bool has_rows(CollectiveKind kind) {
  return info(kind).has_rows(Side::input) || info(kind).has_rows(Side::output);
}

}  // namespace mscclc
