// The machine of a thread block on the host device: one of many processes or threads that
// share memory (interpreter/machine.h says what a machine offers). It reads steps and a
// device::RankContext, as a GPU does, so everything that a runtime hands to a GPU is what runs
// here.
//
// Counts and packets are atomics. A wait polls, and between polls lets the other blocks of the
// launch run; it ends with a fault if it takes too long or the host aborts.
#pragma once

#include <chrono>
#include <cstring>

#include "executor/cpu/fiber.h"
#include "executor/cpu/tiles.h"
#include "executor/interpreter/steps.h"
#include "executor/launch.h"
#include "executor/shared_atomics.h"

namespace mscclc {

class ProcessMachine {
 public:
  static constexpr uint32_t kTogether = 1;
  static constexpr bool kTrees = true;
  using Tile = CpuTile;
  using Sums = CpuSums;

  /// `fiber`: what the block runs on.
  ProcessMachine(const device::LaunchPlan& plan, uint32_t block, Fiber& fiber);

  /// Runs the block's ops, then ends its part of the call. Does not return if a wait is given up,
  /// or one has been before: gave_up() is true then, and the fiber not to be resumed.
  void run();
  bool gave_up() const { return gave_up_; }
  /// True once after the block has got on since the last question.
  bool moved() {
    const bool moved = moved_;
    moved_ = false;
    return moved;
  }

  // What the interpreter calls.
  void enter(const device::Step& step) {
    step_ = &step;
    if (stamps_ != nullptr) [[unlikely]]
      stamp(step);
  }
  uint64_t call() const { return call_; }
  TileArith arith(const device::Step& step) const { return TileArith::of(step, plan_); }
  TreeSums tree_sums(const TileArith& arith, uint32_t bytes) { return sums_.tree(arith, bytes); }
  ExactTile exact_sums(const TileArith& arith, uint32_t bytes) { return sums_.exact(arith, bytes); }

  template <PacketFormat F, class Fn>
  void for_each_piece(const device::StepStretch& s, Fn fn) {
    constexpr uint32_t kData = F == PacketFormat::none ? 1 : device::Format<F>::kData;
    constexpr uint32_t kMax = kTileBytes / kData;
    const uint64_t end = s.skip + s.count;
    for (uint64_t at = s.skip; at < end;) {
      const uint32_t n = kMax < end - at ? kMax : static_cast<uint32_t>(end - at);
      fn(device::piece_of<F>(s, at, n));
      at += n;
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
  void fetch(const device::Source* source, uint32_t, const device::Piece& piece, Tile* tile) {
    if constexpr (F != PacketFormat::none) {
      if (source->packets) return read_packets<F>(source->address, piece, *tile);
    }
    std::memcpy(tile->bytes, source->address, piece.bytes);
    std::memset(tile->bytes + piece.bytes, 0, piece.payload - piece.bytes);
  }
  void store(uint8_t* to, const device::Piece& piece, const Tile& tile) {
    std::memcpy(to, tile.bytes, piece.bytes);
  }
  template <PacketFormat F>
  void write_packets(uint8_t* slot, const device::Piece& piece, const Tile& tile);
  void empty_packets(uint8_t* units, uint32_t bytes);
  void drop_minus_zeros(Tile& tile, uint32_t bytes) const {
    device::drop_minus_zeros(tile.bytes, bytes, element_);
  }
  void copy(uint8_t* to, const uint8_t* from, uint64_t bytes) { std::memmove(to, from, bytes); }
  void apply_rows(const device::Steps& program, const device::Step& step);

  void signal(const device::StepTarget& target, bool relaxed);
  void wait(const device::StepTarget& target, bool relaxed);
  template <class ChannelOf>
  void flush(uint32_t n, ChannelOf channel_of) {
    uint64_t first = 0;  // all are asked before the first is awaited, as in device/ports.cuh
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t number = post({device::PortWhat::flush, channel_of(i)});
      if (i == 0) first = number;
    }
    for (uint32_t i = 0; i < n; ++i) await_flush(channel_of(i), first);
  }
  void release(const device::StepTarget& target) { add_release(target.address); }
  void acquire(const device::StepTarget& target);
  void meet(const device::StepTarget& target);
  void sync() {}
  void await_flag(const device::StepTarget& target);
  void notify_flag(const device::StepTarget& target);
  void post_put(uint32_t channel, uint8_t* to, const uint8_t* from, uint64_t bytes);

 private:
  void begin_stamps();
  void stamp(const device::Step& step);
  void end_stamps();

  /// What is waited for: the seen value is reported if it does not come.
  struct Waiting {
    device::WaitFor what;
    uint32_t index;  ///< of Fault
    uint64_t expected;
    uint32_t high = 0;  ///< of Fault
  };
  template <PacketFormat F>
  void read_packets(const uint8_t* slot, const device::Piece& piece, Tile& tile);
  template <PacketFormat F>
  bool take_unit(const uint8_t* unit, uint8_t* data, uint64_t& seen) const;
  /// Returns when ready(seen) is true; `seen` is what it saw.
  template <class Ready>
  void await(const Waiting& waiting, Ready ready);
  bool patient();
  /// Records why, and does not return.
  void give_up(const Waiting& waiting, uint64_t seen);
  uint64_t post(const device::PortRequest& request);
  void await_flush(uint32_t channel, uint64_t number);

  const device::LaunchPlan& plan_;
  const device::RankContext& rank_;
  const uint32_t block_;
  Fiber& fiber_;
  uint64_t* const calls_;  ///< the block's counts (LaunchPlan)
  const uint64_t call_;
  const uint32_t element_;
  const device::Stamp stamp_;
  const device::Step* step_ = nullptr;
  uint64_t* const stamps_;  ///< the block's row (stamps.h); nullptr: none
  SumRoom sums_;
  bool moved_ = true, gave_up_ = false;
  uint32_t polls_ = 0;  ///< of the present wait
  std::chrono::steady_clock::time_point since_;
};

}  // namespace mscclc
