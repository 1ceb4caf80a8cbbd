// What other threads ask of a hub's thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/support/fd.h"

namespace mscclc {

/// Thread safety: from any thread.
class HubRequests {
 public:
  struct Asked {
    bool stop = false;
    std::string fail = {};             ///< why the job is to end; "": it is not
    bool announced_elsewhere = false;  ///< Hub::fail()
  };

  /// `waker`: wakes the hub's thread.
  explicit HubRequests(std::shared_ptr<const Fd> waker) : waker_(std::move(waker)) {}

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      asked_.stop = true;
    }
    wake(*waker_);
  }
  void fail(const std::string& why, bool announced_elsewhere) {
    {
      const std::lock_guard lock(mutex_);
      asked_.fail = why;
      asked_.announced_elsewhere = announced_elsewhere;
    }
    wake(*waker_);
  }
  Asked asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  const std::shared_ptr<const Fd> waker_;
  mutable std::mutex mutex_;
  Asked asked_;
};

}  // namespace mscclc
