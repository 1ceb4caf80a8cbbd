#include "runtime/devices/cuda/internode/gpu_arrivals.h"

#include <deque>

#include "executor/shared_atomics.h"
#include "ir/diagnostics/first_message.h"
#include "runtime/devices/cuda/internode/copy_queue.h"
#include "runtime/network/verbs/loop/flush_read.h"

namespace mscclc::cuda {
namespace {

class GpuArrivals final : public verbs::Arrivals {
 public:
  GpuArrivals(std::shared_ptr<VerbsMemory> memory, std::shared_ptr<const GpuCounts> counts,
              std::unique_ptr<CopyQueue> queue)
      : memory_(std::move(memory)), counts_(std::move(counts)), queue_(std::move(queue)) {}

  Result<void> land(const ExposedMemory::Piece& piece, uint64_t bytes) override {
    Diagnostics problems;
    if (!queue_->copy(piece.data, piece.staging, bytes, problems) || !queue_->mark(problems)) {
      return copy_error(problems);
    }
    keep(piece.owner);
    return {};
  }

  Result<void> signal(const ExposedMemory::Piece& count, uint64_t value) override {
    if (const auto flushed = flush(); !flushed) return flushed;
    if (queue_->is_done(queue_->begun())) {
      if (count.place == MemoryPlace::host) return store_release(count.data, value), Result<void>();
      if (counts_->store(count.data, value)) return {};
    }
    Diagnostics problems;
    if (!queue_->set(count.data, value, problems)) return copy_error(problems);
    keep(count.owner);
    return {};
  }

  Result<void> settle() override {
    Diagnostics problems;
    if (!queue_->wait(queue_->begun(), problems)) return copy_error(problems);
    return {};
  }

 private:
  struct Kept {
    std::shared_ptr<const void> owner;
    uint64_t until;  ///< number of the queue
  };

  /// What the network device has written to the GPU so far is there, whichever way it went.
  Result<void> flush() {
    for (const VerbsMemory::Direct& direct : memory_->one_of_each_path()) {
      if (direct.region == nullptr) continue;
      if (flush_ == nullptr) {
        auto made = verbs::FlushRead::make(*memory_->adapter());
        if (!made) return made.error();
        flush_ = *std::move(made);
      }
      const auto read = flush_->run(direct.address, direct.region->remote_key());
      if (!read) return read;
    }
    return {};
  }

  /// What was begun last needs it.
  void keep(std::shared_ptr<const void> owner) {
    while (!kept_.empty() && queue_->is_done(kept_.front().until)) kept_.pop_front();
    kept_.push_back({std::move(owner), queue_->begun()});
  }

  static Error copy_error(const Diagnostics& problems) {
    return {first_message(problems, "a copy has failed")};
  }

  const std::shared_ptr<VerbsMemory> memory_;
  const std::shared_ptr<const GpuCounts> counts_;
  std::unique_ptr<verbs::FlushRead> flush_;  ///< nullptr: not needed so far
  std::deque<Kept> kept_;
  std::unique_ptr<CopyQueue> queue_;  ///< last: waits for copies of what is kept
};

}  // namespace

std::unique_ptr<verbs::Arrivals> make_arrivals(const SharedContext& context,
                                               std::shared_ptr<VerbsMemory> memory,
                                               std::shared_ptr<const GpuCounts> counts,
                                               Diagnostics& diagnostics) {
  auto queue = CopyQueue::open(context, diagnostics);
  if (queue == nullptr) return nullptr;
  return std::make_unique<GpuArrivals>(std::move(memory), std::move(counts), std::move(queue));
}

}  // namespace mscclc::cuda
