// The data-direct function of an mlx5 device: a second PCI function, by which the device reaches a
// GPU's memory on a path of its own, past the link between processor and GPU. Its regions are made
// by libmlx5, which is opened at run time as libibverbs is; headers of Debian 12 do not know of it.
#pragma once

#include <string>

#include "ir/support/result.h"
#include "runtime/network/verbs/resources/resources.h"
#include "runtime/support/fd.h"

namespace mscclc::verbs {

struct DataDirect {
  /// mlx5dv_reg_dmabuf_mr()
  using Register = ibv_mr* (*)(ibv_pd* domain, uint64_t offset, size_t bytes, uint64_t address,
                               int file, int access, int mlx5_access);
  Register reg_dmabuf_mr = nullptr;
  std::string path;  ///< of the function, below the system's folder: "/devices/pci0000:00/..."
};

/// Fails where the device has none, or the library knows of none. What was opened stays open, as
/// libibverbs does.
Result<DataDirect> find_data_direct(const Context& context, const std::string& library);

/// As MemoryRegion::make_of_dma_buf(), written and read by the data-direct function: all of a
/// dma-buf's pages from `data` on, which begins a page.
Result<std::shared_ptr<const MemoryRegion>> make_data_direct_region(
    const DataDirect& function, std::shared_ptr<ProtectionDomain> domain, const Fd& file,
    void* data, uint64_t bytes, int access);

}  // namespace mscclc::verbs
