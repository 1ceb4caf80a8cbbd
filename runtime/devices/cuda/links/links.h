// What joins two GPUs (runtime/core/device/links.h), as far as the driver and NVML know. Ranks
// exchange the UUIDs of their GPUs, as each process may number them otherwise, or see only its own.
//
//   the peer's GPU ...               access, native atomics        NVLink
//   is this one                      yes                           as good
//   is visible to this process       the driver's attributes       where atomics are native: PCIe
//   has
//                                                                  none
//   is hidden from it                NVML                          NVML
//   is hidden, and there is no NVML  import will show; no atomics  taken for PCIe, with a warning
//   is elsewhere (HostPlace)         memory comes by fabric,       yes: nothing else maps it
//                                    where both GPUs can do that,
//                                    and are in one, says NVML
//   is another node's otherwise      none: lanes lead there        PCIe
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/device/links.h"
#include "runtime/devices/cuda/driver/context.h"
#include "runtime/devices/cuda/links/nvml.h"
#include "runtime/support/host_place.h"

namespace mscclc::cuda {

/// What handles for a fabric a GPU's memory has.
struct FabricHandles {
  bool made = false;
  std::optional<Fabric> joined = {};  ///< to which GPUs of other machines they lead
};

/// A GPU among all machines, and where its rank is.
struct GpuName {
  static constexpr uint32_t kWhole = UINT32_MAX;
  HostPlace place;
  abi::Uuid uuid;
  uint32_t node =
      kWhole;  ///< the place is divided into nodes, for trials: which; kWhole: it is not
  FabricHandles fabric = {};
};
/// The GPU of a context. nullopt: reported.
std::optional<GpuName> name_of(const PrimaryContext& context, Diagnostics& diagnostics);
std::vector<uint8_t> encode(const GpuName& name);
/// nullopt: it is not one.
std::optional<GpuName> decode_name(std::span<const uint8_t> from);

/// "GPU-00112233-4455-6677-8899-aabbccddeeff", as nvidia-smi writes it.
std::string text_of(const abi::Uuid& uuid, std::string_view kind = "GPU");

/// Are two ranks on different nodes, so that only lanes lead from one to the other?
bool are_far(const GpuName& own, const GpuName& peer);
/// What joins the GPU of `context`, which is `own`, to another. nullopt: reported. Warns
/// (unknown-link).
std::optional<Link> find_link(const PrimaryContext& context, const GpuName& own,
                              const GpuName& peer, const AskNvml& nvml, Diagnostics& diagnostics);

}  // namespace mscclc::cuda
