// Hubs of the ids that this process has made.
#include <map>
#include <mutex>
#include <utility>

#include "runtime/api/job.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {
namespace {

class OwnHubs {
 public:
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
  struct OwnHub {
    std::weak_ptr<Hub> joined;
    std::shared_ptr<Hub> waiting;  ///< until the first has joined
  };
  std::mutex mutex_;
  std::map<std::string, OwnHub> hubs_;
};

/// The thread of a hub stays in the process that made it: a child leaves the inherited hubs as they
/// are.
OwnHubs& own_hubs() { return process_wide<OwnHubs>(); }

}  // namespace

void keep_hub(const UniqueId& id, std::shared_ptr<Hub> hub) {
  own_hubs().keep(id.text(), std::move(hub));
}

std::shared_ptr<Hub> own_hub(const UniqueId& id) { return own_hubs().join(id.text()); }

}  // namespace mscclc
