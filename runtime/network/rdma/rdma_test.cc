// A program has lanes by RDMA if something that it links provides them.
#include "runtime/network/rdma/rdma.h"

#include <catch2/catch.hpp>

namespace mscclc::net {
namespace {

std::shared_ptr<const Rdma> refuse(uint32_t prefer, std::shared_ptr<SocketNet>,
                                   Diagnostics& diagnostics) {
  diagnostics.error("no-verbs", {}, "port " + std::to_string(prefer) + " is down");
  return nullptr;
}

TEST_CASE("lanes by RDMA are those of what the program links") {
  Diagnostics none;
  CHECK(start_rdma(0, nullptr, none) == nullptr);
  CHECK(render_text(none, Sources(), 100) ==
        "error: no lanes over verbs: this program is linked without them; link //runtime, or take "
        "MSCCLC_LANE=sockets\n");

  Diagnostics some;
  REQUIRE(provide_rdma(refuse));
  CHECK(start_rdma(3, nullptr, some) == nullptr);
  CHECK(render_text(some, Sources(), 100) == "error: port 3 is down\n");
}

}  // namespace
}  // namespace mscclc::net
