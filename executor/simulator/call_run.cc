#include "executor/simulator/call_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "executor/interpreter/dispatch.h"
#include "executor/simulator/machine/strand_machine.h"
#include "ir/print/print.h"
#include "ir/report/op_error.h"

namespace mscclc {

uint64_t CallSequence::calls_of(uint32_t plan, uint32_t world_rank) const {
  if (order_ == nullptr) return calls_;
  const std::vector<uint32_t>& calls = (*order_)[world_rank];
  return static_cast<uint64_t>(std::ranges::count(calls, plan));
}

namespace {

/// A plan at a rank of the world.
struct Seat {
  uint32_t plan, rank;  ///< of the plan
};

/// One run: its fibers and what they share.
class CallRun {
 public:
  CallRun(std::span<const RunningPlan> plans, const CallSequence& sequence, FiberPool& fibers,
          const CallRunOptions& options)
      : plans_(plans),
        sequence_(sequence),
        first_call_(options.first_call),
        scheduler_(fibers, options.seed) {
    if (options.adversary != nullptr) world_.emplace(scheduler_, *options.adversary);
    for (uint32_t p = 0; p < plans.size(); ++p) {
      for (uint32_t r = 0; r < plans[p].world.size(); ++r) {
        const uint32_t world_rank = plans[p].world[r];
        if (seats_.size() <= world_rank) seats_.resize(world_rank + 1);
        seats_[world_rank].push_back({p, r});
      }
    }
  }

  bool spawn_all();
  bool run() { return scheduler_.run(); }
  void report_late_reads(Diagnostics& diagnostics) const;
  /// Hands to the plans' clusters which regions were not there when they were notified.
  void note_early_flags();
  std::vector<const OtherSide*> others() const;
  const std::deque<BlockTask>& blocks() const { return blocks_; }

 private:
  /// What a caller's fiber needs: it begins calls at a rank and waits for their end.
  struct Caller {
    CallRun* run;
    uint32_t rank;  ///< of the world
  };
  /// What the fiber of a block, or of a strand, needs.
  struct Block {
    CallRun* run;
    BlockTask* task;
    SimMachine* machine;
    StrandMachine* strand;
  };

  /// What the fiber of a flag needs.
  struct FlagServer {
    OtherSide* other;
    uint32_t flag;
    uint64_t calls;
  };

  SimRank& state(const Seat& seat) { return plans_[seat.plan].cluster->states()[seat.rank]; }
  uint32_t world_rank(const Seat& seat) const { return plans_[seat.plan].world[seat.rank]; }
  Seat seat(uint32_t world_rank, uint32_t plan) const {
    return *std::ranges::find(seats_[world_rank], plan, &Seat::plan);
  }
  bool spawn_rank(uint32_t world_rank);
  bool spawn_plan(const Seat& seat);
  bool spawn_block(const Seat& seat, uint32_t block);
  bool spawn_strands(const Seat& seat, uint32_t block, const SimMachine& machine);
  bool spawn_task(SimMachine& machine, StrandMachine* strand, const Seat& seat, uint32_t block);
  bool spawn_ports(const Seat& seat);
  bool spawn_port(const Seat& seat, uint32_t channel);
  bool spawn_other_side(const Seat& seat);
  OtherSide* other_side(const Seat& seat) {
    const auto found = others_.find({seat.plan, seat.rank});
    return found == others_.end() ? nullptr : &found->second;
  }
  bool spawn_memory();
  void make_clocks();
  void connect_clocks(const Seat& seat);
  ChannelClocks* clocks_of(const SimChannelEnd* end, uint32_t world_rank);
  uint32_t add_process();
  void call(uint32_t world_rank, uint64_t index);
  void run_ops(const Block& block, uint64_t call);
  void note_late_reads(const Seat& seat);
  static void call_rank(void* argument);
  static void run_block(void* argument);
  static void serve_flag(void* argument) {
    const auto* server = static_cast<FlagServer*>(argument);
    server->other->serve(server->flag, server->calls);
  }
  static void serve_port(void* argument) { static_cast<SimProxy*>(argument)->serve(); }
  static void serve_clocked_port(void* argument) { static_cast<ClockedProxy*>(argument)->serve(); }
  static void serve_free(void* argument) {
    StrandWorld& world = *static_cast<CallRun*>(argument)->world_;
    world.memory.serve_free(world.scheduler);
  }
  static void serve_held(void* argument) {
    StrandWorld& world = *static_cast<CallRun*>(argument)->world_;
    world.memory.serve_held(world.scheduler);
  }

  const std::span<const RunningPlan> plans_;
  const CallSequence& sequence_;
  const uint64_t first_call_;
  Scheduler scheduler_;
  std::vector<std::vector<Seat>> seats_;  ///< by rank of the world
  std::deque<BlockTask> blocks_;
  std::deque<SimMachine> machines_;
  std::deque<Block> block_arguments_;
  std::deque<Caller> callers_;
  std::deque<SimProxy> proxies_;
  std::map<std::pair<uint32_t, uint32_t>, OtherSide> others_;  ///< by plan and rank of it
  std::deque<FlagServer> flag_servers_;
  /// Puts (plan, rank, op) whose source a proxy had not read when the call returned.
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> late_reads_;

  std::optional<StrandWorld> world_;  ///< in adversarial mode
  std::deque<StrandMachine> strands_;
  std::deque<ClockedProxy> clocked_proxies_;
};

// The caller may change its buffers once the call has returned.
void CallRun::note_late_reads(const Seat& seat) {
  const Cluster& cluster = *plans_[seat.plan].cluster;
  for (const SimChannelEnd* end : state(seat).channels) {
    for (uint64_t i = end->done; i < end->posted; ++i) {
      const PortRequest& request = end->queue[i % SimChannelEnd::kQueue];
      if (request.to != nullptr && cluster.is_callers(seat.rank, request.from)) {
        late_reads_.emplace(seat.plan, seat.rank, request.op);
      }
    }
  }
}

void CallRun::report_late_reads(Diagnostics& diagnostics) const {
  for (const auto& [plan, rank, index] : late_reads_) {
    const Cluster& cluster = *plans_[plan].cluster;
    const Program& program = cluster.program();
    const Op& op = program.ranks[rank].ops[index];
    const Note place = op_note(program, op, "");
    Diagnostic d;
    d.severity = Severity::warning;
    d.code = "source-in-flight";
    d.span = place.span;
    d.file = place.file;
    d.message = fmt::format(
        "{}{}: '{}' still reads the caller's buffer when the call returns; a flush is missing",
        print_place(program, rank, op), cluster.of_plan(), print_op(program, rank, op));
    diagnostics.add(std::move(d));
  }
}

std::vector<const OtherSide*> CallRun::others() const {
  std::vector<const OtherSide*> all;
  for (const auto& [seat, other] : others_) all.push_back(&other);
  return all;
}

void CallRun::note_early_flags() {
  for (const RunningPlan& plan : plans_) plan.cluster->note_early_flags({});
  std::map<uint32_t, std::vector<std::string>> early;  // by plan
  for (const auto& [seat, other] : others_) {
    early[seat.first].insert(early[seat.first].end(), other.early().begin(), other.early().end());
  }
  for (auto& [plan, flags] : early) plans_[plan].cluster->note_early_flags(std::move(flags));
}

void CallRun::call(uint32_t world_rank, uint64_t index) {
  const Seat seat = this->seat(world_rank, sequence_.plan(world_rank, index));
  CallHooks& hooks = *plans_[seat.plan].hooks;
  SimRank& state = this->state(seat);
  const uint64_t number = state.started;
  hooks.before(seat.rank, number);
  OtherSide* const other = other_side(seat);
  if (other != nullptr) other->before_call();
  state.call = index;
  ++state.started;
  const uint64_t target = (number + 1) * state.active_blocks;
  if (state.active_blocks == 0) {
    ++state.entered;
  } else if (state.blocks_done < target) {
    scheduler_.wait({Wait::Test::above64, &state.blocks_done, target - 1});
  }
  if (other != nullptr) other->await_end(number);
  if (world_) {
    const std::vector<uint32_t>& processes = world_->plans[seat.plan][seat.rank].processes;
    world_->await_held(processes);
    world_->end_call(world_rank, processes);
  }
  note_late_reads(seat);
  if (other != nullptr) other->after_call();
  hooks.after(seat.rank, number);
}

void CallRun::call_rank(void* argument) {
  const auto* caller = static_cast<Caller*>(argument);
  CallRun& run = *caller->run;
  for (uint64_t i = 0; i < run.sequence_.calls(caller->rank); ++i) {
    if (run.world_) run.world_->linger(Hold::What::call, caller->rank, 0, 0, i);
    run.call(caller->rank, i);
  }
}

void CallRun::run_ops(const Block& block, uint64_t call) {
  const RankProgram& program = plans_[block.task->plan].cluster->device().ranks[block.task->rank];
  const device::Frame frame{program.view()};
  const uint32_t first = program.block_begin[block.task->block];
  const uint32_t count = program.block_begin[block.task->block + 1] - first;
  const uint64_t number = first_call_ + call;
  if (block.strand != nullptr) {
    block.strand->begin(call, number);
    block.strand->run(frame, program.ops.data() + first, count);
  } else {
    block.machine->begin_call(number);
    device::run_ops(*block.machine, frame, program.ops.data() + first, count);
  }
}

void CallRun::run_block(void* argument) {
  const auto* block = static_cast<Block*>(argument);
  CallRun& run = *block->run;
  BlockTask& task = *block->task;
  const Seat seat{task.plan, task.rank};
  SimRank& state = run.state(seat);
  const uint64_t calls = run.sequence_.calls_of(seat.plan, run.world_rank(seat));
  for (uint64_t i = 0; i < calls; ++i) {
    if (state.started <= i) run.scheduler_.wait({Wait::Test::above64, &state.started, i});
    state.entered = i + 1;
    run.run_ops(*block, state.call);
    ++task.calls_done;
    ++state.blocks_done;
  }
  task.ended = true;
}

bool CallRun::spawn_task(SimMachine& machine, StrandMachine* strand, const Seat& seat,
                         uint32_t block) {
  ++state(seat).active_blocks;
  BlockTask& task = blocks_.emplace_back(BlockTask{seat.plan, seat.rank, block, &machine});
  Block& argument = block_arguments_.emplace_back(Block{this, &task, &machine, strand});
  return scheduler_.spawn(run_block, &argument, false);
}

bool CallRun::spawn_strands(const Seat& seat, uint32_t block, const SimMachine& machine) {
  for (uint32_t i = 0; i < world_->adversary.strands; ++i) {
    const uint32_t process = add_process();
    world_->plans[seat.plan][seat.rank].processes.push_back(process);
    StrandMachine& strand = strands_.emplace_back(
        machine, *world_, StrandMachine::StrandId{seat.plan, world_rank(seat), block, i, process});
    if (!spawn_task(strand, &strand, seat, block)) return false;
  }
  return true;
}

bool CallRun::spawn_block(const Seat& seat, uint32_t block) {
  Cluster& cluster = *plans_[seat.plan].cluster;
  SimMachine& machine =
      machines_.emplace_back(scheduler_, cluster.states(), cluster.program(), seat.rank,
                             cluster.call(), cluster.device().ranks[seat.rank].barriers);
  return world_ ? spawn_strands(seat, block, machine) : spawn_task(machine, nullptr, seat, block);
}

bool CallRun::spawn_port(const Seat& seat, uint32_t channel) {
  Cluster& cluster = *plans_[seat.plan].cluster;
  SimChannelEnd& own = *state(seat).channels[channel];
  const Channel& declared = cluster.program().ranks[seat.rank].channels[channel];
  const uint32_t peer = declared.peer, end = declared.partner;
  SimChannelEnd* partner = end == kNone ? nullptr : cluster.states()[peer].channels[end];
  if (!world_) {
    SimProxy& proxy = proxies_.emplace_back(scheduler_, own, partner);
    return scheduler_.spawn(serve_port, &proxy, true);
  }
  std::vector<RankClocks>& clocks = world_->plans[seat.plan];
  ClockedProxy& proxy = clocked_proxies_.emplace_back(
      *world_, own, *clocks[seat.rank].channels[channel], world_rank(seat), add_process());
  if (partner != nullptr) proxy.connect(*partner, *clocks[peer].channels[end]);
  return scheduler_.spawn(serve_clocked_port, &proxy, true);
}

// An end that several plans share has one proxy.
bool CallRun::spawn_ports(const Seat& seat) {
  const std::vector<Channel>& channels =
      plans_[seat.plan].cluster->program().ranks[seat.rank].channels;
  const SimRank& state = this->state(seat);
  for (uint32_t c = 0; c < channels.size(); ++c) {
    const bool own = state.channels[c] == &state.ends[c];
    if (channels[c].kind == ChannelKind::port && own && !spawn_port(seat, c)) return false;
  }
  return true;
}

bool CallRun::spawn_plan(const Seat& seat) {
  const RankProgram& program = plans_[seat.plan].cluster->device().ranks[seat.rank];
  for (uint32_t b = 0; b + 1 < program.block_begin.size(); ++b) {
    if (program.block_begin[b] == program.block_begin[b + 1]) continue;
    if (!spawn_block(seat, b)) return false;
  }
  return spawn_ports(seat) && spawn_other_side(seat);
}

/// A fiber for each flag.
bool CallRun::spawn_other_side(const Seat& seat) {
  Cluster& cluster = *plans_[seat.plan].cluster;
  const Program& program = cluster.program();
  if (program.flags.empty()) return true;
  const Call& call = cluster.call();
  const Chunking chunking(program.contract, call.part_bytes, program.granule(call.dtype));
  const OtherSide::Buffers buffers{cluster.data(seat.rank, kInput),
                                   cluster.data(seat.rank, kOutput)};
  OtherSide& other = others_
                         .try_emplace({seat.plan, seat.rank}, scheduler_, program, seat.rank,
                                      state(seat), chunking, buffers)
                         .first->second;
  if (world_) {
    RankClocks& clocks = world_->plans[seat.plan][seat.rank];
    const uint32_t process = add_process();
    clocks.processes.push_back(process);
    other.join(*world_, clocks.flags, world_rank(seat), process);
  }
  const uint64_t calls = sequence_.calls_of(seat.plan, world_rank(seat));
  for (uint32_t f = 0; f < other.flags(); ++f) {
    FlagServer& server = flag_servers_.emplace_back(FlagServer{&other, f, calls});
    if (!scheduler_.spawn(serve_flag, &server, false)) return false;
  }
  return true;
}

bool CallRun::spawn_rank(uint32_t world_rank) {
  if (!scheduler_.spawn(call_rank, &callers_.emplace_back(Caller{this, world_rank}), false)) {
    return false;
  }
  return std::ranges::all_of(seats_[world_rank],
                             [&](const Seat& seat) { return spawn_plan(seat); });
}

uint32_t CallRun::add_process() {
  world_->clocks.emplace_back();
  return static_cast<uint32_t>(world_->clocks.size() - 1);
}

/// The clocks that go with an end, whichever plan's it is.
ChannelClocks* CallRun::clocks_of(const SimChannelEnd* end, uint32_t world_rank) {
  for (const Seat& seat : seats_[world_rank]) {
    const std::vector<SimChannelEnd>& ends = state(seat).ends;
    const std::less<const SimChannelEnd*> before;  // a total order, of any pointers
    if (ends.empty() || before(end, ends.data()) || before(&ends.back(), end)) continue;
    return &world_->plans[seat.plan][seat.rank].ends[static_cast<size_t>(end - ends.data())];
  }
  return nullptr;  // not reached: ends are of plans at this rank
}

void CallRun::connect_clocks(const Seat& seat) {
  const SimRank& state = this->state(seat);
  RankClocks& clocks = world_->plans[seat.plan][seat.rank];
  for (uint32_t c = 0; c < state.channels.size(); ++c) {
    const bool own = state.channels[c] == &state.ends[c];
    clocks.channels.push_back(own ? &clocks.ends[c]
                                  : clocks_of(state.channels[c], world_rank(seat)));
  }
}

void CallRun::make_clocks() {
  world_->done.resize(seats_.size());
  world_->plans.resize(plans_.size());
  for (uint32_t p = 0; p < plans_.size(); ++p) {
    const Cluster& cluster = *plans_[p].cluster;
    world_->plans[p].resize(cluster.states().size());
    for (uint32_t r = 0; r < cluster.states().size(); ++r) {
      RankClocks& clocks = world_->plans[p][r];
      for (const SimChannelEnd& end : cluster.states()[r].ends) {
        clocks.ends.emplace_back().arrived.resize(end.arrived);  // credits publish nothing
      }
      clocks.semaphores.resize(cluster.states()[r].semaphores.size());
      clocks.flags.resize(cluster.states()[r].flags.size());
      clocks.barriers.resize(cluster.states()[r].barriers.size());
      clocks.blocks.resize(cluster.program().ranks[r].blocks);
    }
  }
  for (const std::vector<Seat>& seats : seats_) {
    for (const Seat& seat : seats) connect_clocks(seat);
  }
}

bool CallRun::spawn_memory() {
  return scheduler_.spawn(serve_free, this, true) && scheduler_.spawn(serve_held, this, true);
}

bool CallRun::spawn_all() {
  if (world_) make_clocks();
  for (uint32_t r = 0; r < seats_.size(); ++r) {
    if (!spawn_rank(r)) return false;
  }
  return !world_ || spawn_memory();
}

}  // namespace

bool run_calls(std::span<const RunningPlan> plans, const CallSequence& calls, FiberPool& fibers,
               const CallRunOptions& options, Diagnostics& diagnostics) {
  CallRun run(plans, calls, fibers, options);
  if (!run.spawn_all()) return Cluster::no_memory(diagnostics);
  const bool ended = run.run();
  run.report_late_reads(diagnostics);
  if (!ended) report_hang(plans, run.blocks(), run.others(), diagnostics);
  run.note_early_flags();
  return ended;
}

}  // namespace mscclc
