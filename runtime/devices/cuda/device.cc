#include "runtime/devices/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "executor/short_program.h"
#include "runtime/devices/cuda/compiled_kernels.h"
#include "runtime/devices/cuda/copy_lane.h"
#include "runtime/devices/cuda/launch/graph_end.h"
#include "runtime/devices/cuda/memory/held_memory.h"
#include "runtime/devices/cuda/memory/switch_team.h"
#include "runtime/support/bytes.h"
#include "runtime/support/host_place.h"

namespace mscclc::cuda {
namespace {

bool is_far(const Link& link) { return !link.access && link.lanes; }

abi::Stream stream_of(StreamHandle stream) { return static_cast<abi::Stream>(stream); }

/// Steps with more operands than these are slower in the small kernels from their first access on,
/// so those pay only where a block's way to that access is not hidden by the call before
/// (docs/design/optimizations.md, "The interpreter").
constexpr uint32_t kMaxAfterOwn = 2;

bool is_large_after_own(const device::LaunchPlan& plan) {
  return plan.in_short != nullptr && plan.in_short->operands > kMaxAfterOwn;
}

device::LaunchPlan in_large(const device::LaunchPlan& plan) {
  device::LaunchPlan large = plan;
  large.in_short = nullptr;
  return large;
}

/// Loads the kernels on a GPU, and finds out whether they may begin early there. False: reported.
bool load_interpreter(const PrimaryContext& context, const KernelLauncher& launcher,
                      const CudaOptions& options, EarlyLaunch& early, Diagnostics& diagnostics) {
  const CurrentContext current(context);
  const OutsideCapture outside(context.driver());
  if (!current.is_set(diagnostics)) return false;
  EarlyLaunch able;
  if (const int error = launcher.load(&able); error != 0) {
    diagnostics.error("cuda", {},
                      fmt::format("cannot load the interpreter on cuda:{} ({}): {}",
                                  context.ordinal(), context.model(), launcher.error_text(error)));
    return false;
  }
  if (options.early && context.attribute(abi::kComputeCapabilityMajor) >= 9) early = able;
  early.after_any = options.early_after_any;
  return true;
}

/// KernelLauncher::keep_stack() on a GPU. False: reported.
bool keep_stack(const PrimaryContext& context, const KernelLauncher& launcher,
                Diagnostics& diagnostics) {
  const CurrentContext current(context);
  const OutsideCapture outside(context.driver());
  if (!current.is_set(diagnostics)) return false;
  const int error = launcher.keep_stack();
  if (error == 0) return true;
  diagnostics.error("cuda", {},
                    fmt::format("cannot keep the stack that kernels need on cuda:{} ({}): {}",
                                context.ordinal(), context.model(), launcher.error_text(error)));
  return false;
}

/// What peers learn of a GPU.
std::optional<GpuName> name_for_peers(const PrimaryContext& context, const CudaOptions& options,
                                      const FabricHandles& fabric, Diagnostics& diagnostics) {
  std::optional<GpuName> name = name_of(context, diagnostics);
  if (!name) return std::nullopt;
  name->node = options.node;
  name->fabric = fabric;
  return name;
}

}  // namespace

bool options_from_environment(const Environment& environment, CudaOptions& options,
                              Diagnostics& diagnostics) {
  const auto multicast = environment.number(Variable::MSCCLC_MULTICAST, diagnostics);
  const auto early = environment.number(Variable::MSCCLC_EARLY_LAUNCH, diagnostics);
  if (!multicast || !early) return false;
  options.multicast = *multicast == 1;
  options.early = *early != 0;
  options.early_after_any = *early == 2;
  return true;
}

CudaDevice::CudaDevice(SharedContext context, std::unique_ptr<OwnStream> stream,
                       std::shared_ptr<LaunchOrder> order, bool multicast, EarlyLaunch early,
                       const CudaOptions& options, const HostPlace& place, KernelLauncher launcher,
                       Exchange exchange)
    : context_(std::move(context)),
      stream_(std::move(stream)),
      order_(std::move(order)),
      early_(early),
      options_(options),
      allocator_(context_, *stream_, multicast),
      far_(context_,
           text_of(place,
                   options.node == GpuName::kWhole ? std::nullopt : std::optional(options.node)),
           own_),
      launcher_(std::move(launcher)),
      exchange_(std::move(exchange)),
      gemms_(*this, context_, launcher_.gemm, launcher_.error_text) {}

std::unique_ptr<CudaDevice> CudaDevice::open(const Driver& driver, const CudaOptions& options,
                                             KernelLauncher launcher, Exchange exchange,
                                             Diagnostics& diagnostics) {
  SharedContext context = PrimaryContext::open(driver, options.ordinal, diagnostics);
  if (context == nullptr) return nullptr;
  // Urgent: it must not queue up after calls that wait for other ranks.
  std::unique_ptr<OwnStream> stream = OwnStream::create(context, diagnostics, true);
  if (stream == nullptr) return nullptr;
  auto order = LaunchOrder::of(context, *stream, diagnostics);
  const std::optional<HostPlace> place = this_host_place(diagnostics);
  EarlyLaunch early;
  if (order == nullptr || !place ||
      !load_interpreter(*context, launcher, options, early, diagnostics)) {
    return nullptr;
  }
  const bool multicast = options.multicast && driver.has_multicast() &&
                         context->attribute(abi::kMulticastSupported) != 0;
  return std::unique_ptr<CudaDevice>(
      new CudaDevice(std::move(context), std::move(stream), std::move(order), multicast, early,
                     options, *place, std::move(launcher), std::move(exchange)));
}

std::string CudaDevice::name() const {
  return fmt::format("cuda:{} ({})", context_->ordinal(), context_->model());
}

bool CudaDevice::bind_thread(Diagnostics& diagnostics) {
  return context_->ok(context_->driver().CtxSetCurrent(context_->handle()),
                      fmt::format("make cuda:{} current", context_->ordinal()), diagnostics);
}

std::optional<std::vector<uint8_t>> CudaDevice::link_name(Diagnostics& diagnostics) {
  fabric_.made = allocator_.makes_fabric_handles();
  std::optional<GpuName> name = name_for_peers(*context_, options_, fabric_, diagnostics);
  if (!name) return std::nullopt;
  if (fabric_.made) name->fabric.joined = fabric_.joined = options_.fabric(name->uuid);
  return encode(*name);
}

std::optional<Link> CudaDevice::link_to(std::span<const uint8_t> peer, Diagnostics& diagnostics) {
  const std::optional<GpuName> name = decode_name(peer);
  if (!name) {
    diagnostics.error("bad-message", {}, "a peer does not name a GPU; is its device another kind?");
    return std::nullopt;
  }
  const std::optional<GpuName> own = name_for_peers(*context_, options_, fabric_, diagnostics);
  if (!own) return std::nullopt;
  if (are_far(*own, *name)) far_.join();
  return find_link(*context_, *own, *name, options_.nvml, diagnostics);
}

std::unique_ptr<Memory> CudaDevice::allocate(uint64_t bytes, const std::string& what,
                                             Diagnostics& diagnostics) {
  return own_->add(allocator_.allocate(bytes, what, diagnostics));
}

std::unique_ptr<Memory> CudaDevice::allocate_visible(uint64_t bytes, const std::string& what,
                                                     Diagnostics& diagnostics) {
  return own_->add(allocate_pinned(context_, bytes, what, diagnostics));
}

std::unique_ptr<HeldMemory> CudaDevice::hold_memory(const void* address, uint64_t bytes,
                                                    Diagnostics& diagnostics) {
  return cuda::hold_memory(context_, address, bytes, diagnostics);
}

std::optional<MemoryHandle> CudaDevice::export_memory(const void* address, uint64_t bytes,
                                                      Diagnostics& diagnostics) {
  if (!far_.joined()) {
    return cuda::export_memory(context_, exchange_, address, bytes, diagnostics);
  }
  Diagnostics said;
  auto handle = cuda::export_memory(context_, exchange_, address, bytes, said);
  const auto place = place_of(*context_, address, said);
  for (const Diagnostic& d : said.all()) {
    // Host memory is for lanes.
    const bool known = d.code == "shared-in-process-only" && place == MemoryPlace::host;
    if (!known) diagnostics.add(d);
  }
  if (!handle || !place || !far_.expose(address, bytes, *handle, diagnostics)) {
    return std::nullopt;
  }
  return handle;
}

std::unique_ptr<Memory> CudaDevice::import_memory(const MemoryHandle& handle,
                                                  Diagnostics& diagnostics) {
  return cuda::import_memory(context_, exchange_, handle, diagnostics);
}

std::unique_ptr<Memory> CudaDevice::reach_memory(const MemoryHandle& handle,
                                                 Diagnostics& diagnostics) {
  std::unique_ptr<Memory> memory;
  if (!far_.reach(handle, memory, diagnostics)) return nullptr;
  return memory != nullptr ? std::move(memory) : import_memory(handle, diagnostics);
}

bool CudaDevice::write(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) {
  return stream_->copy(
      to, from, bytes, [&] { return fmt::format("copy {} bytes to {}", bytes, name()); },
      diagnostics);
}

bool CudaDevice::read(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) {
  return stream_->copy(
      to, from, bytes, [&] { return fmt::format("copy {} bytes from {}", bytes, name()); },
      diagnostics);
}

bool CudaDevice::copy(void* to, const void* from, uint64_t bytes, StreamHandle stream,
                      Diagnostics& diagnostics) {
  if (bytes == 0) return true;
  const CurrentContext current(*context_);
  return current.is_set(diagnostics) &&
         context_->ok(
             context_->driver().MemcpyAsync(address_of(to), address_of(from), bytes,
                                            stream_of(stream)),
             [&] { return fmt::format("copy {} bytes on {}", bytes, name()); }, diagnostics);
}

bool CudaDevice::scale(const Scaling& what, StreamHandle stream, Diagnostics& diagnostics) {
  if (what.count == 0) return true;
  const CurrentContext current(*context_);
  if (!current.is_set(diagnostics)) return false;
  const int error = launcher_.scale(what, stream);
  if (error == 0) return true;
  diagnostics.error("cuda", {},
                    fmt::format("cannot scale {} elements on {}: {}", what.count, name(),
                                launcher_.error_text(error)));
  return false;
}

void CudaDevice::set_timeout(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kLongest{std::numeric_limits<int>::max()};
  exchange_.wait.timeout = std::min(timeout, kLongest);
}

void CudaDevice::set_end_of_waits(std::function<bool()> over) {
  exchange_.wait.over = std::move(over);
}

// Ranks of one process have the GPU's context in common.
std::vector<uint8_t> CudaDevice::room() const {
  std::vector<uint8_t> name(exchange_.process.begin(), exchange_.process.end());
  ByteWriter writer(name);
  writer.number(reinterpret_cast<uintptr_t>(context_->handle()));
  return name;
}

std::string CudaDevice::architecture() const { return architecture_of(*context_); }
uint32_t CudaDevice::multiprocessors() const {
  return static_cast<uint32_t>(context_->attribute(abi::kMultiprocessorCount));
}

Result<std::unique_ptr<CompiledKernels>> CudaDevice::load_kernels(std::span<const uint8_t> image) {
  auto loaded = CudaCompiledKernels::load(*this, image);
  if (!loaded) return loaded.error();
  return *std::move(loaded);
}

Result<uint32_t> CudaDevice::most_resident_blocks(const CompiledKernel& own,
                                                  const device::LaunchPlan& plan) const {
  if (own.function != nullptr) return cuda::most_resident_blocks(*context_, own, plan);
  int number = 0;
  uint32_t most = launcher_.most_resident_blocks(plan, &number);
  if (number == 0 && is_large_after_own(plan)) {  // either kernel may run it
    most = std::min(most, launcher_.most_resident_blocks(in_large(plan), &number));
  }
  if (number != 0) return Error{launcher_.error_text(number)};
  return most;
}

Result<void> CudaDevice::start(const CompiledKernel& own, const device::LaunchPlan& placed,
                               StreamHandle stream) {
  if (own.function != nullptr) return start_kernel(*context_, own, placed, stream_of(stream));
  const bool large = placed.early && is_large_after_own(placed);
  const int error = launcher_.launch(large ? in_large(placed) : placed, stream);
  if (error != 0) return Error{launcher_.error_text(error)};
  return {};
}

std::optional<uint32_t> CudaDevice::fits(const device::LaunchPlan& plan, Diagnostics& diagnostics) {
  return fits({}, plan, diagnostics);
}

bool CudaDevice::launch(const device::LaunchPlan& plan, StreamHandle stream,
                        Diagnostics& diagnostics) {
  return launch({}, plan, stream, diagnostics);
}

std::optional<uint32_t> CudaDevice::fits(const CompiledKernel& own, const device::LaunchPlan& plan,
                                         Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  if (!current.is_set(diagnostics)) return std::nullopt;
  const auto asked = most_resident_blocks(own, plan);
  if (!asked) {
    diagnostics.error("cuda", {},
                      fmt::format("cannot ask {} how many blocks of {} threads it holds: {}",
                                  name(), plan.threads, asked.error().text()));
    return std::nullopt;
  }
  const uint32_t most = *asked;
  const uint32_t each = most / plan.ranks_here;
  if (plan.blocks <= each) return most;
  const std::string sharing =
      plan.ranks_here == 1 ? "" : fmt::format(" for {} ranks", plan.ranks_here);
  Diagnostic& d = diagnostics.error(
      "too-many-blocks", {},
      fmt::format("the plan has {} thread blocks of {} threads for {}, which holds {} at once{}; "
                  "thread blocks wait for one another, so all must be there",
                  plan.blocks, plan.threads, name(), most, sharing));
  d.notes.push_back({"compile the plan with fewer blocks, instances or threads"});
  if (each > 0) {
    d.notes.push_back(
        {fmt::format("for all of the library: 'mscclc library --max-thread-blocks {}'", each)});
  }
  return std::nullopt;
}

bool CudaDevice::launch(const CompiledKernel& own, const device::LaunchPlan& plan,
                        StreamHandle stream, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  if (!current.is_set(diagnostics)) return false;
  device::LaunchPlan placed = plan;
  LaunchOrder::OrderedLaunch turn;
  const KnownStream known = std::exchange(*known_, {});
  if (known.handle == stream_of(stream)) turn.stream_id = known.id;
  if (!order_->take_turn(stream_of(stream), early_, placed, turn, diagnostics)) return false;
  const auto started = start(own, placed, stream);
  if (started) return order_->launched(turn, diagnostics);
  diagnostics.error("cuda", {},
                    fmt::format("cannot launch {} on {} ({} blocks of {} threads): {}",
                                own.function != nullptr ? "the plan's kernel" : "the interpreter",
                                name(), plan.blocks, plan.threads, started.error().text()));
  return false;
}

bool CudaDevice::synchronize(StreamHandle stream, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  return current.is_set(diagnostics) &&
         context_->ok(
             context_->driver().StreamSynchronize(stream_of(stream)),
             [&] { return "run what was launched on " + name(); }, diagnostics);
}

bool CudaDevice::drain(Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  return current.is_set(diagnostics) &&
         context_->wait_for_all("run what was launched on " + name(), diagnostics);
}

bool CudaDevice::mark(StreamHandle stream, std::unique_ptr<StreamMark>& mark,
                      Diagnostics& diagnostics) {
  if (mark == nullptr) mark = OwnEvent::create(context_, diagnostics);
  return mark != nullptr && static_cast<OwnEvent&>(*mark).record(stream_of(stream), diagnostics);
}

bool CudaDevice::record_event(void* event, StreamHandle stream, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  return current.is_set(diagnostics) &&
         context_->ok(
             context_->driver().EventRecord(static_cast<abi::Event>(event), stream_of(stream)),
             "record the caller's event", diagnostics);
}

std::unique_ptr<StreamChain> CudaDevice::chain_streams(Replays replays, Diagnostics&) {
  return std::make_unique<CudaStreamChain>(context_, replays, known_);
}

bool CudaDevice::is_capturing(StreamHandle stream) {
  const CurrentContext current(*context_);
  int status = abi::kCaptureStatusNone;
  return !current.is_set() ||
         context_->driver().StreamIsCapturing(stream_of(stream), &status) != abi::kSuccess ||
         status != abi::kCaptureStatusNone;
}

bool CudaDevice::at_end_of_graph(StreamHandle stream, std::function<void()> gone) {
  const CurrentContext current(*context_);
  return current.is_set() && cuda::at_end_of_graph(*context_, stream_of(stream), std::move(gone));
}

StreamHandle CudaDevice::create_stream(Diagnostics& diagnostics) {
  const std::unique_ptr<OwnStream> stream = OwnStream::create(context_, diagnostics);
  return stream == nullptr ? nullptr : stream->release();
}

void CudaDevice::destroy_stream(StreamHandle stream) {
  if (stream == nullptr) return;
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  context_->driver().StreamDestroy(stream_of(stream));
}

std::unique_ptr<LaneEnd> CudaDevice::await_lane(const LanePeer& peer, Diagnostics& diagnostics) {
  if (!is_far(peer.link)) return std::make_unique<LaneEnd>();
  return far_.await_lane(peer, diagnostics);
}

std::unique_ptr<Lane> CudaDevice::open_lane(const LanePeer& peer, Diagnostics& diagnostics) {
  if (!keep_stack(*context_, launcher_, diagnostics)) return nullptr;
  if (is_far(peer.link)) return far_.open_lane(peer, exchange_.wait.timeout, diagnostics);
  return CudaLane::open(context_, diagnostics);
}

bool CudaDevice::join_switch(Bootstrap& bootstrap, const std::vector<uint32_t>& members,
                             const std::vector<SwitchRegion>& regions,
                             std::unique_ptr<SwitchTeam>& team, Diagnostics& diagnostics) {
  return join_multicast({bootstrap, context_, exchange_, may_multicast(), members, regions}, team,
                        diagnostics);
}

}  // namespace mscclc::cuda
