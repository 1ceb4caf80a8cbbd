// Allocation handles that go to another process: as file descriptors, as fabric handles. For
// memory and for multicast objects alike.
#pragma once

#include "runtime/devices/cuda/memory/exchange.h"

namespace mscclc::cuda {

/// What the offers of a handle refer to, for MemoryHandle::keep. A descriptor keeps its allocation
/// alive by itself; a fabric handle does not (mscclpp pull request 764 is what comes of
/// forgetting that), so the exporter's reference stays until the last importer has come.
class KeptOffers {
 public:
  KeptOffers() = default;
  KeptOffers(const KeptOffers&) = delete;
  KeptOffers& operator=(const KeptOffers&) = delete;
  ~KeptOffers();

  /// Adds offers of an allocation in all of `types` (abi::HandleType bits) that work; `refused`
  /// says why others do not.
  void offer(const HandleReference& reference, int types, const SharedContext& context,
             const Exchange& exchange, MemoryHandle& handle, Diagnostics& refused);
  /// Lets a process that knows the ticket fetch a descriptor, as long as this lives. Empty:
  /// reported.
  std::vector<uint8_t> lend(const Fd& fd, const Exchange& exchange, const MemoryRange& range,
                            Diagnostics& refused);
  /// Keeps a reference as long as the offers.
  void keep(HandleReference reference) { reference_ = std::move(reference); }
  /// A ticket for threads of this process.
  const std::vector<uint8_t>& own(const OfferedMemory& memory) {
    own_.emplace(memory);
    return own_->bytes();
  }

 private:
  void offer_fd(abi::Handle exported, const SharedContext& context, const Exchange& exchange,
                MemoryHandle& handle, Diagnostics& refused);

  HandleReference reference_;
  std::shared_ptr<FdServer> server_;
  std::vector<uint8_t> ticket_;
  std::optional<KeptTicket> own_;
};

/// A reference of this process's own to what a cuda_fd or cuda_fabric offer of `handle` names.
/// Empty: reported.
[[nodiscard]] HandleReference import_reference(const SharedContext& context,
                                               const Exchange& exchange, const MemoryHandle& handle,
                                               const Offer& offer, Diagnostics& diagnostics);

}  // namespace mscclc::cuda
