#include "runtime/network/verbs/resources/resources.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

namespace mscclc::verbs {
namespace {

std::string failed(const char* what, const Context& context, int error) {
  return fmt::format("{} of {}: {}", what, context.name(), error_text(error));
}

}  // namespace

std::shared_ptr<Context> Context::open(const Library& library, ibv_device* device,
                                       std::string& why) {
  const std::string name = library.get_device_name(device);
  ibv_context* const context = library.open_device(device);
  if (context != nullptr) return std::shared_ptr<Context>(new Context(library, context, name));
  why = fmt::format("{} cannot be opened: {}", name, error_text(errno));
  return nullptr;
}

Context::~Context() { library_.close_device(context_); }

std::shared_ptr<ProtectionDomain> ProtectionDomain::make(std::shared_ptr<Context> context,
                                                         std::string& why) {
  ibv_pd* const domain = context->library().alloc_pd(context->get());
  if (domain != nullptr) {
    return std::shared_ptr<ProtectionDomain>(new ProtectionDomain(std::move(context), domain));
  }
  why = failed("no protection domain", *context, errno);
  return nullptr;
}

ProtectionDomain::~ProtectionDomain() { context_->library().dealloc_pd(domain_); }

std::shared_ptr<const MemoryRegion> MemoryRegion::make(std::shared_ptr<ProtectionDomain> domain,
                                                       void* data, uint64_t bytes, int access,
                                                       std::string& why) {
  const Context& context = *domain->context();
  ibv_mr* const region = context.library().reg_mr(domain->get(), data, bytes, access);
  if (region != nullptr) return own(std::move(domain), region);
  const int error = errno;
  why = fmt::format("{} cannot register {} bytes: {}{}", context.name(), bytes, error_text(error),
                    error == ENOMEM ? "; memory that devices use is locked: raise the limit "
                                      "(ulimit -l)"
                                    : "");
  return nullptr;
}

std::shared_ptr<const MemoryRegion> MemoryRegion::make_of_dma_buf(
    std::shared_ptr<ProtectionDomain> domain, const Fd& file, uint64_t offset, void* data,
    uint64_t bytes, int access, std::string& why) {
  const Context& context = *domain->context();
  if (context.library().reg_dmabuf_mr == nullptr) {
    why = "libibverbs has no ibv_reg_dmabuf_mr: it is too old";
    return nullptr;
  }
  ibv_mr* const region = context.library().reg_dmabuf_mr(
      domain->get(), offset, bytes, reinterpret_cast<uintptr_t>(data), file.get(), access);
  if (region != nullptr) return own(std::move(domain), region);
  why =
      fmt::format("{} takes no dma-buf of {} bytes: {}", context.name(), bytes, error_text(errno));
  return nullptr;
}

MemoryRegion::~MemoryRegion() { domain_->context()->library().dereg_mr(region_); }

std::shared_ptr<CompletionQueue> CompletionQueue::make(std::shared_ptr<Context> context,
                                                       uint32_t entries, std::string& why) {
  const Library& library = context->library();
  ibv_comp_channel* const channel = library.create_comp_channel(context->get());
  if (channel == nullptr) {
    why = failed("no completion channel", *context, errno);
    return nullptr;
  }
  std::shared_ptr<CompletionQueue> made(new CompletionQueue(context, channel));
  made->queue_ = library.create_cq(context->get(), static_cast<int>(entries), nullptr, channel, 0);
  if (made->queue_ == nullptr) {
    why =
        failed(fmt::format("no completion queue for {} orders", entries).c_str(), *context, errno);
    return nullptr;
  }
  made->events_.reset(::fcntl(channel->fd, F_DUPFD_CLOEXEC, 0));
  const int flags = ::fcntl(channel->fd, F_GETFL);
  if (made->events_.valid() && flags >= 0 &&
      ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0) {
    return made;
  }
  why = failed("no events of a completion queue", *context, errno);
  return nullptr;
}

CompletionQueue::~CompletionQueue() {
  if (queue_ != nullptr) context_->library().destroy_cq(queue_);
  context_->library().destroy_comp_channel(channel_);
}

bool CompletionQueue::arm() { return ibv_req_notify_cq(queue_, 0) == 0; }

void CompletionQueue::take_events() {
  ibv_cq* queue = nullptr;
  void* user = nullptr;
  while (context_->library().get_cq_event(channel_, &queue, &user) == 0) {
    context_->library().ack_cq_events(queue, 1);
  }
}

int CompletionQueue::poll(std::span<ibv_wc> to) {
  return ibv_poll_cq(queue_, static_cast<int>(to.size()), to.data());
}

std::unique_ptr<QueuePair> QueuePair::make(std::shared_ptr<ProtectionDomain> domain,
                                           std::shared_ptr<CompletionQueue> queue,
                                           const QueueSizes& sizes, std::string& why) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue->get();
  wanted.cap.max_send_wr = sizes.sends;
  wanted.cap.max_recv_wr = sizes.receives;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = sizes.inline_bytes;
  wanted.qp_type = IBV_QPT_RC;
  const Context& context = *domain->context();
  ibv_qp* const pair = context.library().create_qp(domain->get(), &wanted);
  if (pair != nullptr) {
    return std::unique_ptr<QueuePair>(new QueuePair(std::move(domain), std::move(queue), pair));
  }
  why = failed("no queue pair", context, errno);
  return nullptr;
}

QueuePair::~QueuePair() { domain_->context()->library().destroy_qp(pair_); }

bool QueuePair::change(ibv_qp_attr attributes, int which, const char* to, std::string& why) {
  const Context& context = *domain_->context();
  const int error = context.library().modify_qp(pair_, &attributes, which);
  if (error != 0)
    why = failed(fmt::format("a queue pair does not become {}", to).c_str(), context, error);
  return error == 0;
}

int QueuePair::send(ibv_send_wr* orders) {
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(pair_, orders, &refused);
}

int QueuePair::receive(ibv_recv_wr* orders) {
  ibv_recv_wr* refused = nullptr;
  return ibv_post_recv(pair_, orders, &refused);
}

}  // namespace mscclc::verbs
