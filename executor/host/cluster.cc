#include "executor/host/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "executor/host/lane_machine.h"
#include "executor/interpreter/dispatch.h"
#include "ir/op_error.h"
#include "ir/print.h"

namespace mscclc {
namespace {

constexpr uint8_t kPoison = 0xcb;

}  // namespace

bool Cluster::build(Diagnostics& diagnostics) {
  buffers_.resize(program_.ranks.size());
  addresses_.resize(program_.ranks.size());
  states_.resize(program_.ranks.size());
  return lower(program_, device_, diagnostics);
}

bool Cluster::no_memory(Diagnostics& diagnostics) const {
  diagnostics.error("no-memory", {}, "the system gives no memory for the buffers of all ranks");
  return false;
}

bool Cluster::place_caller_buffers(uint32_t rank, bool in_place, const Chunking& chunking) {
  std::vector<HostBuffer>& own = buffers_[rank];
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

bool Cluster::place(uint32_t rank, bool in_place, const Chunking& chunking) {
  const std::vector<BufferLayout>& layout = device_.ranks[rank].buffers;
  buffers_[rank].resize(layout.size());
  addresses_[rank].resize(layout.size());
  if (!place_caller_buffers(rank, in_place, chunking)) return false;
  for (uint32_t b = kFirstScratch; b < layout.size(); ++b) {
    if (!buffers_[rank][b].resize(layout[b].stride * layout[b].copies)) return false;
    addresses_[rank][b] = buffers_[rank][b].data();
  }
  return true;
}

// Flag packets need nothing: what a slot held in an earlier run carries an earlier call's flag.
void Cluster::fill_scratch(uint32_t rank, bool poison) {
  const std::vector<BufferLayout>& layout = device_.ranks[rank].buffers;
  const device::Stamp stamp = device::stamp_of(0, info(call_.dtype).bytes);
  for (uint32_t b = kFirstScratch; b < layout.size(); ++b) {
    HostBuffer& buffer = buffers_[rank][b];
    if (layout[b].packets == PacketFormat::sentinel) {
      for (uint64_t at = 0; at < buffer.bytes(); at += sizeof stamp.sentinel) {
        std::memcpy(buffer.data() + at, &stamp.sentinel, sizeof stamp.sentinel);
      }
    } else if (poison && layout[b].packets == PacketFormat::none) {
      std::memset(buffer.data(), kPoison, buffer.bytes());
    }
  }
}

bool Cluster::prepare(const Call& call, bool in_place, bool poison, Diagnostics& diagnostics) {
  if (!patched_ || call.part_bytes != call_.part_bytes) {
    patched_ = patch(device_, program_, call, diagnostics);
    if (!patched_) return false;
  }
  call_ = call;
  const Chunking chunking(program_.contract, call.part_bytes, program_.launch.align);
  for (uint32_t r = 0; r < device_.ranks.size(); ++r) {
    if (!place(r, in_place, chunking)) return no_memory(diagnostics);
    fill_scratch(r, poison);
  }
  return true;
}

void Cluster::forget_memory() {
  for (std::vector<HostBuffer>& rank : buffers_) {
    for (HostBuffer& buffer : rank) buffer.clear();
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
    HostRank& state = states_[r];
    state.channels.assign(program_.ranks[r].channels.size(), {});
    state.semaphores.clear();
    for (const Semaphore& s : program_.ranks[r].semaphores) state.semaphores.push_back(s.initial);
    state.barriers.assign(program.barriers.size(), {});
    state.bases.clear();
    for (const device::Base& b : program.bases) {
      state.bases.push_back({addresses_[b.rank][b.buffer], b.copy_stride, b.copies});
    }
    state.active_blocks = 0;
    state.started = state.entered = state.blocks_done = 0;
  }
}

/// What a caller's fiber needs: it begins calls at a rank and waits for their end.
struct Cluster::Caller {
  Running* run;
  uint32_t rank;
};

/// One run: its fibers and what they share.
struct Cluster::Running {
  Running(Cluster& cluster, uint64_t calls, uint64_t seed, CallHooks& hooks,
          const Adversary* adversary)
      : cluster(cluster), calls(calls), hooks(hooks), scheduler(cluster.fibers_, seed) {
    if (adversary != nullptr) world.emplace(scheduler, *adversary);
  }

  /// What the fiber of a block, or of a lane, needs.
  struct Block {
    Running* run;
    BlockTask* task;
    HostMachine* machine;
    LaneMachine* lane;
  };

  bool spawn_all();
  bool spawn_rank(uint32_t rank);
  bool spawn_block(uint32_t rank, uint32_t block);
  bool spawn_lanes(uint32_t rank, uint32_t block, const HostMachine& machine);
  bool spawn_task(HostMachine& machine, LaneMachine* lane, uint32_t rank, uint32_t block);
  bool spawn_ports(uint32_t rank);
  bool spawn_memory();
  void make_clocks();
  uint32_t add_process();
  void run_ops(const Block& block, uint64_t call);
  void note_late_reads(uint32_t rank);
  void report_late_reads(Diagnostics& diagnostics) const;
  static void call_rank(void* argument);
  static void run_block(void* argument);
  static void serve_port(void* argument) { static_cast<HostProxy*>(argument)->serve(); }
  static void serve_lane_port(void* argument) { static_cast<LaneProxy*>(argument)->serve(); }
  static void serve_free(void* argument) {
    LaneWorld& world = *static_cast<Running*>(argument)->world;
    world.memory.serve_free(world.scheduler);
  }
  static void serve_held(void* argument) {
    LaneWorld& world = *static_cast<Running*>(argument)->world;
    world.memory.serve_held(world.scheduler);
  }

  Cluster& cluster;
  const uint64_t calls;
  CallHooks& hooks;
  Scheduler scheduler;
  std::deque<BlockTask> blocks;
  std::deque<HostMachine> machines;
  std::deque<Block> block_arguments;
  std::deque<Caller> callers;
  std::deque<HostProxy> proxies;
  /// Puts (rank, op) whose source a proxy had not read when the call returned.
  std::set<std::pair<uint32_t, uint32_t>> late_reads;

  std::optional<LaneWorld> world;  ///< in adversarial mode
  std::deque<LaneMachine> lanes;
  std::deque<LaneProxy> lane_proxies;
};

// The caller may change its buffers once the call has returned.
void Cluster::Running::note_late_reads(uint32_t rank) {
  for (const HostChannelEnd& end : cluster.states_[rank].channels) {
    for (uint64_t i = end.done; i < end.posted; ++i) {
      const PortRequest& request = end.queue[i % HostChannelEnd::kQueue];
      if (request.to != nullptr && cluster.is_callers(rank, request.from)) {
        late_reads.emplace(rank, request.op);
      }
    }
  }
}

void Cluster::Running::report_late_reads(Diagnostics& diagnostics) const {
  const Program& program = cluster.program_;
  for (const auto& [rank, index] : late_reads) {
    const Op& op = program.ranks[rank].ops[index];
    const Note place = op_note(program, op, "");
    Diagnostic d;
    d.severity = Severity::warning;
    d.code = "source-in-flight";
    d.span = place.span;
    d.file = place.file;
    d.message = fmt::format(
        "{}: '{}' still reads the caller's buffer when the call returns; a flush is missing",
        print_place(program, rank, op), print_op(program, rank, op));
    diagnostics.add(std::move(d));
  }
}

void Cluster::Running::call_rank(void* argument) {
  const auto* caller = static_cast<Caller*>(argument);
  Running& run = *caller->run;
  HostRank& state = run.cluster.states_[caller->rank];
  for (uint64_t i = 0; i < run.calls; ++i) {
    if (run.world) run.world->linger(Hold::What::call, caller->rank, 0, 0, i);
    run.hooks.before(caller->rank, i);
    ++state.started;
    const uint64_t target = (i + 1) * state.active_blocks;
    if (state.active_blocks == 0) {
      ++state.entered;
    } else if (state.blocks_done < target) {
      run.scheduler.wait({Wait::Test::above64, &state.blocks_done, target - 1});
    }
    if (run.world) {
      run.world->await_held(caller->rank);
      run.world->end_call(caller->rank);
    }
    run.note_late_reads(caller->rank);
    run.hooks.after(caller->rank, i);
  }
}

void Cluster::Running::run_ops(const Block& block, uint64_t call) {
  const RankProgram& program = cluster.device_.ranks[block.task->rank];
  const device::Frame frame{program.view()};
  const uint32_t first = program.block_begin[block.task->block];
  const uint32_t count = program.block_begin[block.task->block + 1] - first;
  const uint64_t number = cluster.next_call_ + call;
  if (block.lane != nullptr) {
    block.lane->begin(call, number);
    block.lane->run(frame, program.ops.data() + first, count);
  } else {
    block.machine->begin_call(number);
    device::run_ops(*block.machine, frame, program.ops.data() + first, count);
  }
}

void Cluster::Running::run_block(void* argument) {
  const auto* block = static_cast<Block*>(argument);
  Running& run = *block->run;
  BlockTask& task = *block->task;
  HostRank& state = run.cluster.states_[task.rank];
  for (uint64_t i = 0; i < run.calls; ++i) {
    if (state.started <= i) run.scheduler.wait({Wait::Test::above64, &state.started, i});
    state.entered = i + 1;
    run.run_ops(*block, i);
    ++task.calls_done;
    ++state.blocks_done;
  }
  task.ended = true;
}

bool Cluster::Running::spawn_task(HostMachine& machine, LaneMachine* lane, uint32_t rank,
                                  uint32_t block) {
  ++cluster.states_[rank].active_blocks;
  BlockTask& task = blocks.emplace_back(BlockTask{rank, block, &machine});
  Block& argument = block_arguments.emplace_back(Block{this, &task, &machine, lane});
  return scheduler.spawn(run_block, &argument, false);
}

bool Cluster::Running::spawn_lanes(uint32_t rank, uint32_t block, const HostMachine& machine) {
  for (uint32_t i = 0; i < world->adversary.lanes; ++i) {
    const uint32_t process = add_process();
    world->ranks[rank].processes.push_back(process);
    LaneMachine& lane = lanes.emplace_back(machine, *world, LaneMachine::Lane{block, i, process});
    if (!spawn_task(lane, &lane, rank, block)) return false;
  }
  return true;
}

bool Cluster::Running::spawn_block(uint32_t rank, uint32_t block) {
  const std::vector<BarrierMembers>& barriers = cluster.device_.ranks[rank].barriers;
  HostMachine& machine = machines.emplace_back(scheduler, cluster.states_, cluster.program_, rank,
                                               cluster.call_, barriers);
  return world ? spawn_lanes(rank, block, machine) : spawn_task(machine, nullptr, rank, block);
}

bool Cluster::Running::spawn_ports(uint32_t rank) {
  const std::vector<Channel>& channels = cluster.program_.ranks[rank].channels;
  HostRank& state = cluster.states_[rank];
  for (uint32_t c = 0; c < channels.size(); ++c) {
    if (channels[c].kind != ChannelKind::port) continue;
    const uint32_t peer = channels[c].peer, end = channels[c].partner;
    HostChannelEnd* partner = end == kNone ? nullptr : &cluster.states_[peer].channels[end];
    if (!world) {
      HostProxy& proxy = proxies.emplace_back(scheduler, state.channels[c], partner);
      if (!scheduler.spawn(serve_port, &proxy, true)) return false;
      continue;
    }
    LaneProxy& proxy = lane_proxies.emplace_back(*world, state, rank, c, add_process());
    if (partner != nullptr) proxy.connect(*partner, world->ranks[peer].channels[end]);
    if (!scheduler.spawn(serve_lane_port, &proxy, true)) return false;
  }
  return true;
}

bool Cluster::Running::spawn_rank(uint32_t rank) {
  const RankProgram& program = cluster.device_.ranks[rank];
  if (!scheduler.spawn(call_rank, &callers.emplace_back(Caller{this, rank}), false)) return false;
  for (uint32_t b = 0; b + 1 < program.block_begin.size(); ++b) {
    if (program.block_begin[b] == program.block_begin[b + 1]) continue;
    if (!spawn_block(rank, b)) return false;
  }
  return spawn_ports(rank);
}

uint32_t Cluster::Running::add_process() {
  world->clocks.emplace_back();
  return static_cast<uint32_t>(world->clocks.size() - 1);
}

void Cluster::Running::make_clocks() {
  world->ranks.resize(cluster.states_.size());
  for (uint32_t r = 0; r < cluster.states_.size(); ++r) {
    RankClocks& clocks = world->ranks[r];
    clocks.channels.resize(cluster.states_[r].channels.size());
    clocks.semaphores.resize(cluster.states_[r].semaphores.size());
    clocks.barriers.resize(cluster.states_[r].barriers.size());
    clocks.blocks.resize(cluster.program_.ranks[r].blocks);
  }
}

bool Cluster::Running::spawn_memory() {
  return scheduler.spawn(serve_free, this, true) && scheduler.spawn(serve_held, this, true);
}

bool Cluster::Running::spawn_all() {
  if (world) make_clocks();
  for (uint32_t r = 0; r < cluster.states_.size(); ++r) {
    if (!spawn_rank(r)) return false;
  }
  return !world || spawn_memory();
}

bool Cluster::run(uint64_t calls, uint64_t seed, CallHooks& hooks, Diagnostics& diagnostics,
                  const Adversary* adversary) {
  reset_states();
  Running run(*this, calls, seed, hooks, adversary);
  if (!run.spawn_all()) return no_memory(diagnostics);
  const bool ended = run.scheduler.run();
  next_call_ += calls;
  run.report_late_reads(diagnostics);
  if (ended) return true;
  report_hang(*this, run.blocks, diagnostics);
  forget_memory();  // slots may hold packets that nobody will read
  return false;
}

bool Cluster::check_guards(Diagnostics& diagnostics) const {
  bool intact = true;
  for (uint32_t r = 0; r < buffers_.size(); ++r) {
    for (uint32_t b = 0; b < buffers_[r].size(); ++b) {
      const HostBuffer& buffer = buffers_[r][b];
      const std::string_view name = program_.name_of(program_.ranks[r].buffers[b].name);
      for (const bool front : {true, false}) {
        if (!(front ? buffer.front_broken() : buffer.back_broken())) continue;
        diagnostics.error("guard-bytes", {},
                          fmt::format("rank {}: bytes {} '{}' have been written", r,
                                      front ? "in front of" : "behind", name));
        intact = false;
      }
    }
  }
  return intact;
}

}  // namespace mscclc
