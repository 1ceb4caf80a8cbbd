#include "passes/symbolic/symbolic_run.h"

#include <algorithm>

#include "ir/program/applied.h"
#include "ir/support/precondition.h"

namespace mscclc::symbolic {
namespace {

constexpr Symbol kUnwritten = 0x6a09e667f3bcc909u;  // no sum of contributions, barring bad luck

}  // namespace

SymbolicRun::SymbolicRun(const Program& program, bool symbols)
    : program_(program), symbolic_(symbols), slices_(program), per_chunk_(slices_.per_chunk()) {
  precondition(program.split);
  lay_out();
  if (!fits_) return;
  if (symbolic_) fill_inputs();
  add_processes();
}

void SymbolicRun::lay_out() {
  uint32_t channels = 0, semaphores = 0, buffers = 0;
  uint64_t symbols = 0, slots = 0;
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    const Rank& rank = program_.ranks[r];
    first_channel_.push_back(channels);
    first_semaphore_.push_back(semaphores);
    first_buffer_.push_back(buffers);
    channels += static_cast<uint32_t>(rank.channels.size());
    semaphores += static_cast<uint32_t>(rank.semaphores.size());
    buffers += static_cast<uint32_t>(rank.buffers.size());
    for (const Buffer& buffer : rank.buffers) {
      BufferCells place;
      const uint64_t cells = uint64_t{buffer.chunks} * per_chunk_;
      place.sentinel = is_sentinel(buffer.packets);
      if (symbolic_) place.symbols = symbols;
      if (symbolic_) symbols += cells;
      if (buffer.packets != PacketFormat::none) {
        place.slots = slots;
        slots += cells;
      }
      places_.push_back(place);
    }
  }
  fits_ = symbols <= kMaxCells && slots <= kMaxCells;
  if (!fits_) return;
  ends_.resize(channels);
  semaphores_.resize(semaphores);
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    const std::vector<Semaphore>& of_rank = program_.ranks[r].semaphores;
    for (size_t s = 0; s < of_rank.size(); ++s) {
      semaphores_[first_semaphore_[r] + s].value = of_rank[s].initial;
    }
    const std::vector<Channel>& channels_of_rank = program_.ranks[r].channels;
    for (size_t c = 0; c < channels_of_rank.size(); ++c) {
      ends_[first_channel_[r] + c].value = channels_of_rank[c].credits;
    }
  }
  barriers_.resize(program_.ranks.size());
  symbols_.assign(symbols, kUnwritten);
  slots_.assign(slots, kEmpty);
}

void SymbolicRun::fill_inputs() {
  const bool in_place = program_.contract.in_place == InPlace::yes;
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    const std::vector<Buffer>& buffers = program_.ranks[r].buffers;
    const auto alias = in_place ? program_.contract.alias(r) : std::nullopt;
    if (alias) {  // both lie in the larger one
      const bool in_output = buffers[kOutput].chunks >= buffers[kInput].chunks;
      if (in_output) {
        place(r, kInput).symbols = place(r, kOutput).symbols + alias->output_chunk * per_chunk_;
      } else {
        place(r, kOutput).symbols = place(r, kInput).symbols + alias->input_chunk * per_chunk_;
      }
    }
    uint64_t cell = place(r, kInput).symbols;
    for (uint32_t c = 0; c < buffers[kInput].chunks; ++c) {
      std::fill_n(symbols_.begin() + static_cast<std::ptrdiff_t>(cell), per_chunk_,
                  contribution(r, c));
      cell += per_chunk_;
    }
  }
}

void SymbolicRun::add_processes() {
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    first_process_.push_back(static_cast<uint32_t>(processes_.size()));
    const std::vector<uint32_t> offsets = block_offsets(program_.ranks[r]);
    for (size_t b = 0; b + 1 < offsets.size(); ++b) {
      Process process;
      process.rank = r;
      process.op = offsets[b];
      process.end = offsets[b + 1];
      processes_.push_back(process);
    }
  }
}

void SymbolicRun::wake(uint32_t process) {
  processes_[process].wait = Wait::none;
  woken_.push_back(process);
}

// ---- waiting ----

bool SymbolicRun::do_control(uint32_t p, const Op& op, const OpInfo& row) {
  const uint32_t rank = processes_[p].rank;
  const std::span<const Operand> operands = program_.dsts(op);
  if (row.has(kWaits)) return take(p, operands, ends_, first_channel_, Wait::signal);
  if (row.has(kAcquires)) return take(p, operands, semaphores_, first_semaphore_, Wait::semaphore);
  if (row.has(kMeets)) return arrive(p, op);
  if (row.has(kSignals)) signal(rank, operands);
  if (row.has(kReleases)) {
    for (const Operand& o : operands) give(semaphores_[first_semaphore_[rank] + o.first]);
  }
  return true;
}

/// Takes one from each counter, as far as there is one.
bool SymbolicRun::take(uint32_t p, std::span<const Operand> operands,
                       std::vector<Counter>& counters, const std::vector<uint32_t>& first,
                       Wait wait) {
  Process& process = processes_[p];
  for (; process.operand < operands.size(); ++process.operand) {
    const Operand& o = operands[process.operand];
    const uint32_t id = wait == Wait::signal ? o.channel : o.first;
    Counter& counter = counters[first[process.rank] + id];
    if (counter.value == 0) {
      process.wait = wait;
      process.next = counter.waiting;
      counter.waiting = p;
      return false;
    }
    --counter.value;
  }
  process.operand = 0;
  return true;
}

void SymbolicRun::give(Counter& counter) {
  ++counter.value;
  for (uint32_t p = counter.waiting; p != kNone; p = processes_[p].next) wake(p);
  counter.waiting = kNone;
}

void SymbolicRun::signal(uint32_t rank, std::span<const Operand> operands) {
  for (const Operand& o : operands) {
    const Channel& channel = program_.ranks[rank].channels[o.channel];
    if (channel.partner != kNone) give(ends_[first_channel_[channel.peer] + channel.partner]);
  }
}

SymbolicRun::Barrier& SymbolicRun::barrier_of(uint32_t rank, const Op& op) {
  std::vector<Barrier>& barriers = barriers_[rank];
  for (Barrier& barrier : barriers) {
    if (barrier.operands == op.operands) return barrier;
  }
  std::vector<uint32_t> blocks;
  for (const Operand& o : program_.dsts(op)) blocks.push_back(o.first);
  std::sort(blocks.begin(), blocks.end());
  for (Barrier& barrier : barriers) {
    if (barrier.blocks == blocks) return barrier;
  }
  return barriers.emplace_back(Barrier{std::move(blocks), op.operands, {}});
}

bool SymbolicRun::arrive(uint32_t p, const Op& op) {
  Barrier& barrier = barrier_of(processes_[p].rank, op);
  if (barrier.arrived.size() + 1 < barrier.blocks.size()) {
    barrier.arrived.push_back(p);
    processes_[p].wait = Wait::barrier;
    return false;
  }
  for (const uint32_t other : barrier.arrived) {
    ++processes_[other].op;
    wake(other);
  }
  barrier.arrived.clear();
  return true;
}

/// Waits for the packets that the op reads.
bool SymbolicRun::has_packets(uint32_t p, const Op& op) {
  Process& process = processes_[p];
  const std::span<const Operand> sources = program_.srcs(op);
  for (; process.operand < sources.size(); ++process.operand) {
    const Operand& o = sources[process.operand];  // packets that are waited for are local
    const BufferCells& from = place(process.rank, o.buffer);
    if (from.slots == kNoCells) continue;
    const ChunkSlices::Range range = slices_.range(op, o.count);
    const uint64_t first = from.slots + uint64_t{o.first} * per_chunk_;
    for (uint64_t slot = first + range.begin; slot < first + range.end; ++slot) {
      if (slots_[slot] == kFull) continue;
      slots_[slot] = kAwaited;
      const auto [entry, added] = awaited_.try_emplace(slot, kNone);
      process.wait = Wait::packets;
      process.cell = slot;
      process.next = entry->second;
      entry->second = p;
      return false;
    }
  }
  process.operand = 0;
  return true;
}

// ---- moving ----

void SymbolicRun::move(uint32_t rank, const Op& op, const OpInfo& row) {
  const std::span<const Operand> dsts = program_.dsts(op), srcs = program_.srcs(op);
  range_ = slices_.range(op, dsts[0].count);
  value_.resize(range_.end - range_.begin);
  if (row.srcs.slot[0].pairwise) {
    for (size_t i = 0; i < dsts.size(); ++i) {
      load(rank, row, srcs[i], false);
      store(rank, dsts[i]);
    }
    return;
  }
  for (size_t i = 0; i < srcs.size(); ++i) load(rank, row, srcs[i], i > 0);
  const std::vector<Symbol> sum = applies(op) ? value_ : std::vector<Symbol>{};
  if (applies(op)) apply_to_value();
  for (const Operand& o : dsts) {
    store(rank, o);
    if (row.has(kApplies)) apply_to_value();
  }
  if (applies(op)) value_ = sum;  // what has been added up, not what has become of it
}

/// A result of a row function is no contribution, and each is another one.
void SymbolicRun::apply_to_value() {
  for (Symbol& value : value_) {
    value = contribution(static_cast<uint32_t>(value >> 32), ~static_cast<uint32_t>(value));
  }
}

void SymbolicRun::load(uint32_t rank, const OpInfo& row, const Operand& o, bool add) {
  const uint64_t begin = uint64_t{o.first} * per_chunk_ + range_.begin;
  each_member(rank, o, [&](const BufferCells& from) {
    load_from(from, begin, add, row.has(kPolls));
    add = true;
  });
}

void SymbolicRun::load_from(const BufferCells& from, uint64_t begin, bool add, bool polls) {
  if (symbolic_) {
    const Symbol* symbol = &symbols_[from.symbols + begin];
    for (size_t i = 0; i < value_.size(); ++i) value_[i] = symbol[i] + (add ? value_[i] : 0);
  }
  if (polls && from.sentinel) {  // the read empties the slot
    std::fill_n(slots_.begin() + static_cast<std::ptrdiff_t>(from.slots + begin), value_.size(),
                kEmpty);
  }
}

void SymbolicRun::store(uint32_t rank, const Operand& o) {
  const uint64_t begin = uint64_t{o.first} * per_chunk_ + range_.begin;
  each_member(rank, o, [&](const BufferCells& to) { store_to(to, begin); });
}

void SymbolicRun::store_to(const BufferCells& to, uint64_t begin) {
  if (symbolic_) {
    Symbol* symbol = &symbols_[to.symbols + begin];
    for (const Symbol value : value_) *symbol++ = value;
  }
  if (to.slots == kNoCells) return;
  for (uint64_t slot = to.slots + begin; slot < to.slots + begin + value_.size(); ++slot) {
    if (slots_[slot] == kAwaited) {
      const auto entry = awaited_.find(slot);
      for (uint32_t p = entry->second; p != kNone; p = processes_[p].next) wake(p);
      awaited_.erase(entry);
    }
    slots_[slot] = kFull;
  }
}

}  // namespace mscclc::symbolic
