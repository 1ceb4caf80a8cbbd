// What the lanes of one device share: a thread that waits for their sockets, and the socket at
// which ranks of other machines open them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "runtime/api/lane.h"
#include "runtime/network/exposed_memory.h"
#include "runtime/network/lane_wire.h"
#include "runtime/network/threads/copy_workers.h"
#include "runtime/network/threads/reactor.h"
#include "runtime/support/address/address.h"
#include "runtime/support/deadline.h"

namespace mscclc::net {

struct SocketOptions {
  std::string interface = {};     ///< whose address peers get: see choose_address()
  int family = AF_UNSPEC;         ///< of that address: see choose_address()
  std::chrono::seconds dead{30};  ///< a machine that has not answered for so long is gone
  uint32_t connections = 2;       ///< of each lane, up to kMaxConnections
  /// How long nothing comes before the threads of lanes sleep; before that they ask again and
  /// again.
  std::chrono::microseconds awake{0};
  /// What is sent has a thread of its own: both ways are then as fast as one.
  bool sends_apart = false;
  /// Threads that send and receive long puts.
  uint32_t workers = 0;
  /// Called first in each thread of lanes. False: reported, and no lanes are to be had.
  BeginThread begin_thread = {};
};
/// As the process's environment says, else `options`. nullopt: reported (bad-variable).
[[nodiscard]] std::optional<SocketOptions> read_socket_options(Diagnostics& diagnostics,
                                                               SocketOptions options = {});

/// Thread safety: from any thread. What it calls it calls under the reactor's hold().
class SocketNet {
 public:
  /// What takes the connections of a lane.
  class Taker {
   public:
    virtual ~Taker() = default;
    virtual const Key& key() const = 0;
    /// A connection whose other end has proved that it knows the key. The reply to it: the taker
    /// sends that, if it wants the connection. False: it does not.
    virtual bool take(Fd& socket, const Hello& hello, const Welcome& reply) = 0;
    /// No connection can be taken any more.
    virtual void cannot_take(const std::string& why) = 0;
  };

  /// nullptr: reported (no-interface, lane-failed, no-thread).
  [[nodiscard]] static std::shared_ptr<SocketNet> start(const SocketOptions& options,
                                                        Diagnostics& diagnostics);
  /// Gives peers a second to read what has been sent to them last.
  ~SocketNet();

  const SocketOptions& options() const { return options_; }
  const Address& address() const { return address_; }
  Reactor& reactor() const { return *reactor_; }
  /// For lanes from here to others.
  Reactor& sends() const { return sends_ != nullptr ? *sends_ : *reactor_; }
  /// For long puts; nullptr: the reactors' threads do all.
  CopyWorkers* workers() const { return workers_.get(); }

  /// The lane's number, from now until withdraw(). REQUIRES: the reactor's hold(), in all of these.
  uint64_t announce(Taker& taker);
  void withdraw(uint64_t lane) { takers_.erase(lane); }
  /// Closes a socket when the other end has closed it, or has had SocketOptions::dead to do so.
  /// What comes until then is dropped: closed at once, it would take back what was sent last.
  void close_later(Fd socket);

 private:
  /// A connection whose other end has proved nothing yet.
  struct Stranger {
    Fd socket;
    Reactor::Token token = 0;
    Challenge challenge = {};
    Bytes said = {};
    SteadyTime since = std::chrono::steady_clock::now();
  };
  using Strangers = std::list<Stranger>;
  struct Closing {
    Fd socket;
    Reactor::Token token = 0;
    SteadyTime since = std::chrono::steady_clock::now();
  };

  explicit SocketNet(const SocketOptions& options) : options_(options) {}
  bool start_threads(Diagnostics& diagnostics);
  bool listen(Diagnostics& diagnostics);
  void accept_some();
  bool forget_slow_stranger();
  void greet(Fd socket);
  void hear(Strangers::iterator stranger);
  void decide(Strangers::iterator stranger);
  void forget(Strangers::iterator stranger);
  void erase(Strangers::iterator stranger);
  void pause();
  void resume();
  void wait_for_room();
  void tick();
  void set_timer();

  const SocketOptions options_;
  Address address_;
  std::map<uint64_t, Taker*> takers_;  ///< by lane
  uint64_t next_lane_ = 1;
  Fd listener_, timer_;
  Reactor::Token listening_ = 0;
  bool paused_ = false;  ///< no descriptors were left, or no room: nothing is accepted till a tick
  bool full_ = false;    ///< paused for want of room: also until a stranger goes
  Strangers strangers_;
  std::list<Closing> closing_;
  std::unique_ptr<CopyWorkers> workers_;
  std::unique_ptr<Reactor> sends_;    ///< nullptr: not apart
  std::unique_ptr<Reactor> reactor_;  ///< last: its thread uses all this
};

}  // namespace mscclc::net
