#include "runtime/core/proxy/proxy_thread.h"

#include <map>
#include <new>
#include <utility>

#include "runtime/support/idle.h"
#include "runtime/support/process/per_process.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {
namespace {

/// Device::room(), or a device that has none.
using ThreadKey = std::pair<std::vector<uint8_t>, const Device*>;

ThreadKey key_of(const Device& device) {
  std::vector<uint8_t> room = device.room();
  const Device* const alone = room.empty() ? &device : nullptr;
  return {std::move(room), alone};
}

struct OfProcess {
  std::mutex mutex;
  std::map<ThreadKey, std::weak_ptr<ProxyThread>> threads;
};

}  // namespace

std::shared_ptr<ProxyThread> ProxyThread::of(const Device& device, Diagnostics& diagnostics) {
  auto& here = process_wide<OfProcess>();
  const std::lock_guard lock(here.mutex);
  std::erase_if(here.threads, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<ProxyThread>& known = here.threads[key_of(device)];
  if (auto running = known.lock()) return running;
  std::shared_ptr<ProxyThread> made(new ProxyThread);
  made->thread_ = quiet_thread("mscclc-proxy", [thread = made.get()] { thread->run(); });
  if (!has_started(made->thread_, "the proxy of port channels", diagnostics)) return nullptr;
  known = made;
  return made;
}

ProxyThread::~ProxyThread() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void ProxyThread::add(Served& served) {
  const std::lock_guard lock(mutex_);
  new_.push_back(&served);
  has_new_.store(true, std::memory_order_release);
}

void ProxyThread::take_new() {
  if (!has_new_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  served_.insert(served_.end(), new_.begin(), new_.end());
  new_.clear();
  has_new_ = false;
}

bool ProxyThread::serve_all() {
  bool moved = false;
  for (size_t i = 0; i < served_.size();) {
    Served& served = *served_[i];
    const Progress turn = served.serve();
    moved |= turn == Progress::moved;
    if (turn != Progress::over) {
      ++i;
      continue;
    }
    served_.erase(served_.begin() + static_cast<ptrdiff_t>(i));
    served.over_.store(true, std::memory_order_release);  // last: it may be destroyed now
  }
  return moved;
}

void ProxyThread::run() {
  Idle idle(kAwake);
  while (!stop_) {
    try {
      take_new();
    } catch (const std::bad_alloc&) {  // they have their turns when there is memory to note them
    }
    if (serve_all()) {
      idle.reset();
    } else {
      idle.rest();
    }
  }
}

}  // namespace mscclc
