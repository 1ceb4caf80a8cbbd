#include "runtime/network/verbs/resources/resources.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

namespace mscclc::verbs {
namespace {

Error failed(const std::string& what, const Context& context, int error) {
  return {fmt::format("{} of {}: {}", what, context.name(), error_text(error))};
}

}  // namespace

Result<std::shared_ptr<Context>> Context::open(const Library& library, ibv_device* device) {
  const std::string name = library.get_device_name(device);
  ibv_context* const context = library.open_device(device);
  if (context != nullptr) return std::shared_ptr<Context>(new Context(library, context, name));
  return Error{fmt::format("{} cannot be opened: {}", name, error_text(errno))};
}

Context::~Context() { library_.close_device(context_); }

Result<std::shared_ptr<ProtectionDomain>> ProtectionDomain::make(std::shared_ptr<Context> context) {
  ibv_pd* const domain = context->library().alloc_pd(context->get());
  if (domain != nullptr) {
    return std::shared_ptr<ProtectionDomain>(new ProtectionDomain(std::move(context), domain));
  }
  return failed("no protection domain", *context, errno);
}

ProtectionDomain::~ProtectionDomain() { context_->library().dealloc_pd(domain_); }

Result<std::shared_ptr<const MemoryRegion>> MemoryRegion::make(
    std::shared_ptr<ProtectionDomain> domain, void* data, uint64_t bytes, int access) {
  const Context& context = *domain->context();
  ibv_mr* const region = context.library().reg_mr(domain->get(), data, bytes, access);
  if (region != nullptr) return own(std::move(domain), region);
  const int error = errno;
  return Error{
      fmt::format("{} cannot register {} bytes: {}", context.name(), bytes, error_text(error)),
      error == ENOMEM ? "memory that devices use is locked: raise the limit (ulimit -l)" : ""};
}

Result<std::shared_ptr<const MemoryRegion>> MemoryRegion::make_of_dma_buf(
    std::shared_ptr<ProtectionDomain> domain, const Fd& file, uint64_t offset, void* data,
    uint64_t bytes, int access) {
  const Context& context = *domain->context();
  if (context.library().reg_dmabuf_mr == nullptr) {
    return Error{"libibverbs has no ibv_reg_dmabuf_mr: it is too old"};
  }
  ibv_mr* const region = context.library().reg_dmabuf_mr(
      domain->get(), offset, bytes, reinterpret_cast<uintptr_t>(data), file.get(), access);
  if (region != nullptr) return own(std::move(domain), region);
  return Error{
      fmt::format("{} takes no dma-buf of {} bytes: {}", context.name(), bytes, error_text(errno))};
}

MemoryRegion::~MemoryRegion() { domain_->context()->library().dereg_mr(region_); }

Result<std::shared_ptr<CompletionQueue>> CompletionQueue::make(std::shared_ptr<Context> context,
                                                               uint32_t entries) {
  const Library& library = context->library();
  ibv_comp_channel* const channel = library.create_comp_channel(context->get());
  if (channel == nullptr) return failed("no completion channel", *context, errno);
  std::shared_ptr<CompletionQueue> made(new CompletionQueue(context, channel));
  made->queue_ = library.create_cq(context->get(), static_cast<int>(entries), nullptr, channel, 0);
  if (made->queue_ == nullptr) {
    return failed(fmt::format("no completion queue for {} orders", entries), *context, errno);
  }
  made->events_.reset(::fcntl(channel->fd, F_DUPFD_CLOEXEC, 0));
  const int flags = ::fcntl(channel->fd, F_GETFL);
  if (made->events_.valid() && flags >= 0 &&
      ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0) {
    return made;
  }
  return failed("no events of a completion queue", *context, errno);
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

Result<std::unique_ptr<QueuePair>> QueuePair::make(std::shared_ptr<ProtectionDomain> domain,
                                                   std::shared_ptr<CompletionQueue> queue,
                                                   const QueueSizes& sizes) {
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
  return failed("no queue pair", context, errno);
}

QueuePair::~QueuePair() { domain_->context()->library().destroy_qp(pair_); }

Result<void> QueuePair::change(ibv_qp_attr attributes, int which, const char* to) {
  const Context& context = *domain_->context();
  const int error = context.library().modify_qp(pair_, &attributes, which);
  if (error == 0) return {};
  return failed(fmt::format("a queue pair does not become {}", to), context, error);
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
