#include "runtime/network/verbs/loop/flush_read.h"

namespace mscclc::verbs {

std::unique_ptr<FlushRead> FlushRead::make(const Adapter& adapter, std::string& why) {
  auto pair = LoopPair::make(adapter, IBV_ACCESS_REMOTE_READ, why);
  if (pair == nullptr) return nullptr;
  return std::unique_ptr<FlushRead>(new FlushRead(std::move(pair)));
}

bool FlushRead::run(uint64_t address, uint32_t key, std::string& why) {
  ibv_send_wr order{};
  order.opcode = IBV_WR_RDMA_READ;
  order.wr.rdma.remote_addr = address;
  order.wr.rdma.rkey = key;
  return pair_->carry_out(order, 1, "a read that orders writes to a GPU", why);
}

}  // namespace mscclc::verbs
