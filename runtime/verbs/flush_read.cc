#include "runtime/verbs/flush_read.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "runtime/verbs/port/path.h"
#include "runtime/verbs/resources/completion_text.h"

namespace mscclc::verbs {

std::unique_ptr<FlushRead> FlushRead::make(const Adapter& adapter, std::string& why) {
  const Port& port = adapter.port();
  std::unique_ptr<FlushRead> made(new FlushRead(adapter.net()->options().dead));
  made->region_ = MemoryRegion::make(adapter.domain(), made->word_.get(), sizeof *made->word_,
                                     IBV_ACCESS_LOCAL_WRITE, why);
  if (made->region_ == nullptr) return nullptr;
  made->done_ = CompletionQueue::make(port.context, 2, why);
  if (made->done_ == nullptr) return nullptr;
  made->pair_ = QueuePair::make(adapter.domain(), made->done_, {1, 1, 0}, why);
  const uint32_t first = random_packet_number();
  if (made->pair_ == nullptr || !prepare(*made->pair_, port, IBV_ACCESS_REMOTE_READ, why) ||
      !connect(*made->pair_, port, adapter.options(), first, path_end(port),
               {made->pair_->number(), first}, why)) {
    return nullptr;
  }
  return made;
}

bool FlushRead::run(uint64_t address, uint32_t key, std::string& why) {
  ibv_sge to{reinterpret_cast<uintptr_t>(word_.get()), 1, region_->local_key()};
  ibv_send_wr order{};
  order.opcode = IBV_WR_RDMA_READ;
  order.send_flags = IBV_SEND_SIGNALED;
  order.sg_list = &to;
  order.num_sge = 1;
  order.wr.rdma.remote_addr = address;
  order.wr.rdma.rkey = key;
  if (const int error = pair_->send(&order); error != 0) {
    why = "a read that orders writes to a GPU: " + error_text(error);
    return false;
  }
  const auto until = std::chrono::steady_clock::now() + patience_;
  std::array<ibv_wc, 1> come;
  int count = 0;
  while ((count = done_->poll(come)) == 0) {
    if (std::chrono::steady_clock::now() < until) continue;
    why = fmt::format("a read that orders writes to a GPU is not answered for {} s",
                      patience_.count());
    return false;
  }
  if (count > 0 && come[0].status == IBV_WC_SUCCESS) return true;
  why = "a read that orders writes to a GPU: " +
        (count > 0 ? status_text(come[0].status, come[0].vendor_err) : "the device fails");
  return false;
}

}  // namespace mscclc::verbs
