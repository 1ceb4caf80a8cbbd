#include "tests/helpers/runtime/far_address.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>

namespace mscclc::testing {
namespace {

std::atomic<bool> is_far{false};

bool is_far_address(const sockaddr* address) {
  if (address->sa_family != AF_INET) return false;
  const auto* four = reinterpret_cast<const sockaddr_in*>(address);
  return four->sin_addr.s_addr == ::inet_addr(kFarAddress.data());
}

}  // namespace

FarAddress::FarAddress() { is_far = true; }
FarAddress::~FarAddress() { is_far = false; }

}  // namespace mscclc::testing

// The program's own goes before the library's.
extern "C" __attribute__((visibility("default"))) int bind(int fd, const sockaddr* address,
                                                           socklen_t length) noexcept {
  using Bind = int (*)(int, const sockaddr*, socklen_t);
  static const auto bind = reinterpret_cast<Bind>(::dlsym(RTLD_NEXT, "bind"));
  if (mscclc::testing::is_far && mscclc::testing::is_far_address(address)) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  return bind(fd, address, length);
}
