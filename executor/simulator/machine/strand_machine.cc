#include "executor/simulator/machine/strand_machine.h"

#include <algorithm>
#include <cstring>

#include "executor/interpreter/dispatch.h"

namespace mscclc {

using device::DeviceOp;
using device::DeviceOperand;
using device::Frame;
using device::FrameStretch;
using device::Move;

namespace {

constexpr uint32_t kMaxLate = 4;  // accesses of one process that wait, where chance makes them

bool posts(const Frame& f, const DeviceOp& op) {
  return (f.rank.operands[f.rank.moves[op.first].operands].flags & device::kPort) != 0;
}

}  // namespace

void StrandMachine::begin(uint64_t call, uint64_t number) {
  run_call_ = call;
  begin_call(number);
  clock().join(world_->done[strand_.world_rank]);
}

void StrandMachine::run(const Frame& frame, const DeviceOp* op, uint32_t count) {
  for (const DeviceOp* end = op + count; op < end;) {
    if (op->kind != device::StepKind::pipeline) {
      step(frame, *op++);
      continue;
    }
    const device::DeviceLoop loop = frame.rank.loops[op->first];
    for (uint64_t round = 0; round < loop.rounds; ++round) {
      run(Frame{frame.rank, round * loop.unit, loop.unit}, op + 1, op->count);
    }
    op += 1 + op->count;
  }
}

void StrandMachine::step(const Frame& frame, const DeviceOp& op) {
  op_ = &op;
  world_->linger(Hold::What::op, strand_.world_rank, op.source, strand_.strand, run_call_);
  if (scheduler_.shuffles()) scheduler_.yield();
  access_ = {};
  access_.process = strand_.process;
  access_.before = clock();
  access_.count = clock().tick(strand_.process);
  if (!moves_data(op.kind)) return device::run_op(*this, frame, op);
  add_touches(frame, op, access_.touches);
  access_.hold = how_late(op);
  const bool polls = info(program_.ranks[rank_id_].ops[op.source].kind).has(kPolls);
  if (access_.hold == kNow || (posts(frame, op) && !polls)) {
    world_->memory.settle(access_.before, access_.touches);
    device::run_op(*this, frame, op);
  } else if (polls) {
    run_capturing(frame, op);
  } else {
    defer(frame, op);
  }
}

/// When the op's accesses are to be done.
uint64_t StrandMachine::how_late(const DeviceOp& op) {
  const uint64_t order =
      world_->hold(Hold::What::access, strand_.world_rank, op.source, strand_.strand, run_call_);
  if (order > 0) return order;
  if (!scheduler_.shuffles() || scheduler_.dice().below(2) == 0) return kNow;
  return world_->memory.pending(strand_.process) < kMaxLate ? LateAccess::kFree : kNow;
}

// All the op reads and writes is late, and the strand goes on.
void StrandMachine::defer(const Frame& frame, const DeviceOp& op) {
  LateAccess access = std::exchange(access_, {});
  StrandMachine later = *this;
  later.performs_ = true;
  access.perform = [later, frame, &op]() mutable { device::run_op(later, frame, op); };
  world_->memory.add(std::move(access));
}

// An op that polls waits for its packets now; what it writes is late. Nothing orders its packets,
// what it writes plain, and what it empties (ir/ops/parts.h): held, the packets go first, and may
// be answered before the rest goes.
void StrandMachine::run_capturing(const Frame& frame, const DeviceOp& op) {
  world_->memory.settle(access_.before, access_.touches);
  captures_ = true;
  device::run_op(*this, frame, op);
  captures_ = false;
  write_later(access_, true);
  write_later(access_, false);
  write_later(std::exchange(access_, {}), true, true);
  captured_.clear();
}

// What the op has captured: packets, plain data, or slots that it empties.
void StrandMachine::write_later(LateAccess access, bool packets, bool empties) {
  const auto differs = [=](const auto& what) {
    return what.packets != packets || what.empties != empties;
  };
  std::erase_if(access.touches, [&](const Touch& touch) { return !touch.write || differs(touch); });
  std::vector<Write> writes;
  for (Write& w : captured_) {
    if (!differs(w)) writes.push_back(std::move(w));
  }
  if (writes.empty()) return;
  access.perform = [writes = std::move(writes)] {
    for (const Write& w : writes) std::copy(w.bytes.begin(), w.bytes.end(), w.to);
  };
  world_->memory.add(std::move(access));
}

template <PacketFormat F>
void StrandMachine::add_touches_as(const Frame& frame, const DeviceOp& op,
                                   std::vector<Touch>& touches) {
  constexpr bool kPlain = F == PacketFormat::none;
  constexpr uint32_t kData = kPlain ? 1 : device::Format<F>::kData;
  constexpr uint32_t kWire = kPlain ? 1 : device::Format<F>::kWire;
  const auto add = [&](const FrameStretch& s, uint32_t k) {
    const DeviceOperand& operand = frame.rank.operands[s.move->operands + k];
    const bool write = k < s.move->dsts;
    if (write && (operand.flags & device::kPort) != 0) return;  // the proxy's
    const bool packets = !kPlain && (operand.flags & device::kPackets) != 0;
    uint64_t begin = s.skip * (packets ? kWire : kData);
    uint64_t bytes = s.count * (packets ? kWire : kData);
    if (!packets) {
      bytes = begin < s.run->length ? std::min(bytes, s.run->length - begin) : 0;
      begin = as_stored(op, k, begin);
      bytes = as_stored(op, k, bytes);
    }
    const bool empties = packets && !write && device::Format<F>::kSentinel;
    for (uint32_t member = 0; member < operand.members && bytes > 0; ++member) {
      const uint8_t* address = device::address_of(*this, frame, s, k, member);
      touches.push_back({address + begin, bytes, write || empties, packets, empties});
    }
  };
  for (uint32_t i = 0; i < op.count; ++i) {
    const Move& move = frame.rank.moves[op.first + i];
    device::for_each_stretch<F>(frame, op, i, [&](const FrameStretch& s) {
      for (uint32_t k = 0; k < uint32_t{move.dsts} + move.srcs; ++k) add(s, k);
    });
  }
}

/// Bytes of rows that a step computes, which counts those of T, as bytes of an operand's type.
uint64_t StrandMachine::as_stored(const DeviceOp& op, uint32_t k, uint64_t bytes) const {
  if (op.kind != device::StepKind::apply) return bytes;
  const Op& of = program_.ranks[rank_id_].ops[op.source];
  if (!info(of.kind).has(kApplies)) return bytes;  // a sum, which is of T
  const rows::Form form = program_.form_of(rank_id_, program_.all_operands(of)[k]);
  const uint64_t row = rows::bytes_of_row(form, call_.dtype, program_.contract.columns);
  return bytes / program_.granule(call_.dtype) * row;
}

void StrandMachine::add_touches(const Frame& frame, const DeviceOp& op,
                                std::vector<Touch>& touches) {
  if (op.format == PacketFormat::none) {
    return add_touches_as<PacketFormat::none>(frame, op, touches);
  }
  device::with_format(
      op.format, [&](auto tag) { add_touches_as<decltype(tag)::kFormat>(frame, op, touches); });
}

void StrandMachine::write(uint8_t* to, const uint8_t* from, uint32_t bytes, bool packets,
                          bool empties) {
  if (captures_) {
    captured_.push_back({to, {from, from + bytes}, packets, empties});
  } else {
    std::memmove(to, from, bytes);
  }
}

void StrandMachine::empty_packets(uint8_t* units, uint32_t bytes) {
  const std::vector<uint64_t> empty(bytes / sizeof stamp_.sentinel, stamp_.sentinel);
  write(units, reinterpret_cast<const uint8_t*>(empty.data()), bytes, true, true);
}

void StrandMachine::copy(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  constexpr uint64_t kStep = 16;
  for (uint64_t at = kStep * strand_.strand; at < bytes; at += kStep * strands()) {
    write(to + at, from + at, static_cast<uint32_t>(std::min(kStep, bytes - at)));
    pause();
  }
}

/// Returns once all have come, knowing what they know.
void StrandMachine::arrive(StrandMeeting& meeting, uint64_t members, const Waiting& reason) {
  meeting.joining.join(clock());
  if (++meeting.arrived == members) {
    meeting.arrived = 0;
    ++meeting.generation;
    meeting.joined = std::exchange(meeting.joining, {});
  } else {
    park({Wait::Test::differs64, &meeting.generation, meeting.generation}, reason);
  }
  clock().join(meeting.joined);
}

void StrandMachine::sync() {
  arrive(clocks().blocks[strand_.block], strands(),
         {Waiting::For::threads, strand_.block, nullptr, 0});
}

void StrandMachine::meet(uint32_t barrier) {
  sync();
  if (strand_.strand == 0) {
    arrive(clocks().barriers[barrier], barriers_[barrier].blocks.size(),
           {Waiting::For::barrier, barrier, nullptr, 0});
  }
  sync();
}

void StrandMachine::signal(uint32_t channel, bool relaxed) {
  const Channel& end = program_.ranks[rank_id_].channels[channel];
  if (!(end.kind == ChannelKind::port ? serves_ports() : signals())) return;
  SimMachine::signal(channel, relaxed);
  if (end.kind == ChannelKind::port) return note_posted(channel, relaxed);
  world_->plans[strand_.plan][end.peer].channels[end.partner]->arrive(relaxed ? nullptr : &clock());
}

void StrandMachine::wait(uint32_t channel, bool relaxed) {
  if (!waits()) return;
  SimMachine::wait(channel, relaxed);
  std::deque<Clock>& arrived = clocks().channels[channel]->arrived;
  if (!relaxed) clock().join(arrived.front());
  arrived.pop_front();
}

void StrandMachine::flush(uint32_t channel) {
  if (serves_ports()) SimMachine::flush(channel);
}

void StrandMachine::release(uint32_t semaphore) {
  if (!signals()) return;
  SimMachine::release(semaphore);
  clocks().semaphores[semaphore].join(clock());
}

void StrandMachine::acquire(uint32_t semaphore) {
  if (!waits()) return;
  SimMachine::acquire(semaphore);
  clock().join(clocks().semaphores[semaphore]);
}

void StrandMachine::await_flag(uint32_t flag) {
  if (!waits()) return;
  SimMachine::await_flag(flag);
  clock().join(clocks().flags[flag]);
}

void StrandMachine::notify_flag(uint32_t flag) {
  if (!signals()) return;
  SimMachine::notify_flag(flag);
  clocks().flags[flag].join(clock());
}

// No other fiber has run since the entry was queued.
void StrandMachine::note_posted(uint32_t channel, bool relaxed) {
  const uint64_t entry = rank_.channels[channel]->posted - 1;
  clocks().channels[channel]->posted[entry % SimChannelEnd::kQueue] = {clock(), relaxed, run_call_};
}

void StrandMachine::post_put(uint32_t channel, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  if (!serves_ports() || bytes == 0) return;
  SimMachine::post_put(channel, to, from, bytes);
  note_posted(channel, false);
}

void ClockedProxy::signal(const ChannelClocks::Posted& posted) {
  ++partner_->arrived;
  partner_clocks_->arrive(posted.relaxed ? nullptr : &world_.clocks[process_]);
}

// What a network writes may arrive after the source has been read, but whole lines at a time, and
// before a later signal of the channel.
void ClockedProxy::put(const PortRequest& request, uint64_t call) {
  Clock& clock = world_.clocks[process_];
  before_ = clock;
  const uint32_t count = clock.tick(process_);
  const Touch read[] = {{request.from, request.bytes, false}};
  world_.memory.settle(before_, read);
  bytes_.resize(request.bytes);
  for (uint64_t at = 0; at < request.bytes;) {
    uint64_t n = request.bytes - at;
    const bool shuffles = world_.scheduler.shuffles();
    if (shuffles) n = std::min<uint64_t>(n, 128 * (1 + world_.scheduler.dice().below(64)));
    std::memcpy(bytes_.data() + at, request.from + at, n);
    at += n;
    if (shuffles) world_.scheduler.yield();
  }
  write(request, call, count);
}

void ClockedProxy::write(const PortRequest& request, uint64_t call, uint32_t count) {
  LateAccess access;
  access.process = process_;
  access.count = count;
  access.before = std::exchange(before_, {});
  access.touches = {{request.to, request.bytes, true}};
  access.perform = [to = request.to, bytes = std::exchange(bytes_, {})] {
    std::copy(bytes.begin(), bytes.end(), to);
  };
  Scheduler& scheduler = world_.scheduler;
  access.hold = world_.hold(Hold::What::access, rank_, request.op, 0, call);
  const bool chance = scheduler.shuffles() && scheduler.dice().below(2) != 0 &&
                      world_.memory.pending(process_) < kMaxLate;
  if (access.hold != LateAccess::kFree || chance) {
    world_.memory.add(std::move(access));
  } else {
    world_.memory.settle(access.before, access.touches);
    access.perform();
  }
}

void ClockedProxy::serve() {
  for (;;) {
    Scheduler& scheduler = world_.scheduler;
    scheduler.wait({Wait::Test::above64, &own_.posted, own_.done});
    if (scheduler.shuffles()) {
      const uint64_t next = own_.any_next(scheduler.dice());
      bring_forward(own_.queue, own_.done, next);
      bring_forward(clocks_.posted, own_.done, next);
    }
    const uint64_t entry = own_.done % SimChannelEnd::kQueue;
    const PortRequest request = own_.queue[entry];
    const ChannelClocks::Posted& posted = clocks_.posted[entry];  // free again only after `done`
    world_.clocks[process_].join(posted.clock);
    if (request.to == nullptr) {
      signal(posted);
    } else {
      const uint64_t call = posted.call;
      world_.linger(Hold::What::proxy, rank_, request.op, 0, call);
      put(request, call);
    }
    ++own_.done;
  }
}

}  // namespace mscclc
