// The functions of libmlx5, for fake devices that have data-direct functions.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tests/fakes/verbs/objects.h"

namespace fake = mscclc::verbs::fake;

extern "C" {

bool mlx5dv_is_supported(ibv_device*) { return fake::state().mlx5; }

int mlx5dv_get_data_direct_sysfs_path(ibv_context* context, char* to, size_t room) {
  if (fake::state().path_error != 0) return fake::state().path_error;
  const std::string path = std::string("/devices/direct/") + context->device->name;
  if (path.size() >= room) return ENOSPC;
  std::memcpy(to, path.c_str(), path.size() + 1);
  return 0;
}

// As the kernel's: addresses begin pages.
ibv_mr* mlx5dv_reg_dmabuf_mr(ibv_pd* domain, uint64_t offset, size_t bytes, uint64_t address,
                             int file, int access, int mlx5_access) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  errno = mlx5_access != 1 || address % page != 0 || offset % page != 0 ? EOPNOTSUPP : 0;
  if (fake::state().failing_call == "mlx5_reg_dmabuf_mr") errno = fake::state().error;
  if (errno != 0) return nullptr;
  ibv_mr* const mr =
      fake::Regions::of_process().add_file(domain, file, offset, bytes, address, access, true);
  if (mr == nullptr) return nullptr;
  ++fake::state().objects;
  ++fake::state().data_direct;
  return mr;
}

}  // extern "C"
