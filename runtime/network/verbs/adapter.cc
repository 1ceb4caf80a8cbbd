#include "runtime/network/verbs/adapter.h"

namespace mscclc::verbs {

std::shared_ptr<Adapter> Adapter::start(const VerbsOptions& options,
                                        std::shared_ptr<net::SocketNet> net,
                                        Diagnostics& diagnostics) {
  const auto refuse = [&](const Error& error) {
    diagnostics.error("no-verbs", {}, "no lanes over verbs: " + error.text());
    return nullptr;
  };
  const auto library = load_library(options.library);
  if (!library) {
    return refuse({library.error().text(),
                   "install libibverbs (Debian: libibverbs1, ibverbs-providers), name it by "
                   "MSCCLC_IBV_SO, or take MSCCLC_LANE=sockets"});
  }
  auto port = choose_port(*library, options);
  if (!port) return refuse(port.error());
  auto domain = ProtectionDomain::make(port->context);
  if (!domain) return refuse(domain.error());
  return std::shared_ptr<Adapter>(
      new Adapter(options, std::move(net), *std::move(port), *std::move(domain)));
}

std::shared_ptr<const MemoryRegion> Adapter::expose(void* data, uint64_t bytes,
                                                    Diagnostics& diagnostics) const {
  const int atomic = port_.atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0;
  auto region = MemoryRegion::make(domain_, data, bytes,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | atomic);
  if (region) return *std::move(region);
  diagnostics.error("lane-failed", {}, region.error().text());
  return nullptr;
}

}  // namespace mscclc::verbs
