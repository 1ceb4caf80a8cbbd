#include "runtime/network/verbs/send_queue.h"

#include <endian.h>
#include <fmt/format.h>

#include "ir/support/precondition.h"

namespace mscclc::verbs {
namespace {

ibv_send_wr order_of(const Work& work) {
  ibv_send_wr order{};
  order.wr_id = work.number;
  order.num_sge = 1;
  if (work.what == Work::What::add) {
    order.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    order.wr.atomic.remote_addr = work.to;
    order.wr.atomic.compare_add = work.value;
    order.wr.atomic.rkey = work.key;
    return order;
  }
  order.opcode = work.what == Work::What::write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
  order.imm_data = htobe32(work.place);
  order.wr.rdma.remote_addr = work.to;
  order.wr.rdma.rkey = work.key;
  if (work.carried) order.send_flags = IBV_SEND_INLINE;
  return order;
}

ibv_sge source_of(const Work& work) {
  const uint8_t* const from = work.carried ? work.data.data() : work.from;
  return {reinterpret_cast<uintptr_t>(from), work.bytes, work.source_key};
}

}  // namespace

int SendQueue::add(const Work& work) {
  precondition(has_room());
  batch_[batched_++] = work;
  given_.push_back({work.number, work.what, work.bytes});
  return batched_ == kBatch ? ring() : 0;
}

int SendQueue::ring() {
  if (batched_ == 0) return 0;
  std::array<ibv_send_wr, kBatch> orders;
  std::array<ibv_sge, kBatch> sources;
  for (size_t i = 0; i < batched_; ++i) {
    const Work& work = batch_[i];
    orders[i] = order_of(work);
    sources[i] = work.what == Work::What::add ? old_values_ : source_of(work);
    orders[i].sg_list = &sources[i];
    orders[i].next = i + 1 < batched_ ? &orders[i + 1] : nullptr;
  }
  orders[batched_ - 1].send_flags |= IBV_SEND_SIGNALED;
  batched_ = 0;
  return pair_->send(orders.data());
}

void SendQueue::done(uint64_t number) {
  while (!given_.empty() && given_.front().number <= number) given_.pop_front();
}

std::string SendQueue::text(uint64_t number) const {
  for (const Given& given : given_) {
    if (given.number != number) continue;
    if (given.what == Work::What::add) return "atomic add of a signal";
    if (given.what == Work::What::message) return "message of a signal";
    if (given.what == Work::What::landing) return "message of a put";
    return fmt::format("RDMA write of {} bytes", given.bytes);
  }
  return "order";
}

}  // namespace mscclc::verbs
