// Memory handles of CUDA: what a process offers of a piece of memory, and how another maps it.
//
//   kind           of which memory                       what the importer needs
//   same_process   any that the GPU sees                 to be in the exporter's process
//   cuda_fd        VMM with the POSIX descriptor type    a unix socket to the exporter
//   cuda_fabric    VMM with the fabric type              the same IMEX channel
//   cuda_ipc       cudaMalloc                            the same machine, and namespaces
//
// The exporter offers all that it can; the importer takes the first that works.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/api/device.h"
#include "runtime/devices/cuda/driver/vmm.h"
#include "runtime/support/memory/fd_server.h"
#include "runtime/support/memory/handle.h"
#include "runtime/support/memory/tickets.h"

namespace mscclc::cuda {

/// What handles need of the process.
struct Exchange {
  using ProcessId = std::array<uint8_t, 16>;
  using FetchFd = std::function<Fd(const std::vector<uint8_t>& ticket, const MemoryRange& wanted,
                                   const FetchWait& wait, Diagnostics& diagnostics)>;

  ProcessId process;                 ///< differs for every process; see this_process()
  std::shared_ptr<FdServer> server;  ///< nullptr: no descriptors are offered
  FetchFd fetch;                     ///< fetch_fd(), except in tests
  FetchWait wait = {};               ///< for a descriptor to come
};

/// A random number with this process's id: another one after fork().
Exchange::ProcessId this_process();
/// With a server of descriptors of its own. Several devices of a process may share one (copies).
/// Empty: reported.
[[nodiscard]] std::optional<Exchange> make_exchange(Diagnostics& diagnostics);

/// Offers `bytes` bytes at `address`, of any allocator. Errors (cannot-share): not memory of CUDA,
/// of another GPU than the context's, managed, or in more than one allocation. Warns
/// (shared-in-process-only) where only threads of this process will be able to map it, with the
/// reasons.
[[nodiscard]] std::optional<MemoryHandle> export_memory(const SharedContext& context,
                                                        const Exchange& exchange,
                                                        const void* address, uint64_t bytes,
                                                        Diagnostics& diagnostics);

/// Maps a peer's piece for the GPU of `context`. nullptr: cannot-map, with a note per offer.
/// Of memory in the same process that is not VMM, or lies on the same GPU, data() is the exporter's
/// own address. What the runtime has allocated lives as long as this does; other memory at such an
/// address must live longer. Other mappings may outlive the exporter's.
[[nodiscard]] std::unique_ptr<Memory> import_memory(const SharedContext& context,
                                                    const Exchange& exchange,
                                                    const MemoryHandle& handle,
                                                    Diagnostics& diagnostics);

/// What a same_process offer stands for: its bytes are the process's id and a ticket.
struct InProcess {
  enum class Kind : uint8_t { mapped, plain, host };

  abi::Address base;  ///< of the allocation
  int32_t ordinal;    ///< the GPU that it lies on
  Kind kind;
};

}  // namespace mscclc::cuda
