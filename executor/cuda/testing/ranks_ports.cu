#include "executor/cuda/testing/ranks_ports.h"

namespace mscclc::cuda {

using device::ChannelEnd;
using device::PortQueue;
using device::PortSlot;

namespace {

constexpr uint64_t kQueueBits = 3;  // 8 requests: so few that blocks wait for room

}  // namespace

bool RanksPorts::allocate(uint32_t channels, Diagnostics& d) {
  return claimed_.allocate(sizeof(uint64_t), d) && seen_.allocate(sizeof(uint64_t), d) &&
         flushed_.allocate(channels * sizeof(uint64_t), d) &&
         requests_.allocate(sizeof(PortSlot) << kQueueBits, d) &&
         handled_.allocate(sizeof(uint64_t), d);
}

PortQueue RanksPorts::queue() const {
  return {requests_.data<PortSlot>(), kQueueBits,
          claimed_.data<uint64_t>(),  seen_.data<uint64_t>(),
          flushed_.data<uint64_t>(),  handled_.data<uint64_t>()};
}

void RanksPorts::serve(const std::vector<ChannelEnd>& ends) {
  if (proxy_) return;
  proxy_.emplace(RanksProxy::Queue{queue(), handled_.data<uint64_t>(), ends});
}

std::string RanksPorts::text() const {
  const RanksProxy::Slowest slowest = proxy_->slowest();
  return "the slowest request to a port (a put of " + std::to_string(slowest.bytes) +
         " bytes, 0: a signal) took " + std::to_string(slowest.nanoseconds / 1000) + " us";
}

}  // namespace mscclc::cuda
