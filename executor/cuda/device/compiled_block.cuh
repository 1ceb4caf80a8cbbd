// The machine of a kernel that was compiled for one plan (executor/compiled/emit.h). It runs the
// steps of step_kinds.def by the accesses of the fast interpreter (packet_rows.cuh, plain_sums.cuh,
// block_base.cuh, ports.cuh), and deals out bytes to threads as that does, so that results are the
// same bits. What a step is made of is known when it is compiled; sizes and addresses come from the
// parameters of the launch, which need not be fetched, unless they are too many for them.
#pragma once

#include <cstdint>

#include "executor/compiled_arguments.h"
#include "executor/cuda/device/arithmetic.cuh"
#include "executor/cuda/device/block_base.cuh"
#include "executor/cuda/device/call_count.cuh"
#include "executor/cuda/device/compiled_operands.cuh"
#include "executor/cuda/device/compiled_row_sums.cuh"
#include "executor/cuda/device/compiled_rows.cuh"
#include "executor/cuda/device/exact.cuh"
#include "executor/cuda/device/packet_rows.cuh"

namespace mscclc::cuda {

using device::CompiledExtent;
using device::CompiledLoop;
using device::CompiledRounds;

/// What the blocks of a kernel do, beside their steps.
struct CompiledTraits {
  bool posts = false;   ///< they hand puts and signals to the rank's proxy
  bool counts = false;  ///< they count the signals that they take (WaitSlots)
  uint32_t align = 16;  ///< granule in which rounds of pipelines are cut
};

/// A packet that has not come, among up to four units that were polled together, nullptr: none;
/// ends the thread. By value, or they would lie in memory while they are polled.
template <PacketFormat F>
[[noreturn]] static __device__ __noinline__ void give_up_units(WaitState& state, uint32_t op,
                                                               const uint8_t* a, const uint8_t* b,
                                                               const uint8_t* c, const uint8_t* d,
                                                               uint64_t stamp) {
  static_assert(kAtOnce == 4);
  give_up(state, missing_packet<F>(op, stamp, 4, kAtOnce, [&](uint32_t j) {
            return j == 0 ? a : j == 1 ? b : j == 2 ? c : d;
          }));
}

/// A kind of step that the emitter accepts needs a body in CompiledBlock::run_step().
static_assert(device::kinds_of(StepFamily::plain) == 2);
static_assert(device::kinds_of(StepFamily::packets) == 2);
static_assert(device::kinds_of(StepFamily::sent) == 2);
static_assert(device::kinds_of(StepFamily::block) == 3);
static_assert(device::kinds_of(StepFamily::flags) == 2);

/// Plain data begins and ends at multiples of 16 bytes.
template <class Arithmetic, PacketFormat F, CompiledTraits traits>
class CompiledBlock : public BlockBase<Arithmetic, traits.posts> {
  using Base = BlockBase<Arithmetic, traits.posts>;
  using Base::stamp_;
  using Base::state_;
  using Rows = PacketRows<F, false, false>;
  using Part = typename Rows::Part;
  using Addresses = typename Rows::Addresses;

 public:
  static constexpr bool kCounts = traits.counts;
  using Sums = Arithmetic;
  template <class, PacketFormat, class, uint32_t>
  friend class SummedColumns;

  /// `shared` and `own`: lines of all blocks, and of this one, in the parameters or shared memory.
  __device__ __forceinline__ CompiledBlock(BlockState& state, const LaunchPlan& plan, uint64_t call,
                                           const uint4* shared, const uint4* own)
      : Base(state, plan, call), shared_(shared), own_(own) {}

  /// A step before count_call(): it neither waits nor signals. Its loads are issued before the
  /// number of the call is needed, which is on its way beside them.
  template <StepKind kind, class Operands>
  __device__ __forceinline__ void lead(uint32_t line) {
    static_assert(kind == StepKind::copy || kind == StepKind::move_packets);
    if constexpr (kind == StepKind::copy) {
      CompiledBlock(state_, this->plan_, late_call(), shared_, own_)
          .template copy_rows<Operands>(begin_step(line));
    } else {
      move_units<Operands, true>(begin_step(line));
    }
  }
  /// A step after it. `first`: the line of its first target.
  template <StepKind kind, class Operands>
  __device__ __forceinline__ void run(uint32_t line, uint32_t first = 0, uint32_t flags = 0) {
    before_step();
    const bool rounds = (flags & device::kInLoop) != 0 && moves_data(kind);
    run_step<kind, Operands>(rounds ? begin_round(line) : begin_step(line), first, flags);
  }

  /// A `sync` right after count_call(), where all have met.
  __device__ __forceinline__ void met(uint32_t line) {
    before_step();
    begin_step(line);
    this->keep_published(StepKind::sync, false);
  }

  /// The same of an `apply`. RowFunction: its function, of the call's type, as the emitter writes
  /// it; `kThreads`: of the block.
  template <class RowFunction, uint32_t kThreads, class Operands>
  __device__ __forceinline__ void apply(uint32_t line) {
    before_step();
    const CompiledExtent e = begin_step(line);
    this->keep_published(StepKind::apply, false);
    constexpr uint32_t kElement = Arithmetic::kLeastElement,
                       kRow = RowFunction::kColumns * kElement;
    apply_rows<RowFunction, device::row_chunk(RowFunction::kColumns, kThreads, kElement), kThreads>(
        RowPlaces<Operands>{*this}, e.begin / kRow, e.end / kRow, state_.waits, row_turn_);
  }

  /// The same of a sum that is handed to the function in registers; Values: of the function. Slots
  /// are longer than short chunks: what lies beyond the data is waited for and passed on.
  template <StepKind kind, class RowFunction, uint32_t kThreads, class Operands, class Values>
  __device__ __forceinline__ void sum_and_apply(uint32_t line, uint32_t flags) {
    static_assert(kind == StepKind::reduce_apply || kind == StepKind::reduce_packets_apply);
    before_step();
    const CompiledExtent e = begin_step(line);
    this->keep_published(kind, false);
    constexpr bool kPackets = kind == StepKind::reduce_packets_apply;
    constexpr uint32_t kElement = Arithmetic::kLeastElement,
                       kRow = RowFunction::kColumns * kElement, kUnit = kPackets ? kData : 1;
    const uint32_t rows = e.length / kRow, end = e.end / (kRow / kUnit);
    using Places = SumPlaces<RowFunction, kPackets ? F : PacketFormat::none, Operands, Values>;
    apply_rows<RowFunction, device::row_chunk(RowFunction::kColumns, kThreads, kElement), kThreads>(
        Places{{*this}, late_divisor(flags)}, e.begin / (kRow / kUnit), end < rows ? end : rows,
        state_.waits, row_turn_);
    if constexpr (kPackets) {
      const uint32_t units = rows * (kRow / kUnit);
      const uint32_t begin = e.begin < units ? units : e.begin;
      if (begin < e.end) add_units<Operands>({begin, e.end, e.length, e.source}, flags);
    }
  }

  /// A pipeline, whose body is run once per round.
  __device__ __forceinline__ void begin_rounds(uint32_t line) {
    CompiledLoop loop;
    const uint4 words = own_[line];
    memcpy(&loop, &words, sizeof loop);
    round_begin_ = 0;
    round_unit_ = loop.unit;
    rounds_left_ = loop.rounds;
  }
  __device__ __forceinline__ bool in_rounds() const { return rounds_left_ != 0; }
  __device__ __forceinline__ void next_round() {
    round_begin_ += round_unit_;
    --rounds_left_;
  }

  /// Counts the call, once all threads of the block have its number. `ahead`: ran the steps before.
  __device__ __forceinline__ void count_call(const CompiledBlock& ahead) {
    meet_in_block();
    count_call_late(state_.calls, state_.counted, ahead.step_frees_ || this->plan_.frees_next);
  }

  /// The number of the call, which each thread has asked for. Ends the thread if an earlier call
  /// gave up. Comes before the first store.
  __device__ __forceinline__ uint64_t late_call() const {
    uint64_t call = await_copied(state_.counts[0]);
    if (is_after_giving_up(call)) exit_thread();
    return call;
  }

 private:
  static constexpr uint32_t kData = Format<F>::kData;

  /// Where the values of a row function are (RowRegisters).
  template <class Values>
  struct RowPlaces {
    const CompiledBlock& block;
    __device__ static constexpr bool handed(uint32_t v) {
      return (Values::place(v) & device::kPlaceHanded) != 0;
    }
    template <uint32_t v>
    __device__ __forceinline__ uint8_t* address() const {
      return block.address(Values::place(v));
    }
    template <uint32_t v>
    __device__ __forceinline__ uint4 line() const {
      constexpr uint32_t kPlace = Values::place(v);
      return ((kPlace & device::kPlaceShared) != 0 ? block.shared_
                                                   : block.own_)[kPlace / device::kPlaceLine];
    }
  };

  /// The same of one that is handed the sum of `Operands`, divided by `by`. kFormat: of their
  /// packets.
  template <class RowFunction, PacketFormat kFormat, class Operands, class Values>
  struct SumPlaces : RowPlaces<Values> {
    uint32_t by;
    template <uint32_t kChunk>
    __device__ __forceinline__ void take(uint32_t row, uint32_t* words) const {
      columns<kChunk>(row).add_up(by, words);
    }
    template <uint32_t kChunk>
    __device__ __forceinline__ void give(uint32_t row, const uint32_t* words) const {
      columns<kChunk>(row).store(words);
    }

   private:
    template <uint32_t kChunk>
    __device__ __forceinline__ auto columns(uint32_t row) const {
      constexpr uint32_t kElement = Arithmetic::kLeastElement, kVectors = kChunk * kElement / 16;
      constexpr uint32_t kRow = RowFunction::kColumns * kElement;
      static_assert(kRow % 16 == 0 && kChunk * kElement % 16 == 0);
      const uint32_t first = thread_of_block() * (kChunk * kElement);
      const uint32_t left = first < kRow ? (kRow - first) / 16 : 0;
      return SummedColumns<CompiledBlock, kFormat, Operands, kVectors>(
          this->block, uint64_t{row} * kRow + first, left < kVectors ? left : kVectors);
    }
  };

  __device__ __forceinline__ void before_step() {
    if (this->frees_next_ && state_.counted != 0) {
      let_next_begin();
      this->frees_next_ = false;
    }
    if (gave_up(state_.waits)) exit_block_thread();
  }
  __device__ __forceinline__ CompiledExtent begin_step(uint32_t line) {
    const uint4 words = own_[line];
    const bool frees = (words.w & device::kCompiledFrees) != 0;
    step_frees_ |= frees;
    this->frees_next_ |= threadIdx.x == 0 && frees;
    this->source_ = words.w & ~device::kCompiledFrees;
    return {words.x, words.y, words.z, words.w};
  }

  /// What of a step the block moves in the round at hand.
  __device__ __forceinline__ CompiledExtent begin_round(uint32_t line) {
    CompiledRounds step;
    const uint4 words[] = {own_[line], own_[line + 1], own_[line + 2]};
    static_assert(sizeof words == sizeof step);
    memcpy(&step, words, sizeof step);
    this->frees_next_ |= threadIdx.x == 0 && (step.source & device::kCompiledFrees) != 0;
    this->source_ = step.source & ~device::kCompiledFrees;
    const device::Range own = device::range_in_round(step, round_begin_, round_unit_, traits.align);
    if (own.begin >= own.end) return {0, 0, 0, 0};
    return {static_cast<uint32_t>(own.begin - step.run_begin),
            static_cast<uint32_t>(own.end - step.run_begin), 0, 0};
  }

  template <StepKind kind, class Operands>
  __device__ __forceinline__ void run_step(const CompiledExtent& e, uint32_t first,
                                           uint32_t flags) {
    const bool posts = traits.posts && (flags & device::kPosts) != 0;
    this->keep_published(kind, posts);
    if constexpr (kind == StepKind::copy) {
      if (posts) return post_moves<Operands>(e, 1);
      copy_rows<Operands>(e);
    } else if constexpr (kind == StepKind::reduce) {
      add_rows<Operands>(e, flags);
    } else if constexpr (kind == StepKind::move_packets) {
      move_units<Operands, false>(e);
    } else if constexpr (kind == StepKind::reduce_packets) {
      add_units<Operands>(e, flags);
    } else if constexpr (kind == StepKind::post_packets) {
      post_moves<Operands>(e, Format<F>::kWire);
    } else if constexpr (kind == StepKind::forward_packets) {
      forward_units<Operands>(e);
    } else if constexpr (kind == StepKind::flush) {
      this->flush(Operands::kCount, [&](uint32_t i) { return target(first + i).index; });
    } else if constexpr (kind == StepKind::sync) {
      this->sync();
    } else if constexpr (kind == StepKind::barrier) {
      this->meet(target(first));
    } else if constexpr (kind == StepKind::await) {
      this->for_each_target(Operands::kCount,
                            [&](uint32_t i) { this->await_flag(target(first + i)); });
    } else if constexpr (kind == StepKind::notify) {
      this->for_each_target(Operands::kCount,
                            [&](uint32_t i) { this->notify_flag(target(first + i)); });
    } else {
      static_assert(device::info(kind).family == StepFamily::target);
      const bool relaxed = (flags & device::kRelaxed) != 0;
      this->for_each_target(Operands::kCount, posts, [&](uint32_t i) {
        this->synchronise(kind, target(first + i), relaxed);
      });
    }
  }
  __device__ __forceinline__ StepTarget target(uint32_t line) const {
    StepTarget found;
    const uint4 words = own_[line];
    memcpy(&found, &words, sizeof found);
    return found;
  }

  /// Where an operand begins in a call, this one.
  __device__ __forceinline__ uint8_t* address(uint32_t place) const {
    return address(place, this->call_);
  }
  __device__ __forceinline__ uint8_t* address(uint32_t place, uint64_t call) const {
    const uint4* lines = (place & device::kPlaceShared) != 0 ? shared_ : own_;
    device::StepOperand operand;
    const uint4 words = lines[place / device::kPlaceLine];
    memcpy(&operand, &words, sizeof operand);
    uint8_t* begin = operand.address;
    if ((place & device::kPlaceDoubled) != 0) {
      const uint32_t copy = static_cast<uint32_t>(call) & 1;
      begin += uint64_t{copy * operand.stride} * device::kCopyLine;
    } else if ((place & device::kPlaceCopied) != 0) {
      begin += call % operand.copies * operand.stride * device::kCopyLine;
    }
    if ((place & device::kPlaceExtra) == 0) return begin;
    const uint32_t units = extra(place).units;
    return units == 0 ? begin : begin - device::skipped_units(round_begin_, round_unit_, units);
  }
  /// Does an operand lie elsewhere from call to call?
  __device__ static constexpr bool has_copies(uint32_t place) {
    return (place & (device::kPlaceDoubled | device::kPlaceCopied)) != 0;
  }
  /// REQUIRES: kPlaceExtra, which own lines alone have.
  __device__ __forceinline__ device::StepExtra extra(uint32_t place) const {
    device::StepExtra found;
    const uint4 words = own_[place / device::kPlaceLine + 1];
    memcpy(&found, &words, sizeof found);
    return found;
  }

  // What the proxy sends.

  /// Hands moves to the proxy, by one thread: plain data, or packets as they lie. `unit`: bytes of
  /// what the extent counts. The sources are read later.
  template <class Operands>
  __device__ __forceinline__ void post_moves(const CompiledExtent& e, uint32_t unit) {
#pragma unroll
    for (uint32_t i = 0; i < Operands::kCount; ++i) post_one<Operands>(i, e, unit);
  }
  template <class Operands>
  __device__ __forceinline__ void post_one(uint32_t i, const CompiledExtent& e, uint32_t unit) {
    if (threadIdx.x != 0 || e.begin == e.end) return;
    const uint64_t begin = uint64_t{e.begin} * unit, bytes = uint64_t{e.end - e.begin} * unit;
    const uint32_t first = i * Operands::kEach;
    const uint8_t* from = address(Operands::place(first + Operands::kDsts)) + begin;
#pragma unroll
    for (uint32_t k = 0; k < Operands::kDsts; ++k) {
      const uint32_t place = Operands::place(first + k);
      this->post_move(PortWhat::put, extra(place).channel, address(place) + begin, from, bytes);
    }
  }

  /// The packets are sent as they lie once all are there. A sentinel slot may be emptied only when
  /// the proxies have read it (handlers_packet.h: forward_by_port()).
  template <class Operands>
  __device__ __forceinline__ void forward_units(const CompiledExtent& e) {
    static_assert(Operands::kSrcs == 1);
    if (e.begin == e.end) return;  // also: a call without this step has no channel for it
#pragma unroll
    for (uint32_t i = 0; i < Operands::kCount; ++i) {
      const uint32_t first = i * Operands::kEach;
      const uint32_t source = Operands::place(first + Operands::kDsts);
      for_each_unit(e, source, [&](const Part& part, const Addresses& from) {
        uint4 rows[kAtOnce];
        read(from, 1, part, rows);
      });
      this->sync();
      post_one<Operands>(i, e, Format<F>::kWire);
      if constexpr (Format<F>::kSentinel) {
        this->flush(Operands::kDsts,
                    [&](uint32_t k) { return extra(Operands::place(first + k)).channel; });
        this->sync();
        for_each_unit(e, source,
                      [&](const Part&, const Addresses& from) { Rows::empty(stamp_, from); });
      }
    }
  }
  /// Calls fn with each part that this thread has of an operand, and where that lies.
  template <class Fn>
  __device__ __forceinline__ void for_each_unit(const CompiledExtent& e, uint32_t place, Fn fn) {
    Rows::for_each_part(e.begin, e.end, e.length, [&](const Part& part) {
      Addresses from;
      from.packets = 0;
      find(place, part, 0, this->call_, from);
      fn(part, from);
    });
  }

  // Plain data.

  template <class Operands>
  __device__ __forceinline__ void copy_rows(const CompiledExtent& e) {
#pragma unroll
    for (uint32_t i = 0; i < Operands::kCount; ++i) {
      const uint32_t first = i * Operands::kEach;
      const uint8_t* from = address(Operands::place(first + Operands::kDsts)) + e.begin;
#pragma unroll
      for (uint32_t k = 0; k < Operands::kDsts; ++k) {
        uint8_t* to = address(Operands::place(first + k)) + e.begin;
        if (to != from) copy_words<uint4, 4>(to, from, (e.end - e.begin) / 16);
      }
    }
  }

  template <class Operands>
  __device__ __forceinline__ void add_rows(const CompiledExtent& e, uint32_t flags) {
#pragma unroll
    for (uint32_t i = 0; i < Operands::kCount; ++i) {
      const uint32_t first = i * Operands::kEach;
#pragma unroll 1
      for (uint64_t at = uint64_t{e.begin} + thread_of_block() * 16; at < e.end;
           at += threads_of_block() * 16) {
        add_row<Operands>(first, WholeRow{at}, this->divisor_of_call(flags));
      }
    }
  }
  /// Reads a row of sources k to k + n. No lambda, which the compiler need not inline.
  template <class Operands>
  struct ReadPlain {
    const CompiledBlock& block;
    uint32_t first;
    const WholeRow& where;
    __device__ __forceinline__ void operator()(uint32_t k, uint32_t n, uint4* rows) const {
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (j >= n) continue;
        rows[j] = where.load(block.address(Operands::place(first + Operands::kDsts + k + j)));
      }
    }
  };
  template <class Operands>
  __device__ __forceinline__ void add_row(uint32_t first, const WholeRow& where,
                                          uint32_t by) const {
    const uint4 row = sum_of<Operands>(ReadPlain<Operands>{*this, first, where}, by);
#pragma unroll
    for (uint32_t k = 0; k < Operands::kDsts; ++k)
      where.store(address(Operands::place(first + k)), row);
  }

  // Sums.

  /// Adds up a row of each source of a move. read(k, n, rows) reads those of sources k to k + n,
  /// and is called for all, up to kAtOnce at a time, in written order.
  template <class Operands, class Read>
  __device__ __forceinline__ static auto add_up(const Read& read) {
    if constexpr (Operands::kTree) {
      return add_tree<0, Operands::kSrcs>(read);
    } else {
      typename Arithmetic::RowSums sums;
      cuda::add_up<Arithmetic, unroll_of(Operands::kSrcs)>(sums, 0, Operands::kSrcs, read);
      return sums;
    }
  }
  /// The row that add_up() gives, rounded; or that of exact sums. kAnyNan: OneType::finish().
  template <class Operands, bool kAnyNan = false, class Read>
  __device__ __forceinline__ static uint4 sum_of(const Read& read, uint32_t by) {
    if constexpr (Operands::kExact && Arithmetic::kFloat) {
      return exact_sum<Arithmetic::kType, typename Arithmetic::Sum, Operands::kSrcs>(read, by);
    } else {
      auto sums = add_up<Operands>(read);
      return Arithmetic::template finish<kAnyNan>(sums, by);
    }
  }
  /// T(kBegin, kEnd) of ir/ops/trees.h. Parts of up to kAtOnce sources, a power of two, are read
  /// together.
  template <uint32_t kBegin, uint32_t kEnd, class Read>
  __device__ __forceinline__ static auto add_tree(const Read& read) {
    constexpr uint32_t kSources = kEnd - kBegin;
    if constexpr (kSources > kAtOnce) {
      constexpr uint32_t kMiddle = kBegin + first_of_tree(kSources);
      auto sums = add_tree<kBegin, kMiddle>(read);
      const auto more = add_tree<kMiddle, kEnd>(read);
      Arithmetic::merge(sums, more);
      return sums;
    } else {
      uint4 rows[kAtOnce];
      read(kBegin, kSources, rows);
      return add_small_tree<kSources>(rows);
    }
  }
  template <uint32_t kSources>
  __device__ __forceinline__ static auto add_small_tree(const uint4* rows) {
    static_assert(kAtOnce == 4 && kSources <= kAtOnce);
    typename Arithmetic::RowSums sums;
    Arithmetic::start(sums, rows[0]);
    if constexpr (kSources > 1) Arithmetic::add(sums, rows[1]);
    if constexpr (kSources == 3) Arithmetic::add(sums, rows[2]);
    if constexpr (kSources == 4) {
      typename Arithmetic::RowSums more;
      Arithmetic::start(more, rows[2]);
      Arithmetic::add(more, rows[3]);
      Arithmetic::merge(sums, more);
    }
    return sums;
  }

  // Packets.

  /// Where a part lies in place j.
  __device__ __forceinline__ void find(uint32_t place, const Part& part, uint32_t j, uint64_t call,
                                       Addresses& to) const {
    const bool packets = (place & device::kPlacePackets) != 0;
    to.at[j] = address(place, call) + (packets ? Rows::slot_offset(part) : part.offset);
    to.packets |= packets ? 1u << j : 0;
  }

  /// Reads a part of `n` sources (PacketRows).
  __device__ __forceinline__ void read(const Addresses& from, uint32_t n, const Part& part,
                                       uint4* rows) {
    Rows::read(
        state_.waits, stamp_, from, n, part, rows, [] {},
        [&] {
          const auto unit = [&](uint32_t j) {
            return from.holds_packets(j) ? from.at[j] - part.lane * 16 : nullptr;
          };
          give_up_units<F>(state_.waits, this->source_, unit(0), unit(1), unit(2), unit(3),
                           Format<F>::stamp(stamp_));
        });
  }

  /// To the destinations of a move, whose first place is number `first`, in call `call`. `from`:
  /// where the row lies if it is only moved.
  template <class Operands>
  __device__ __forceinline__ void write(const Stamp& stamp, uint64_t call, uint32_t first,
                                        const Part& part, const uint4& row,
                                        const uint8_t* from = nullptr) const {
#pragma unroll
    for (uint32_t k = 0; k < Operands::kDsts; ++k) {
      Addresses to;
      to.packets = 0;
      find(Operands::place(first + k), part, 0, call, to);
      Rows::write_one(stamp, to, 0, part, row, from);
    }
  }

  /// The moves have one source each; those of kAtOnce moves are read together.
  template <class Operands, bool kLeads>
  __device__ __forceinline__ void move_units(const CompiledExtent& e) {
    static_assert(Operands::kSrcs == 1);
#pragma unroll
    for (uint32_t i = 0; i < Operands::kCount; i += kAtOnce) {
      const uint32_t first = i * Operands::kEach;
      const uint32_t left = Operands::kCount - i, n = left < kAtOnce ? left : kAtOnce;
      Rows::for_each_part(e.begin, e.end, e.length, [&](const Part& part) {
        uint4 rows[kAtOnce];
        Addresses from;
        from.packets = 0;
#pragma unroll
        for (uint32_t j = 0; j < kAtOnce; ++j) {
          if (j >= n) continue;
          const uint32_t place = Operands::place(first + j * Operands::kEach + Operands::kDsts);
          find(place, part, j, kLeads && has_copies(place) ? late_call() : this->call_, from);
        }
        read(from, n, part, rows);
        Rows::make_sendable(from.packets, n, this->element(), rows);
        const uint64_t call = kLeads ? late_call() : this->call_;
        const Stamp stamp = kLeads ? device::stamp_of(call, this->element()) : stamp_;
#pragma unroll
        for (uint32_t j = 0; j < kAtOnce; ++j) {
          if (j >= n) continue;
          write<Operands>(stamp, call, first + j * Operands::kEach, part, rows[j], from.at[j]);
        }
        Rows::empty(stamp_, from);
      });
    }
  }

  /// Reads a part of sources k to k + n, once those before are emptied; `from` is where they lie.
  template <class Operands>
  struct ReadUnits {
    CompiledBlock& block;
    uint32_t first;
    const Part& part;
    Addresses& from;
    __device__ __forceinline__ void operator()(uint32_t k, uint32_t n, uint4* rows) const {
      if (k != 0) Rows::empty(block.stamp_, from);
      from.packets = 0;
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (j >= n) continue;
        const uint32_t place = Operands::place(first + Operands::kDsts + k + j);
        block.find(place, part, j, block.call_, from);
      }
      block.read(from, n, part, rows);
    }
  };
  /// What sums are divided by, here, or threads would ask for it once their packets have come.
  __device__ __forceinline__ uint32_t late_divisor(uint32_t flags) const {
    uint32_t by = this->divisor_of_call(flags);
    asm volatile("" : "+r"(by));
    return by;
  }
  template <class Operands>
  __device__ __forceinline__ void add_units(const CompiledExtent& e, uint32_t flags) {
    const uint32_t by = late_divisor(flags);
#pragma unroll
    for (uint32_t i = 0; i < Operands::kCount; ++i) {
      const uint32_t first = i * Operands::kEach;
      Rows::for_each_part(e.begin, e.end, e.length, [&](const Part& part) {
        Addresses from;
        const uint4 row = sum_of<Operands>(ReadUnits<Operands>{*this, first, part, from}, by);
        write<Operands>(stamp_, this->call_, first, part, row);
        Rows::empty(stamp_, from);
      });
    }
  }

  const uint4* const shared_;
  const uint4* const own_;
  uint32_t row_turn_ = 0;     ///< RowThreads
  uint64_t round_begin_ = 0;  ///< of the pipeline at hand, in virtual bytes ...
  uint64_t round_unit_ = 0;   ///< ... and how long its rounds are
  uint64_t rounds_left_ = 0;
  bool step_frees_ = false;  ///< a step so far has kCompiledFrees
};

}  // namespace mscclc::cuda
