#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "executor/block_programs.h"
#include "executor/cuda/kernel.h"
#include "executor/cuda/testing/memory.h"
#include "executor/cuda/testing/ranks.h"
#include "executor/cuda/testing/ranks_apart.h"
#include "executor/cuda/testing/ranks_multicast.h"
#include "executor/cuda/testing/ranks_proxy.h"
#include "executor/early_launch.h"
#include "executor/interpreter/packets.h"
#include "executor/oracle/values.h"
#include "ir/report/op_error.h"

namespace mscclc::cuda {
namespace {

using device::Barrier;
using device::BaseAddress;
using device::ChannelEnd;
using device::DeviceOp;
using device::DeviceOperand;
using device::Fault;
using device::LaunchPlan;
using device::PortQueue;
using device::PortSlot;
using device::RankContext;
using device::StepKind;
using device::WaitFor;

constexpr uint64_t kPatience = 2'000'000'000;  // nanoseconds
constexpr uint64_t kMaxShift = 128;            // bytes
constexpr uint64_t kQueueBits = 3;             // 8 requests: so few that blocks wait for room
#ifdef MSCCLC_ON_HOST
constexpr uint32_t kThreads = 96;  // of a block, at most: fibers; three warps
#else
constexpr uint32_t kThreads = 1024;
#endif

/// Device memory of one rank.
struct RankMemory {
  std::vector<DeviceMemory> buffers;               ///< the caller's are those of the first call
  std::vector<DeviceMemory> later;                 ///< the caller's of later calls
  std::vector<std::vector<RankBuffer>> addresses;  ///< by call, of buffers; in place two are one
  DeviceMemory arrived, semaphores, barriers;
  uint32_t first_channel = 0, first_block = 0;  ///< among those of all ranks
};

const char* name(WaitFor what) {
  switch (what) {
    case WaitFor::nothing:
      return "nothing";
    case WaitFor::signal:
      return "signal";
    case WaitFor::semaphore:
      return "semaphore";
    case WaitFor::barrier:
      return "barrier";
    case WaitFor::packet:
      return "packet";
    case WaitFor::queue:
      return "room in the queue";
    case WaitFor::flush:
      return "flush";
  }
  return "?";
}

}  // namespace

struct CudaRanks::State {
  explicit State(const Program& program) : program(program) {}

  bool allocate(uint32_t rank, const Chunking& chunking, Diagnostics& d);
  bool add_call(uint32_t rank, const CallerBuffers& callers, Diagnostics& d);
  uint64_t shift_of(uint32_t rank, uint32_t buffer) const;
  void number_channels(uint32_t rank);
  void number_ranks();
  bool upload_credits(uint32_t rank, Diagnostics& d);
  bool upload_counts(uint32_t rank, Diagnostics& d);
  bool upload_context(Diagnostics& d);
  PortQueue queue() const;
  uint64_t* partner_of(const Channel& end) const;
  bool fill_scratch(uint32_t rank, Diagnostics& d);
  std::vector<BaseAddress> bases_of(uint32_t rank, uint32_t in_call);
  std::vector<ChannelEnd> all_ends() const;
  bool pack_programs(uint32_t in_call, Diagnostics& d);
  bool plan_launch(Diagnostics& d);
  bool plan_call(uint32_t in_call, Diagnostics& d);
  bool plan_apart(uint32_t in_call);
  bool run_together(Diagnostics& d) const;
  void mark_early();
  bool fits(Diagnostics& d) const;
  void start_proxy();
  Fault fault(uint32_t rank, uint32_t block) const;
  bool report_faults(Diagnostics& d) const;
  std::string ports_text() const;

  const Program& program;
  DeviceProgram device;
  bool marked_early = false;
  Call call;
  Options options;
  std::vector<RankMemory> ranks;
  uint32_t channels = 0, blocks = 0;  ///< of all ranks
  DeviceMemory ends, claimed, seen, flushed, context, calls, stamps;
  std::vector<DeviceMemory> programs;        ///< by call
  std::vector<std::vector<uint8_t>> packed;  ///< by call
  std::vector<BlockPrograms> own_programs;   ///< by rank, of the call at hand
  RanksMulticast multicast;
  bool counted = false;  ///< calls has been allocated for the prepared call
  VisibleMemory faults, requests, handled, abort;
  LaunchPlan launch{};  ///< of all ranks
  RanksApart apart;     ///< launches of ranks, where each has its own
  uint64_t patience = kPatience;
  std::optional<RanksProxy> proxy;
};

bool CudaRanks::State::allocate(uint32_t rank, const Chunking& chunking, Diagnostics& d) {
  const std::vector<BufferLayout>& layout = device.ranks[rank].buffers;
  const CallerBuffers callers = caller_buffers(program.contract, chunking, rank, options.in_place);
  const uint32_t inner = callers.outer == kInput ? kOutput : kInput;
  RankMemory& own = ranks[rank];
  own.buffers.resize(layout.size());
  std::vector<RankBuffer> first(layout.size());
  for (uint32_t b = 0; b < layout.size(); ++b) {
    if (callers.shared && b == inner) continue;
    const bool scratch = b >= kFirstScratch;
    const uint64_t bytes = scratch ? layout[b].stride * layout[b].copies : layout[b].bytes;
    if (!own.buffers[b].allocate(bytes + kMaxShift, d)) return false;
    const uint64_t shift = scratch ? 0 : shift_of(rank, b);
    first[b] = {own.buffers[b].data() + shift, shift, bytes + kMaxShift};
  }
  if (callers.shared) first[inner] = first[callers.outer].shifted(callers.inner_offset);
  own.addresses.assign(1, std::move(first));
  own.later.clear();
  while (own.addresses.size() < options.calls) {
    if (!add_call(rank, callers, d)) return false;
  }
  return true;
}

/// Makes the caller's buffers of one call more.
bool CudaRanks::State::add_call(uint32_t rank, const CallerBuffers& callers, Diagnostics& d) {
  RankMemory& own = ranks[rank];
  const uint32_t inner = callers.outer == kInput ? kOutput : kInput;
  std::vector<RankBuffer> next = own.addresses.back();
  const RankBuffer ahead = next[kOutput];
  if (options.chained && callers.shared) return own.addresses.push_back(next), true;
  for (const uint32_t b : {kInput, kOutput}) {
    if (callers.shared && b == inner) continue;
    if (options.chained && b == kInput) {
      next[b] = ahead;
      continue;
    }
    if (!own.later.emplace_back().allocate(next[b].bytes, d)) return false;
    next[b].address = own.later.back().data() + next[b].offset;
  }
  if (callers.shared) next[inner] = next[callers.outer].shifted(callers.inner_offset);
  own.addresses.push_back(std::move(next));
  return true;
}

uint64_t CudaRanks::State::shift_of(uint32_t rank, uint32_t buffer) const {
  if (!options.shifted) return options.offset;
  return (3 * rank + 5 * buffer + 1) * info(call.dtype).bytes % kMaxShift;
}

/// Empties the slots of sentinels. Plain scratch gets the simulator's bytes: a program that reads
/// it before anything is there then gives the same here.
bool CudaRanks::State::fill_scratch(uint32_t rank, Diagnostics& d) {
  const std::vector<BufferLayout>& layout = device.ranks[rank].buffers;
  const device::Stamp stamp = device::stamp_of(0, info(call.dtype).bytes);
  for (uint32_t b = kFirstScratch; b < layout.size(); ++b) {
    const bool sentinels = is_sentinel(layout[b].packets);
    if (!sentinels && layout[b].packets != PacketFormat::none) continue;
    const uint64_t word = sentinels ? stamp.sentinel : ~uint64_t{0} / 255 * kUnwrittenByte;
    const std::vector<uint64_t> filled(layout[b].stride * layout[b].copies / 8, word);
    if (!ranks[rank].buffers[b].upload(filled, d)) return false;
    for (std::vector<RankBuffer>& call : ranks[rank].addresses) {
      call[b].address = ranks[rank].buffers[b].data();
    }
  }
  return true;
}

/// The signals that the ends of a rank's channels begin with.
bool CudaRanks::State::upload_credits(uint32_t rank, Diagnostics& d) {
  std::vector<uint64_t> credits;
  for (const Channel& end : program.ranks[rank].channels) credits.push_back(end.credits);
  return ranks[rank].arrived.upload(credits, d);
}

bool CudaRanks::State::upload_counts(uint32_t rank, Diagnostics& d) {
  RankMemory& own = ranks[rank];
  std::vector<uint64_t> semaphores;
  for (const Semaphore& s : program.ranks[rank].semaphores) semaphores.push_back(s.initial);
  std::vector<Barrier> barriers;
  for (const BarrierMembers& b : device.ranks[rank].barriers)
    barriers.push_back({0, b.blocks.size()});
  return own.semaphores.upload(semaphores, d) && own.barriers.upload(barriers, d);
}

/// Makes the channels that a rank's program names by index those of all ranks.
void CudaRanks::State::number_channels(uint32_t rank) {
  RankProgram& own = device.ranks[rank];
  for (DeviceOperand& operand : own.operands) {
    if (operand.channel != device::kNoChannel) operand.channel += ranks[rank].first_channel;
  }
  for (const DeviceOp& op : own.ops) {
    const bool channels =
        op.kind == StepKind::signal || op.kind == StepKind::wait || op.kind == StepKind::flush;
    if (!channels) continue;
    for (uint32_t t = 0; t < op.count; ++t) own.targets[op.first + t] += ranks[rank].first_channel;
  }
}

void CudaRanks::State::number_ranks() {
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    ranks[r].first_channel = channels;
    ranks[r].first_block = blocks;
    number_channels(r);
    channels += static_cast<uint32_t>(program.ranks[r].channels.size());
    blocks += static_cast<uint32_t>(device.ranks[r].block_begin.size() - 1);
  }
}

/// The count of signals at the other end of a channel, or nullptr.
uint64_t* CudaRanks::State::partner_of(const Channel& end) const {
  return end.partner == kNone ? nullptr : ranks[end.peer].arrived.data<uint64_t>() + end.partner;
}

std::vector<BaseAddress> CudaRanks::State::bases_of(uint32_t rank, uint32_t in_call) {
  std::vector<BaseAddress> bases;
  const std::vector<device::Base>& all = device.ranks[rank].bases;
  for (const device::Base& b : all) {
    const uint8_t* address = ranks[b.rank].addresses[in_call][b.buffer].address;
    bases.push_back({const_cast<uint8_t*>(address), b.copy_stride, b.copies});
  }
  if (!options.multicast) return bases;
  for (const DeviceOperand& operand : device.ranks[rank].operands) {
    if (operand.members < 2) continue;
    std::vector<RankBuffer> members;
    for (uint32_t m = 0; m < operand.members; ++m) {
      const device::Base& b = all[operand.base + m];
      members.push_back(ranks[b.rank].addresses[in_call][b.buffer]);
    }
    bases[operand.base].multicast = multicast.address_of(members);
  }
  return bases;
}

std::vector<ChannelEnd> CudaRanks::State::all_ends() const {
  std::vector<ChannelEnd> all;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    uint64_t* arrived = ranks[r].arrived.data<uint64_t>();
    for (const Channel& end : program.ranks[r].channels) {
      all.push_back({arrived++, partner_of(end), 0, end.kind == ChannelKind::port});
    }
  }
  return all;
}

PortQueue CudaRanks::State::queue() const {
  return {requests.data<PortSlot>(), kQueueBits,
          claimed.data<uint64_t>(),  seen.data<uint64_t>(),
          flushed.data<uint64_t>(),  handled.data<uint64_t>()};
}

/// What all blocks see of their one rank, and then what those of each rank see where it has a
/// launch of its own.
bool CudaRanks::State::upload_context(Diagnostics& d) {
  if (!ends.upload(all_ends(), d) || !claimed.allocate(sizeof(uint64_t), d) ||
      !flushed.allocate(channels * sizeof(uint64_t), d) ||
      !faults.allocate(blocks * sizeof(Fault), d) || !seen.allocate(sizeof(uint64_t), d) ||
      !requests.allocate(sizeof(PortSlot) << kQueueBits, d) ||
      !handled.allocate(sizeof(uint64_t), d)) {
    return false;
  }
  RankContext made{};
  made.channels = ends.data<ChannelEnd>();
  made.queue = queue();
  made.faults = faults.data<Fault>();
  made.abort = abort.data<uint32_t>();
  std::vector<RankContext> contexts{made};
  // Launches of one rank number its blocks from 0.
  for (const RankMemory& rank : ranks) {
    contexts.push_back(made);
    contexts.back().faults += rank.first_block;
  }
  return context.upload(contexts, d);
}

bool CudaRanks::State::plan_launch(Diagnostics& d) {
  multicast.clear();
  apart.clear();
  counted = false;
  programs.clear();
  packed.clear();
  programs.resize(options.calls);
  packed.resize(options.calls);
  for (uint32_t c = options.calls; c-- > 0;) {  // `launch` stays that of the first
    if (!plan_call(c, d)) return false;
  }
  return fits(d);
}

bool CudaRanks::State::plan_call(uint32_t in_call, Diagnostics& d) {
  launch = {};
  launch.context = context.data<RankContext>();
  launch.blocks = blocks;
  launch.threads = std::min({program.launch.threads, options.threads, kThreads});
  static_cast<Call&>(launch) = call;
  launch.patience = patience;
  launch.early = options.early;
  launch.frees_next = (options.frees_next >> in_call & 1) != 0;
  if (!pack_programs(in_call, d)) return false;
  if (options.stamp_words != 0) {
    const uint64_t bytes = uint64_t{blocks} * options.stamp_words * sizeof(uint64_t);
    const bool is_first_planned = in_call + 1 == options.calls;  // all calls write to the same rows
    if (is_first_planned && !stamps.allocate(bytes, d)) return false;
    launch.stamps = stamps.data<uint64_t>();
    launch.stamp_words = options.stamp_words;
  }
  if (options.generic) launch.uses |= device::kUsesAll & ~uint32_t{device::kUsesTrees};
  if ((options.in_short || options.apart) && !plan_apart(in_call)) apart.clear();
  return true;
}

/// The launches of all ranks in a call. False: they are to be one, as some have no short program.
bool CudaRanks::State::plan_apart(uint32_t in_call) {
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    LaunchPlan own = launch;
    own.context += 1 + r;
    own.blocks = static_cast<uint32_t>(device.ranks[r].block_begin.size() - 1);
    own.calls += uint64_t{ranks[r].first_block} * launch.call_counts;
    own.programs += uint64_t{ranks[r].first_block} * launch.program_bytes;
    if (own.stamps != nullptr) own.stamps += uint64_t{ranks[r].first_block} * launch.stamp_words;
    Start start = options.own_kernel ? options.own_kernel(r, own_programs[r], own) : Start{};
    const uint8_t* programs_here =
        packed[in_call].data() + uint64_t{ranks[r].first_block} * launch.program_bytes;
    const bool shortened = options.in_short && apart.add_short(r, in_call, own, programs_here);
    if (shortened) continue;
    if (!options.apart) return false;
    apart.add(r, in_call, own, std::move(start));
  }
  return true;
}

// The programs of all ranks have one length, and as many counts a block.
bool CudaRanks::State::pack_programs(uint32_t in_call, Diagnostics& d) {
  launch.uses = 0;
  const std::vector<ChannelEnd> all = all_ends();
  std::vector<uint8_t>& bytes = packed[in_call];
  for (const bool keep : {false, true}) {
    own_programs.assign(ranks.size(), {});
    for (uint32_t r = 0; r < ranks.size(); ++r) {
      const std::vector<BaseAddress> bases = bases_of(r, in_call);
      const WaitSlots slots(device.ranks[r]);
      BlockPrograms& own = own_programs[r];
      if (!own.pack(
              device.ranks[r],
              {bases, all, ranks[r].semaphores.data<uint64_t>(), ranks[r].barriers.data<Barrier>()},
              slots, launch.program_bytes)) {
        d.error("too-large", {}, "the program of a block would have 2 GiB or more");
        return false;
      }
      launch.program_bytes = std::max(launch.program_bytes, own.stride());
      launch.call_counts = std::max(launch.call_counts, slots.per_block());
      launch.uses |= own.uses();
      if (keep) bytes.insert(bytes.end(), own.data(), own.data() + own.bytes());
    }
  }
  // All calls have the same counts.
  const uint64_t counts = uint64_t{launch.blocks} * launch.call_counts;
  if (!counted && !calls.allocate(counts * sizeof(uint64_t), d)) return false;
  counted = true;
  launch.calls = calls.data<uint64_t>();
  launch.carried = options.carried && bytes.size() <= device::kMaxCarried;
  launch.programs = bytes.data();
  if (launch.carried) return true;
  if (!programs[in_call].upload(bytes, d)) return false;
  launch.programs = programs[in_call].data();
  return true;
}

/// Marks after which ops the next call may begin.
void CudaRanks::State::mark_early() {
  if (std::exchange(marked_early, true)) return;
  for (uint32_t r = 0; r < ranks.size(); ++r) mark_early_launch(program, r, device.ranks[r]);
}

// Blocks that wait for one another must all run at once.
bool CudaRanks::State::fits(Diagnostics& d) const {
  if (launch.blocks == 0) return true;
  int error = 0;
  const uint32_t most = most_resident_blocks(launch, &error);
  if (!succeeded(static_cast<cudaError_t>(error), "ask how many blocks fit on the device", d)) {
    return false;
  }
  if (launch.blocks <= most) return true;
  d.error("too-many-blocks", {},
          "the ranks have " + std::to_string(launch.blocks) + " thread blocks in all; " +
              std::to_string(most) + " run at once on this device");
  return false;
}

void CudaRanks::State::start_proxy() {
  RanksProxy::Queue served{queue(), handled.data<uint64_t>(), {}};
  for (const ChannelEnd& end : all_ends()) served.partners.push_back(end.partner);
  proxy.emplace(std::move(served));
}

/// How long a copy has taken: a wait may be given up because the proxy is slow.
std::string CudaRanks::State::ports_text() const {
  const RanksProxy::Slowest slowest = proxy->slowest();
  return "the slowest request to a port (a put of " + std::to_string(slowest.bytes) +
         " bytes, 0: a signal) took " + std::to_string(slowest.nanoseconds / 1000) + " us";
}

Fault CudaRanks::State::fault(uint32_t rank, uint32_t block) const {
  Fault f = faults.data<Fault>()[ranks[rank].first_block + block];
  const bool channel =
      f.what == WaitFor::signal || f.what == WaitFor::queue || f.what == WaitFor::flush;
  if (channel) f.index -= ranks[rank].first_channel;
  return f;
}

bool CudaRanks::State::report_faults(Diagnostics& d) const {
  bool none = true;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    for (uint32_t b = 0; b + 1 < device.ranks[r].block_begin.size(); ++b) {
      const Fault f = fault(r, b);
      if (f.what == WaitFor::nothing) continue;
      Diagnostic& error = op_error(
          d, "deadlock", program, r, program.ranks[r].ops[f.op],
          std::string("the plan hangs: waits for ") + name(f.what) +
              (f.what == WaitFor::packet ? "" : ' ' + std::to_string(f.index)) + ": expected " +
              std::to_string(f.expected) + ", seen " + std::to_string(f.seen));
      if (f.what == WaitFor::packet) error.notes.push_back({ports_text()});
      none = false;
    }
  }
  return none;
}

CudaRanks::CudaRanks(const Program& program) : state_(std::make_unique<State>(program)) {}
CudaRanks::~CudaRanks() = default;

const Program& CudaRanks::program() const { return state_->program; }

bool CudaRanks::available() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

bool CudaRanks::build(Diagnostics& diagnostics) {
  state_->ranks.resize(state_->program.ranks.size());
  if (!lower(state_->program, state_->device, diagnostics)) return false;
  state_->number_ranks();
  return true;
}

bool CudaRanks::prepare(const Call& call, const Options& options, Diagnostics& diagnostics) {
  State& s = *state_;
  s.call = call;
  s.options = options;
  s.proxy.reset();
  if (options.early) s.mark_early();
  if (!s.abort.allocate(sizeof(uint32_t), diagnostics)) return false;
  if (!patch(s.device, s.program, call, diagnostics)) return false;
  const Chunking chunking(s.program.contract, call.part_bytes, s.program.launch.align);
  for (uint32_t r = 0; r < s.ranks.size(); ++r) {
    if (!s.allocate(r, chunking, diagnostics) || !s.fill_scratch(r, diagnostics) ||
        !s.upload_credits(r, diagnostics)) {
      return false;
    }
  }
  for (uint32_t r = 0; r < s.ranks.size(); ++r) {
    if (!s.upload_counts(r, diagnostics)) return false;
  }
  return s.upload_context(diagnostics) && s.plan_launch(diagnostics);
}

#ifdef MSCCLC_ON_HOST
uint32_t CudaRanks::slowness() { return 20; }
uint64_t CudaRanks::nanoseconds() { return host::Gpu::get().nanoseconds(); }
#else
uint32_t CudaRanks::slowness() { return 1; }
uint64_t CudaRanks::nanoseconds() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
#endif

bool CudaRanks::in_short() const { return state_->apart.all_short(); }

bool CudaRanks::has_multicast() const { return !state_->multicast.empty(); }

bool CudaRanks::read_stamps(std::vector<uint64_t>& words, Diagnostics& diagnostics) const {
  const State& s = *state_;
  words.assign(uint64_t{s.blocks} * s.launch.stamp_words, 0);
  return words.empty() ||
         succeeded(cudaMemcpy(words.data(), s.stamps.data(), words.size() * sizeof(uint64_t),
                              cudaMemcpyDeviceToHost),
                   "read stamps", diagnostics);
}
bool CudaRanks::has_fast_kernel() const { return cuda::has_fast_kernel(state_->launch); }

void CudaRanks::set_patience(uint64_t nanoseconds) { state_->patience = nanoseconds; }

void CudaRanks::abort() {
  std::atomic_ref(*state_->abort.data<uint32_t>()).store(1, std::memory_order_relaxed);
}

device::Fault CudaRanks::fault(uint32_t rank, uint32_t block) const {
  return state_->fault(rank, block);
}

/// Without launches of their own, all ranks in one.
bool CudaRanks::State::run_together(Diagnostics& d) const {
  return succeeded(static_cast<cudaError_t>(cuda::launch(launch, nullptr)),
                   "launch the interpreter", d) &&
         succeeded(cudaStreamSynchronize(nullptr), "run the interpreter", d);
}

bool CudaRanks::run_calls(uint32_t calls, const Hook& before, const Hook& after,
                          Diagnostics& diagnostics) {
  State& s = *state_;
  if (!s.proxy) s.start_proxy();
#ifdef MSCCLC_ON_HOST
  host::Gpu::get().set_waits_for_host(s.patience == 0);
#endif
  const bool ran = s.apart.empty()
                       ? s.run_together(diagnostics)
                       : s.apart.run(calls, s.options.silent, before, after, diagnostics);
  const bool served = succeeded(s.proxy->error(), "serve the ports", diagnostics);
  return s.report_faults(diagnostics) && ran && served;
}

bool CudaRanks::run(Diagnostics& diagnostics) {
  return state_->launch.blocks == 0 || run_calls(1, {}, {}, diagnostics);
}

bool CudaRanks::write(uint32_t rank, uint32_t buffer, const uint8_t* from, Diagnostics& diagnostics,
                      uint32_t call) {
  return succeeded(
      cudaMemcpy(state_->ranks[rank].addresses[call][buffer].address, from,
                 state_->device.ranks[rank].buffers[buffer].bytes, cudaMemcpyHostToDevice),
      "copy to the device", diagnostics);
}

bool CudaRanks::read(uint32_t rank, uint32_t buffer, uint8_t* to, Diagnostics& diagnostics,
                     uint32_t call) const {
  return succeeded(
      cudaMemcpy(to, state_->ranks[rank].addresses[call][buffer].address,
                 state_->device.ranks[rank].buffers[buffer].bytes, cudaMemcpyDeviceToHost),
      "copy from the device", diagnostics);
}

}  // namespace mscclc::cuda
