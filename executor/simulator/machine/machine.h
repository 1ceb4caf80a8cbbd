// The machine of a thread block on the simulator: one fiber that runs the ops of one thread block
// (interpreter/machine.h says what a machine offers). It walks over tiles of up to 1920 bytes;
// under a seed over smaller ones, and hands over to other fibers in between.
#pragma once

#include <cstring>

#include "executor/cpu/tiles.h"
#include "executor/interpreter/frame.h"
#include "executor/lower.h"
#include "executor/simulator/machine/row_sums.h"
#include "executor/simulator/machine/scheduler.h"
#include "executor/simulator/machine/state.h"

namespace mscclc {

/// What a block is waiting for: reported when the run hangs.
struct Waiting {
  enum class For : uint8_t {
    nothing,
    signal,
    semaphore,
    barrier,
    packet,
    queue,
    flush,
    threads,
    flag
  };
  For what = For::nothing;
  uint32_t index = 0;               ///< channel, semaphore, barrier or flag
  const uint8_t* packet = nullptr;  ///< the flag or word that is not there
  uint64_t expected = 0;
};

class SimMachine {
 public:
  static constexpr uint32_t kTogether = 2;
  static constexpr bool kTrees = true;
  using Tile = CpuTile;
  using Sums = CpuSums;

  SimMachine(Scheduler& scheduler, std::vector<SimRank>& ranks, const Program& program,
             uint32_t rank, const Call& call, const std::vector<BarrierMembers>& barriers)
      : scheduler_(scheduler),
        ranks_(ranks),
        rank_(ranks[rank]),
        program_(program),
        rank_id_(rank),
        call_(call),
        barriers_(barriers),
        element_(info(call.dtype).bytes) {}

  /// Begins call `number` (from 0, over the life of the plan's memory).
  void begin_call(uint64_t number) {
    number_ = number;
    stamp_ = device::stamp_of(number, element_);
  }
  const device::DeviceOp* op() const { return op_; }
  const Waiting& waiting() const { return waiting_; }

  // What the interpreter calls.
  void enter(const device::DeviceOp& op) {
    op_ = &op;
    breathe();
  }
  uint8_t* base(uint32_t index) const {
    const BaseAddress& b = rank_.bases[index];
    return b.copies > 1 ? b.address + number_ % b.copies * b.copy_stride : b.address;
  }
  TileArith arith(const device::DeviceOp& op) const { return TileArith::of(op, call_); }
  TreeSums tree_sums(const TileArith& arith, uint32_t bytes) { return sums_.tree(arith, bytes); }
  ExactTile exact_sums(const TileArith& arith, uint32_t bytes) { return sums_.exact(arith, bytes); }

  template <PacketFormat F, class Fn>
  void for_each_piece(const device::FrameStretch& s, Fn fn) {
    constexpr uint32_t kData = F == PacketFormat::none ? 1 : device::Format<F>::kData;
    constexpr uint32_t kMax = kTileBytes / kData;
    constexpr uint32_t kGrain = F == PacketFormat::none ? 16 : 1;  // keeps elements whole
    const uint64_t end = s.skip + s.count;
    for (uint64_t at = s.skip; at < end;) {
      uint32_t n = kMax;
      if (scheduler_.shuffles()) n = kGrain * (1 + scheduler_.dice().below(kMax / kGrain));
      n = n < end - at ? n : static_cast<uint32_t>(end - at);
      fn(device::piece_of<F>(s, at, n));
      at += n;
      breathe();
    }
  }

  template <class Fn>
  void for_each_target(uint32_t n, Fn fn) {
    for (uint32_t i = 0; i < n; ++i) fn(i);
  }

  template <class Fn>
  void for_each_post(uint32_t n, Fn fn) {
    for (uint32_t i = 0; i < n; ++i) fn(i);
  }

  template <PacketFormat F>
  void fetch(const device::Source* sources, uint32_t n, const device::Piece& piece, Tile* tiles) {
    // Nothing orders loads of plain data and polls (ir/ops/parts.h).
    const bool polls_first = scheduler_.shuffles() && scheduler_.dice().below(2) == 0;
    for (const bool packets : {polls_first, !polls_first}) {
      for (uint32_t i = 0; i < n; ++i) {
        if (sources[i].packets == packets) read<F>(sources[i], piece, tiles[i]);
      }
    }
  }
  bool empties_first() { return scheduler_.shuffles() && scheduler_.dice().below(2) == 0; }
  void store(uint8_t* to, const device::Piece& piece, const Tile& tile) {
    std::memcpy(to, tile.bytes, piece.bytes);
  }
  template <PacketFormat F>
  void write_packets(uint8_t* slot, const device::Piece& piece, const Tile& tile);
  void empty_packets(uint8_t* units, uint32_t bytes);
  void drop_minus_zeros(Tile& tile, uint32_t bytes) const {
    device::drop_minus_zeros(tile.bytes, bytes, element_);
  }
  void copy(uint8_t* to, const uint8_t* from, uint64_t bytes);

  /// Rows of an `apply`, in order.
  void apply_rows(const device::Frame& frame, const device::DeviceOp& op) {
    apply_some_rows(frame, op, 0, 1, [this] { breathe(); });
  }

  /// Sums that are handed to a row function, in order.
  void apply_sums(const device::Frame& frame, const device::DeviceOp& op) {
    with_any_format(op.format, [&](auto tag) {
      apply_some_sums<decltype(tag)::kFormat>(*this, frame, op, 0, 1, [this] { breathe(); });
    });
  }

  void signal(uint32_t channel, bool relaxed);
  void wait(uint32_t channel, bool relaxed);
  template <class ChannelOf>
  void flush(uint32_t n, ChannelOf channel_of) {
    for (uint32_t i = 0; i < n; ++i) flush(channel_of(i));
  }
  void flush(uint32_t channel);
  void release(uint32_t semaphore) { ++rank_.semaphores[semaphore]; }
  void acquire(uint32_t semaphore);
  void await_flag(uint32_t flag);
  void notify_flag(uint32_t flag) { ++rank_.flags[flag].raised; }
  void meet(uint32_t barrier);
  void sync() { breathe(); }
  void post_put(uint32_t channel, uint8_t* to, const uint8_t* from, uint64_t bytes);

 protected:
  template <PacketFormat F>
  void read(const device::Source& source, const device::Piece& piece, Tile& tile) {
    if constexpr (F != PacketFormat::none) {
      if (source.packets) return read_packets<F>(source.address, piece, tile);
    }
    std::memcpy(tile.bytes, source.address, piece.bytes);
    std::memset(tile.bytes + piece.bytes, 0, piece.payload - piece.bytes);
  }
  /// Every `step`-th row from row `first` on; `pause()` after each.
  template <class Pause>
  void apply_some_rows(const device::Frame& frame, const device::DeviceOp& op, uint64_t first,
                       uint64_t step, Pause pause);
  /// The same of sums, by a machine M, which this one is.
  template <PacketFormat F, class M, class Pause>
  void apply_some_sums(M& machine, const device::Frame& frame, const device::DeviceOp& op,
                       uint64_t first, uint64_t step, Pause pause);
  template <PacketFormat F>
  void read_packets(const uint8_t* slot, const device::Piece& piece, Tile& tile);
  template <PacketFormat F>
  void await_unit(const uint8_t* unit);
  void post(uint32_t channel, const PortRequest& request);
  void park(const Wait& wait, const Waiting& reason);
  void await_packet(Wait::Test test, const uint8_t* at, uint64_t value);
  /// Under a seed: hands over now and then.
  void breathe() {
    if (!scheduler_.shuffles()) return;
    if (--steps_ > 0) return;
    steps_ = 1 + scheduler_.dice().below(8);
    scheduler_.yield();
  }

  Scheduler& scheduler_;
  std::vector<SimRank>& ranks_;
  SimRank& rank_;
  const Program& program_;
  const uint32_t rank_id_;
  const Call& call_;
  const std::vector<BarrierMembers>& barriers_;
  const uint32_t element_;
  uint64_t number_ = 0;
  device::Stamp stamp_{};
  const device::DeviceOp* op_ = nullptr;
  Waiting waiting_;
  uint32_t steps_ = 1;
  SumRoom sums_;
};

template <class Pause>
void SimMachine::apply_some_rows(const device::Frame& frame, const device::DeviceOp& op,
                                 uint64_t first, uint64_t step, Pause pause) {
  const Applied what = applied(program_, program_.ranks[rank_id_].ops[op.source]);
  const uint64_t granule = program_.granule(call_.dtype);
  device::for_each_stretch<PacketFormat::none>(frame, op, 0, [&](const device::FrameStretch& s) {
    std::vector<uint8_t*> operands;
    for (uint32_t k = 0; k < device::operands_of(s); ++k) {
      operands.push_back(device::address_of(*this, frame, s, k));
    }
    const std::span<uint8_t* const> all(operands);
    const rows::RowMemory memory{all.first(device::dsts_of(s)), all.subspan(device::dsts_of(s)),
                                 rank_.externals, rank_.external_layouts};
    const uint64_t end = s.skip + s.count < s.length() ? s.skip + s.count : s.length();
    const uint64_t rows = s.skip < end ? (end - s.skip) / granule : 0;
    const uint64_t at = frame.rank.offsets[s.run->offsets + operands.size()] / granule;
    for (uint64_t i = first + s.skip / granule; i < rows + s.skip / granule; i += step) {
      rows::apply_row(program_, what, call_.dtype, memory, i, at + i);
      pause();
    }
  });
}

template <PacketFormat F, class M, class Pause>
void SimMachine::apply_some_sums(M& machine, const device::Frame& frame, const device::DeviceOp& op,
                                 uint64_t first, uint64_t step, Pause pause) {
  const Applied what = applied(program_, program_.ranks[rank_id_].ops[op.source]);
  const uint64_t granule = program_.granule(call_.dtype);
  const uint64_t units = granule / kCounted<F>;
  device::for_each_stretch<F>(frame, op, 0, [&](const device::FrameStretch& s) {
    const uint64_t rows_at = frame.rank.offsets[s.run->offsets + device::operands_of(s)];
    std::vector<uint8_t> sum(granule), result(granule);
    uint8_t *const from = sum.data(), *const to = result.data();
    const rows::RowMemory memory{{&to, 1}, {&from, 1}, rank_.externals, rank_.external_layouts};
    for (uint64_t i = first; i < s.count / units; i += step) {
      device::FrameStretch row = s;
      row.skip = s.skip + i * units;
      row.count = units;
      sum_up_row<F>(machine, frame, op, row, sum);
      const uint64_t at = row.skip * kCounted<F>;
      const bool is_data = at < s.length();
      if (is_data) {
        rows::apply_row(program_, what, call_.dtype, memory, 0, (rows_at + at) / granule);
      }
      store_row<F>(machine, frame, row, is_data ? result : sum);
      pause();
    }
  });
}

/// The proxy of a port channel: does what blocks have posted, later, piece by piece.
class SimProxy {
 public:
  SimProxy(Scheduler& scheduler, SimChannelEnd& own, SimChannelEnd* partner)
      : scheduler_(scheduler), own_(own), partner_(partner) {}
  /// Serves the queue forever.
  void serve();

 private:
  void copy(const PortRequest& request);

  Scheduler& scheduler_;
  SimChannelEnd& own_;
  SimChannelEnd* partner_;  ///< nullptr: no rank can signal or be signalled
};

}  // namespace mscclc
