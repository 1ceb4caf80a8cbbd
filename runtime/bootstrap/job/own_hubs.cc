// Hubs of the ids that this process has made.
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/api/job.h"
#include "runtime/bootstrap/tcp/hub.h"

namespace mscclc {
namespace {

class OwnHubs {
 public:
  /// The thread of a hub stays in the process that made it, as does whoever held the mutex: a child
  /// of fork() begins with a table of its own, and leaves the inherited hubs as they are. Never
  /// destroyed: the threads may outlive main().
  static OwnHubs& of_process() {
    static std::atomic<OwnHubs*> made{nullptr};
    OwnHubs* found = made;
    while (found == nullptr || found->process_ != ::getpid()) {
      auto fresh = std::make_unique<OwnHubs>(found);
      if (made.compare_exchange_strong(found, fresh.get())) return *fresh.release();
    }
    return *found;
  }

  explicit OwnHubs(const OwnHubs* inherited) : inherited_(inherited) {}

  void keep(const std::string& id, std::shared_ptr<Hub> hub) {
    const std::lock_guard lock(mutex_);
    std::erase_if(hubs_, [](const auto& entry) { return entry.second.joined.expired(); });
    hubs_[id] = {hub, hub};
  }

  std::shared_ptr<Hub> join(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = hubs_.find(id);
    if (found == hubs_.end()) return nullptr;
    std::shared_ptr<Hub> hub = found->second.joined.lock();
    found->second.waiting.reset();
    if (hub == nullptr) hubs_.erase(found);
    return hub;
  }

 private:
  struct Entry {
    std::weak_ptr<Hub> joined;
    std::shared_ptr<Hub> waiting;  ///< until the first has joined
  };
  const pid_t process_ = ::getpid();
  [[maybe_unused]] const OwnHubs* const inherited_;  ///< still referred to, so no leak
  std::mutex mutex_;
  std::map<std::string, Entry> hubs_;
};

}  // namespace

void keep_hub(const UniqueId& id, std::shared_ptr<Hub> hub) {
  OwnHubs::of_process().keep(id.text(), std::move(hub));
}

std::shared_ptr<Hub> own_hub(const UniqueId& id) { return OwnHubs::of_process().join(id.text()); }

}  // namespace mscclc
