#include <algorithm>

#include "executor/cuda/launch.h"
#include "executor/cuda/memory.h"
#include "executor/cuda/ranks.h"
#include "executor/interpreter/packets.h"
#include "ir/op_error.h"

namespace mscclc::cuda {
namespace {

constexpr uint32_t kMostThreads = 512;            // the kernel's launch bound
constexpr uint64_t kPatience = 4'000'000'000ull;  // clock cycles: about two seconds

/// Device memory of one rank.
struct RankMemory {
  std::vector<DeviceMemory> buffers;
  std::vector<uint8_t*> addresses;  ///< of buffers; in place two are one
  DeviceMemory ops, moves, operands, runs, offsets, loops, targets, block_begin;
  DeviceMemory bases, channels, arrived, semaphores, barriers, call, blocks_done;
};

}  // namespace

struct CudaRanks::State {
  explicit State(const Program& program) : program(program) {}

  bool allocate(uint32_t rank, const Chunking& chunking, bool in_place, Diagnostics& d);
  bool upload(uint32_t rank, Diagnostics& d);
  bool upload_counts(uint32_t rank, Diagnostics& d);
  bool fill_sentinels(uint32_t rank, Diagnostics& d);
  RankContext context(uint32_t rank) const;
  bool plan_launch(Diagnostics& d);
  bool report_fault(Diagnostics& d);

  const Program& program;
  DeviceProgram device;
  Call call;
  std::vector<RankMemory> ranks;
  DeviceMemory contexts, rank_of_block, number_of_block, fault;
  LaunchPlan launch{};
};

bool CudaRanks::State::allocate(uint32_t rank, const Chunking& chunking, bool in_place,
                                Diagnostics& d) {
  const std::vector<BufferLayout>& layout = device.ranks[rank].buffers;
  const CallerBuffers callers = caller_buffers(program.contract, chunking, rank, in_place);
  const uint32_t inner = callers.outer == kInput ? kOutput : kInput;
  RankMemory& own = ranks[rank];
  own.buffers.resize(layout.size());
  own.addresses.resize(layout.size());
  for (uint32_t b = 0; b < layout.size(); ++b) {
    if (callers.shared && b == inner) continue;
    const bool scratch = b >= kFirstScratch;
    const uint64_t bytes = scratch ? layout[b].stride * layout[b].copies : layout[b].bytes;
    if (!own.buffers[b].allocate(bytes, d)) return false;
    own.addresses[b] = own.buffers[b].data();
  }
  if (callers.shared) own.addresses[inner] = own.addresses[callers.outer] + callers.inner_offset;
  return true;
}

bool CudaRanks::State::fill_sentinels(uint32_t rank, Diagnostics& d) {
  const std::vector<BufferLayout>& layout = device.ranks[rank].buffers;
  const device::Stamp stamp = device::stamp_of(0, info(call.dtype).bytes);
  for (uint32_t b = kFirstScratch; b < layout.size(); ++b) {
    if (layout[b].packets != PacketFormat::sentinel) continue;
    const std::vector<uint64_t> empty(layout[b].stride * layout[b].copies / 8, stamp.sentinel);
    if (!ranks[rank].buffers[b].upload(empty, d)) return false;
    ranks[rank].addresses[b] = ranks[rank].buffers[b].data();
  }
  return true;
}

bool CudaRanks::State::upload_counts(uint32_t rank, Diagnostics& d) {
  RankMemory& own = ranks[rank];
  std::vector<unsigned long long> semaphores;
  for (const Semaphore& s : program.ranks[rank].semaphores) semaphores.push_back(s.initial);
  std::vector<Barrier> barriers;
  for (const BarrierMembers& b : device.ranks[rank].barriers)
    barriers.push_back({0, b.blocks.size()});
  return own.semaphores.upload(semaphores, d) && own.barriers.upload(barriers, d) &&
         own.call.allocate(sizeof(unsigned long long), d) &&
         own.blocks_done.allocate(sizeof(unsigned int), d);
}

bool CudaRanks::State::upload(uint32_t rank, Diagnostics& d) {
  const RankProgram& from = device.ranks[rank];
  RankMemory& own = ranks[rank];
  std::vector<BaseAddress> bases;
  for (const device::Base& b : from.bases) {
    bases.push_back({ranks[b.rank].addresses[b.buffer], b.copy_stride, b.copies});
  }
  std::vector<DeviceChannelEnd> channels;
  const std::vector<Channel>& ends = program.ranks[rank].channels;
  for (uint32_t c = 0; c < ends.size(); ++c) {
    unsigned long long* partner =
        ends[c].partner == kNone
            ? nullptr
            : ranks[ends[c].peer].arrived.data<unsigned long long>() + ends[c].partner;
    channels.push_back({own.arrived.data<unsigned long long>() + c, partner, 0});
  }
  return own.ops.upload(from.ops, d) && own.moves.upload(from.moves, d) &&
         own.operands.upload(from.operands, d) && own.runs.upload(from.runs, d) &&
         own.offsets.upload(from.offsets, d) && own.loops.upload(from.loops, d) &&
         own.targets.upload(from.targets, d) && own.block_begin.upload(from.block_begin, d) &&
         own.bases.upload(bases, d) && own.channels.upload(channels, d) && upload_counts(rank, d);
}

RankContext CudaRanks::State::context(uint32_t rank) const {
  const RankMemory& own = ranks[rank];
  RankContext c{};
  c.view = {own.ops.data<device::DeviceOp>(),
            own.moves.data<device::Move>(),
            own.operands.data<device::DeviceOperand>(),
            own.runs.data<device::Run>(),
            own.offsets.data<uint64_t>(),
            own.loops.data<device::DeviceLoop>(),
            own.targets.data<uint32_t>(),
            device.ranks[rank].align};
  c.block_begin = own.block_begin.data<uint32_t>();
  c.bases = own.bases.data<BaseAddress>();
  c.channels = own.channels.data<DeviceChannelEnd>();
  c.semaphores = own.semaphores.data<unsigned long long>();
  c.barriers = own.barriers.data<Barrier>();
  c.call = own.call.data<unsigned long long>();
  c.blocks_done = own.blocks_done.data<unsigned int>();
  c.fault = fault.data<Fault>();
  c.rank = rank;
  c.blocks = static_cast<uint32_t>(device.ranks[rank].block_begin.size() - 1);
  return c;
}

bool CudaRanks::State::plan_launch(Diagnostics& d) {
  std::vector<RankContext> made;
  std::vector<uint32_t> rank_of, number_of;
  if (!fault.allocate(sizeof(Fault), d)) return false;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    made.push_back(context(r));
    for (uint32_t b = 0; b < made.back().blocks; ++b) {
      rank_of.push_back(r);
      number_of.push_back(b);
    }
  }
  if (!contexts.upload(made, d) || !rank_of_block.upload(rank_of, d) ||
      !number_of_block.upload(number_of, d)) {
    return false;
  }
  launch.contexts = contexts.data<RankContext>();
  launch.rank_of_block = rank_of_block.data<uint32_t>();
  launch.number_of_block = number_of_block.data<uint32_t>();
  launch.blocks = static_cast<uint32_t>(rank_of.size());
  launch.threads = std::min(program.launch.threads, kMostThreads);
  launch.dtype = call.dtype;
  launch.reduce = call.reduce;
  launch.contributions = call.contributions;
  launch.patience = kPatience;
  return true;
}

bool CudaRanks::State::report_fault(Diagnostics& d) {
  Fault seen{};
  if (!succeeded(cudaMemcpy(&seen, fault.data(), sizeof seen, cudaMemcpyDeviceToHost),
                 "copy from the device", d)) {
    return false;
  }
  if (seen.happened == 0) return true;
  op_error(d, "deadlock", program, seen.rank, program.ranks[seen.rank].ops[seen.op],
           "the plan hangs: waited too long");
  return false;
}

CudaRanks::CudaRanks(const Program& program) : state_(std::make_unique<State>(program)) {}
CudaRanks::~CudaRanks() = default;

bool CudaRanks::available() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

bool CudaRanks::build(Diagnostics& diagnostics) {
  state_->ranks.resize(state_->program.ranks.size());
  return lower(state_->program, state_->device, diagnostics);
}

bool CudaRanks::prepare(const Call& call, bool in_place, Diagnostics& diagnostics) {
  State& s = *state_;
  if (call.accumulate != info(call.dtype).accumulate) {
    diagnostics.error("accumulate-type", {}, "the GPU adds up in a type's own accumulation type");
    return false;
  }
  s.call = call;
  if (!patch(s.device, s.program, call, diagnostics)) return false;
  const Chunking chunking(s.program.contract, call.part_bytes, s.program.launch.align);
  for (uint32_t r = 0; r < s.ranks.size(); ++r) {
    const size_t channels = s.program.ranks[r].channels.size();
    if (!s.allocate(r, chunking, in_place, diagnostics) || !s.fill_sentinels(r, diagnostics) ||
        !s.ranks[r].arrived.allocate(channels * sizeof(unsigned long long), diagnostics)) {
      return false;
    }
  }
  for (uint32_t r = 0; r < s.ranks.size(); ++r) {
    if (!s.upload(r, diagnostics)) return false;
  }
  return s.plan_launch(diagnostics);
}

bool CudaRanks::run(Diagnostics& diagnostics) {
  if (state_->launch.blocks == 0) return true;
  return succeeded(static_cast<cudaError_t>(launch(state_->launch, nullptr)),
                   "launch the interpreter", diagnostics) &&
         succeeded(cudaDeviceSynchronize(), "run the interpreter", diagnostics) &&
         state_->report_fault(diagnostics);
}

bool CudaRanks::write(uint32_t rank, uint32_t buffer, const uint8_t* from,
                      Diagnostics& diagnostics) {
  return succeeded(
      cudaMemcpy(state_->ranks[rank].addresses[buffer], from,
                 state_->device.ranks[rank].buffers[buffer].bytes, cudaMemcpyHostToDevice),
      "copy to the device", diagnostics);
}

bool CudaRanks::read(uint32_t rank, uint32_t buffer, uint8_t* to, Diagnostics& diagnostics) const {
  return succeeded(
      cudaMemcpy(to, state_->ranks[rank].addresses[buffer],
                 state_->device.ranks[rank].buffers[buffer].bytes, cudaMemcpyDeviceToHost),
      "copy from the device", diagnostics);
}

}  // namespace mscclc::cuda
