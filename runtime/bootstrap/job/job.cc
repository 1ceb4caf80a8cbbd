#include "runtime/api/job.h"

#include "runtime/bootstrap/job/joining_log.h"
#include "runtime/bootstrap/tcp/tcp_bootstrap.h"

namespace mscclc {

std::optional<HostedJob> host_job(const HostOptions& options, Diagnostics& diagnostics) {
  HubOptions hub{.local = options.one_machine,
                 .size = options.size,
                 .rank = options.rank,
                 .timeout = options.timeout,
                 .silence = options.silence};
  if (!options.one_machine) {
    std::optional<Address> address = choose_address(options.interface, options.family, diagnostics);
    if (!address) return std::nullopt;
    address->set_port(0);
    hub.addresses = {*address};
  }
  HostedJob job;
  fill_random(hub.secret);
  job.hub = Hub::start(hub, diagnostics);
  if (!job.hub) return std::nullopt;
  job.id = {.address = job.hub->address(), .secret = hub.secret, .local = options.one_machine};
  return job;
}

std::unique_ptr<Bootstrap> join_job(const UniqueId& id, uint32_t rank, uint32_t size,
                                    std::chrono::milliseconds timeout, std::shared_ptr<Hub> hub,
                                    Diagnostics& diagnostics,
                                    std::function<bool(Diagnostics&)> gives_up) {
  begin_joining_log();
  Rendezvous where = Rendezvous::of(id);
  where.served = true;
  where.patience = timeout;
  where.gives_up = std::move(gives_up);
  return logged(join(where, rank, size, timeout, std::move(hub), diagnostics), rank, diagnostics);
}

}  // namespace mscclc
