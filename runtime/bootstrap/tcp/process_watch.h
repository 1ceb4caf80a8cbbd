// Processes whose ends a hub notices, also where a child of theirs holds the connection, too.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "runtime/bootstrap/tcp/epoll_set.h"
#include "runtime/support/fd.h"

namespace mscclc {

/// Thread safety: one thread at a time.
class ProcessWatch {
 public:
  /// `on`: false: it watches none. The set must outlive it.
  ProcessWatch(EpollSet& epoll, bool on) : epoll_(epoll), on_(on) {}

  /// From then on its end has the key kProcessKey + process.
  void watch(int32_t process);
  /// Its end has come. False: it is not watched.
  bool forget(int32_t process);

 private:
  EpollSet& epoll_;
  const bool on_;
  std::map<int32_t, std::shared_ptr<const Fd>> ends_;
};

}  // namespace mscclc
