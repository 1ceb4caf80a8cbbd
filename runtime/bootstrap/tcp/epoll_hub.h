// The hub's thread and its state (hub.h): hub.cc has what it does with time, and what ranks say;
// hub_doors.cc which processes come, and which are let in.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/bootstrap/tcp/epoll_set.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/bootstrap/tcp/hub_clients.h"
#include "runtime/bootstrap/tcp/hub_listeners.h"
#include "runtime/bootstrap/tcp/hub_requests.h"
#include "runtime/bootstrap/tcp/listener.h"
#include "runtime/bootstrap/tcp/meeting.h"
#include "runtime/bootstrap/tcp/other_ranks.h"
#include "runtime/bootstrap/tcp/process_watch.h"
#include "runtime/bootstrap/wire/handshake.h"
#include "runtime/support/fd.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/process/proc.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {

/// What a process has open besides, as a rule.
inline constexpr uint64_t kOtherDescriptors = 64;

inline bool has_descriptors(uint64_t wanted) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted;
}

class EpollHub final : public Hub {
 public:
  EpollHub(const HubOptions& options, std::vector<Listener> listeners, Fd epoll,
           const std::shared_ptr<const Fd>& waker);
  ~EpollHub() override;
  bool has_thread(Diagnostics& diagnostics) const {
    return has_started(thread_, "the bootstrap's hub", diagnostics);
  }
  Address address() const override { return address_; }
  /// Where there is no thread: the job has failed, and the ranks that come in time hear it.
  void announce_in_this_thread();
  void fail(const std::string& why, bool announced_elsewhere) override {
    requests_.fail(why, announced_elsewhere);
  }

 private:
  void serve();
  void stop_serving();

  /// A hub that was stopped as a whole knows nothing of the ranks: they may take it for dead. It
  /// has not listened, so what it has not heard is not their silence.
  void look();

  /// Until something must be seen to, even if nothing comes.
  int tick_ms() const;
  bool done();
  void close_all(bool announced_elsewhere);
  bool all_informed() const { return others_.all_heard() && meeting_.all_heard(); }

  /// Ranks look no longer than the timeout, and those that are here have waited long enough by
  /// their deadline.
  SteadyTime end_of_announcing() const;
  void say_closing(uint64_t key, HubClient& client);
  void handle(const epoll_event& event);
  void accept_some(size_t i);

  /// A listener from which nothing is accepted stays readable. Strangers go first, when they have
  /// had their time. If there are none, the ranks cannot all come: those that do hear it, one after
  /// the other, with the descriptor that was kept for this.
  void make_room(const std::string& why);
  void greet(Fd socket, const Address& from, const Address& to);

  /// Where another hub of this job does, all is said there.
  std::optional<Listener> listen_for_the_late() const;

  /// `last`: the one with which all ranks have come.
  void look_for_another_job(const HubClient& last);

  /// false: none has had its time yet.
  bool drop_oldest_stranger(std::chrono::milliseconds grace);
  void read(uint64_t key);

  /// Handles one frame. false: no rank says that.
  bool take(uint64_t key, HubClient& client);

  /// No rank comes to a step before it has read what all gave to the last: else that would gather
  /// here, step by step.
  static bool has_read_all(HubClient& client);

  /// Answers a hello.
  bool welcome(uint64_t key, HubClient& client, wire::Payload payload);
  bool refuse(uint64_t key, HubClient& client, wire::Refusal code);

  /// To the log of the process that runs the hub.
  void say(const std::string& what) const;
  static std::string where(const HubClient& client, const wire::Hello& hello);
  void turn_away(uint64_t key, HubClient& client, const wire::Failure& why);

  /// Takes in a rank that knows that the hub knows it.
  void admit(uint64_t key, HubClient& client);

  /// Sends what the meeting has to say.
  void deliver();
  void flush(uint64_t key);

  void process_ended(int32_t process);

  void tick();
  void check(HubClient& client, uint64_t key);

  const HubOptions options_;
  const Address address_;
  const wire::KeyPair keys_ = wire::KeyPair::make();
  const std::chrono::milliseconds silence_;
  const uint64_t began_ = began_of(::getpid());
  HubRequests requests_;
  // What follows is the thread's.
  EpollSet epoll_;
  StopDetector stops_;
  HubListeners listeners_;
  Fd spare_;
  RankMeeting meeting_;
  HubClients clients_;
  ProcessWatch processes_;
  OtherRanks others_;
  bool closing_ = false;
  SteadyTime now_ = std::chrono::steady_clock::now(), last_tick_, close_deadline_;
  std::thread thread_;
};

}  // namespace mscclc
