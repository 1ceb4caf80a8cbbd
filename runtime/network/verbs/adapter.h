// What the lanes over verbs of one device share: a port, its protection domain, and the sockets at
// which ranks meet.
#pragma once

#include <memory>

#include "ir/diagnostics/diagnostic.h"
#include "ir/support/result.h"
#include "runtime/network/exposed_memory.h"
#include "runtime/network/sockets/socket_net.h"
#include "runtime/network/verbs/port/port.h"
#include "runtime/network/verbs/resources/data_direct.h"

namespace mscclc::verbs {

/// So many bytes an order carries in itself: the processor reads them.
constexpr uint32_t kInline = 64;

/// Thread safety: immutable.
class Adapter {
 public:
  /// nullptr: reported (no-verbs).
  [[nodiscard]] static std::shared_ptr<Adapter> start(const VerbsOptions& options,
                                                      std::shared_ptr<net::SocketNet> net,
                                                      Diagnostics& diagnostics);

  const VerbsOptions& options() const { return options_; }
  const Port& port() const { return port_; }
  const std::shared_ptr<ProtectionDomain>& domain() const { return domain_; }
  const std::shared_ptr<net::SocketNet>& net() const { return net_; }

  /// By which it reaches GPUs. An error without a text: none was looked for.
  const Result<DataDirect>& data_direct() const { return data_direct_; }

  /// Lets peers write memory as long as the region lives. nullptr: reported (lane-failed).
  [[nodiscard]] std::shared_ptr<const MemoryRegion> expose(void* data, uint64_t bytes,
                                                           Diagnostics& diagnostics) const;
  /// Lets the device read memory.
  Result<std::shared_ptr<const MemoryRegion>> read_from(void* data, uint64_t bytes) const {
    return MemoryRegion::make(domain_, data, bytes, 0);
  }

 private:
  Adapter(const VerbsOptions& options, std::shared_ptr<net::SocketNet> net, Port port,
          std::shared_ptr<ProtectionDomain> domain)
      : options_(options),
        net_(std::move(net)),
        port_(std::move(port)),
        domain_(std::move(domain)),
        data_direct_(options.data_direct ? find_data_direct(*port_.context, options.mlx5_library)
                                         : Error{}) {}

  const VerbsOptions options_;
  const std::shared_ptr<net::SocketNet> net_;
  const Port port_;
  const std::shared_ptr<ProtectionDomain> domain_;
  const Result<DataDirect> data_direct_;
};

}  // namespace mscclc::verbs
