// What network devices know of memory of one rank whose device is a GPU: the GPU's own, and pinned
// host memory.
//
// A GPU's memory is registered as a dma-buf where the driver, libibverbs and the network device
// support that, for the device's data-direct function if it has one; otherwise by its address if
// nvidia-peermem is loaded. Where neither is possible, or
// MSCCLC_FORCE_DISABLE_GDR says so, peers write to pinned staging memory of the same size, from
// which the GPU copies what has come (verbs::Arrivals).
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "runtime/devices/cuda/internode/own_allocations.h"
#include "runtime/devices/cuda/memory/memory.h"
#include "runtime/network/exposed_memory.h"
#include "runtime/network/verbs/adapter.h"
#include "runtime/network/verbs/verbs_lane.h"

namespace mscclc::cuda {

/// Thread safety: from any thread.
class VerbsMemory {
 public:
  /// `direct`: may network devices reach the GPU's memory by themselves?
  VerbsMemory(SharedContext context, std::shared_ptr<verbs::Adapter> adapter, bool direct)
      : context_(std::move(context)), adapter_(std::move(adapter)), direct_(direct) {}

  const std::shared_ptr<verbs::Adapter>& adapter() const { return adapter_; }

  struct Exposed {
    DeviceKey key;
    std::unique_ptr<Memory> staging;  ///< nullptr: peers write the memory itself
    std::shared_ptr<const verbs::MemoryRegion> region;
  };
  /// Lets peers write memory while the result lives. nullptr: reported. The first time that staging
  /// is needed is a warning (gpu-memory-staged).
  [[nodiscard]] std::shared_ptr<const Exposed> expose(uint8_t* data, uint64_t bytes,
                                                      MemoryPlace place, Diagnostics& diagnostics);
  /// How the network device reads memory of an allocation.
  [[nodiscard]] verbs::Source source(OwnAllocation& allocation, MemoryPlace place);

  /// GPU memory that the network device reaches by itself.
  struct Direct {
    std::shared_ptr<const verbs::MemoryRegion> region = nullptr;  ///< nullptr: it does not
    uint64_t address = 0;
    bool data_direct = false;  ///< by its data-direct function
    std::string why = {};      ///< otherwise: why not by that
  };
  /// Memory that peers write, for each path of the network device to the GPU: its own function's,
  /// and its data-direct function's. What is written on one is not ordered by what is read on the
  /// other. No region: no memory is written so.
  std::array<Direct, 2> one_of_each_path();
  /// `access`: flags of ibv_access_flags.
  Result<Direct> make_direct(uint8_t* data, uint64_t bytes, int access) const;

 private:
  using Region = std::shared_ptr<const verbs::MemoryRegion>;
  Result<Region> by_data_direct(uint8_t* data, uint64_t bytes, int access) const;
  Result<Region> by_dma_buf(uint8_t* data, uint64_t bytes, int access) const;
  Result<Region> by_address(uint8_t* data, uint64_t bytes, int access) const;
  /// All pages in which these bytes lie.
  Result<Fd> dma_buf(const uint8_t* data, uint64_t bytes, unsigned long long flags) const;
  void add(const Direct& direct);
  [[nodiscard]] std::shared_ptr<const Exposed> stage(uint64_t bytes, const std::string& why,
                                                     Diagnostics& diagnostics);

  const SharedContext context_;
  const std::shared_ptr<verbs::Adapter> adapter_;
  const bool direct_;
  std::mutex mutex_;  ///< for what follows
  bool said_ = false;
  struct Known {
    std::weak_ptr<const verbs::MemoryRegion> region;
    uint64_t address;
    bool data_direct;
  };
  std::vector<Known> directs_;
};

}  // namespace mscclc::cuda
