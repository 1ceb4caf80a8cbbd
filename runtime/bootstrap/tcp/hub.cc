// Whoever connects gets a challenge and has some seconds to prove that he knows the secret; until
// then he is worth a hundred bytes of memory and one of a limited number of places. A rank is here
// when it has said so in a sealed record: by then it knows the hub, and will not try again. Once
// all ranks have come, the hub no longer listens, but at a unix socket for ranks of this machine
// that come too late: they hear it at once.
#include "runtime/bootstrap/tcp/hub.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/base/failed_call.h"
#include "runtime/base/fixed_times.h"
#include "runtime/base/process/proc.h"
#include "runtime/base/process/quiet_thread.h"
#include "runtime/base/process_end.h"
#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/tcp/listener.h"
#include "runtime/bootstrap/tcp/meeting.h"
#include "runtime/bootstrap/wire/handshake.h"
#include "runtime/observe/log.h"

namespace mscclc {
namespace {

using wire::FrameKind;

constexpr uint64_t kWakerKey = 0, kListenerKey = 1, kFirstKey = 64;
/// Of the end of a process, whose number follows.
constexpr uint64_t kProcessKey = uint64_t{1} << 63;

/// What a process has open besides, as a rule.
constexpr uint64_t kOtherDescriptors = 64;

bool has_descriptors(uint64_t wanted) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted;
}

/// "a unix socket of this machine, port 30500 of all addresses".
std::string places(const std::vector<Listener>& listeners) {
  std::string text;
  for (const Listener& listener : listeners) {
    if (!text.empty()) text += ", ";
    text += place(listener);
  }
  return text;
}

struct Client {
  explicit Client(Fd socket) : connection(std::move(socket), wire::kMostHello) {}
  Connection connection;
  Address from, to;                ///< the connection's ends
  std::optional<int32_t> process;  ///< of who has proved himself and is on this machine
  wire::Challenge challenge;
  std::optional<wire::Hello> hello;  ///< of who has proved that he knows the secret
  uint32_t rank = wire::kNoRank;     ///< of who has joined
  bool leaving = false;              ///< nothing more is read of it; it goes when all is written
  bool polls_write = false;
  /// When it came; said something that counts as a sign of life: hello, or anything once it is a
  /// rank; and was last told something.
  SteadyTime since, heard, spoke;
};

class EpollHub final : public Hub {
 public:
  EpollHub(const HubOptions& options, std::vector<Listener> listeners, Fd epoll, Fd waker)
      : options_(options),
        address_(listeners.front().address),
        epoll_(std::move(epoll)),
        waker_(std::move(waker)),
        silence_(options.silence),
        stops_(options.silence),
        listeners_(std::move(listeners)),
        meeting_({.size = options.size,
                  .hub_rank = options.rank,
                  .hub_process = options.process,
                  .timeout = options.timeout}) {
    if (options.two_jobs) {
      meeting_.refuse_both(options.failed);
    } else if (!options.failed.empty()) {
      meeting_.refuse_all(options.failed);
    }
    say("ranks meet at " + places(listeners_));
    listen_again(EPOLL_CTL_ADD);
    spare_ = make_waker();
    watch(waker_.get(), kWakerKey, EPOLLIN, EPOLL_CTL_ADD);
    // Ranks see their connections end.
    thread_ = quiet_thread(
        "mscclc-hub", [this] { serve(); }, [this] { stop_serving(); });
  }
  ~EpollHub() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake(waker_);
    if (thread_.joinable()) thread_.join();
  }
  bool has_thread(Diagnostics& diagnostics) const {
    return has_started(thread_, "the bootstrap's hub", diagnostics);
  }
  Address address() const override { return address_; }
  /// Where there is no thread: the job has failed, and the ranks that come in time hear it.
  void tell_in_this_thread() {
    stop_ = true;
    serve();
  }
  void fail(const std::string& why, bool told_elsewhere) override {
    {
      const std::lock_guard lock(mutex_);
      fail_ = why;
      told_elsewhere_ = told_elsewhere;
    }
    wake(waker_);
  }

 private:
  void watch(int fd, uint64_t key, uint32_t events, int how) {
    epoll_event event{.events = events, .data = {.u64 = key}};
    ::epoll_ctl(epoll_.get(), how, fd, &event);
  }

  void serve() {
    while (!done()) {
      epoll_event events[256];
      const int count = ::epoll_wait(epoll_.get(), events, 256, tick_ms());
      look();
      for (int i = 0; i < count; ++i) handle(events[i]);
      if (now_ - last_tick_ >= std::chrono::milliseconds(tick_ms())) tick();
      deliver();
    }
    stop_serving();
  }
  void stop_serving() {
    clients_.clear();
    stop_listening();
  }

  /// A hub that was stopped as a whole knows nothing of the ranks: they may take it for dead. It
  /// has not listened, so what it has not heard is not their silence.
  void look() {
    now_ = std::chrono::steady_clock::now();
    if (!stops_.look(now_)) return;
    bool silent = false;
    for (auto& [key, client] : clients_) {
      client.heard = now_;
      silent |= client.rank != wire::kNoRank && now_ - client.spoke >= silence_;
    }
    if (silent) meeting_.give_up_hub(asleep_text(*stops_.just_stopped()));
  }

  /// Until something must be seen to, even if nothing comes.
  int tick_ms() const {
    const bool busy =
        strangers_ > 0 || meeting_.waiting() || closing_ || (!listens_ && !listeners_.empty());
    return busy ? static_cast<int>(kBusyTick.count()) : idle_tick_ms(silence_);
  }

  bool done() {
    if (!closing_) {
      const std::lock_guard lock(mutex_);
      if (!fail_.empty()) {
        meeting_.refuse_all(fail_);
        deliver();
      }
      if (stop_) close_all();
    }
    if (!closing_) return false;
    const bool all_told = clients_.empty() && listeners_.empty();
    return all_told || now_ >= close_deadline_;
  }

  void close_all() {
    closing_ = true;
    now_ = std::chrono::steady_clock::now();
    // Ranks that have not come yet would wait for a hub that is gone.
    const SteadyTime end = end_of_telling();
    const bool tells = meeting_.failure() && !all_told() && !told_elsewhere_ && now_ < end;
    close_deadline_ = now_ + kGoodbyeTime;
    if (tells || about_to_join()) close_deadline_ = std::max(close_deadline_, end);
    if (!tells) stop_listening();
    for (auto i = clients_.begin(); i != clients_.end();) {
      const uint64_t key = i->first;
      Client& client = (i++)->second;
      if (client.rank != wire::kNoRank) {
        say_closing(key, client);
      } else if (!tells && !client.hello) {
        drop(key);
      }
    }
  }

  /// Is a rank welcome that has not joined yet? It takes this hub for its job's, and looks no
  /// further: it must hear how that has ended.
  bool about_to_join() const {
    return std::any_of(clients_.begin(), clients_.end(), [](const auto& entry) {
      return entry.second.hello && entry.second.rank == wire::kNoRank && !entry.second.leaving;
    });
  }

  bool all_told() const { return others_.empty() && meeting_.all_heard(); }

  /// Ranks look no longer than the timeout, and those that are here have waited long enough by
  /// their deadline.
  SteadyTime end_of_telling() const {
    if (!others_.empty()) return now_ + options_.timeout;
    const auto end = now_ + std::min<std::chrono::milliseconds>(kTellTime, options_.timeout);
    return std::min(end, meeting_.deadline().value_or(end));
  }

  void say_closing(uint64_t key, Client& client) {
    if (client.leaving) return;
    client.connection.send(wire::frame(FrameKind::closing));
    client.leaving = true;
    flush(key);
  }

  void handle(const epoll_event& event) {
    const uint64_t key = event.data.u64;
    if (key == kWakerKey) return drain(waker_);
    if (key < kFirstKey) return accept_some(key - kListenerKey);
    if (key >= kProcessKey) return process_ended(static_cast<int32_t>(key - kProcessKey));
    if ((event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) read(key);
    if ((event.events & EPOLLOUT) != 0) flush(key);
  }

  void accept_some(size_t i) {
    for (int n = 0; n < 64 && i < listeners_.size(); ++n) {
      if (strangers_ >= most_strangers() && !drop_oldest_stranger(kLeastTimeToProve)) {
        return look_away();
      }
      sockaddr_storage peer{};
      socklen_t length = sizeof peer;
      auto* raw = reinterpret_cast<sockaddr*>(&peer);
      const Listener& listener = listeners_[i];
      Fd socket(::accept4(listener.socket.get(), raw, &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) {
        if (is_out_of_descriptors(errno) || errno == ENOMEM || errno == ENOBUFS) {
          make_room(error_text(errno));
        }
        return;
      }
      const bool local = listener.address.is_local();
      if (local && !same_user(socket)) continue;
      const Address to = local ? listener.address : own_end(socket);
      greet(std::move(socket), Address::from(raw).value_or(Address()), to);
    }
  }

  /// A listener that nobody is accepted from stays readable. Strangers go first, when they have had
  /// their time. If there are none, the ranks cannot all come: those that do hear it, one after the
  /// other, with the descriptor that was kept for this.
  void make_room(const std::string& why) {
    if (strangers_ > 0) {
      if (!drop_oldest_stranger(kLeastTimeToProve)) look_away();
      return;
    }
    if (meeting_.complete()) return look_away();  // no rank is waited for
    meeting_.give_up_hub("it has no room for another connection: " + why);
    if (!spare_.valid()) return look_away();
    spare_.reset();
  }

  void greet(Fd socket, const Address& from, const Address& to) {
    const uint64_t key = next_key_++;
    watch(socket.get(), key, EPOLLIN, EPOLL_CTL_ADD);
    Client& client = clients_.emplace(key, std::move(socket)).first->second;
    client.connection.set_silence(silence_);
    client.from = from;
    client.to = to;
    client.since = client.heard = client.spoke = now_;
    ++strangers_;
    fill_random(client.challenge.nonce);
    client.challenge.key = keys_.open;
    client.connection.send(wire::frame(client.challenge));
    flush(key);
  }

  /// Accepts nobody until the next tick.
  void look_away() {
    for (const Listener& listener : listeners_) {
      watch(listener.socket.get(), 0, 0, EPOLL_CTL_MOD);
    }
    listens_ = false;
  }
  void listen_again(int how) {
    for (size_t i = 0; i < listeners_.size(); ++i) {
      watch(listeners_[i].socket.get(), kListenerKey + i, EPOLLIN, how);
    }
    listens_ = true;
  }

  /// A child of fork() may hold the sockets, too: closing them alone would let them listen on, and
  /// leave them in the epoll set.
  void stop_listening() {
    for (const Listener& listener : listeners_) {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.socket.get(), nullptr);
      ::shutdown(listener.socket.get(), SHUT_RDWR);
    }
    listeners_.clear();
  }

  /// Where another hub of this job does, all is said there.
  std::optional<Listener> listen_for_the_late() const {
    if (!options_.local || closing_) return std::nullopt;
    const Address address = Address::local(wire::local_name(options_.secret), kLateName);
    Fd socket = listen_on(address);
    if (!socket.valid()) return std::nullopt;
    return Listener{std::move(socket), address};
  }

  /// A process that was there when all ranks came, and is none of them: it belongs to another job
  /// of this name, or one of those that came does.
  bool began_before_all_came(const Client& client) const {
    const auto facts = client.process ? facts_of(*client.process) : std::nullopt;
    return facts && facts->began < complete_since_;
  }

  /// `last`: with whom all ranks have come.
  void look_for_another_job(const Client& last) {
    if (!options_.find_other_job) return;
    std::vector<RankProcess> ranks;
    const auto add = [&](const Client& client) {
      if (client.process) ranks.push_back({client.hello->rank, *client.process});
    };
    for (const auto& [rank, key] : by_rank_) add(clients_.at(key));
    add(last);
    OtherJob other = options_.find_other_job(ranks);
    if (other.why.empty()) return;
    others_ = std::move(other.processes);
    meeting_.refuse_both(other.why);
  }

  /// Ranks of another job that have not heard yet that there are two: without this hub they could
  /// still meet ranks of this job.
  void forget_others_that_ended() {
    std::erase_if(others_, [](int32_t process) {
      const auto facts = facts_of(process);
      return !facts || facts->state == 'Z';
    });
  }

  /// false: none has had its time yet. Keys grow, so the oldest is the first.
  bool drop_oldest_stranger(std::chrono::milliseconds grace) {
    for (const auto& [key, client] : clients_) {
      if (client.hello || client.leaving) continue;
      if (now_ - client.since < grace) return false;
      drop(key);
      return true;
    }
    return false;
  }

  void read(uint64_t key) {
    const auto found = clients_.find(key);
    if (found == clients_.end()) return;
    Client& client = found->second;
    const bool alive = client.connection.read_some();
    const bool joined = client.rank != wire::kNoRank && !client.leaving;
    if (joined && !client.connection.tampered()) client.heard = now_;
    while (!client.leaving) {
      const wire::FrameReader::Next next = client.connection.in().next();
      if (next == wire::FrameReader::Next::more) break;
      if (next == wire::FrameReader::Next::bad || !take(key, client)) {
        if (client.rank != wire::kNoRank) meeting_.misbehave(client.rank);
        return drop(key);
      }
    }
    if (client.leaving) client.connection.in().clear();
    if (alive) return;
    look();  // it may have been stopped since this turn began
    if (client.rank != wire::kNoRank && !client.leaving) {
      if (client.connection.tampered()) {
        meeting_.distrust(client.rank, client.connection.why());
      } else if (const auto asleep = stops_.just_stopped()) {
        meeting_.give_up_hub(asleep_text(*asleep));
      } else {
        meeting_.lose(client.rank, client.connection.why());
      }
    }
    drop(key);
  }

  /// Handles one frame. false: no rank says that.
  bool take(uint64_t key, Client& client) {
    const wire::FrameReader& in = client.connection.in();
    if (!client.hello) {
      return in.kind() == FrameKind::hello && welcome(key, client, in.payload());
    }
    if (client.rank == wire::kNoRank) {
      if (in.kind() != FrameKind::joined) return false;
      admit(key, client);
      return true;
    }
    switch (in.kind()) {
      case FrameKind::gather: {
        const auto gather = wire::read_gather(in.payload());
        if (!gather || !(meeting_.failure() || has_read_all(client))) return false;
        meeting_.gather(client.rank, *gather, now_);
        return true;
      }
      case FrameKind::give_up: {
        const auto why = wire::read_give_up(in.payload());
        if (why) meeting_.give_up(client.rank, *why);
        return why.has_value();
      }
      case FrameKind::waits: {
        const auto report = wire::read_waits(in.payload());
        if (report) meeting_.waits(client.rank, *report, now_);
        return report.has_value();
      }
      case FrameKind::answer:
        meeting_.answer(client.rank);
        return true;
      case FrameKind::goodbye:
        meeting_.leave(client.rank);
        client.leaving = true;
        flush(key);
        return true;
      case FrameKind::heartbeat:
        return true;
      default:
        return false;
    }
  }

  /// No rank comes to a step before it has read what all gave to the last: else that would gather
  /// here, step by step.
  static bool has_read_all(Client& client) {
    return client.connection.write_some() && !client.connection.wants_write();
  }

  /// Answers a hello.
  bool welcome(uint64_t key, Client& client, wire::Payload payload) {
    const auto hello = wire::read_hello(payload);
    if (!hello) return false;
    const Digest said = wire::transcript(client.challenge, *hello);
    if (!same_digest(wire::rank_proof(options_.secret, said), hello->proof)) {
      return refuse(key, client, wire::Refusal::wrong_secret);
    }
    if (hello->from != client.from.bytes() || hello->to != client.to.bytes()) {
      return refuse(key, client, wire::Refusal::other_ends);
    }
    wire::Welcome welcome{.timeout_ms = static_cast<uint32_t>(meeting_.patience(*hello).count()),
                          .silence_ms = static_cast<uint32_t>(silence_.count()),
                          .hub_rank = options_.rank,
                          .process = static_cast<uint32_t>(::getpid()),
                          .began = began_};
    welcome.proof = wire::hub_proof(options_.secret, said, welcome);
    const auto keys = wire::session_keys(options_.secret, said, welcome, keys_, hello->key);
    if (!keys) return false;
    if (meeting_.complete() && !meeting_.too_late(*hello, where(client, *hello))) return false;
    --strangers_;
    client.hello = *hello;
    client.process = client.connection.process(hello->process, hello->began);
    client.heard = now_;
    client.connection.send(wire::frame(welcome));
    if (!client.connection.seal(keys->to_rank, keys->to_hub)) return false;
    flush(key);
    return true;
  }

  bool refuse(uint64_t key, Client& client, wire::Refusal code) {
    client.connection.send(wire::frame(wire::Refused{code}));
    client.leaving = true;
    flush(key);
    return true;
  }

  /// To the log of the process that runs the hub.
  void say(const std::string& what) const {
    std::optional<uint32_t> rank;
    if (options_.rank != wire::kNoRank) rank = options_.rank;
    log(LogLevel::info, LogArea::bootstrap, rank, what);
  }

  static std::string where(const Client& client, const wire::Hello& hello) {
    return fmt::format("process {} on {}", hello.process,
                       client.to.is_local() ? client.to.host() : client.from.host());
  }

  void turn_away(uint64_t key, Client& client, const wire::Failure& why) {
    client.connection.send(wire::frame(why));
    client.leaving = true;
    flush(key);
  }

  /// Takes in a rank that knows that the hub knows it.
  void admit(uint64_t key, Client& client) {
    const std::string at = where(client, *client.hello);
    if (meeting_.complete()) {
      const wire::Failure ended{wire::FailureKind::refused, kJustEnded};
      const auto late = meeting_.too_late(*client.hello, at);
      if (late && began_before_all_came(client)) meeting_.refuse_both(late->why);
      std::erase(others_, client.process.value_or(0));
      meeting_.turned_away();
      turn_away(key, client, late.value_or(ended));
      if (closing_ && all_told()) stop_listening();
      return deliver();
    }
    if (meeting_.lacks_one() && !meeting_.failure()) look_for_another_job(client);
    if (!meeting_.admit(*client.hello, at, now_)) {
      turn_away(key, client, *meeting_.failure());
      if (closing_ && all_told()) stop_listening();
      return;
    }
    client.rank = client.hello->rank;
    watch_process(client);
    client.heard = now_;
    say(fmt::format("rank {} has joined: {}", client.rank, at));
    client.connection.in().set_limit(wire::kMostFromRank);
    by_rank_.insert_or_assign(client.rank, key);
    const bool all_came = meeting_.complete() && !meeting_.failure();
    if (all_came) {
      complete_since_ = ticks_now();
      spare_.reset();  // no rank is waited for
    }
    // First, so that a hub of this name that begins now finds one or the other.
    std::optional<Listener> late = all_came ? listen_for_the_late() : std::nullopt;
    if (all_came || ((meeting_.complete() || closing_) && all_told())) stop_listening();
    if (late) {
      listeners_.push_back(std::move(*late));
      listen_again(EPOLL_CTL_ADD);
    }
    deliver();
    if (closing_) say_closing(key, client);
  }

  /// Sends what the meeting has to say.
  void deliver() {
    // Sending may lose a rank, of which others must hear.
    for (auto messages = meeting_.take_messages(); !messages.empty();
         messages = meeting_.take_messages()) {
      for (RankMeeting::Message& message : messages) {
        const auto key = by_rank_.find(message.rank);
        if (key == by_rank_.end()) continue;
        Client& client = clients_.at(key->second);
        client.connection.send(std::move(message.frame));
        flush(key->second);
      }
    }
  }

  void flush(uint64_t key) {
    const auto found = clients_.find(key);
    if (found == clients_.end()) return;
    Client& client = found->second;
    // Its end is read, too, and handled there: what it has said before comes first.
    if (!client.connection.write_some()) return;
    client.spoke = now_;
    if (client.leaving && !client.connection.wants_write()) client.connection.end_writing();
    const bool write = client.connection.wants_write();
    if (write != client.polls_write) {
      client.polls_write = write;
      watch(client.connection.fd(), key, write ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    }
  }

  /// Notices the end of a rank's process where a child of it holds the connection, too.
  void watch_process(const Client& client) {
    const int32_t process = client.process.value_or(0);
    if (!watches_processes_ || processes_.contains(process)) return;
    const auto end = end_of_process(process);
    if (end == nullptr) return;
    watch(end->get(), kProcessKey + static_cast<uint64_t>(process), EPOLLIN, EPOLL_CTL_ADD);
    processes_.emplace(process, end);
  }

  void process_ended(int32_t process) {
    const auto found = processes_.find(process);
    if (found == processes_.end()) return;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second->get(), nullptr);
    processes_.erase(found);
    std::vector<uint64_t> keys;
    for (const auto& [key, client] : clients_) {
      if (client.process == process) keys.push_back(key);
    }
    for (const uint64_t key : keys) {
      read(key);  // what it has said before
      const auto client = clients_.find(key);
      if (client == clients_.end()) continue;
      if (client->second.rank != wire::kNoRank && !client->second.leaving) {
        meeting_.lose(client->second.rank, "its process has ended");
      }
      drop(key);
    }
  }

  /// Forgets a client; its descriptor leaves the epoll set as it closes.
  void drop(uint64_t key) {
    const auto found = clients_.find(key);
    if (found == clients_.end()) return;
    if (!found->second.hello) --strangers_;
    if (found->second.rank != wire::kNoRank) by_rank_.erase(found->second.rank);
    clients_.erase(found);
  }

  void tick() {
    last_tick_ = now_;
    if (!listens_) listen_again(EPOLL_CTL_MOD);
    if (closing_ && !others_.empty()) {
      forget_others_that_ended();
      if (others_.empty()) stop_listening();
    }
    for (auto i = clients_.begin(); i != clients_.end();) {
      const uint64_t key = i->first;
      check((i++)->second, key);
    }
    meeting_.tick(now_);
  }

  void check(Client& client, uint64_t key) {
    if (!client.hello) {
      if (now_ - client.since >= options_.hello_time) drop(key);
      return;
    }
    const auto silence = now_ - client.heard;
    if (silence >= silence_) {
      if (!client.leaving && client.rank != wire::kNoRank) {
        meeting_.lose(
            client.rank,
            fmt::format(
                "it has been silent for {}: it is stopped, or its machine is",
                seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(silence))));
      }
      return drop(key);
    }
    if (now_ - client.spoke >= heartbeat(silence_) && !client.leaving &&
        !client.connection.wants_write()) {
      client.connection.send(wire::frame(FrameKind::heartbeat));
      flush(key);
    }
  }

  const HubOptions options_;
  const Address address_;
  const wire::KeyPair keys_ = wire::KeyPair::make();
  const Fd epoll_, waker_;
  const std::chrono::milliseconds silence_;
  const uint64_t began_ = began_of(::getpid());
  /// Not if these descriptors could take the room of ranks that still come.
  const bool watches_processes_ = has_descriptors(2 * uint64_t{options_.size} + kOtherDescriptors);
  // What follows is the thread's, except for stop_, fail_ and told_elsewhere_.
  StopDetector stops_;
  std::vector<Listener> listeners_;
  Fd spare_;
  RankMeeting meeting_;
  std::map<uint64_t, Client> clients_;
  std::map<uint32_t, uint64_t> by_rank_;  ///< keys of those who have joined
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
  bool told_elsewhere_ = false;
  std::thread thread_;
};

bool enough_descriptors(uint32_t ranks, Diagnostics& diagnostics) {
  rlimit limit{};
  const uint64_t needed = ranks + kOtherDescriptors;
  if (has_descriptors(needed) || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  diagnostics
      .error("too-few-descriptors", {},
             fmt::format(
                 "{} needs {} file descriptors in the process that runs its hub, which may "
                 "have {}",
                 ranks == 0 ? "the bootstrap" : fmt::format("the bootstrap of {} ranks", ranks),
                 needed, limit.rlim_cur))
      .notes.push_back({fmt::format("'ulimit -n {}' raises the limit", needed)});
  return false;
}

}  // namespace

std::unique_ptr<Hub> Hub::start(const HubOptions& options, Diagnostics& diagnostics) {
  const bool tells = !options.failed.empty();
  if (!tells && !enough_descriptors(options.size, diagnostics)) return nullptr;
  std::vector<Listener> listeners = open_listeners(options, diagnostics);
  if (listeners.empty()) return nullptr;
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC)), waker = make_waker();
  if (!epoll.valid() || !waker.valid()) {
    report_failed_call(diagnostics, "cannot-listen", "the bootstrap cannot start");
    return nullptr;
  }
  auto hub =
      std::make_unique<EpollHub>(options, std::move(listeners), std::move(epoll), std::move(waker));
  if (hub->has_thread(diagnostics)) return hub;
  if (tells) hub->tell_in_this_thread();
  return nullptr;
}

}  // namespace mscclc
