#include "runtime/network/verbs/loop/loop_pair.h"

#include <fmt/format.h>

#include <array>

#include "runtime/network/verbs/port/path.h"
#include "runtime/network/verbs/resources/completion_text.h"

namespace mscclc::verbs {

Result<std::unique_ptr<LoopPair>> LoopPair::make(const Adapter& adapter, int access) {
  const Port& port = adapter.port();
  std::unique_ptr<LoopPair> made(new LoopPair(adapter.net()->options().dead));
  auto region = MemoryRegion::make(adapter.domain(), made->word_.data(), made->word_.bytes(),
                                   IBV_ACCESS_LOCAL_WRITE);
  if (!region) return region.error();
  made->region_ = *std::move(region);
  auto queue = CompletionQueue::make(port.context, 2);
  if (!queue) return queue.error();
  made->done_ = *std::move(queue);
  auto pair = QueuePair::make(adapter.domain(), made->done_, {1, 1, 0});
  if (!pair) return pair.error();
  made->pair_ = *std::move(pair);
  const auto prepared = prepare(*made->pair_, port, adapter.options(), access);
  if (!prepared) return prepared.error();
  const uint32_t first = random_packet_number();
  const auto connected = connect(*made->pair_, port, adapter.options(), first, path_end(port),
                                 {made->pair_->number(), first});
  if (!connected) return connected.error();
  return made;
}

Result<void> LoopPair::carry_out(ibv_send_wr order, uint32_t bytes, const char* what) {
  ibv_sge to{reinterpret_cast<uintptr_t>(word_.data()), bytes, region_->local_key()};
  order.send_flags = IBV_SEND_SIGNALED;
  order.sg_list = &to;
  order.num_sge = 1;
  if (const int error = pair_->send(&order); error != 0) {
    return Error{fmt::format("{}: {}", what, error_text(error))};
  }
  const auto until = std::chrono::steady_clock::now() + patience_;
  std::array<ibv_wc, 1> come;
  int count = 0;
  while ((count = done_->poll(come)) == 0) {
    if (std::chrono::steady_clock::now() < until) continue;
    return Error{fmt::format("{} is not answered for {} s", what, patience_.count())};
  }
  if (count > 0 && come[0].status == IBV_WC_SUCCESS) return {};
  return Error{fmt::format(
      "{}: {}", what,
      count > 0 ? status_text(come[0].status, come[0].vendor_err) : "the device fails")};
}

}  // namespace mscclc::verbs
