#include "runtime/network/verbs/adapter.h"

#include <fmt/format.h>

namespace mscclc::verbs {

std::shared_ptr<Adapter> Adapter::start(const VerbsOptions& options,
                                        std::shared_ptr<net::SocketNet> net,
                                        Diagnostics& diagnostics) {
  const auto refuse = [&](const std::string& why) {
    diagnostics.error("no-verbs", {}, "no lanes over verbs: " + why);
    return nullptr;
  };
  std::string why;
  const auto library = load_library(options.library, why);
  if (!library) {
    return refuse(
        fmt::format("{}; install libibverbs (Debian: libibverbs1, ibverbs-providers), name it by "
                    "MSCCLC_IBV_SO, or take MSCCLC_LANE=sockets",
                    why));
  }
  auto port = choose_port(*library, options, why);
  if (!port) return refuse(why);
  auto domain = ProtectionDomain::make(port->context, why);
  if (domain == nullptr) return refuse(why);
  return std::shared_ptr<Adapter>(
      new Adapter(options, std::move(net), *std::move(port), std::move(domain)));
}

std::shared_ptr<const MemoryRegion> Adapter::expose(void* data, uint64_t bytes,
                                                    Diagnostics& diagnostics) const {
  std::string why;
  const int atomic = port_.atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0;
  auto region = MemoryRegion::make(domain_, data, bytes,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | atomic, why);
  if (region == nullptr) diagnostics.error("lane-failed", {}, why);
  return region;
}

}  // namespace mscclc::verbs
