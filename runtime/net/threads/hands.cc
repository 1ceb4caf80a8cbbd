#include "runtime/net/threads/hands.h"

#include <utility>

#include "runtime/base/idle.h"

namespace mscclc::net {

std::unique_ptr<Hands> Hands::start(uint32_t count, std::chrono::microseconds awake,
                                    const BeginThread& begin, Diagnostics& diagnostics) {
  std::unique_ptr<Hands> hands(new Hands(awake));
  for (uint32_t i = 0; i < count; ++i) {
    auto hand = std::make_unique<Hand>();
    hand->thread = begin_lane_thread(
        "mscclc-hand", begin, [all = hands.get(), h = hand.get()] { all->run(*h); }, diagnostics);
    if (!hand->thread.joinable()) return nullptr;
    hands->hands_.push_back(std::move(hand));
  }
  return hands;
}

Hands::~Hands() {
  for (auto& hand : hands_) {
    const std::lock_guard lock(hand->mutex);
    hand->stop = true;
    hand->news.notify_one();
  }
  for (auto& hand : hands_) hand->thread.join();
}

void Hands::give(uint64_t number, std::function<void()> work) {
  Hand& hand = *hands_[number % hands_.size()];
  {
    const std::lock_guard lock(hand.mutex);
    hand.work.push_back(std::move(work));
  }
  ++hand.given;
  hand.news.notify_one();
}

/// To be woken takes longer than to carry what comes; so it looks for a while.
void Hands::await_work(const Hand& hand, uint64_t done) const {
  Idle idle(awake_);
  while (hand.given == done && !idle.is_tired()) idle.rest();
}

void Hands::run(Hand& hand) const {
  for (uint64_t done = 0;; ++done) {
    await_work(hand, done);
    std::function<void()> work;
    {
      std::unique_lock lock(hand.mutex);
      hand.news.wait(lock, [&] { return hand.stop || !hand.work.empty(); });
      if (hand.work.empty()) return;
      work = std::move(hand.work.front());
      hand.work.pop_front();
    }
    work();
  }
}

}  // namespace mscclc::net
