// What a collective promises: the shapes of input and output, and which contributions each output
// chunk holds. Every part of mscclc that asks "what must come out" asks here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/contract/collectives.h"
#include "ir/contract/order.h"
#include "ir/ops/ops.h"
#include "ir/rows/row_function.h"

namespace mscclc {

enum class InPlace : uint8_t { either, yes, no };  // in text: either, true, false

/// One chunk of a caller's buffer: input or output chunk `chunk` (flat index) at rank `rank`.
struct CallerChunk {
  uint32_t rank, chunk;
  bool operator==(const CallerChunk&) const = default;
};

/// One line of a custom contract, unrolled: output = reduction (or, with one term and `reduced`
/// false, copy) of input chunks.
struct Promise {
  CallerChunk output;
  bool reduced;
  std::vector<CallerChunk> inputs;
};

/// How the chunks of a caller's buffer divide its bytes.
///  - `rows` rows of `columns` chunks. `part_rows` rows are one part: with `caller_rows` the part
///    of one rank, which begins at a multiple of the bytes of a part, whatever the alignment;
///    otherwise the whole message. The rows of a part split it in granules, as chunks split a row.
///    So `chunks: [a, b]` of an allgather gives R * a rows of b chunks, a rows to a part.
///  - `lengths` (alltoallv only): row p has lengths[p] chunks.
struct Shape {
  uint32_t rows = 1, columns = 0;
  uint32_t part_rows = 1;
  bool caller_rows = false;
  std::vector<uint32_t> lengths;
  uint32_t chunks() const;
  /// Dimensions as a program writes them: {columns}, {rows, columns} …
  std::vector<uint32_t> dims;
};

struct Contract {
  CollectiveKind kind = CollectiveKind::none;
  uint32_t ranks = 0;
  std::vector<uint32_t>
      chunks;                   ///< S: {S} or {a, b}; empty: {1}. alltoallv: chunks of a count unit
  std::vector<int64_t> counts;  ///< alltoallv: counts[s * ranks + d]
  uint32_t root = 0;
  int64_t shift = 0;                    ///< sendrecv
  std::vector<uint32_t> input, output;  ///< custom: S and T, each {S} or {a, b}; 0: none
  /// custom: the ensure lines, unrolled, sorted by output (rank, chunk); see sort_promises().
  std::vector<Promise> promises;
  InPlace in_place = InPlace::either;
  SumOrder order = SumOrder::any;  ///< what the program promises of its sums
  /// A collective of rows of so many columns; 0: of bytes. Its granule is a row (Program::granule).
  uint32_t columns = 0;
  /// Rows have any multiple of `columns`, which is fixed when the plan is loaded (fix_columns()).
  bool any_columns = false;
  /// What the output's rows are made of: the result of `then` that is the output, see applied.h.
  rows::Type output_type = rows::Type::T;
  uint32_t then = kNoFunction;  ///< what is promised is this row function of the sums
  static constexpr uint32_t kNoFunction = 0xffffffffu;
  /// True for plans read from MSCCL++'s format without our key: sizes must divide evenly.
  bool even_only = false;

  /// Shape of a caller's buffer at `rank`; zero chunks where the collective has none there.
  Shape shape(Side side, uint32_t rank) const;
  /// shape(side, rank).chunks(), without making a shape.
  uint32_t chunk_count(Side side, uint32_t rank) const;
  /// True if chunks of one number are the same bytes of this side at both ranks: always, but in
  /// rows of different lengths (alltoallv) and where one of the ranks has no buffer.
  bool laid_out_alike(Side side, uint32_t a, uint32_t b) const;
  /// True if the buffer at `rank` holds something: NCCL has no output off the root in `reduce` …
  bool exists(Side side, uint32_t rank) const;
  /// The row of the table of collectives.
  const CollectiveInfo& info() const { return mscclc::info(kind); }
  /// True if the buffers may coincide at all: for this kind of collective, and rows of one type.
  bool can_alias() const { return info().can_alias && output_type == rows::Type::T; }
  /// Where the buffers of `rank` coincide in place: output chunk 0 lies at input chunk
  /// `input_chunk`, input chunk 0 at output chunk `output_chunk` (one of the two is 0). Nothing if
  /// they never do, or if `rank` has only one of them.
  struct Alias {
    uint32_t input_chunk = 0, output_chunk = 0;
  };
  std::optional<Alias> alias(uint32_t rank) const;
  /// True if output chunks hold reductions.
  bool reduces() const;
  /// How many inputs every promised reduction has: what `avg` divides by. 0 if they differ, so that
  /// no call may ask for `avg`, or if none is promised.
  uint32_t contributions() const;
  /// True if chunk c of the output promises the same at every rank: rank 0 stands for all.
  bool uniform() const;
  /// The promise about output chunk `chunk` at `rank`, or nothing if none is made.
  std::optional<Promise> promise(uint32_t rank, uint32_t chunk) const;
  /// The same without a new vector each time: fills `out`; false if nothing is promised.
  bool promise(uint32_t rank, uint32_t chunk, Promise& out) const;
  /// Puts `promises` in the order that promise() needs.
  void sort_promises();
  /// Chunks of the same class have equal length for every message (see Chunking): the index within
  /// the part for caller rows, the flat index otherwise, (row length, column) for alltoallv; one
  /// class for all with `even_only`.
  uint64_t size_class(Side side, uint32_t rank, uint32_t chunk) const;
  /// Chunks of one part: the product of `chunks`, or of the larger side of custom.
  uint32_t part_chunks() const;

 private:
  /// True if `rank` has this side's buffer, which may be empty all the same.
  bool is_there(Side side, uint32_t rank) const;
  const Promise* find_promise(CallerChunk output) const;
  bool promise_of_counted_row(Promise& out) const;
};

/// n parts of some bytes: E = ceil(bytes / align) granules, q = E / n, m = E % n; part i begins at
/// min((i q + min(i, m)) align, bytes). So longer parts come first, and the last ends with the
/// bytes. Everything that mscclc cuts evenly is cut so. Exact below 2^63 bytes.
struct BalancedSplit {
  uint64_t bytes = 0, q = 0, m = 0;
  uint32_t align = 1;
  BalancedSplit() = default;
  BalancedSplit(uint64_t bytes, uint64_t n, uint32_t align);
  uint64_t begin(uint64_t i) const;
  uint64_t length(uint64_t i) const { return begin(i + 1) - begin(i); }
  /// Length of the first and longest part, rounded up to `align`.
  uint64_t longest() const { return (q + (m > 0 ? 1 : 0)) * align; }
};

/// Cuts a message into the chunks of a contract: a part into its rows, a row into its chunks, by
/// BalancedSplit. The smaller side of a custom contract is a prefix of the larger (the input if
/// both have as many chunks). A row of alltoallv is its count of units, cut into its chunks.
///
/// Of a collective of rows the granule is a row of the call's type. Offsets, lengths and sizes of
/// the output are those of its own type (Contract::output_type), in as many rows.
///
/// Looked up per operand when a plan is lowered, so the divisions are done once where that helps.
/// The contract must outlive it. REQUIRES: ranks and chunks within the contract's shapes.
class Chunking {
 public:
  /// `part_bytes`: bytes of one rank's part: the message for allreduce, broadcast, sendrecv, reduce
  /// and custom (its larger side), one row for allgather, gather, reducescatter, scatter, alltoall,
  /// one count unit for alltoallv. Whole buffers stay below 2^63 bytes.
  Chunking(const Contract& contract, uint64_t part_bytes, uint32_t align);
  uint64_t offset(Side side, uint32_t rank, uint32_t chunk) const;
  uint64_t length(Side side, uint32_t rank, uint32_t chunk) const;
  uint64_t buffer_bytes(Side side, uint32_t rank) const;
  /// The most that the buffer has for parts of so many bytes, whatever the call's type.
  uint64_t most_buffer_bytes(Side side, uint32_t rank) const;
  /// Of a collective of rows: rows of the output before a chunk, or all of them.
  uint64_t rows_before(uint32_t rank, uint32_t chunk) const;
  uint64_t rows(uint32_t rank) const { return call_bytes(Side::output, rank) / align_; }
  /// Bytes that a plain scratch chunk holds: the longest chunk of any buffer of any rank, rounded
  /// up to `align`; 0 for an empty message.
  uint64_t longest() const { return longest_; }
  /// The message size that `select sizes` and tables speak of: the larger of input and output, in
  /// rows of the call's type.
  uint64_t message_bytes() const;
  /// True if all chunks are equally long and a multiple of `align`: what `even_only` asks for.
  bool even() const;
  /// Bytes of the message over bytes of a part: a message is a whole number of parts.
  static uint64_t parts_of_message(const Contract& contract);
  /// The largest part size whose message is at most `bytes` and a whole number of `element` bytes.
  static uint64_t part_for_message(const Contract& contract, uint64_t bytes, uint32_t element);

 private:
  /// A chunk of a part as a position in its row; for alltoallv of any row.
  struct Position {
    uint64_t row_begin;
    BalancedSplit split;
    uint32_t column;
  };
  uint64_t call_bytes(Side side, uint32_t rank) const;
  uint64_t call_offset(Side side, uint32_t rank, uint32_t chunk) const;
  /// Bytes of the call's type as bytes of what the side is made of.
  uint64_t as_stored(Side side, uint64_t bytes) const {
    return side == Side::input || stored_ == 0 ? bytes : bytes / align_ * stored_;
  }
  struct InRow {
    uint64_t row_begin;
    uint32_t column;
  };
  InRow in_row(uint32_t chunk) const;
  Position position(Side side, uint32_t rank, uint32_t chunk) const;
  Position ragged_position(Side side, uint32_t rank, uint32_t chunk) const;
  void prepare_ragged();

  const Contract* contract_;
  uint64_t part_bytes_;
  uint32_t align_;
  uint64_t longest_ = 0;
  uint32_t stored_ = 0;  ///< bytes of a row of the output; 0: as those of the call's type
  uint32_t part_rows_ = 1, columns_ = 0, part_chunks_ = 0;
  bool one_row_ = false;  ///< a part is one row of columns_ chunks
  BalancedSplit rows_;    ///< a part into its rows
  BalancedSplit row_;     ///< the first row into its chunks: all rows where there is but one
  /// alltoallv: units before row p of a rank's buffer, ranks + 1 of them per rank, by side.
  std::vector<uint32_t> units_before_[2];
};

}  // namespace mscclc
