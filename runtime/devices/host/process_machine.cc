#include "runtime/devices/host/process_machine.h"

#include <algorithm>

#include "executor/interpreter/dispatch.h"
#include "executor/port_slots.h"
#include "executor/rows/row_steps.h"
#include "executor/stamps.h"

namespace mscclc {

using device::Format;
using device::Piece;
using device::WaitFor;

ProcessMachine::ProcessMachine(const device::LaunchPlan& plan, uint32_t block, Fiber& fiber)
    : plan_(plan),
      rank_(*plan.context),
      block_(block),
      fiber_(fiber),
      calls_(plan.calls + uint64_t{block} * plan.call_counts),
      call_(*calls_),
      element_(info(plan.dtype).bytes),
      stamp_(device::stamp_of(call_, element_)),
      stamps_(plan.stamps == nullptr ? nullptr : plan.stamps + uint64_t{block} * plan.stamp_words) {
}

// A call after one that was given up does nothing: peers would take its signals for those that
// are missing.
void ProcessMachine::run() {
  if (load_acquire<uint32_t>(rank_.abort) != 0) give_up({WaitFor::skipped, 0, 0}, 0);
  const auto* header = reinterpret_cast<const device::StepHeader*>(
      plan_.programs + uint64_t{block_} * plan_.program_bytes);
  const device::Steps program(header);
  if (stamps_ != nullptr) begin_stamps();
  device::run_ops(*this, program, program.steps, header->steps);
  if (stamps_ != nullptr) end_stamps();
  *calls_ = call_ + 1;
}

namespace {

uint64_t nanoseconds() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

// A tick is a nanosecond.
void ProcessMachine::begin_stamps() {
  std::fill_n(stamps_, device::kStampHead, 0);
  stamps_[device::kStampsBegan] = nanoseconds();
}

void ProcessMachine::stamp(const device::Step& step) {
  const uint64_t at = device::kStampHead + stamps_[device::kStampsDue]++;
  if (at >= plan_.stamp_words) return;
  stamps_[at] = device::stamp_word(static_cast<uint32_t>(step.kind), step.source,
                                   nanoseconds() - stamps_[device::kStampsBegan]);
}

void ProcessMachine::end_stamps() {
  stamps_[device::kStampsEnded] = nanoseconds();
  stamps_[device::kStampsTicks] = stamps_[device::kStampsEnded] - stamps_[device::kStampsBegan];
}

template <class Ready>
void ProcessMachine::await(const Waiting& waiting, Ready ready) {
  uint64_t seen = 0;
  polls_ = 0;
  while (!ready(seen)) {
    if (!patient()) give_up(waiting, seen);
    fiber_.suspend();
  }
  moved_ = true;
}

// The clock is asked now and then only.
bool ProcessMachine::patient() {
  using Clock = std::chrono::steady_clock;
  if (load_acquire<uint32_t>(rank_.abort) != 0) return false;
  if (polls_++ == 0) since_ = Clock::now();
  if (polls_ % 64 != 0 || plan_.patience == 0) return true;
  return static_cast<uint64_t>((Clock::now() - since_).count()) < plan_.patience;
}

// The first fault of a block stays: calls after this one give up because of it.
void ProcessMachine::give_up(const Waiting& waiting, uint64_t seen) {
  device::Fault& fault = rank_.faults[block_];
  auto* what = reinterpret_cast<uint32_t*>(&fault.what);
  if (load_acquire<uint32_t>(what) == 0) {
    fault.index = waiting.index;
    fault.op = step_ == nullptr ? 0 : step_->source;
    fault.high = waiting.high;
    fault.expected = waiting.expected;
    fault.seen = seen;
    store_release(what, static_cast<uint32_t>(waiting.what));
  }
  // Blocks only read the word while all is well.
  store_release<uint32_t>(const_cast<uint32_t*>(rank_.abort), 1);
  gave_up_ = true;
  for (;;) fiber_.suspend();
}

/// Takes a unit's data; false if it has not come.
template <PacketFormat F>
bool ProcessMachine::take_unit(const uint8_t* unit, uint8_t* data, uint64_t& seen) const {
  alignas(8) uint8_t copy[Format<F>::kWire];
  // Downwards: what a mark vouches for is in its word or before it.
  for (uint32_t at = Format<F>::kWire; at > 0;) {
    at -= 8;
    const uint64_t word = load_acquire<uint64_t>(unit + at);
    std::memcpy(copy + at, &word, sizeof word);
  }
  const auto load = [&copy](uint32_t at, bool wide) {
    uint64_t mark = 0;
    std::memcpy(&mark, copy + at, wide ? 8 : 4);
    return mark;
  };
  const device::FoundMark mark =
      device::find_missing_mark<F>(Format<F>::stamp(stamp_), stamp_.word, load);
  seen = mark.seen;
  if (mark.missing) return false;
  Format<F>::get(copy, data);
  return true;
}

template <PacketFormat F>
void ProcessMachine::read_packets(const uint8_t* slot, const Piece& piece, Tile& tile) {
  const uint8_t* from = slot + piece.unit * Format<F>::kWire;
  const uint64_t expected = Format<F>::stamp(stamp_);
  for (uint32_t at = 0; at < piece.payload; at += Format<F>::kData, from += Format<F>::kWire) {
    uint64_t seen = 0;
    if (take_unit<F>(from, tile.bytes + at, seen)) continue;
    const auto unit = reinterpret_cast<uint64_t>(from);
    await(
        {WaitFor::packet, static_cast<uint32_t>(unit), expected, static_cast<uint32_t>(unit >> 32)},
        [&](uint64_t& now) { return take_unit<F>(from, tile.bytes + at, now); });
  }
}

template <PacketFormat F>
void ProcessMachine::write_packets(uint8_t* slot, const Piece& piece, const Tile& tile) {
  uint8_t* to = slot + piece.unit * Format<F>::kWire;
  for (uint32_t at = 0; at < piece.payload; at += Format<F>::kData, to += Format<F>::kWire) {
    alignas(8) uint8_t unit[Format<F>::kWire];
    Format<F>::put(stamp_, tile.bytes + at, unit);
    copy_words(to, unit, sizeof unit);
  }
}

void ProcessMachine::empty_packets(uint8_t* units, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i += sizeof stamp_.sentinel) {
    store_release<uint64_t>(units + i, stamp_.sentinel);
  }
}

// The handlers are templates: these are all the formats there are.
#define FORMAT(F, ...)                                                                      \
  template void ProcessMachine::read_packets<PacketFormat::F>(const uint8_t*, const Piece&, \
                                                              Tile&);                       \
  template void ProcessMachine::write_packets<PacketFormat::F>(uint8_t*, const Piece&, const Tile&);
#include "ir/ops/formats.def"
#undef FORMAT

void ProcessMachine::apply_rows(const device::Steps& program, const device::Step& step) {
  const device::RowFunctions& functions = *rank_.rows;
  const uint64_t granule = program.align;
  device::for_each_stretch<PacketFormat::none>(program, step, 0, [&](const device::StepStretch& s) {
    std::vector<rows::RowOperand> operands;
    for (uint32_t k = 0; k < device::operands_of(s); ++k) {
      const bool is_value = (device::flags_of(program, s, k) & device::kValue) != 0;
      operands.push_back({device::address_of(*this, program, s, k), is_value});
    }
    rows::apply_rows(functions, step.part, plan_.dtype, operands, s.skip / granule,
                     (s.skip + s.count) / granule);
  });
  moved_ = true;
}

void ProcessMachine::signal(const device::StepTarget& target, bool) {
  if ((target.flags & device::kPort) != 0) {
    post({device::PortWhat::signal, target.index});
  } else if (target.address != nullptr) {
    add_release(target.address);
  }
}

void ProcessMachine::wait(const device::StepTarget& target, bool) {
  uint64_t counted = 0;
  uint64_t* taken = &rank_.channels[target.index].taken;  // other blocks may take meanwhile
  if ((target.flags & device::kCounted) != 0) {
    counted = device::taken_before(target.slot, call_);
    taken = &counted;
  } else if (target.slot != device::kNoSlot) {
    taken = &calls_[target.slot];
  }
  await({WaitFor::signal, target.index, *taken + 1}, [&](uint64_t& seen) {
    seen = load_acquire<uint64_t>(target.address);
    return seen > *taken;
  });
  ++*taken;
}

void ProcessMachine::acquire(const device::StepTarget& target) {
  const auto count = shared_word<uint64_t>(target.address);
  await({WaitFor::semaphore, target.index, 1}, [&](uint64_t& seen) {
    seen = count.load(std::memory_order_relaxed);
    return seen > 0 && count.compare_exchange_strong(seen, seen - 1, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
  });
}

void ProcessMachine::meet(const device::StepTarget& target) {
  device::Barrier& b = *reinterpret_cast<device::Barrier*>(target.address);
  const uint64_t mine = shared_word<uint64_t>(&b.arrived).fetch_add(1, std::memory_order_acq_rel);
  const uint64_t full = (mine / b.members + 1) * b.members;
  await({WaitFor::barrier, target.index, full}, [&](uint64_t& seen) {
    seen = load_acquire<uint64_t>(&b.arrived);
    return seen >= full;
  });
}

void ProcessMachine::await_flag(const device::StepTarget& target) {
  const bool wide = (target.flags & device::kWideFlag) != 0;
  const uint64_t goal = device::flag_goal(target.index, call_);
  await({WaitFor::flag, device::flag_number_of(target.index), goal}, [&](uint64_t& seen) {
    seen = wide ? load_acquire<uint64_t>(target.address) : load_acquire<uint32_t>(target.address);
    return device::is_complete(seen, goal, wide);
  });
}

void ProcessMachine::notify_flag(const device::StepTarget& target) {
  if ((target.flags & device::kWideFlag) != 0) {
    add_release(target.address);
  } else {
    shared_word<uint32_t>(target.address).fetch_add(1, std::memory_order_release);
  }
  moved_ = true;
}

/// Hands a request to the proxy; returns its number.
uint64_t ProcessMachine::post(const device::PortRequest& request) {
  const device::PortQueue& queue = rank_.queue;
  const uint64_t n = shared_word<uint64_t>(queue.claimed).fetch_add(1, std::memory_order_relaxed);
  const uint64_t capacity = queue.capacity();
  await({WaitFor::queue, request.channel, n >= capacity ? n - capacity + 1 : 0},
        [&](uint64_t& seen) {
          seen = load_acquire<uint64_t>(queue.handled);
          return seen + capacity > n;
        });
  write_request(queue, n, request);
  return n;
}

void ProcessMachine::post_put(uint32_t channel, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  if (bytes == 0) return;
  post({device::PortWhat::put, channel, reinterpret_cast<uint64_t>(to),
        reinterpret_cast<uint64_t>(from), bytes});
}

/// Waits for a flush of the channel that has this number or a later one.
void ProcessMachine::await_flush(uint32_t channel, uint64_t number) {
  await({WaitFor::flush, channel, number + 1}, [&](uint64_t& seen) {
    seen = load_acquire<uint64_t>(rank_.queue.flushed + channel);
    return seen > number;
  });
}

}  // namespace mscclc
