// The sockets at which a hub listens: whether it looks there, and what connects.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/bootstrap/tcp/epoll_set.h"
#include "runtime/bootstrap/tcp/listener.h"
#include "runtime/support/address/sockets.h"
#include "runtime/support/fd.h"

namespace mscclc {

/// Thread safety: one thread at a time.
class HubListeners {
 public:
  /// Listens at all of them. The set must outlive it. REQUIRES: at least one, fewer than kFirstKey.
  HubListeners(EpollSet& epoll, std::vector<Listener> listeners);
  HubListeners(const HubListeners&) = delete;
  HubListeners& operator=(const HubListeners&) = delete;

  /// "a unix socket of this machine, port 30500 of all addresses".
  std::string text() const;
  bool empty() const { return listeners_.empty(); }
  /// Listens at one more.
  void add(Listener listener);

  /// A process that has connected.
  struct Caller {
    Fd socket = {};  ///< invalid: none that may
    Address from = {}, to = {};
    int error = 0;  ///< of the system, if none has
  };
  /// The next at listener `i`.
  Caller accept(size_t i);

  /// Accepts nothing until look_again().
  void look_away();
  bool looks_away() const { return !looks_ && !listeners_.empty(); }
  void look_again();
  /// For good. A child of fork() may hold the sockets, too: if they were just closed here, they
  /// would listen on, and stay in the epoll set.
  void stop();

 private:
  EpollSet& epoll_;
  std::vector<Listener> listeners_;
  bool looks_ = true;
};

}  // namespace mscclc
