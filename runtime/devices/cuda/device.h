// A GPU as the runtime's Device. One object per rank; several, for one GPU or more, may live in one
// process, and several threads may call one.
//
//   const Driver* driver = load_driver(diagnostics);
//   auto device = CudaDevice::open(*driver, {.ordinal = local_rank}, launcher, exchange,
//   diagnostics);
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/launch.h"
#include "ir/support/result.h"
#include "runtime/api/device.h"
#include "runtime/devices/cuda/gemm/cuda_gemms.h"
#include "runtime/devices/cuda/internode/far_nodes.h"
#include "runtime/devices/cuda/internode/own_allocations.h"
#include "runtime/devices/cuda/launch/launch_order.h"
#include "runtime/devices/cuda/launch/stream_chain.h"
#include "runtime/devices/cuda/links/links.h"
#include "runtime/devices/cuda/links/nvml.h"
#include "runtime/devices/cuda/memory/exchange.h"
#include "runtime/devices/cuda/memory/memory.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/memory/handle.h"

namespace mscclc::cuda {

/// The kernel, which is compiled by nvcc elsewhere (executor/cuda). Functions are called with the
/// GPU's context current; errors are numbers of cudaError_t, 0: none.
struct KernelLauncher {
  /// Loads all kernels, which would else happen at a launch, and says whether they can begin early.
  std::function<int(EarlyLaunch* early)> load;
  /// Before copies by the host: so that no launch waits for kernels that wait for such copies.
  std::function<int()> keep_stack;
  /// Starts a call; does not wait.
  std::function<int(const device::LaunchPlan& plan, void* stream)> launch;
  /// Blocks of plan.threads threads that the GPU holds at once of the kernel that runs `plan`; 0
  /// and an error where it cannot run it.
  std::function<uint32_t(const device::LaunchPlan& plan, int* error)> most_resident_blocks;
  /// Multiplies elements; does not wait.
  std::function<int(const Scaling& what, void* stream)> scale;
  GemmKernels gemm = {};
  std::function<std::string(int error)> error_text;
};

struct CudaOptions {
  int ordinal = 0;
  /// Switch channels may use multicast. Only ever true because the user asks: see
  /// options_from_environment().
  bool multicast = false;
  /// Launches may begin early (LaunchPlan::early) on GPUs that can do that ...
  bool early = true;
  bool early_after_any = false;  ///< ... EarlyLaunch::after_any
  /// Of the nodes into which the machine is divided, for trials; kWhole: it is not.
  uint32_t node = GpuName::kWhole;
  /// Answers for GPUs that CUDA_VISIBLE_DEVICES hides from this process.
  AskNvml nvml = ask_nvml;
  AskFabric fabric = ask_fabric;
  KernelMaker* kernels = nullptr;  ///< Device::kernel_maker()
};

/// What the user asks for by MSCCLC_MULTICAST and MSCCLC_EARLY_LAUNCH. Errors (bad-variable).
[[nodiscard]] bool options_from_environment(const Environment& environment, CudaOptions& options,
                                            Diagnostics& diagnostics);

/// A kernel that was compiled for the plan of a call, and its second parameter.
struct CompiledKernel {
  abi::Function function = nullptr;  ///< nullptr: there is none
  const void* arguments = nullptr;
  uint32_t cluster = 1;  ///< CUDA blocks that run each of the plan's blocks
};

class CudaDevice final : public Device {
 public:
  /// nullptr: reported. `driver` stays valid to the process's end.
  [[nodiscard]] static std::unique_ptr<CudaDevice> open(const Driver& driver,
                                                        const CudaOptions& options,
                                                        KernelLauncher launcher, Exchange exchange,
                                                        Diagnostics& diagnostics);

  std::string name() const override;
  bool bind_thread(Diagnostics& diagnostics) override;
  void set_timeout(std::chrono::milliseconds timeout) override;
  std::optional<std::vector<uint8_t>> link_name(Diagnostics& diagnostics) override;
  std::optional<Link> link_to(std::span<const uint8_t> peer, Diagnostics& diagnostics) override;
  void set_end_of_waits(std::function<bool()> over) override;

  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override;
  std::unique_ptr<Memory> allocate_visible(uint64_t bytes, const std::string& what,
                                           Diagnostics& diagnostics) override;
  std::unique_ptr<HeldMemory> hold_memory(const void* address, uint64_t bytes,
                                          Diagnostics& diagnostics) override;
  std::optional<MemoryHandle> export_memory(const void* address, uint64_t bytes,
                                            Diagnostics& diagnostics) override;
  std::unique_ptr<Memory> import_memory(const MemoryHandle& handle,
                                        Diagnostics& diagnostics) override;
  std::unique_ptr<Memory> reach_memory(const MemoryHandle& handle,
                                       Diagnostics& diagnostics) override;

  /// On a stream of the device's own: nothing else may touch the range meanwhile.
  bool write(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) override;
  bool read(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) override;
  bool copy(void* to, const void* from, uint64_t bytes, StreamHandle stream,
            Diagnostics& diagnostics) override;
  bool scale(const Scaling& what, StreamHandle stream, Diagnostics& diagnostics) override;

  std::optional<uint32_t> fits(const device::LaunchPlan& plan, Diagnostics& diagnostics) override;
  bool carries_programs() const override { return true; }
  bool launches_early() const override { return early_.works; }
  std::vector<uint8_t> room() const override;
  std::string architecture() const override;
  uint32_t multiprocessors() const override;
  bool may_multicast() const override { return allocator_.multicast(); }
  /// See docs/design/devices.md, "Copies by the host".
  uint32_t max_copy_calls() const override { return 8; }
  Result<std::unique_ptr<CompiledKernels>> load_kernels(std::span<const uint8_t> image) override;
  KernelMaker* kernel_maker() override { return options_.kernels; }
  bool launch(const device::LaunchPlan& plan, StreamHandle stream,
              Diagnostics& diagnostics) override;
  GemmStreams* gemms() override { return &gemms_; }
  bool synchronize(StreamHandle stream, Diagnostics& diagnostics) override;
  /// Fails while a stream of the GPU is captured: PrimaryContext::wait_for_all().
  bool drain(Diagnostics& diagnostics) override;
  bool record_event(void* event, StreamHandle stream, Diagnostics& diagnostics) override;
  bool mark(StreamHandle stream, std::unique_ptr<StreamMark>& mark,
            Diagnostics& diagnostics) override;
  std::unique_ptr<StreamChain> chain_streams(Replays replays, Diagnostics& diagnostics) override;
  /// True too where the driver does not say.
  bool is_capturing(StreamHandle stream) override;
  bool at_end_of_graph(StreamHandle stream, std::function<void()> gone) override;
  StreamHandle create_stream(Diagnostics& diagnostics) override;
  void destroy_stream(StreamHandle stream) override;

  std::unique_ptr<LaneEnd> await_lane(const LanePeer& peer, Diagnostics& diagnostics) override;
  std::unique_ptr<Lane> open_lane(const LanePeer& peer, Diagnostics& diagnostics) override;
  bool join_switch(Bootstrap& bootstrap, const std::vector<uint32_t>& members,
                   const std::vector<SwitchRegion>& regions, std::unique_ptr<SwitchTeam>& team,
                   Diagnostics& diagnostics) override;

  /// fits() and launch() of a call that a kernel of its plan runs; without one: the interpreter.
  std::optional<uint32_t> fits(const CompiledKernel& own, const device::LaunchPlan& plan,
                               Diagnostics& diagnostics);
  bool launch(const CompiledKernel& own, const device::LaunchPlan& plan, StreamHandle stream,
              Diagnostics& diagnostics);

  const SharedContext& context() const { return context_; }

 private:
  /// Starts a launch that has its place: it has begun, or will.
  Result<void> start(const CompiledKernel& own, const device::LaunchPlan& placed,
                     StreamHandle stream);
  /// Blocks like the plan's that the GPU holds at once.
  Result<uint32_t> most_resident_blocks(const CompiledKernel& own,
                                        const device::LaunchPlan& plan) const;
  CudaDevice(SharedContext context, std::unique_ptr<OwnStream> stream,
             std::shared_ptr<LaunchOrder> order, bool multicast, EarlyLaunch early,
             const CudaOptions& options, const HostPlace& place, KernelLauncher launcher,
             Exchange exchange);

  const SharedContext context_;
  const std::unique_ptr<OwnStream> stream_;
  const std::shared_ptr<LaunchOrder> order_;
  const std::shared_ptr<KnownStream> known_ = std::make_shared<KnownStream>();
  const EarlyLaunch early_;
  const CudaOptions options_;
  FabricHandles fabric_;  ///< what link_name() has found
  Allocator allocator_;
  const std::shared_ptr<OwnAllocations> own_ = std::make_shared<OwnAllocations>();
  FarNodes far_;
  const KernelLauncher launcher_;
  Exchange exchange_;
  CudaGemms gemms_;
};

}  // namespace mscclc::cuda
