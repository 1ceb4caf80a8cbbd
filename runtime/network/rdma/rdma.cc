#include "runtime/network/rdma/rdma.h"

#include <utility>

namespace mscclc::net {

std::shared_ptr<const Rdma> start_rdma(uint32_t prefer, std::shared_ptr<SocketNet> net,
                                       Diagnostics& diagnostics) {
  if (start_linked_rdma != nullptr) return start_linked_rdma(prefer, std::move(net), diagnostics);
  diagnostics.error("no-verbs", {},
                    "no lanes over verbs: this program is linked without them; link //runtime, or "
                    "take MSCCLC_LANE=sockets");
  return nullptr;
}

}  // namespace mscclc::net
