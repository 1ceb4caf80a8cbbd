#include "runtime/network/verbs/resources/data_direct.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <climits>

#include "runtime/support/process/open_library.h"

namespace mscclc::verbs {
namespace {

using IsSupported = bool (*)(ibv_device* device);
using GetPath = int (*)(ibv_context* context, char* path, size_t room);

/// MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT
constexpr int kAccessDataDirect = 1;

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace

Result<DataDirect> find_data_direct(const Context& context, const std::string& library) {
  const auto opened = open_library(library);
  if (!opened) return opened.error();
  const auto is_supported = find<IsSupported>(*opened, "mlx5dv_is_supported");
  const auto get_path = find<GetPath>(*opened, "mlx5dv_get_data_direct_sysfs_path");
  DataDirect found{find<DataDirect::Register>(*opened, "mlx5dv_reg_dmabuf_mr"), {}};
  if (is_supported == nullptr || get_path == nullptr || found.reg_dmabuf_mr == nullptr) {
    return Error{fmt::format(
        "{} knows of no data-direct functions: it is too old, or another library", library)};
  }
  if (!is_supported(context.get()->device)) return Error{context.name() + " is no mlx5 device"};
  std::array<char, PATH_MAX> path{};
  if (const int error = get_path(context.get(), path.data(), path.size()); error != 0) {
    return Error{error == ENODEV ? context.name() + " has no data-direct function"
                                 : fmt::format("the data-direct function of {} cannot be found: {}",
                                               context.name(), error_text(error))};
  }
  path.back() = '\0';
  found.path = path.data();
  return found;
}

Result<std::shared_ptr<const MemoryRegion>> make_data_direct_region(
    const DataDirect& function, std::shared_ptr<ProtectionDomain> domain, const Fd& file,
    void* data, uint64_t bytes, int access) {
  ibv_mr* const region =
      function.reg_dmabuf_mr(domain->get(), 0, bytes, reinterpret_cast<uintptr_t>(data), file.get(),
                             access, kAccessDataDirect);
  if (region != nullptr) return MemoryRegion::own(std::move(domain), region);
  return Error{fmt::format("the data-direct function of {} takes no dma-buf of {} bytes: {}",
                           domain->context()->name(), bytes, error_text(errno))};
}

}  // namespace mscclc::verbs
