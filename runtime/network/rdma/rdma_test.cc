// A program has lanes by RDMA if something that it links provides them.
#include "runtime/network/rdma/rdma.h"

#include <catch2/catch.hpp>

namespace mscclc::net {
namespace {

TEST_CASE("there are no lanes by RDMA if the program links nothing that provides them") {
  Diagnostics none;
  CHECK(start_rdma(0, nullptr, none) == nullptr);
  CHECK(render_text(none, Sources(), 100) ==
        "error: no lanes over verbs: this program is linked without them; link //runtime, or take "
        "MSCCLC_LANE=sockets\n");
}

}  // namespace
}  // namespace mscclc::net
