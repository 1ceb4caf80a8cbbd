#include "runtime/devices/cuda/internode/far_lane.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "executor/shared_atomics.h"
#include "runtime/devices/cuda/internode/copy_queue.h"
#include "runtime/devices/cuda/internode/far_nodes.h"
#include "runtime/support/idle.h"

namespace mscclc::cuda {
namespace {

/// A piece is copied in about as long as it takes to begin its copy and to send an order.
constexpr uint64_t kPiece = 256 << 10;
constexpr uint32_t kPieces = 16;
constexpr uint32_t kAhead = 4;  ///< copies that are begun before the first is sent
constexpr std::chrono::milliseconds kAwake{10};
constexpr uint32_t kAsk = 1024;  ///< rests between questions whether all is over

class FarLane final : public Lane {
 public:
  FarLane(SharedContext context, std::unique_ptr<Memory> memory, std::unique_ptr<CopyQueue> queue,
          std::unique_ptr<Lane> lane, Reads reads, std::function<bool()> over)
      : context_(std::move(context)),
        reads_(std::move(reads)),
        over_(std::move(over)),
        memory_(std::move(memory)),
        queue_(std::move(queue)),
        lane_(std::move(lane)) {}

  /// A put of n pieces may begin and end within one, and so take n + 1 slots.
  uint64_t room() override {
    uint64_t free = 0;
    while (free < kPieces && is_read((next_ + free) % kPieces)) ++free;
    if (free < 2) return is_over() ? kAnyRoom : 0;
    return std::min((free - 1) * kPiece, lane_->room());
  }

  bool put(const RemotePlace& to, const void* from, uint64_t bytes,
           Diagnostics& diagnostics) override {
    if (bytes == 0) return true;
    const auto place = place_of(*context_, from, diagnostics);
    if (!place) return false;
    if (*place == MemoryPlace::host || (reads_ && reads_(from, bytes))) {
      return lane_->put(to, from, bytes, diagnostics);
    }
    return put_pieces(to, from, bytes, diagnostics);
  }

  bool signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) override {
    return lane_->signal(count, value, diagnostics);
  }
  bool complete(uint64_t* count, uint64_t value, Diagnostics& diagnostics) override {
    return lane_->complete(count, value, diagnostics);
  }
  bool note(const LaneNote& note, Diagnostics& diagnostics) override {
    return lane_->note(note, diagnostics);
  }
  void cork() override { lane_->cork(); }
  bool uncork(Diagnostics& diagnostics) override { return lane_->uncork(diagnostics); }
  FlushState try_flush(Diagnostics& diagnostics) override { return lane_->try_flush(diagnostics); }

 private:
  struct Piece {
    uint64_t bytes = 0;
    uint64_t copy = 0;  ///< of the queue
    uint32_t slot = 0;
  };

  bool put_pieces(RemotePlace to, const void* from, uint64_t bytes, Diagnostics& diagnostics) {
    std::array<Piece, kAhead> ahead;
    uint32_t begun = 0, sent = 0;
    for (uint64_t copied = 0, put = 0; put < bytes;) {
      while (copied < bytes && begun - sent < kAhead) {
        Piece& piece = ahead[begun++ % kAhead];
        piece.bytes = std::min(kPiece - (to.offset + copied) % kPiece, bytes - copied);
        const auto* source = static_cast<const uint8_t*>(from) + copied;
        if (!begin_copy(source, piece, diagnostics)) return false;
        copied += piece.bytes;
      }
      const Piece& piece = ahead[sent++ % kAhead];
      const uint8_t* const data = memory_->data() + piece.slot * kPiece;
      if (!queue_->wait(piece.copy, diagnostics) ||
          !lane_->put({to.region, to.offset + put}, data, piece.bytes, diagnostics) ||
          !lane_->complete(&read_[piece.slot], ++uses_[piece.slot], diagnostics)) {
        return false;
      }
      put += piece.bytes;
    }
    return true;
  }

  bool begin_copy(const void* from, Piece& piece, Diagnostics& diagnostics) {
    piece.slot = next_++ % kPieces;
    if (!await_slot(piece.slot, diagnostics) ||
        !queue_->copy(memory_->data() + piece.slot * kPiece, from, piece.bytes, diagnostics) ||
        !queue_->mark(diagnostics)) {
      return false;
    }
    piece.copy = queue_->begun();
    return true;
  }

  /// Has what was last put from there been sent?
  bool is_read(uint64_t slot) const { return load_acquire<uint64_t>(&read_[slot]) == uses_[slot]; }

  /// Asked while all slots are in use: would an order fail?
  bool is_over() {
    Diagnostics ignored;
    return ++asked_room_ % kAsk == 0 &&
           ((over_ && over_()) || !lane_->complete(&asked_, 1, ignored));
  }

  /// Until what was last put from there has been sent.
  bool await_slot(uint32_t slot, Diagnostics& diagnostics) {
    Idle idle(kAwake);
    for (uint32_t rests = 1; !is_read(slot); ++rests) {
      // A lane that has broken says why, rather than that its peer takes nothing.
      if (rests % kAsk == 0 && !lane_->complete(&asked_, 1, diagnostics)) return false;
      if (rests % kAsk == 0 && over_ && over_()) {
        diagnostics.error("lane-failed", {},
                          "the peer takes no orders, and the communicator has failed");
        return false;
      }
      idle.rest();
    }
    return true;
  }

  const SharedContext context_;
  const Reads reads_;
  const std::function<bool()> over_;
  std::unique_ptr<Memory> memory_;           ///< nullptr: nothing was put from the GPU so far
  std::array<uint64_t, kPieces> read_ = {};  ///< by slot: uses whose bytes have been sent
  std::array<uint64_t, kPieces> uses_ = {};  ///< by slot
  uint64_t asked_ = 0;
  uint32_t asked_room_ = 0;  ///< so often, for nothing
  uint32_t next_ = 0;
  std::unique_ptr<CopyQueue> queue_;
  std::unique_ptr<Lane> lane_;  ///< last: it reads what is above
};

}  // namespace

std::unique_ptr<Lane> make_far_lane(const SharedContext& context, std::unique_ptr<Lane> lane,
                                    Reads reads, OwnAllocations& own, std::function<bool()> over,
                                    Diagnostics& diagnostics) {
  // Not when it is needed: the driver may wait for kernels then, and they for what is sent.
  auto memory =
      own.add(allocate_pinned(context, kPieces * kPiece, "what goes to other nodes", diagnostics));
  auto queue = memory == nullptr ? nullptr : CopyQueue::open(context, diagnostics);
  if (queue == nullptr) return nullptr;
  return std::make_unique<FarLane>(context, std::move(memory), std::move(queue), std::move(lane),
                                   std::move(reads), std::move(over));
}

}  // namespace mscclc::cuda
