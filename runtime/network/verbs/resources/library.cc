#include "runtime/network/verbs/resources/library.h"

#include <dlfcn.h>

#include <cstring>

#include "runtime/support/process/open_library.h"

namespace mscclc::verbs {

namespace {

/// Before Linux 5.12 a fork takes registered pages that are written next away from the device, in
/// the parent, unless the library has been made ready before anything was registered. Where others
/// have registered memory by now it refuses: their forks are as they were.
void make_ready_for_forks(void* library) {
  const auto status = reinterpret_cast<decltype(&::ibv_is_fork_initialized)>(
      ::dlsym(library, "ibv_is_fork_initialized"));
  if (status != nullptr && status() != IBV_FORK_DISABLED) return;  // not needed, or done
  const auto init = reinterpret_cast<decltype(&::ibv_fork_init)>(::dlsym(library, "ibv_fork_init"));
  if (init != nullptr) (void)init();
}

}  // namespace

Result<Library> load_library(const std::string& file) {
  const auto opened = open_library(file);
  if (!opened) return opened.error();
  Library library;
  Result<void> found;
#define FIND(name) \
  if (found) found = find_function(*opened, "ibv_" #name, library.name);
  MSCCLC_VERBS_FUNCTIONS(FIND)
#undef FIND
  if (found) found = find_function(*opened, "_ibv_query_gid_ex", library.query_gid_ex);
  if (!found) return found.error();
  library.reg_dmabuf_mr =
      reinterpret_cast<decltype(library.reg_dmabuf_mr)>(::dlsym(*opened, "ibv_reg_dmabuf_mr"));
  make_ready_for_forks(*opened);
  return library;
}

// As the header's inline function does it, which would need to be linked.
int Library::query_port_attributes(ibv_context* context, uint8_t port, ibv_port_attr& to) const {
  std::memset(&to, 0, sizeof to);
  verbs_context* const extended = verbs_get_ctx_op(context, query_port);
  return extended != nullptr
             ? extended->query_port(context, port, &to, sizeof to)
             : query_port(context, port, reinterpret_cast<_compat_ibv_port_attr*>(&to));
}

}  // namespace mscclc::verbs
