#include "executor/simulator/cluster.h"

#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "executor/interpreter/packets.h"
#include "executor/oracle/values.h"
#include "executor/simulator/call_run.h"
#include "ir/support/precondition.h"

namespace mscclc {
bool Cluster::build(Diagnostics& diagnostics, RowSteps rows) {
  buffers_.resize(program_.ranks.size());
  addresses_.resize(program_.ranks.size());
  states_.resize(program_.ranks.size());
  externals_.resize(program_.ranks.size());
  rows_ = rows;
  return lower(program_, device_, diagnostics, rows);
}

bool Cluster::choose_rows(RowSteps rows, Diagnostics& diagnostics) {
  precondition(states_.size() == program_.ranks.size());
  if (rows == rows_ || program_.functions.empty()) return true;
  rows_ = rows;
  fitted_ = false;
  return lower(program_, device_, diagnostics, rows);
}

bool Cluster::no_memory(Diagnostics& diagnostics) {
  diagnostics.error("no-memory", {}, "the system gives no memory for the buffers of all ranks");
  return false;
}

bool Cluster::place_caller_buffers(uint32_t rank, bool in_place, const Chunking& chunking) {
  std::vector<SimBuffer>& own = buffers_[rank];
  const CallerBuffers callers = caller_buffers(program_.contract, chunking, rank, in_place);
  for (const uint32_t side : {kInput, kOutput}) {
    if (callers.shared && side != callers.outer) continue;
    if (!own[side].resize(bytes(rank, side))) return false;
    addresses_[rank][side] = own[side].data();
  }
  if (!callers.shared) return true;
  const uint32_t inner = callers.outer == kInput ? kOutput : kInput;
  own[inner].clear();
  addresses_[rank][inner] = own[callers.outer].data() + callers.inner_offset;
  return true;
}

bool Cluster::place_externals(uint32_t rank, const Chunking& chunking) {
  SimRank& state = states_[rank];
  state.external_layouts = rows::lay_out_externals(program_, rank, chunking, call_.dtype);
  state.externals.clear();
  externals_[rank].resize(program_.externals.size());
  for (size_t e = 0; e < program_.externals.size(); ++e) {
    if (!externals_[rank][e].resize(state.external_layouts[e].bytes())) return false;
    state.externals.push_back(externals_[rank][e].data());
  }
  return true;
}

uint64_t Cluster::scratch_bytes(uint32_t rank) const {
  precondition(fitted_);
  uint64_t bytes = 0;
  const std::vector<BufferLayout>& layout = device_.ranks[rank].buffers;
  for (uint32_t b = kFirstScratch; b < layout.size(); ++b) {
    bytes += layout[b].stride * layout[b].copies;
  }
  return bytes;
}

bool Cluster::place(uint32_t rank, bool in_place, uint8_t* scratch) {
  const std::vector<BufferLayout>& layout = device_.ranks[rank].buffers;
  buffers_[rank].resize(layout.size());
  addresses_[rank].resize(layout.size());
  const Chunking chunking(program_.contract, call_.part_bytes, program_.granule(call_.dtype));
  if (!place_caller_buffers(rank, in_place, chunking)) return false;
  if (!program_.externals.empty() && !place_externals(rank, chunking)) return false;
  for (uint32_t b = kFirstScratch; b < layout.size(); ++b) {
    const uint64_t bytes = layout[b].stride * layout[b].copies;
    if (scratch == nullptr) {
      if (!buffers_[rank][b].resize(bytes)) return false;
      addresses_[rank][b] = buffers_[rank][b].data();
    } else {
      addresses_[rank][b] = scratch;
      scratch += bytes;
    }
  }
  return true;
}

// Flag packets need nothing: what a slot held in an earlier run carries an earlier call's flag.
void Cluster::fill_scratch(uint32_t rank, bool poison) {
  const std::vector<BufferLayout>& layout = device_.ranks[rank].buffers;
  const device::Stamp stamp = device::stamp_of(0, info(call_.dtype).bytes);
  for (uint32_t b = kFirstScratch; b < layout.size(); ++b) {
    uint8_t* const data = addresses_[rank][b];
    const uint64_t bytes = layout[b].stride * layout[b].copies;
    if (is_sentinel(layout[b].packets)) {
      for (uint64_t at = 0; at < bytes; at += sizeof stamp.sentinel) {
        std::memcpy(data + at, &stamp.sentinel, sizeof stamp.sentinel);
      }
    } else if (poison && layout[b].packets == PacketFormat::none) {
      std::memset(data, kUnwrittenByte, bytes);
    }
  }
}

bool Cluster::fit(const Call& call, uint64_t capacity, Diagnostics& diagnostics) {
  precondition(capacity >= call.part_bytes);
  const bool cut_alike = fitted_ && program_.granule(call.dtype) == program_.granule(call_.dtype);
  if (!cut_alike || call.part_bytes != call_.part_bytes || capacity != capacity_) {
    const Chunking chunking(program_.contract, call.part_bytes, program_.granule(call.dtype));
    const Chunking most(program_.contract, capacity, program_.granule(call.dtype));
    fitted_ = true;
    for (uint32_t r = 0; fitted_ && r < device_.ranks.size(); ++r) {
      device_.ranks[r].align = program_.granule(call.dtype);
      fitted_ = fit_rank_to_size(device_.ranks[r], program_, r, chunking, most, diagnostics);
    }
    if (!fitted_) return false;
  }
  call_ = call;
  capacity_ = capacity;
  return true;
}

bool Cluster::prepare(const Call& call, bool in_place, bool poison, Diagnostics& diagnostics) {
  return fit(call, call.part_bytes, diagnostics) && place_all(in_place, poison, diagnostics);
}

bool Cluster::place_all(bool in_place, bool poison, Diagnostics& diagnostics) {
  precondition(fitted_);
  for (uint32_t r = 0; r < device_.ranks.size(); ++r) {
    if (!place(r, in_place)) return no_memory(diagnostics);
    fill_scratch(r, poison);
  }
  return true;
}

void Cluster::forget_memory() {
  for (auto* const all : {&buffers_, &externals_}) {
    for (std::vector<SimBuffer>& rank : *all) {
      for (SimBuffer& buffer : rank) buffer.clear();
    }
  }
}

bool Cluster::is_callers(uint32_t rank, const uint8_t* address) const {
  for (const uint32_t side : {kInput, kOutput}) {
    const uint8_t* begin = data(rank, side);
    if (address >= begin && address < begin + bytes(rank, side)) return true;
  }
  return false;
}

void Cluster::reset_states() {
  for (uint32_t r = 0; r < states_.size(); ++r) {
    const RankProgram& program = device_.ranks[r];
    SimRank& state = states_[r];
    const std::vector<Channel>& channels = program_.ranks[r].channels;
    state.ends.assign(channels.size(), {});
    for (size_t c = 0; c < channels.size(); ++c) state.ends[c].arrived = channels[c].credits;
    state.channels.clear();
    for (SimChannelEnd& end : state.ends) state.channels.push_back(&end);
    state.semaphores.clear();
    for (const Semaphore& s : program_.ranks[r].semaphores) state.semaphores.push_back(s.initial);
    state.barriers.assign(program.barriers.size(), {});
    state.flags.clear();
    for (const FlagArray& array : program_.flags) {
      state.flags.insert(state.flags.end(), array.count, {0, array.raises});
    }
    state.bases.clear();
    for (const device::Base& b : program.bases) {
      state.bases.push_back({addresses_[b.rank][b.buffer], b.copy_stride, b.copies});
    }
    state.active_blocks = 0;
    state.call = state.started = state.entered = state.blocks_done = 0;
  }
}

bool Cluster::run(uint64_t calls, uint64_t seed, CallHooks& hooks, Diagnostics& diagnostics,
                  const Adversary* adversary) {
  reset_states();
  RunningPlan self{this, &hooks, std::vector<uint32_t>(states_.size())};
  std::iota(self.world.begin(), self.world.end(), 0u);
  const CallRunOptions options{next_call_, seed, adversary};
  const bool ended = run_calls({&self, 1}, CallSequence(calls), *fibers_, options, diagnostics);
  next_call_ += calls;
  if (!ended) forget_memory();  // slots may hold packets that no rank will read
  return ended;
}

bool Cluster::check_guards(Diagnostics& diagnostics) const {
  bool intact = early_flags_.empty();
  for (const std::string& flag : early_flags_) {
    diagnostics.error(
        "flag-early", {},
        fmt::format("{}{} was notified before all that it is for was there", flag, of_plan()));
  }
  for (uint32_t r = 0; r < buffers_.size(); ++r) {
    const auto check = [&](const SimBuffer& buffer, std::string_view name) {
      for (const bool front : {true, false}) {
        if (!(front ? buffer.front_broken() : buffer.back_broken())) continue;
        diagnostics.error("guard-bytes", {},
                          fmt::format("rank {}{}: bytes {} '{}' have been written", r, of_plan(),
                                      front ? "before" : "after", name));
        intact = false;
      }
    };
    for (uint32_t b = 0; b < buffers_[r].size(); ++b) {
      check(buffers_[r][b], program_.name_of(program_.ranks[r].buffers[b].name));
    }
    for (size_t e = 0; e < externals_[r].size(); ++e) {
      check(externals_[r][e], program_.externals[e].name);
    }
  }
  return intact;
}

}  // namespace mscclc
