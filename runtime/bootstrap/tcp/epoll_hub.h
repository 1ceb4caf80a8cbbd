// The hub's thread and its state (hub.h): hub.cc has what it does with time, and what ranks say;
// hub_doors.cc which processes come, and which are let in.
#pragma once

#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/bootstrap/tcp/listener.h"
#include "runtime/bootstrap/tcp/meeting.h"
#include "runtime/bootstrap/wire/handshake.h"
#include "runtime/support/fd.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/process/proc.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {

inline constexpr uint64_t kWakerKey = 0, kListenerKey = 1, kFirstKey = 64;
/// Of the end of a process, whose number follows.
inline constexpr uint64_t kProcessKey = uint64_t{1} << 63;

/// What a process has open besides, as a rule.
inline constexpr uint64_t kOtherDescriptors = 64;

inline bool has_descriptors(uint64_t wanted) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted;
}

/// A connection to the hub.
struct HubClient {
  explicit HubClient(Fd socket) : connection(std::move(socket), wire::kMaxHello) {}
  Connection connection;
  Address from, to;                ///< the connection's ends
  std::optional<int32_t> process;  ///< if it has proved itself and is on this machine
  wire::Challenge challenge;
  std::optional<wire::Hello> hello;  ///< once it has proved that it knows the secret
  uint32_t rank = wire::kNoRank;     ///< once it has joined
  bool leaving = false;              ///< nothing more is read of it; it goes when all is written
  bool polls_write = false;
  /// When it came; said something that counts as a sign of life: hello, or anything once it is a
  /// rank; and was last sent something.
  SteadyTime since, heard, spoke;
};

class EpollHub final : public Hub {
 public:
  EpollHub(const HubOptions& options, std::vector<Listener> listeners, Fd epoll,
           std::shared_ptr<const Fd> waker);
  ~EpollHub() override;
  bool has_thread(Diagnostics& diagnostics) const {
    return has_started(thread_, "the bootstrap's hub", diagnostics);
  }
  Address address() const override { return address_; }
  /// Where there is no thread: the job has failed, and the ranks that come in time hear it.
  void announce_in_this_thread();
  void fail(const std::string& why, bool announced_elsewhere) override;

 private:
  void watch(int fd, uint64_t key, uint32_t events, int how);
  void serve();
  void stop_serving();

  /// A hub that was stopped as a whole knows nothing of the ranks: they may take it for dead. It
  /// has not listened, so what it has not heard is not their silence.
  void look();

  /// Until something must be seen to, even if nothing comes.
  int tick_ms() const;
  bool done();
  void close_all();

  /// Is a rank welcome that has not joined yet? It takes this hub for its job's, and looks no
  /// further: it must hear how that has ended.
  bool about_to_join() const;

  bool all_informed() const { return others_.empty() && meeting_.all_heard(); }

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

  /// Accepts no connection until the next tick.
  void look_away();
  void listen_again(int how);

  /// A child of fork() may hold the sockets, too: if they were just closed here, they would listen
  /// on, and stay in the epoll set.
  void stop_listening();

  /// Where another hub of this job does, all is said there.
  std::optional<Listener> listen_for_the_late() const;

  /// A process that was there when all ranks came, and is not one of them: it belongs to another
  /// job of this name, or one of those that came does.
  bool began_before_all_came(const HubClient& client) const;

  /// `last`: the one with which all ranks have come.
  void look_for_another_job(const HubClient& last);

  /// Ranks of another job that have not heard yet that there are two: without this hub they could
  /// still meet ranks of this job.
  void forget_others_that_ended();

  /// false: none has had its time yet. Keys grow, so the oldest is the first.
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

  /// Notices the end of a rank's process where a child of it holds the connection, too.
  void watch_process(const HubClient& client);
  void process_ended(int32_t process);

  /// Forgets a client; its descriptor leaves the epoll set as it closes.
  void drop(uint64_t key);
  void tick();
  void check(HubClient& client, uint64_t key);

  const HubOptions options_;
  const Address address_;
  const wire::KeyPair keys_ = wire::KeyPair::make();
  const Fd epoll_;
  const std::shared_ptr<const Fd> waker_;
  const std::chrono::milliseconds silence_;
  const uint64_t began_ = began_of(::getpid());
  /// Not if these descriptors could take the room of ranks that still come.
  const bool watches_processes_ = has_descriptors(2 * uint64_t{options_.size} + kOtherDescriptors);
  // What follows is the thread's, except for stop_, fail_ and announced_elsewhere_.
  StopDetector stops_;
  std::vector<Listener> listeners_;
  Fd spare_;
  RankMeeting meeting_;
  std::map<uint64_t, HubClient> clients_;
  std::map<uint32_t, uint64_t> by_rank_;  ///< keys of those that have joined
  uint64_t next_key_ = kFirstKey;
  size_t strangers_ = 0;  ///< clients that have proved nothing
  bool listens_ = true, closing_ = false;
  std::map<int32_t, std::shared_ptr<const Fd>> processes_;  ///< whose ends are watched
  std::vector<int32_t> others_;  ///< ranks of another job that are still to hear of this one
  uint64_t complete_since_ = 0;  ///< all ranks have come; in ticks (proc.h)
  SteadyTime now_ = std::chrono::steady_clock::now(), last_tick_, close_deadline_;
  std::mutex mutex_;
  bool stop_ = false;
  std::string fail_;
  bool announced_elsewhere_ = false;
  std::thread thread_;
};

}  // namespace mscclc
