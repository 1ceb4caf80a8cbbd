// A multicast object: addresses at which the switch between GPUs reads and writes memory of all
// members of a team at once (NVLink SHARP; multimem instructions).
//
// Only ever used if the user asks and GPU and driver have it: CudaOptions::multicast. What the
// CUDA driver API says (group "Multicast Object Management", CUDA 13.0; cuda.h has the same text)
// and what follows from it here:
//
//   cuMulticastAddDevice   "All devices must be added to the multicast team before memory can be
//                          bound to any device in the team", and before the object is mapped: the
//                          calls would block. So ranks agree after this step, and go on only if
//                          all have done it (switch_team.h).
//   cuMulticastBindMem     size and both offsets are multiples of the minimum granularity.
//   "Externally
//                          shareable as well as imported multicast objects can be bound only to
//                          externally shareable memory": memory without a handle type cannot.
//   cuMemMap               its offset must be 0, for multicast objects too: the whole object is
//                          mapped once, at 0, and what is bound at offset x lies at address() + x.
//                          (Mapping each binding for itself gave every channel the first one's
//                          memory: mscclpp issue 535, pull request 759.)
//   cuMulticastUnbind      offset and size as they were bound.
//   cuMemRelease           the handle of cuMulticastCreate is a reference like those of imports:
//   each
//                          is released once (mscclpp pull request 759: 120 rounds without, and the
//                          memory was gone).
#pragma once

#include <vector>

#include "ir/support/precondition.h"
#include "runtime/devices/cuda/driver/vmm.h"

namespace mscclc::cuda {

class MulticastObject {
 public:
  /// The first of a team of `devices` GPUs makes the object: `bytes` bytes (whole granules).
  /// nullptr: reported.
  [[nodiscard]] static std::unique_ptr<MulticastObject> create(const SharedContext& context,
                                                               uint32_t devices, uint64_t bytes,
                                                               int& handle_types,
                                                               Diagnostics& diagnostics);
  /// The others import it.
  MulticastObject(SharedContext context, HandleReference reference, uint64_t bytes)
      : context_(std::move(context)), reference_(std::move(reference)), bytes_(bytes) {}
  ~MulticastObject();
  MulticastObject(const MulticastObject&) = delete;
  MulticastObject& operator=(const MulticastObject&) = delete;

  const HandleReference& reference() const { return reference_; }
  /// Makes the context's GPU a member.
  [[nodiscard]] bool add_device(Diagnostics& diagnostics);
  /// Binds memory of that GPU at `offset`. REQUIRES: all members have been added.
  [[nodiscard]] bool bind(const HandleReference& memory, uint64_t memory_offset, uint64_t bytes,
                          uint64_t offset, Diagnostics& diagnostics);
  /// Maps the object. REQUIRES: all members have been added.
  [[nodiscard]] bool map(uint64_t granule, Diagnostics& diagnostics);
  /// Of offset 0, for multimem instructions only. REQUIRES: map().
  abi::Address address() const {
    precondition(static_cast<bool>(mapping_));
    return mapping_.address();
  }

 private:
  struct Binding {
    uint64_t offset, bytes;
  };
  SharedContext context_;
  HandleReference reference_;
  uint64_t bytes_;
  std::vector<Binding> bindings_;
  Mapping mapping_;
};

/// The least common granule of sizes, offsets and addresses of a multicast object. 0: reported.
[[nodiscard]] uint64_t multicast_granule(const PrimaryContext& context, uint32_t devices,
                                         Diagnostics& diagnostics);

}  // namespace mscclc::cuda
