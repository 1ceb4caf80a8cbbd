// What verbs make, each owned by an object that ends it: contexts, protection domains, memory
// regions, completion queues, queue pairs. Each keeps what it was made from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ir/support/result.h"
#include "runtime/network/verbs/resources/library.h"
#include "runtime/support/fd.h"

namespace mscclc::verbs {

/// A device that was opened.
class Context {
 public:
  static Result<std::shared_ptr<Context>> open(const Library& library, ibv_device* device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Library& library() const { return library_; }
  ibv_context* get() const { return context_; }
  /// "mlx5_0"
  const std::string& name() const { return name_; }

 private:
  Context(const Library& library, ibv_context* context, std::string name)
      : library_(library), context_(context), name_(std::move(name)) {}

  const Library library_;
  ibv_context* const context_;
  const std::string name_;
};

class ProtectionDomain {
 public:
  static Result<std::shared_ptr<ProtectionDomain>> make(std::shared_ptr<Context> context);
  ~ProtectionDomain();
  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;

  const std::shared_ptr<Context>& context() const { return context_; }
  ibv_pd* get() const { return domain_; }

 private:
  ProtectionDomain(std::shared_ptr<Context> context, ibv_pd* domain)
      : context_(std::move(context)), domain_(domain) {}

  const std::shared_ptr<Context> context_;
  ibv_pd* const domain_;
};

/// Memory that the device reads and writes. It does not keep the memory: the owner of the memory
/// keeps this.
class MemoryRegion {
 public:
  /// `access`: flags of ibv_access_flags; 0: the device only reads.
  static Result<std::shared_ptr<const MemoryRegion>> make(std::shared_ptr<ProtectionDomain> domain,
                                                          void* data, uint64_t bytes, int access);
  /// A dma-buf, such as a GPU's memory: `bytes` bytes from `offset` on, which keys' holders find at
  /// `data`. The descriptor is not needed any more then.
  static Result<std::shared_ptr<const MemoryRegion>> make_of_dma_buf(
      std::shared_ptr<ProtectionDomain> domain, const Fd& file, uint64_t offset, void* data,
      uint64_t bytes, int access);
  /// One that was made otherwise.
  [[nodiscard]] static std::shared_ptr<const MemoryRegion> own(
      std::shared_ptr<ProtectionDomain> domain, ibv_mr* region) {
    return std::shared_ptr<const MemoryRegion>(new MemoryRegion(std::move(domain), region));
  }
  ~MemoryRegion();
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  uint32_t local_key() const { return region_->lkey; }
  uint32_t remote_key() const { return region_->rkey; }

 private:
  MemoryRegion(std::shared_ptr<ProtectionDomain> domain, ibv_mr* region)
      : domain_(std::move(domain)), region_(region) {}

  const std::shared_ptr<ProtectionDomain> domain_;
  ibv_mr* const region_;
};

/// A completion queue, and the descriptor that says when something has come.
class CompletionQueue {
 public:
  static Result<std::shared_ptr<CompletionQueue>> make(std::shared_ptr<Context> context,
                                                       uint32_t entries);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  ibv_cq* get() const { return queue_; }
  /// Readable once something has come since arm(). It does not block.
  const Fd& events() const { return events_; }
  /// Whatever comes from now on makes events() readable, once. False: the device refuses.
  [[nodiscard]] bool arm();
  /// Takes what made events() readable.
  void take_events();
  /// How many completions were taken to the front of `to`; negative: the device fails.
  [[nodiscard]] int poll(std::span<ibv_wc> to);

 private:
  CompletionQueue(std::shared_ptr<Context> context, ibv_comp_channel* channel)
      : context_(std::move(context)), channel_(channel) {}

  const std::shared_ptr<Context> context_;
  ibv_comp_channel* const channel_;
  ibv_cq* queue_ = nullptr;
  Fd events_;
};

/// How many orders a queue pair holds.
struct QueueSizes {
  uint32_t sends = 0, receives = 0;
  uint32_t inline_bytes = 0;  ///< that a send may carry in itself
};

/// A reliable connection's end.
class QueuePair {
 public:
  static Result<std::unique_ptr<QueuePair>> make(std::shared_ptr<ProtectionDomain> domain,
                                                 std::shared_ptr<CompletionQueue> queue,
                                                 const QueueSizes& sizes);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  uint32_t number() const { return pair_->qp_num; }
  Result<void> change(ibv_qp_attr attributes, int which, const char* to);
  /// 0, or an error of the system.
  [[nodiscard]] int send(ibv_send_wr* orders);
  [[nodiscard]] int receive(ibv_recv_wr* orders);

 private:
  QueuePair(std::shared_ptr<ProtectionDomain> domain, std::shared_ptr<CompletionQueue> queue,
            ibv_qp* pair)
      : domain_(std::move(domain)), queue_(std::move(queue)), pair_(pair) {}

  const std::shared_ptr<ProtectionDomain> domain_;
  const std::shared_ptr<CompletionQueue> queue_;
  ibv_qp* const pair_;
};

}  // namespace mscclc::verbs
