#include "runtime/devices/cuda/copy_lane.h"

#include <fmt/format.h>

namespace mscclc::cuda {

std::unique_ptr<CudaLane> CudaLane::open(const SharedContext& context, Diagnostics& diagnostics) {
  std::unique_ptr<OwnStream> stream = OwnStream::create(context, diagnostics, true);
  if (stream == nullptr) return nullptr;
  std::unique_ptr<CudaLane> lane(new CudaLane(context, std::move(stream)));
  lane->writes_ = context->attribute(abi::kCanUse64BitStreamMemOps) != 0;
  lane->slots_ = allocate_pinned(context, kSlots * sizeof(uint64_t), "a copy lane", diagnostics);
  if (lane->slots_ == nullptr) return nullptr;
  return lane;
}

CudaLane::~CudaLane() {
  // Copies under way read the slots and the callers' memory.
  Diagnostics ignored;  // whatever it says, nothing runs any more
  (void)synchronize(ignored);
}

bool CudaLane::put(const RemotePlace& to, const void* from, uint64_t bytes,
                   Diagnostics& diagnostics) {
  if (bytes == 0) return true;
  const CurrentContext current(*context_);
  return current.is_set(diagnostics) &&
         context_->ok(
             context_->driver().MemcpyAsync(address_of(to.region->data() + to.offset),
                                            address_of(from), bytes, stream_->get()),
             [&] { return fmt::format("copy {} bytes to a peer", bytes); }, diagnostics);
}

bool CudaLane::signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) {
  return complete(reinterpret_cast<uint64_t*>(count.region->data() + count.offset), value,
                  diagnostics);
}

// To the stream, counts are alike wherever they lie: it is after all puts so far.
bool CudaLane::complete(uint64_t* count, uint64_t value, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  if (!current.is_set(diagnostics)) return false;
  if (writes_) {
    const abi::Result result = context_->driver().StreamWriteValue64(
        stream_->get(), address_of(count), value, abi::kWriteValueDefault);
    if (result == abi::kSuccess) return true;
    if (result != abi::kNotSupported && result != abi::kInvalidValue) {
      return context_->ok(result, "set a count after copies", diagnostics);
    }
    writes_ = false;
  }
  return copy_count(count, value, diagnostics);
}

bool CudaLane::copy_count(uint64_t* count, uint64_t value, Diagnostics& diagnostics) {
  if (used_ == kSlots) {
    if (!synchronize(diagnostics)) return false;
    used_ = 0;
  }
  auto* slot = reinterpret_cast<uint64_t*>(slots_->data()) + used_++;
  *slot = value;
  return context_->ok(
      context_->driver().MemcpyAsync(address_of(count), address_of(slot), sizeof *slot,
                                     stream_->get()),
      [] { return "copy a count after copies"; }, diagnostics);
}

FlushState CudaLane::try_flush(Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  if (!current.is_set(diagnostics)) return FlushState::failed;
  const abi::Result result = context_->driver().StreamQuery(stream_->get());
  if (result == abi::kNotReady) return FlushState::under_way;
  if (!context_->ok(
          result, [] { return "copy to a peer"; }, diagnostics)) {
    return FlushState::failed;
  }
  used_ = 0;
  return FlushState::done;
}

bool CudaLane::synchronize(Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  return current.is_set(diagnostics) && context_->ok(
                                            context_->driver().StreamSynchronize(stream_->get()),
                                            [] { return "copy to a peer"; }, diagnostics);
}

}  // namespace mscclc::cuda
