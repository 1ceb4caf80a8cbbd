#include "runtime/devices/cuda/internode/copy_queue.h"

#include <fmt/format.h>

#include <chrono>

#include "executor/shared_atomics.h"

namespace mscclc::cuda {
namespace {

/// A copy that takes longer is waited for by the driver, which knows of errors.
constexpr std::chrono::milliseconds kSpin{10};
constexpr int kLooks = 64;  ///< between looks at the clock

}  // namespace

std::unique_ptr<CopyQueue> CopyQueue::open(const SharedContext& context, Diagnostics& diagnostics) {
  auto stream = OwnStream::create(context, diagnostics, true);
  if (stream == nullptr) return nullptr;
  std::unique_ptr<CopyQueue> queue(new CopyQueue(context, std::move(stream)));
  queue->writes_ = context->attribute(abi::kCanUse64BitStreamMemOps) != 0;
  queue->words_ =
      allocate_pinned(context, 2 * sizeof(uint64_t), "copies to and from sockets", diagnostics);
  return queue->words_ == nullptr ? nullptr : std::move(queue);
}

CopyQueue::~CopyQueue() {
  Diagnostics ignored;  // whatever it says, nothing runs any more
  (void)synchronize(ignored);
}

bool CopyQueue::copy(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  unmarked_ = true;
  return current.is_set(diagnostics) &&
         context_->ok(
             context_->driver().MemcpyAsync(address_of(to), address_of(from), bytes,
                                            stream_->get()),
             [&] { return fmt::format("copy {} bytes for another node", bytes); }, diagnostics) &&
         (writes_ || mark(diagnostics));
}

bool CopyQueue::set(uint8_t* count, uint64_t value, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  if (!current.is_set(diagnostics)) return false;
  unmarked_ = true;
  if (writes_) return write(address_of(count), value, diagnostics) && mark(diagnostics);
  uint8_t* const slot = words_->data() + sizeof value;
  store_release(slot, value);
  return copy(count, slot, sizeof value, diagnostics);
}

bool CopyQueue::is_done(uint64_t number) const {
  return load_acquire<uint64_t>(words_->data()) >= number;
}

bool CopyQueue::wait(uint64_t number, Diagnostics& diagnostics) const {
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (is_done(number)) return true;
    }
  } while (std::chrono::steady_clock::now() < until);
  return synchronize(diagnostics);
}

bool CopyQueue::write(abi::Address at, uint64_t value, Diagnostics& diagnostics) {
  return context_->ok(
      context_->driver().StreamWriteValue64(stream_->get(), at, value, abi::kWriteValueDefault),
      "set a count after copies", diagnostics);
}

bool CopyQueue::mark(Diagnostics& diagnostics) {
  if (!unmarked_) return true;
  ++marks_;
  unmarked_ = false;
  const CurrentContext current(*context_);
  if (!current.is_set(diagnostics)) return false;
  if (writes_) return write(address_of(words_->data()), marks_, diagnostics);
  if (!synchronize(diagnostics)) return false;
  store_release(words_->data(), marks_);
  return true;
}

bool CopyQueue::synchronize(Diagnostics& diagnostics) const {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  return current.is_set(diagnostics) && context_->ok(
                                            context_->driver().StreamSynchronize(stream_->get()),
                                            [] { return "copy for another node"; }, diagnostics);
}

}  // namespace mscclc::cuda
