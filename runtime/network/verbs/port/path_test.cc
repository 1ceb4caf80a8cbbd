// Which ports no path joins, and why.
#include "runtime/network/verbs/port/path.h"

#include <catch2/catch.hpp>

namespace mscclc::verbs {
namespace {

constexpr std::array<uint8_t, 16> kLinkLocal{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr std::array<uint8_t, 16> kIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 99, 0, 1};

PathEnd roce(const std::array<uint8_t, 16>& gid, ibv_gid_type type = IBV_GID_TYPE_ROCE_V2) {
  return {.link_layer = IBV_LINK_LAYER_ETHERNET,
          .gid_type = static_cast<uint8_t>(type),
          .mtu = IBV_MTU_1024,
          .gid = gid};
}

PathEnd infiniband() {
  return {.link_layer = IBV_LINK_LAYER_INFINIBAND,
          .gid_type = IBV_GID_TYPE_IB,
          .mtu = IBV_MTU_4096,
          .lid = 7,
          .gid = kLinkLocal};
}

TEST_CASE("paths: ports that one joins") {
  CHECK(mismatch(roce(kIpv4), roce(kIpv4)) == std::nullopt);
  CHECK(mismatch(roce(kLinkLocal), roce(kLinkLocal)) == std::nullopt);
  CHECK(mismatch(infiniband(), infiniband()) == std::nullopt);
  PathEnd small = roce(kIpv4);
  small.mtu = IBV_MTU_256;
  CHECK(mismatch(roce(kIpv4), small) == std::nullopt);
  // RoCE v1 has no addresses of IP, whatever its GIDs look like.
  CHECK(mismatch(roce(kIpv4, IBV_GID_TYPE_ROCE_V1), roce(kLinkLocal, IBV_GID_TYPE_ROCE_V1)) ==
        std::nullopt);
}

TEST_CASE("paths: ports that none joins") {
  CHECK(mismatch(roce(kIpv4), infiniband()) == "its port is InfiniBand, the port here RoCE");
  CHECK(mismatch(infiniband(), roce(kIpv4)) == "its port is RoCE, the port here InfiniBand");
  CHECK(mismatch(roce(kIpv4), roce(kIpv4, IBV_GID_TYPE_ROCE_V1)) ==
        "its GID and the GID here are of different versions of RoCE: set MSCCLC_IB_GID_INDEX");
  const std::string advice = ": set MSCCLC_IB_GID_INDEX on all ranks so that they are of one kind";
  CHECK(mismatch(roce(kIpv4), roce(kLinkLocal)) ==
        "its GID is an address of IPv6, the GID here of IPv4" + advice);
  CHECK(mismatch(roce(kLinkLocal), roce(kIpv4)) ==
        "its GID is an address of IPv4, the GID here of IPv6" + advice);
  for (const uint8_t mtu : {0, 6}) {
    PathEnd odd = roce(kIpv4);
    odd.mtu = mtu;
    CHECK(mismatch(roce(kIpv4), odd) ==
          "its port has MTU number " + std::to_string(mtu) + ", which does not exist");
  }
}

}  // namespace
}  // namespace mscclc::verbs
