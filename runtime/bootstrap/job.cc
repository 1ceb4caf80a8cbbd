#include "runtime/bootstrap/job.h"

namespace mscclc {

std::optional<HostedJob> host_job(const HostOptions& options, Diagnostics& diagnostics) {
  std::optional<Address> address =
      options.one_machine ? Address::loopback(0)
                          : choose_address(list_interfaces(), options.interface, diagnostics);
  if (!address) return std::nullopt;
  address->set_port(0);
  HostedJob job;
  fill_random(job.id.secret);
  job.hub = Hub::start({.addresses = {*address},
                        .ports = {},
                        .secret = job.id.secret,
                        .size = options.size,
                        .rank = options.rank,
                        .timeout = options.timeout},
                       diagnostics);
  if (!job.hub) return std::nullopt;
  job.id.address = job.hub->address();
  return job;
}

std::unique_ptr<Bootstrap> join_job(const UniqueId& id, uint32_t rank, uint32_t size,
                                    std::chrono::milliseconds timeout, std::unique_ptr<Hub> hub,
                                    Diagnostics& diagnostics) {
  return join(Rendezvous::of(id), rank, size, timeout, std::move(hub), diagnostics);
}

}  // namespace mscclc
