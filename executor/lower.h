// From plan to device program (interpreter/layout.h): once per plan, then fitted to each message
// size.
//
//   DeviceProgram device;
//   lower(program, device, diagnostics);                     // steps, moves, operands, bases
//   fit_to_size(device, program, {.part_bytes = 4096}, diagnostics);  // ranges, runs, offsets
//
// A rank is lowered by itself, so that a process may lower only its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/call.h"
#include "executor/interpreter/layout.h"
#include "ir/contract/contract.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/applied.h"
#include "ir/program/program.h"

namespace mscclc {

/// A buffer of a rank as it lies in memory: `copies` copies, `stride` bytes from one to the next.
struct BufferLayout {
  uint64_t bytes = 0;   ///< fitted: of one copy
  uint64_t stride = 0;  ///< fitted: `bytes` rounded up to whole lines
  uint32_t copies = 1;
  PacketFormat packets = PacketFormat::none;
};

/// Blocks of a rank that meet; named by barrier ops through its index.
struct BarrierMembers {
  std::vector<uint32_t> blocks;  ///< sorted
};

/// One rank's device program, with what fit_to_size() needs to know about it.
struct RankProgram {
  std::vector<device::DeviceOp> ops;  ///< as steps: an op may become several (runs_as.h)
  std::vector<uint32_t> block_begin;  ///< steps of block b are [block_begin[b], block_begin[b + 1])
  std::vector<device::Move> moves;
  std::vector<device::DeviceOperand> operands;
  std::vector<device::Base> bases;
  std::vector<device::DeviceLoop> loops;
  std::vector<uint32_t> targets;
  std::vector<device::Stretch> runs;
  std::vector<uint64_t> offsets;
  uint32_t align = 16;

  std::vector<BufferLayout> buffers;
  std::vector<BarrierMembers> barriers;
  /// Which chunks an operand names: parallel to `operands`.
  struct Chunks {
    uint32_t owner, first;  ///< rank that owns the buffer; first chunk
    BufferKind kind;
    uint64_t units = 0;   ///< of a buffer that holds units: the bytes of a chunk's units
    uint64_t stored = 0;  ///< rows of another form than the call's: bytes of one
  };
  std::vector<Chunks> chunks;
  std::vector<uint32_t> move_chunks;  ///< parallel to `moves`: chunks of each operand
  /// What an op computes of rows (ir/program/applied.h), for all of its steps.
  struct MoveRows {
    /// Chunk of the output whose rows it takes of externals; kNone: it computes none. Runs have one
    /// offset more, that chunk's, and are cut between rows.
    uint32_t chunk = kNone;
    uint32_t function = 0, results = 0;
    /// Rows of externals are among the values; else its chunk says nothing.
    bool of_externals = false;
    std::vector<RowValue> values = {};  ///< results, then parameters
  };
  std::vector<MoveRows> move_rows;    ///< parallel to `moves` in programs with row functions
  std::vector<uint32_t> move_ops;     ///< parallel to `moves`: the step, in `ops`
  std::vector<uint32_t> loop_chunks;  ///< parallel to `loops`

  /// Do blocks take the same steps in calls of all sizes, some of them with nothing to do? Programs
  /// with row functions do: GPUs run them by kernels alone (compiled/shape.h), which know no
  /// others.
  bool keeps_steps() const { return !move_rows.empty(); }
  device::RankView view() const;
};

struct DeviceProgram {
  std::vector<RankProgram> ranks;
};

/// True if sums of `dtype` may be taken in `accumulate`: a type of the same kind that holds all its
/// values, and so wide as to be its own accumulation type, or wider; or, of floats, in `dtype`
/// itself, or fp8 in f16, where each step rounds.
bool can_accumulate(Dtype dtype, Dtype accumulate);

/// Does the op add up in another way than one source after the other, which all machines do?
inline bool adds_otherwise(const Op& op) { return op.srcs > info(op.summation).most_in_line; }

/// Bytes of which a rank's part is a multiple in calls of a type.
uint32_t unit_of_part(const Program& program, Dtype dtype);

/// What a call's type and reduction must fit: found once for a plan.
struct PlanUse {
  bool sentinel = false;            ///< sentinel packets, at any rank
  bool reduces = false;             ///< the contract promises reductions
  bool from_call = false;           ///< a reduction that the caller chooses
  bool complete = false;            ///< ... with its last addition marked
  bool exact = false;               ///< ... of which some sums are exact
  ReduceOp fixed = ReduceOp::call;  ///< a reduction that the plan fixes
  uint32_t contributions = 1;       ///< of every reduction that is promised; 0: they differ
};
PlanUse use_of(const Program& program);

/// Checks that the plan can do this call at all (type, reduction, size) and fills in
/// `contributions`. Reports why not. `use` is that of the program.
[[nodiscard]] bool check_call(const Program& program, const PlanUse& use, Call& call,
                              Diagnostics& diagnostics);
[[nodiscard]] bool check_call(const Program& program, Call& call, Diagnostics& diagnostics);

/// How a sum becomes steps that is handed to a row function before it is stored: in one step, for
/// machines that have `reduce_apply`, or apart: the sum goes to the op's first destination, the
/// function is applied there, and what it gives is sent on. What the op leaves is the same; what
/// its first destination holds until then is not (ir/ops/parts.h).
enum class RowSteps : uint8_t { together, apart };

/// Builds the device program of one rank, without what depends on the message size.
/// REQUIRES: program.split and verify_structure().
[[nodiscard]] bool lower_rank(const Program& program, uint32_t rank, RankProgram& out,
                              Diagnostics& diagnostics, RowSteps rows = RowSteps::apart);

/// Where the rows of the caller's buffers lie when a call is a piece of a longer one: parts begin
/// further apart than they are long.
class RowPitch {
 public:
  /// They follow one another.
  RowPitch() = default;
  /// Those of a side begin so many bytes apart. REQUIRES: at least part_bytes; not alltoallv.
  RowPitch(const Contract& contract, uint64_t part_bytes, uint64_t input, uint64_t output)
      : part_chunks_(std::max(contract.part_chunks(), 1u)),
        gap_{input - part_bytes, output - part_bytes} {}
  /// Bytes between where a chunk lies and where it would if rows followed one another.
  uint64_t gaps(Side side, uint32_t chunk) const {
    return chunk / part_chunks_ * gap_[static_cast<size_t>(side)];
  }
  /// Those within a buffer.
  uint64_t gaps_of(const Contract& contract, Side side, uint32_t rank) const {
    const uint32_t chunks = contract.chunk_count(side, rank);
    return chunks == 0 ? 0 : gaps(side, chunks - 1);
  }

 private:
  uint32_t part_chunks_ = 1;
  uint64_t gap_[2] = {0, 0};  ///< by side: after each part
};

/// Fills in what depends on the message size. May be called again for another size.
///
/// Scratch lies as the message `capacity` needs it. Calls on the same scratch must have the same
/// capacity, whatever their own size: a rank may be a call ahead of its peers, and what protects
/// its scratch from them (the prover shows) protects places, not sizes. REQUIRES: no chunk of
/// `chunking` is longer than the longest of `capacity`.
[[nodiscard]] bool fit_rank_to_size(RankProgram& rank, const Program& program, uint32_t rank_id,
                                    const Chunking& chunking, const Chunking& capacity,
                                    Diagnostics& diagnostics, const RowPitch& pitch = {});

/// How a rank's scratch buffers lie for messages up to `capacity`, by buffer (input and output: 0
/// bytes): what its peers need to know to find them.
[[nodiscard]] bool scratch_layout(const Program& program, uint32_t rank_id,
                                  const Chunking& capacity, std::vector<BufferLayout>& layout,
                                  Diagnostics& diagnostics);

/// How a caller's input and output lie in memory. In place the smaller lies in the larger.
struct CallerBuffers {
  bool shared = false;
  uint32_t outer = kInput;    ///< shared: the buffer (kInput or kOutput) that holds the other ...
  uint64_t inner_offset = 0;  ///< ... from this byte on
};
CallerBuffers caller_buffers(const Contract& contract, const Chunking& chunking, uint32_t rank,
                             bool in_place, const RowPitch& pitch = {});

/// All ranks; scratch is laid out for this very call.
[[nodiscard]] bool lower(const Program& program, DeviceProgram& out, Diagnostics& diagnostics,
                         RowSteps rows = RowSteps::apart);
[[nodiscard]] bool fit_to_size(DeviceProgram& device, const Program& program, const Call& call,
                               Diagnostics& diagnostics);

}  // namespace mscclc
