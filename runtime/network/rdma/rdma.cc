#include "runtime/network/rdma/rdma.h"

#include <utility>

namespace mscclc::net {
namespace {

StartRdma* provided = nullptr;  // set before main()

}  // namespace

bool provide_rdma(StartRdma* start) {
  provided = start;
  return true;
}

std::shared_ptr<const Rdma> start_rdma(uint32_t prefer, std::shared_ptr<SocketNet> net,
                                       Diagnostics& diagnostics) {
  if (provided != nullptr) return provided(prefer, std::move(net), diagnostics);
  diagnostics.error("no-verbs", {},
                    "no lanes over verbs: this program is linked without them; link //runtime, or "
                    "take MSCCLC_LANE=sockets");
  return nullptr;
}

}  // namespace mscclc::net
