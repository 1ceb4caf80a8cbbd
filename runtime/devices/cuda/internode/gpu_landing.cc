#include "runtime/devices/cuda/internode/gpu_landing.h"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "ir/diagnostics/first_message.h"
#include "runtime/devices/cuda/internode/copy_queue.h"
#include "runtime/network/order_reader.h"

namespace mscclc::cuda {
namespace {

constexpr uint64_t kRoom = net::OrderReader::kMaxPut;
/// Each connection fills one at a time; the others are copied meanwhile.
constexpr uint32_t kRooms = 2 * net::kMaxConnections;
/// The host learns of so many copies at once that their rooms are free.
constexpr uint32_t kCopiesOfMark = 4;

class GpuLanding final : public net::Landing {
 public:
  GpuLanding(std::unique_ptr<Memory> memory, std::unique_ptr<CopyQueue> queue)
      : memory_(std::move(memory)), queue_(std::move(queue)) {}

  std::unique_ptr<Room> room(uint64_t bytes) override {
    std::unique_lock lock(mutex_);
    if (bytes > kRoom) return fail(Diagnostics{}), nullptr;
    uint32_t best = kRooms;
    for (uint32_t i = 0; i < kRooms; ++i) {
      const bool sooner = best == kRooms || states_[i].copy < states_[best].copy;
      if (!states_[i].taken && sooner) best = i;
    }
    // Rooms are twice as many as connections, so that not all of them are being filled.
    auto room = std::make_unique<PinnedRoom>(states_[best], memory_->data() + best * kRoom);
    return await(states_[best].copy, lock) ? std::move(room) : nullptr;
  }

  bool land(const ExposedMemory::Piece& to, std::unique_ptr<Room> room, uint64_t bytes) override {
    Diagnostics problems;
    std::deque<Kept> done;  // what has gone frees memory, which may take long: without the lock
    const std::lock_guard lock(mutex_);
    State& state = static_cast<PinnedRoom&>(*room).state();
    if (!queue_->copy(to.data, room->data(), bytes, problems)) return fail(problems);
    state.copy = queue_->begun();
    keep(to.owner, done);
    return ++copies_ % kCopiesOfMark != 0 || queue_->mark(problems) || fail(problems);
  }

  bool signal(const ExposedMemory::Piece& count, uint64_t value) override {
    Diagnostics problems;
    std::deque<Kept> done;
    const std::lock_guard lock(mutex_);
    if (!queue_->set(count.data, value, problems)) return fail(problems);
    keep(count.owner, done);
    return true;
  }

  bool idle() override {
    const std::lock_guard lock(mutex_);
    return queue_->is_done(queue_->begun());
  }
  bool settle() override {
    std::deque<Kept> done;
    std::unique_lock lock(mutex_);
    const bool settled = await(queue_->begun(), lock);
    take_done(done);
    return settled;
  }
  std::string why() const override {
    const std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  struct State {
    std::atomic<bool> taken{false};  ///< a connection fills it
    uint64_t copy = 0;               ///< the last copy from it
  };
  class PinnedRoom final : public Room {
   public:
    PinnedRoom(State& state, uint8_t* data) : state_(state) {
      data_ = data;
      state_.taken = true;
    }
    ~PinnedRoom() override { state_.taken = false; }
    State& state() const { return state_; }

   private:
    State& state_;
  };

  struct Kept {
    std::shared_ptr<const void> owner;
    uint64_t until;  ///< number of the queue
  };

  /// What was begun last needs it.
  void keep(std::shared_ptr<const void> owner, std::deque<Kept>& done) {
    take_done(done);
    kept_.push_back({std::move(owner), queue_->begun()});
  }
  void take_done(std::deque<Kept>& done) {
    for (; !kept_.empty() && queue_->is_done(kept_.front().until); kept_.pop_front()) {
      done.push_back(std::move(kept_.front()));
    }
  }

  /// Other threads may begin copies meanwhile.
  bool await(uint64_t copy, std::unique_lock<std::mutex>& lock) {
    Diagnostics problems;
    if (queue_->is_done(copy)) return true;
    bool good = queue_->mark(problems);
    lock.unlock();
    good = good && queue_->wait(copy, problems);
    lock.lock();
    return good || fail(problems);
  }

  bool fail(const Diagnostics& problems) {
    why_ = first_message(problems, "a put is too long");
    return false;
  }

  mutable std::mutex mutex_;              ///< for all below
  const std::unique_ptr<Memory> memory_;  ///< the rooms
  std::array<State, kRooms> states_ = {};
  uint32_t copies_ = 0;
  std::deque<Kept> kept_;
  std::unique_ptr<CopyQueue> queue_;  ///< last: waits for copies, whose memory is kept
  std::string why_;
};

}  // namespace

std::unique_ptr<net::Landing> make_landing(const SharedContext& context, Diagnostics& diagnostics) {
  // Not when it is needed: the driver may wait for kernels then, and they for what comes.
  auto memory =
      allocate_pinned(context, kRooms * kRoom, "what comes from other nodes", diagnostics);
  auto queue = memory == nullptr ? nullptr : CopyQueue::open(context, diagnostics);
  if (queue == nullptr) return nullptr;
  return std::make_unique<GpuLanding>(std::move(memory), std::move(queue));
}

}  // namespace mscclc::cuda
