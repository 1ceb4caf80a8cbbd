// The machine of the simulator in adversarial mode: one strand of a thread block, which does its
// part of every op as some of the threads of a GPU block would, and perhaps later than its fiber
// comes by.
//
// The strand of a piece is that of its 16 bytes (or packet unit, or line) counted from the
// beginning of the stretch, as in executor/cuda/device/block.cuh. Which thread serves a signal or
// wait is not promised (interpreter/machine.h). Where chance decides it is another strand from op
// to op and from target to target, but at ports, where one posts all. Else the first strand waits,
// and either the first one too or the last one, depending on their number, signals, releases and
// posts. adversary.h says what for.
#pragma once

#include <utility>
#include <vector>

#include "executor/simulator/machine/machine.h"
#include "executor/simulator/machine/strand_world.h"

namespace mscclc {

class StrandMachine : public SimMachine {
 public:
  struct StrandId {
    uint32_t plan, world_rank;  ///< which plan's block it is, and on which rank of the world
    uint32_t block, strand, process;
  };
  StrandMachine(const SimMachine& machine, StrandWorld& world, const StrandId& strand)
      : SimMachine(machine), world_(&world), strand_(strand) {}

  /// Begins call `call` of the run, call `number` of the plan's memory.
  void begin(uint64_t call, uint64_t number);
  /// Runs a block's ops.
  void run(const device::Frame& frame, const device::DeviceOp* ops, uint32_t count);

  // What the interpreter calls.
  void enter(const device::DeviceOp& op) { op_ = &op; }

  template <PacketFormat F, class Fn>
  void for_each_piece(const device::FrameStretch& s, Fn fn) {
    constexpr uint32_t kStep = F == PacketFormat::none ? 16 : 1;
    const uint64_t stride = uint64_t{kStep} * strands();
    for (uint64_t at = uint64_t{kStep} * strand_.strand; at < s.count; at += stride) {
      const uint64_t left = s.count - at;
      const uint32_t n = left < kStep ? static_cast<uint32_t>(left) : kStep;
      fn(device::piece_of<F>(s, s.skip + at, n));
      pause();
    }
  }
  void apply_rows(const device::Frame& frame, const device::DeviceOp& op) {
    apply_some_rows(frame, op, strand_.strand, strands(), [this] { pause(); });
  }
  void apply_sums(const device::Frame& frame, const device::DeviceOp& op) {
    with_any_format(op.format, [&](auto tag) {
      constexpr PacketFormat kFormat = decltype(tag)::kFormat;
      apply_some_sums<kFormat>(*this, frame, op, strand_.strand, strands(), [this] { pause(); });
    });
  }
  template <class Fn>
  void for_each_target(uint32_t n, Fn fn) {
    for (target_ = 0; target_ < n; ++target_) fn(target_);  // a strand does those of its own
  }

  void store(uint8_t* to, const device::Piece& piece, const Tile& tile) {
    write(to, tile.bytes, piece.bytes);
  }
  template <PacketFormat F>
  void write_packets(uint8_t* slot, const device::Piece& piece, const Tile& tile) {
    if (!captures_) return SimMachine::write_packets<F>(slot, piece, tile);
    // One unit: its data and flag arrive together.
    constexpr uint32_t kWire = device::Format<F>::kWire;
    uint8_t unit[kWire];
    const device::Piece first{0, piece.offset, piece.payload, piece.bytes, 0};
    SimMachine::write_packets<F>(unit, first, tile);
    write(slot + piece.unit * kWire, unit, kWire, true);
  }
  void empty_packets(uint8_t* units, uint32_t bytes);
  void copy(uint8_t* to, const uint8_t* from, uint64_t bytes);

  void signal(uint32_t channel, bool relaxed);
  void wait(uint32_t channel, bool relaxed);
  template <class ChannelOf>
  void flush(uint32_t n, ChannelOf channel_of) {
    for (uint32_t i = 0; i < n; ++i) flush(channel_of(i));
  }
  void flush(uint32_t channel);
  void release(uint32_t semaphore);
  void acquire(uint32_t semaphore);
  void await_flag(uint32_t flag);
  void notify_flag(uint32_t flag);
  void meet(uint32_t barrier);
  void sync();
  void post_put(uint32_t channel, uint8_t* to, const uint8_t* from, uint64_t bytes);

 private:
  struct Write {
    uint8_t* to;
    std::vector<uint8_t> bytes;
    bool packets, empties;
  };
  static constexpr uint64_t kNow = ~uint64_t{0};

  uint32_t strands() const { return world_->adversary.strands; }
  RankClocks& clocks() { return world_->plans[strand_.plan][rank_id_]; }
  Clock& clock() { return world_->clocks[strand_.process]; }
  void pause() {
    if (!performs_) breathe();
  }
  void step(const device::Frame& frame, const device::DeviceOp& op);
  uint64_t how_late(const device::DeviceOp& op);
  void defer(const device::Frame& frame, const device::DeviceOp& op);
  void run_capturing(const device::Frame& frame, const device::DeviceOp& op);
  void write_later(LateAccess access, bool packets, bool empties = false);
  void add_touches(const device::Frame& frame, const device::DeviceOp& op,
                   std::vector<Touch>& touches);
  uint64_t as_stored(const device::DeviceOp& op, uint32_t k, uint64_t bytes) const;
  template <PacketFormat F>
  void add_touches_as(const device::Frame& frame, const device::DeviceOp& op,
                      std::vector<Touch>& touches);
  void write(uint8_t* to, const uint8_t* from, uint32_t bytes, bool packets = false,
             bool empties = false);
  void arrive(StrandMeeting& meeting, uint64_t members, const Waiting& reason);
  bool serves(uint32_t usual) const {
    return strand_.strand == (scheduler_.shuffles() ? (op_->source + target_) % strands() : usual);
  }
  bool waits() const { return serves(0); }
  bool signals() const { return serves(last()); }
  bool serves_ports() const { return strand_.strand == last(); }
  uint32_t last() const { return strands() % 2 == 0 ? strands() - 1 : 0; }
  void note_posted(uint32_t channel, bool relaxed);

  StrandWorld* world_;
  StrandId strand_;
  uint64_t run_call_ = 0;
  uint32_t target_ = 0;    ///< of the op at hand
  bool performs_ = false;  ///< does a late access: nothing may make it wait
  bool captures_ = false;  ///< keeps what the op writes instead of writing it
  std::vector<Write> captured_;
  /// Of the op at hand. Here, as the stack of a fiber that is given up is not unwound.
  LateAccess access_;
};

/// The proxy of a port channel in adversarial mode: a process of its own, whose writes may be late.
class ClockedProxy {
 public:
  /// `rank`: of the world.
  ClockedProxy(StrandWorld& world, SimChannelEnd& own, ChannelClocks& clocks, uint32_t rank,
               uint32_t process)
      : world_(world), own_(own), clocks_(clocks), rank_(rank), process_(process) {}
  /// Says where its signals go.
  void connect(SimChannelEnd& end, ChannelClocks& clocks) {
    partner_ = &end;
    partner_clocks_ = &clocks;
  }
  /// Serves the queue forever.
  void serve();

 private:
  void signal(const ChannelClocks::Posted& posted);
  void put(const PortRequest& request, uint64_t call);
  void write(const PortRequest& request, uint64_t call, uint32_t count);

  StrandWorld& world_;
  SimChannelEnd& own_;
  ChannelClocks& clocks_;
  SimChannelEnd* partner_ = nullptr;
  ChannelClocks* partner_clocks_ = nullptr;
  const uint32_t rank_, process_;
  // Of the put at hand; see StrandMachine::access_.
  Clock before_;
  std::vector<uint8_t> bytes_;
};

}  // namespace mscclc
