#include "runtime/network/verbs/loop/loop_pair.h"

#include <fmt/format.h>

#include <array>

#include "runtime/network/verbs/port/path.h"
#include "runtime/network/verbs/resources/completion_text.h"

namespace mscclc::verbs {

std::unique_ptr<LoopPair> LoopPair::make(const Adapter& adapter, int access, std::string& why) {
  const Port& port = adapter.port();
  std::unique_ptr<LoopPair> made(new LoopPair(adapter.net()->options().dead));
  made->region_ = MemoryRegion::make(adapter.domain(), made->word_.get(), sizeof *made->word_,
                                     IBV_ACCESS_LOCAL_WRITE, why);
  if (made->region_ == nullptr) return nullptr;
  made->done_ = CompletionQueue::make(port.context, 2, why);
  if (made->done_ == nullptr) return nullptr;
  made->pair_ = QueuePair::make(adapter.domain(), made->done_, {1, 1, 0}, why);
  const uint32_t first = random_packet_number();
  if (made->pair_ == nullptr || !prepare(*made->pair_, port, adapter.options(), access, why) ||
      !connect(*made->pair_, port, adapter.options(), first, path_end(port),
               {made->pair_->number(), first}, why)) {
    return nullptr;
  }
  return made;
}

bool LoopPair::carry_out(ibv_send_wr order, uint32_t bytes, const char* what, std::string& why) {
  ibv_sge to{reinterpret_cast<uintptr_t>(word_.get()), bytes, region_->local_key()};
  order.send_flags = IBV_SEND_SIGNALED;
  order.sg_list = &to;
  order.num_sge = 1;
  if (const int error = pair_->send(&order); error != 0) {
    why = fmt::format("{}: {}", what, error_text(error));
    return false;
  }
  const auto until = std::chrono::steady_clock::now() + patience_;
  std::array<ibv_wc, 1> come;
  int count = 0;
  while ((count = done_->poll(come)) == 0) {
    if (std::chrono::steady_clock::now() < until) continue;
    why = fmt::format("{} is not answered for {} s", what, patience_.count());
    return false;
  }
  if (count > 0 && come[0].status == IBV_WC_SUCCESS) return true;
  why =
      fmt::format("{}: {}", what,
                  count > 0 ? status_text(come[0].status, come[0].vendor_err) : "the device fails");
  return false;
}

}  // namespace mscclc::verbs
