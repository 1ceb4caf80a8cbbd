// What callers of the builder hand to its calls: places, dimensions, indexes, operands, options,
// contracts.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "compiler/builder/draft/list.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/support/precondition.h"

namespace mscclc {

/// Where something is written, in the builder's caller's own terms; see Origin.
struct Mark {
  uint32_t begin = 0, end = 0;
};

/// What the builder asks its caller when it reports a mistake.
class Origin {
 public:
  virtual ~Origin() = default;
  /// The place of a mark; of an unset one the place of the present op.
  virtual Span span(Mark mark) = 0;
  /// Source text of a mark, "" if there is none.
  virtual std::string_view text(Mark mark) = 0;
  /// Adds notes about the present context: values of loop variables, expansions.
  virtual void add_context(Diagnostic& diagnostic) = 0;
};

/// Dimension of a scratch buffer: n indices 0, …, n - 1, or the elements of a list.
struct Dim {
  List list;
  bool is_list = false;  ///< written as a list; only messages show the difference
  Dim(int64_t n) : list(List::range(0, n)) {}
  explicit Dim(const List& elements) : list(elements), is_list(true) {}
};

/// Indices of a scratch buffer some of whose dimensions depend on the indices before them.
struct Rows {
  std::vector<int64_t> index;
  std::vector<Rows> below;  ///< for each index; none in the last dimension
};

/// Index of a chunk: a number, or `count` of them from `first` on.
struct Index {
  int64_t first = 0, count = 1;
  Mark mark;
  Index() = default;
  Index(int64_t i) : first(i) {}
  /// REQUIRES: the length fits.
  static Index range(int64_t from, int64_t to) {
    Index i(from);
    i.count = 0;
    if (to > from) precondition(!__builtin_sub_overflow(to, from, &i.count));
    return i;
  }
};

/// What an op must know of an operand, as bits, so that one OR over the operands covers them all.
enum Traits : uint32_t {
  kKindTraits = 0x3f,           ///< 1 << SlotKind, without blocks
  kUnitsTrait = 0x40,           ///< in a buffer that holds units of a pipeline
  kPacketTrait = 0x80,          ///< in a packet buffer
  kFormatTraits = 0x1f00,       ///< 1 << (8 + PacketFormat)
  kChannelTraits = 0x70000,     ///< ChannelKinds << 16, where a channel is involved
  kCallerTrait = 0x1000000,     ///< in input or output
  kExternalTrait = 0x2000000,   ///< rows of the external `buffer`; no rows, no chunks
  kInvalidTrait = 0x80000000u,  ///< its mistake has been reported
};

/// An operand: a chunk here or at the far end of a channel, a channel, a semaphore, or a flag.
struct Ref {
  Operand operand;
  uint32_t traits = kInvalidTrait;
  Mark mark;

  bool valid() const { return (traits & kInvalidTrait) == 0; }
  SlotKind kind() const { return static_cast<SlotKind>(std::countr_zero(traits & kKindTraits)); }
  PacketFormat packets() const {
    const uint32_t formats = (traits & kFormatTraits) >> 8;
    return formats == 0 ? PacketFormat::none : static_cast<PacketFormat>(std::countr_zero(formats));
  }
  /// REQUIRES: a channel is involved.
  ChannelKind channel_kind() const {
    precondition((traits & kChannelTraits) != 0);
    return static_cast<ChannelKind>(std::countr_zero((traits & kChannelTraits) >> 16));
  }
  void set_kind(SlotKind kind) { traits = (traits & ~kKindTraits) | 1u << static_cast<int>(kind); }
};

/// Options of an op.
struct OpOptions {
  ReduceOp reduce = ReduceOp::call;
  bool relaxed = false, complete = false;
  Summation summation = Summation::in_turn;
  uint32_t part = 0, parts = 0;
  bool any() const {
    return reduce != ReduceOp::call || relaxed || complete || parts != 0 ||
           summation != Summation::in_turn;
  }
  Mark reduce_mark = {}, relaxed_mark = {}, summation_mark = {}, complete_mark = {},
       part_mark = {};  ///< set where the option is written
};

/// A row function that takes the sum of an op before it is stored: externals in the order of its
/// results and parameters, of which one is the op's result (`output`) and one the sum (`sum`).
struct ThenRows {
  uint32_t function = 0;
  std::span<const Ref> results, params;
  uint32_t output = 0, sum = 0;
};

struct BufferOptions {
  PacketFormat packets = PacketFormat::none;
  uint32_t copies = 1;
  rows::Form form = {};    ///< what its rows are made of
  bool has_units = false;  ///< chunks hold `units` units of a pipeline
  uint32_t units = 0;
};

/// A contract as it is written, with numbers that are still to be checked; the members are
/// Contract's. Marks say where each stands.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::none;
  int64_t ranks = 0;
  std::vector<int64_t> chunks = {1};
  List counts = {};
  int64_t root = 0, shift = 0;
  std::vector<int64_t> input = {}, output = {};
  InPlace in_place = InPlace::either;
  bool even_only = false;
  SumOrder order = SumOrder::any;
  int64_t columns = 0;                    ///< of rows; 0: there are none
  bool any_columns = false;               ///< any multiple of these
  uint32_t then = Contract::kNoFunction;  ///< in Program::functions
  /// Indices of input and output count chunks, and channels without `to` have no partner: IR text.
  bool flat = false;
  struct Marks {
    Mark kind = {}, ranks = {}, chunks = {}, root = {}, counts = {}, shift = {}, input = {},
         output = {}, columns = {};
  } marks = {};
};

struct LaunchMarks {
  Mark threads = {}, instances = {}, align = {};
};

inline uint32_t channel_trait(ChannelKind kind) { return uint32_t{bit(kind)} << 16; }

}  // namespace mscclc
