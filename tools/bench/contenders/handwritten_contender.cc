#include "tools/bench/contenders/handwritten_contender.h"

namespace mscclc::bench {

bool HandwrittenScratch::open(Communicator& communicator, uint64_t bytes, uint32_t blocks,
                              Diagnostics& diagnostics) {
  communicator_ = &communicator;
  bytes_ = (bytes + 255) / 256 * 256;
  const uint64_t all = bytes_ + blocks * sizeof(uint32_t);
  memory_ = communicator.device().allocate(all, "scratch of a kernel by hand", diagnostics);
  if (const auto unable = any_unable(communicator, memory_ != nullptr, diagnostics)) {
    if (!diagnostics.has_errors()) diagnostics.error("peer-failed", {}, unable->text());
    return false;
  }
  peers_ = PeerMemory::share(communicator, memory_->data(), all, diagnostics);
  return peers_ != nullptr;
}

bool HandwrittenScratch::clear(Diagnostics& diagnostics) {
  return succeeded(cudaDeviceSynchronize(), "wait for calls", diagnostics) &&
         communicator_->bootstrap().barrier("calls have ended", diagnostics) &&
         succeeded(cudaMemset(memory_->data(), 0, memory_->bytes()), "clear scratch",
                   diagnostics) &&
         succeeded(cudaDeviceSynchronize(), "clear scratch", diagnostics) &&
         communicator_->bootstrap().barrier("scratch is clear", diagnostics);
}

PeerPointers HandwrittenScratch::at(uint64_t offset) const {
  PeerPointers moved = peers_->pointers();
  for (uint8_t*& p : moved.of) p = p == nullptr ? nullptr : p + offset;
  return moved;
}

}  // namespace mscclc::bench
