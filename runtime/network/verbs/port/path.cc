#include "runtime/network/verbs/port/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace mscclc::verbs {
namespace {

constexpr uint8_t kHops = 255;
constexpr uint8_t kWaitForReceives = 12;  ///< 0.64 ms, as the standard codes it
constexpr uint8_t kRetryForever = 7;      ///< retries of a receiver that is not ready
constexpr size_t kPrefix = 8;             ///< bytes of a GID that name its subnet

const char* layer(const PathEnd& end) {
  return end.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

ibv_ah_attr address_of(const Port& port, const VerbsOptions& options, const PathEnd& peer) {
  ibv_ah_attr address{};
  const PathEnd here = path_end(port);
  address.port_num = port.number;
  address.dlid = peer.lid;
  address.sl = options.service_level;
  // Inside one subnet of InfiniBand the LID is enough.
  address.is_global =
      port.is_roce() || !std::equal(here.gid.begin(), here.gid.begin() + kPrefix, peer.gid.begin());
  if (address.is_global == 0) return address;
  std::memcpy(address.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  address.grh.sgid_index = static_cast<uint8_t>(port.gid.gid_index);
  address.grh.hop_limit = kHops;
  address.grh.traffic_class = options.traffic_class;
  return address;
}

}  // namespace

PathEnd path_end(const Port& port) {
  PathEnd end{.link_layer = port.attributes.link_layer,
              .gid_type = static_cast<uint8_t>(port.gid.gid_type),
              .mtu = static_cast<uint8_t>(port.attributes.active_mtu),
              .most_atomics = port.most_atomics,
              .lid = port.attributes.lid};
  std::memcpy(end.gid.data(), port.gid.gid.raw, end.gid.size());
  return end;
}

std::optional<Error> mismatch(const PathEnd& here, const PathEnd& there) {
  if (here.link_layer != there.link_layer) {
    return Error{fmt::format("its port is {}, the port here {}", layer(there), layer(here))};
  }
  if (here.gid_type != there.gid_type) {
    return Error{
        "its GID and the GID here are of different versions of RoCE: set MSCCLC_IB_GID_INDEX"};
  }
  const bool ipv4 = is_ipv4(here.gid.data());
  if (here.gid_type == IBV_GID_TYPE_ROCE_V2 && ipv4 != is_ipv4(there.gid.data())) {
    return Error{fmt::format(
        "its GID is an address of {}, the GID here of {}: set MSCCLC_IB_GID_INDEX on all ranks so "
        "that they are of one kind",
        ipv4 ? "IPv6" : "IPv4", ipv4 ? "IPv4" : "IPv6")};
  }
  if (there.mtu < IBV_MTU_256 || there.mtu > IBV_MTU_4096) {
    return Error{fmt::format("its port has MTU number {}, which does not exist", there.mtu)};
  }
  return std::nullopt;
}

uint32_t random_packet_number() {
  std::array<uint8_t, 3> bytes{};
  fill_random(bytes);
  return static_cast<uint32_t>(bytes[0] | bytes[1] << 8 | bytes[2] << 16);
}

Result<void> prepare(QueuePair& pair, const Port& port, const VerbsOptions& options, int access) {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = port.number;
  to.pkey_index = options.partition;
  to.qp_access_flags = static_cast<unsigned>(access);
  return pair.change(to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                     "ready");
}

Result<void> connect(QueuePair& pair, const Port& port, const VerbsOptions& options,
                     uint32_t own_first, const PathEnd& peer, const QueueEnd& peer_queue) {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu =
      static_cast<ibv_mtu>(std::min<int>(port.attributes.active_mtu, static_cast<int>(peer.mtu)));
  to.dest_qp_num = peer_queue.number;
  to.rq_psn = peer_queue.first;
  to.max_dest_rd_atomic = port.most_atomics;
  to.min_rnr_timer = kWaitForReceives;
  to.ah_attr = address_of(port, options, peer);
  const auto receives =
      pair.change(to,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                  "ready to receive");
  if (!receives) return receives;
  to = {};
  to.qp_state = IBV_QPS_RTS;
  to.timeout = options.timeout;
  to.retry_cnt = options.retries;
  to.rnr_retry = kRetryForever;
  to.sq_psn = own_first;
  to.max_rd_atomic = std::min(port.most_begun, peer.most_atomics);
  return pair.change(to,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                     "ready to send");
}

}  // namespace mscclc::verbs
