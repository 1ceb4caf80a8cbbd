#include "runtime/network/verbs/loop/flush_read.h"

namespace mscclc::verbs {

Result<std::unique_ptr<FlushRead>> FlushRead::make(const Adapter& adapter) {
  auto pair = LoopPair::make(adapter, IBV_ACCESS_REMOTE_READ);
  if (!pair) return pair.error();
  return std::unique_ptr<FlushRead>(new FlushRead(*std::move(pair)));
}

Result<void> FlushRead::run(uint64_t address, uint32_t key) {
  ibv_send_wr order{};
  order.opcode = IBV_WR_RDMA_READ;
  order.wr.rdma.remote_addr = address;
  order.wr.rdma.rkey = key;
  return pair_->carry_out(order, 1, "a read that orders writes to a GPU");
}

}  // namespace mscclc::verbs
