#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "executor/cuda/kernel.h"
#include "executor/cuda/testing/memory.h"
#include "executor/cuda/testing/ranks.h"
#include "executor/cuda/testing/ranks_apart.h"
#include "executor/cuda/testing/ranks_buffers.h"
#include "executor/cuda/testing/ranks_externals.h"
#include "executor/cuda/testing/ranks_flags.h"
#include "executor/cuda/testing/ranks_multicast.h"
#include "executor/cuda/testing/ranks_ports.h"
#include "executor/cuda/testing/ranks_programs.h"
#include "executor/cuda/testing/ranks_signals.h"
#include "executor/early_launch.h"
#include "ir/report/op_error.h"

namespace mscclc::cuda {
namespace {

using device::BaseAddress;
using device::ChannelEnd;
using device::DeviceOperand;
using device::Fault;
using device::LaunchPlan;
using device::RankContext;
using device::WaitFor;

constexpr uint64_t kPatience = 2'000'000'000;  // nanoseconds
#ifdef MSCCLC_ON_HOST
constexpr uint32_t kThreads = 96;  // of a block, at most: fibers; three warps
#else
constexpr uint32_t kThreads = 1024;
#endif

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
    case WaitFor::flag:
      return "flag";
    case WaitFor::skipped:
      return "nothing, as it was skipped";
  }
  return "?";
}

}  // namespace

/// What launches refer to, and the launches of the prepared calls.
class CudaRanks::State {
 public:
  explicit State(const Program& program)
      : program_(program), buffers_(program), signals_(program) {}

  const Program& program() const { return program_; }
  const LaunchPlan& launch() const { return launch_; }
  const RanksApart& apart() const { return apart_; }
  bool has_multicast() const { return !multicast_.empty(); }
  RanksExternals& externals() { return externals_; }
  RanksFlags& flags() { return flags_; }
  void set_patience(uint64_t nanoseconds) { patience_ = nanoseconds; }
  void silence(uint32_t rank) { options_.silent = rank; }
  uint32_t begun() const { return *begun_.data<uint32_t>(); }
  void abort();

  [[nodiscard]] bool build(Diagnostics& d, RowSteps rows);
  [[nodiscard]] bool prepare(const Call& call, const Options& options, Diagnostics& d);
  [[nodiscard]] bool run_calls(uint32_t calls, const Hook& before, const Hook& after,
                               Diagnostics& d);
  Fault fault(uint32_t rank, uint32_t block) const;
  [[nodiscard]] bool read_stamps(std::vector<uint64_t>& words, Diagnostics& d) const;
  [[nodiscard]] bool read_counts(std::vector<uint64_t>& words, Diagnostics& d) const;
  uint8_t* address(uint32_t rank, uint32_t call, uint32_t buffer) const {
    return buffers_.at(rank, call, buffer).address;
  }
  uint64_t bytes(uint32_t rank, uint32_t buffer) const {
    return device_.ranks[rank].buffers[buffer].bytes;
  }

 private:
  uint32_t blocks_of(uint32_t rank) const {
    return static_cast<uint32_t>(device_.ranks[rank].block_begin.size() - 1);
  }
  void mark_early();
  bool upload_context(Diagnostics& d);
  std::vector<BaseAddress> bases_of(uint32_t rank, uint32_t in_call);
  bool plan_launch(Diagnostics& d);
  bool plan_call(uint32_t in_call, Diagnostics& d);
  bool pack_programs(uint32_t in_call, Diagnostics& d);
  Start choose_kernel(uint32_t rank, LaunchPlan& plan);
  bool plan_apart(uint32_t in_call);
  bool fits(Diagnostics& d) const;
  bool run_together(Diagnostics& d) const;
  bool report_faults(Diagnostics& d) const;

  const Program& program_;
  DeviceProgram device_;
  bool marked_early_ = false;
  Call call_;
  Options options_;
  RanksBuffers buffers_;
  RanksExternals externals_;
  RanksFlags flags_;
  RanksSignals signals_;
  RanksPorts ports_;
  std::vector<RanksPrograms::Rank> ranks_;  ///< in the call that was packed last
  RanksPrograms programs_;
  RanksMulticast multicast_;
  std::vector<uint32_t> first_block_;  ///< by rank, among those of all ranks
  uint32_t blocks_ = 0;                ///< of all ranks
  DeviceMemory ends_, context_, stamps_;
  VisibleMemory faults_, abort_, begun_;
  LaunchPlan launch_{};  ///< of all ranks
  RanksApart apart_;     ///< launches of ranks, where each has its own
  uint64_t patience_ = kPatience;
};

void CudaRanks::State::abort() {
  std::atomic_ref(*abort_.data<uint32_t>()).store(1, std::memory_order_relaxed);
}

bool CudaRanks::State::build(Diagnostics& d, RowSteps rows) {
  if (!lower(program_, device_, d, rows)) return false;
  signals_.number_channels(device_);
  for (uint32_t r = 0; r < device_.ranks.size(); ++r) {
    first_block_.push_back(blocks_);
    blocks_ += blocks_of(r);
  }
  return true;
}

bool CudaRanks::State::prepare(const Call& call, const Options& options, Diagnostics& d) {
  call_ = call;
  options_ = options;
  ports_.stop();
  if (options.early) mark_early();
  return abort_.allocate(sizeof(uint32_t), d) && begun_.allocate(sizeof(uint32_t), d) &&
         fit_to_size(device_, program_, call, d) && buffers_.allocate(device_, call, options, d) &&
         externals_.allocate(program_, call, d) && flags_.allocate(program_, d) &&
         signals_.allocate(device_, d) && upload_context(d) && plan_launch(d);
}

/// Marks after which ops the next call may begin.
void CudaRanks::State::mark_early() {
  if (std::exchange(marked_early_, true)) return;
  for (uint32_t r = 0; r < device_.ranks.size(); ++r) {
    mark_early_launch(program_, r, device_.ranks[r]);
  }
}

std::vector<BaseAddress> CudaRanks::State::bases_of(uint32_t rank, uint32_t in_call) {
  std::vector<BaseAddress> bases;
  const std::vector<device::Base>& all = device_.ranks[rank].bases;
  for (const device::Base& b : all) {
    bases.push_back({buffers_.at(b.rank, in_call, b.buffer).address, b.copy_stride, b.copies});
  }
  if (!options_.multicast) return bases;
  for (const DeviceOperand& operand : device_.ranks[rank].operands) {
    if (operand.members < 2) continue;
    std::vector<RankBuffer> members;
    for (uint32_t m = 0; m < operand.members; ++m) {
      const device::Base& b = all[operand.base + m];
      members.push_back(buffers_.at(b.rank, in_call, b.buffer));
    }
    bases[operand.base].multicast = multicast_.address_of(members);
  }
  return bases;
}

/// What all blocks see of their one rank, and then what those of each rank see where it has a
/// launch of its own.
bool CudaRanks::State::upload_context(Diagnostics& d) {
  if (!ends_.upload(signals_.ends(), d) || !ports_.allocate(signals_.channels(), d) ||
      !faults_.allocate(blocks_ * sizeof(Fault), d)) {
    return false;
  }
  RankContext made{};
  made.channels = ends_.data<ChannelEnd>();
  made.queue = ports_.queue();
  made.faults = faults_.data<Fault>();
  made.abort = abort_.data<uint32_t>();
  std::vector<RankContext> contexts{made};
  // Launches of one rank number its blocks from 0.
  for (const uint32_t first : first_block_) {
    contexts.push_back(made);
    contexts.back().faults += first;
  }
  return context_.upload(contexts, d);
}

bool CudaRanks::State::plan_launch(Diagnostics& d) {
  multicast_.clear();
  apart_.clear();
  programs_.clear(options_.calls, options_.first_call);
  for (uint32_t c = options_.calls; c-- > 0;) {  // launch_ stays that of the first
    if (!plan_call(c, d)) return false;
  }
  return fits(d);
}

bool CudaRanks::State::plan_call(uint32_t in_call, Diagnostics& d) {
  launch_ = {};
  launch_.context = context_.data<RankContext>();
  launch_.blocks = blocks_;
  launch_.threads = std::min({program_.launch.threads, options_.threads, kThreads});
  static_cast<Call&>(launch_) = call_;
  launch_.patience = patience_;
  launch_.early = options_.early;
  if (options_.counts_begun) launch_.begun = begun_.data<uint32_t>();
  launch_.frees_next = (options_.frees_next >> in_call & 1) != 0;
  if (!pack_programs(in_call, d)) return false;
  if (options_.stamp_words != 0) {
    const uint64_t bytes = uint64_t{blocks_} * options_.stamp_words * sizeof(uint64_t);
    // All calls write to the same rows.
    const bool is_first_planned = in_call + 1 == options_.calls;
    if (is_first_planned && !stamps_.allocate(bytes, d)) return false;
    launch_.stamps = stamps_.data<uint64_t>();
    launch_.stamp_words = options_.stamp_words;
  }
  if (options_.generic) launch_.uses |= device::kUsesAll & ~uint32_t{device::kUsesTrees};
  if ((options_.in_short || options_.apart) && !plan_apart(in_call)) apart_.clear();
  return true;
}

bool CudaRanks::State::pack_programs(uint32_t in_call, Diagnostics& d) {
  ranks_.clear();
  for (uint32_t r = 0; r < device_.ranks.size(); ++r) {
    ranks_.push_back({bases_of(r, in_call), signals_.semaphores(r), signals_.barriers(r),
                      externals_.places(r), flags_.places(r)});
  }
  return programs_.pack(in_call, device_, ranks_, signals_.ends(), options_.carried, launch_, d);
}

CudaRanks::Start CudaRanks::State::choose_kernel(uint32_t rank, LaunchPlan& plan) {
  const auto pack = [this, rank](const BlockPrograms::Places& there, BlockPrograms& packed) {
    const RankProgram& program = device_.ranks[rank];
    return packed.pack(program, there, WaitSlots(program), launch_.program_bytes);
  };
  const std::vector<ChannelEnd> ends = signals_.ends();
  const BlockPrograms::Places places = ranks_[rank].places(ends);
  return options_.compiled_kernel({rank, programs_.of_rank(rank), places, pack}, plan);
}

/// The launches of all ranks in a call. False: they are to be one, as some have no short program.
bool CudaRanks::State::plan_apart(uint32_t in_call) {
  for (uint32_t r = 0; r < first_block_.size(); ++r) {
    const uint64_t first = first_block_[r];
    LaunchPlan own = launch_;
    own.context += 1 + r;
    own.blocks = blocks_of(r);
    own.calls += first * launch_.call_counts;
    own.programs += first * launch_.program_bytes;
    if (own.stamps != nullptr) own.stamps += first * launch_.stamp_words;
    Start start = options_.compiled_kernel ? choose_kernel(r, own) : Start{};
    const uint8_t* programs_here = programs_.packed(in_call) + first * launch_.program_bytes;
    const bool shortened = options_.in_short && apart_.add_short(r, in_call, own, programs_here);
    if (shortened) continue;
    if (!options_.apart) return false;
    apart_.add(r, in_call, own, std::move(start));
  }
  return true;
}

// Blocks that wait for one another must all run at once.
bool CudaRanks::State::fits(Diagnostics& d) const {
  if (launch_.blocks == 0) return true;
  int error = 0;
  const uint32_t most = most_resident_blocks(launch_, &error);
  if (!succeeded(static_cast<cudaError_t>(error), "ask how many blocks fit on the device", d)) {
    return false;
  }
  if (launch_.blocks <= most) return true;
  d.error("too-many-blocks", {},
          "the ranks have " + std::to_string(launch_.blocks) + " thread blocks in all; " +
              std::to_string(most) + " run at once on this device");
  return false;
}

/// Without launches of their own, all ranks in one.
bool CudaRanks::State::run_together(Diagnostics& d) const {
  return succeeded(static_cast<cudaError_t>(cuda::launch(launch_, nullptr)),
                   "launch the interpreter", d) &&
         succeeded(cudaStreamSynchronize(nullptr), "run the interpreter", d);
}

bool CudaRanks::State::run_calls(uint32_t calls, const Hook& before, const Hook& after,
                                 Diagnostics& d) {
  ports_.serve(signals_.ends());
#ifdef MSCCLC_ON_HOST
  host::Gpu::get().set_waits_for_host(patience_ == 0);
#endif
  const uint32_t all = apart_.empty() ? 1 : calls * options_.calls;
  for (uint32_t i = 0; i < all && !options_.own_flags; ++i) {
    for (uint32_t r = 0; r < device_.ranks.size(); ++r) flags_.raise_all(r);
  }
  const bool ran =
      apart_.empty() ? run_together(d) : apart_.run(calls, options_.silent, before, after, d);
  const bool served = succeeded(ports_.error(), "serve the ports", d);
  return report_faults(d) && ran && served && flags_.compare(all, d);
}

Fault CudaRanks::State::fault(uint32_t rank, uint32_t block) const {
  Fault f = faults_.data<Fault>()[first_block_[rank] + block];
  const bool channel =
      f.what == WaitFor::signal || f.what == WaitFor::queue || f.what == WaitFor::flush;
  if (channel) f.index -= signals_.first_channel(rank);
  return f;
}

bool CudaRanks::State::report_faults(Diagnostics& d) const {
  bool none = true;
  for (uint32_t r = 0; r < device_.ranks.size(); ++r) {
    for (uint32_t b = 0; b < blocks_of(r); ++b) {
      const Fault f = fault(r, b);
      if (f.what == WaitFor::nothing) continue;
      Diagnostic& error = op_error(
          d, "deadlock", program_, r, program_.ranks[r].ops[f.op],
          std::string("the plan hangs: waits for ") + name(f.what) +
              (f.what == WaitFor::packet ? "" : ' ' + std::to_string(f.index)) + ": expected " +
              std::to_string(f.expected) + ", seen " + std::to_string(f.seen));
      if (f.what == WaitFor::packet) error.notes.push_back({ports_.text()});
      none = false;
    }
  }
  return none;
}

bool CudaRanks::State::read_stamps(std::vector<uint64_t>& words, Diagnostics& d) const {
  words.assign(uint64_t{blocks_} * launch_.stamp_words, 0);
  return words.empty() ||
         succeeded(cudaMemcpy(words.data(), stamps_.data(), words.size() * sizeof(uint64_t),
                              cudaMemcpyDeviceToHost),
                   "read stamps", d);
}

bool CudaRanks::State::read_counts(std::vector<uint64_t>& words, Diagnostics& d) const {
  words.assign(uint64_t{blocks_} * launch_.call_counts, 0);
  return succeeded(cudaMemcpy(words.data(), launch_.calls, words.size() * sizeof(uint64_t),
                              cudaMemcpyDeviceToHost),
                   "read counts", d);
}

CudaRanks::CudaRanks(const Program& program) : state_(std::make_unique<State>(program)) {}
CudaRanks::~CudaRanks() = default;

const Program& CudaRanks::program() const { return state_->program(); }

bool CudaRanks::available() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
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

bool CudaRanks::build(Diagnostics& diagnostics, RowSteps rows) {
  return state_->build(diagnostics, rows);
}

bool CudaRanks::prepare(const Call& call, const Options& options, Diagnostics& diagnostics) {
  return state_->prepare(call, options, diagnostics);
}

void CudaRanks::raise(uint32_t rank, uint32_t flag) { state_->flags().raise(rank, flag); }

uint8_t* CudaRanks::address(uint32_t rank, uint32_t buffer) const {
  return state_->address(rank, 0, buffer);
}

bool CudaRanks::in_short() const { return state_->apart().all_short(); }

bool CudaRanks::has_multicast() const { return state_->has_multicast(); }

bool CudaRanks::has_fast_kernel() const { return cuda::has_fast_kernel(state_->launch()); }

bool CudaRanks::read_counts(std::vector<uint64_t>& words, Diagnostics& diagnostics) const {
  return state_->read_counts(words, diagnostics);
}

bool CudaRanks::read_stamps(std::vector<uint64_t>& words, Diagnostics& diagnostics) const {
  return state_->read_stamps(words, diagnostics);
}

void CudaRanks::set_patience(uint64_t nanoseconds) { state_->set_patience(nanoseconds); }

void CudaRanks::abort() { state_->abort(); }

void CudaRanks::silence(uint32_t rank) { state_->silence(rank); }

uint32_t CudaRanks::begun() const { return state_->begun(); }

device::Fault CudaRanks::fault(uint32_t rank, uint32_t block) const {
  return state_->fault(rank, block);
}

bool CudaRanks::run_calls(uint32_t calls, const Hook& before, const Hook& after,
                          Diagnostics& diagnostics) {
  return state_->run_calls(calls, before, after, diagnostics);
}

bool CudaRanks::run(Diagnostics& diagnostics) {
  return state_->launch().blocks == 0 || run_calls(1, {}, {}, diagnostics);
}

bool CudaRanks::write(uint32_t rank, uint32_t buffer, const uint8_t* from, Diagnostics& diagnostics,
                      uint32_t call) {
  return succeeded(cudaMemcpy(state_->address(rank, call, buffer), from,
                              state_->bytes(rank, buffer), cudaMemcpyHostToDevice),
                   "copy to the device", diagnostics);
}

bool CudaRanks::read(uint32_t rank, uint32_t buffer, uint8_t* to, Diagnostics& diagnostics,
                     uint32_t call) const {
  return succeeded(cudaMemcpy(to, state_->address(rank, call, buffer), state_->bytes(rank, buffer),
                              cudaMemcpyDeviceToHost),
                   "copy from the device", diagnostics);
}

bool CudaRanks::write_external(uint32_t rank, uint32_t external, const uint8_t* from,
                               Diagnostics& diagnostics) {
  return state_->externals().write(rank, external, from, diagnostics);
}

bool CudaRanks::read_external(uint32_t rank, uint32_t external, uint8_t* to,
                              Diagnostics& diagnostics) const {
  return state_->externals().read(rank, external, to, diagnostics);
}

}  // namespace mscclc::cuda
