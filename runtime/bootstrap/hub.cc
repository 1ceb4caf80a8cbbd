// Whoever connects gets a challenge and has some seconds to prove that he knows the secret; until
// then he is worth a hundred bytes of memory and one of a limited number of places. Once all ranks
// have come, the hub no longer listens.
#include "runtime/bootstrap/hub.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/bootstrap/connection.h"
#include "runtime/bootstrap/listener.h"
#include "runtime/bootstrap/meeting.h"
#include "runtime/quiet_thread.h"

namespace mscclc {
namespace {

using wire::FrameKind;

constexpr size_t kMostStrangers = 256;
/// Ranks prove themselves within this time, unless they are slow: until then nobody pushes them
/// out.
constexpr std::chrono::milliseconds kGraceForStrangers{200};
constexpr uint64_t kListenerKey = 0, kWakerKey = 1, kFirstKey = 2;

struct Client {
  explicit Client(Fd socket) : connection(std::move(socket), wire::kMostHello) {}
  Connection connection;
  std::string where;  ///< the other end's address
  wire::Nonce nonce{};
  uint32_t rank = wire::kNoRank;
  bool leaving = false;  ///< nothing more is read of it; it goes when all is written
  bool polls_write = false;
  SteadyTime since, heard, spoke;
};

class EpollHub final : public Hub {
 public:
  EpollHub(const HubOptions& options, Address address, Fd listener, Fd epoll, Fd waker)
      : options_(options),
        address_(address),
        listener_(std::move(listener)),
        epoll_(std::move(epoll)),
        waker_(std::move(waker)),
        silence_(std::max(options.timeout, options.least_silence)),
        meeting_({.size = options.size, .hub_rank = options.rank, .timeout = options.timeout}) {
    watch(listener_.get(), kListenerKey, EPOLLIN, EPOLL_CTL_ADD);
    watch(waker_.get(), kWakerKey, EPOLLIN, EPOLL_CTL_ADD);
    thread_ = quiet_thread("mscclc-hub", [this] { serve(); });
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

 private:
  void watch(int fd, uint64_t key, uint32_t events, int how) {
    epoll_event event{.events = events, .data = {.u64 = key}};
    ::epoll_ctl(epoll_.get(), how, fd, &event);
  }

  void serve() {
    while (!done()) {
      epoll_event events[256];
      const int count = ::epoll_wait(epoll_.get(), events, 256, tick_ms());
      now_ = std::chrono::steady_clock::now();
      for (int i = 0; i < count; ++i) handle(events[i]);
      if (now_ - last_tick_ >= std::chrono::milliseconds(tick_ms())) tick();
      deliver();
    }
    clients_.clear();
  }

  /// Until something must be seen to, even if nothing comes.
  int tick_ms() const {
    const bool busy =
        strangers_ > 0 || meeting_.waiting() || closing_ || (!listens_ && listener_.valid());
    return busy ? kBusyTickMs : idle_tick_ms(silence_);
  }

  bool done() {
    if (!closing_) {
      const std::lock_guard lock(mutex_);
      if (stop_) close_all();
    }
    return closing_ && (clients_.empty() || now_ >= close_deadline_);
  }

  void close_all() {
    closing_ = true;
    now_ = std::chrono::steady_clock::now();
    close_deadline_ = now_ + kGoodbyeTime;
    listener_.reset();
    for (auto i = clients_.begin(); i != clients_.end();) {
      const uint64_t key = i->first;
      Client& client = (i++)->second;
      if (client.rank == wire::kNoRank) {
        drop(key);
      } else if (!client.leaving) {
        client.connection.send(wire::frame(FrameKind::closing));
        client.leaving = true;
        flush(key);
      }
    }
  }

  void handle(const epoll_event& event) {
    const uint64_t key = event.data.u64;
    if (key == kWakerKey) return drain(waker_);
    if (key == kListenerKey) return accept_some();
    if ((event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) read(key);
    if ((event.events & EPOLLOUT) != 0) flush(key);
  }

  void accept_some() {
    for (int i = 0; i < 64 && listener_.valid(); ++i) {
      if (strangers_ >= kMostStrangers && !drop_oldest_stranger()) return look_away();
      sockaddr_storage peer{};
      socklen_t length = sizeof peer;
      auto* raw = reinterpret_cast<sockaddr*>(&peer);
      Fd socket(::accept4(listener_.get(), raw, &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) {
        // Without free descriptors the listener stays readable.
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) look_away();
        return;
      }
      greet(std::move(socket), Address::from(raw));
    }
  }

  void greet(Fd socket, const std::optional<Address>& peer) {
    set_options(socket);
    const uint64_t key = next_key_++;
    watch(socket.get(), key, EPOLLIN, EPOLL_CTL_ADD);
    Client& client = clients_.emplace(key, std::move(socket)).first->second;
    client.where = peer ? peer->host() : "an unknown address";
    client.since = client.heard = client.spoke = now_;
    ++strangers_;
    fill_random(client.nonce);
    client.connection.send(wire::frame(wire::Challenge{client.nonce}));
    flush(key);
  }

  /// Accepts nobody until the next tick.
  void look_away() {
    watch(listener_.get(), kListenerKey, 0, EPOLL_CTL_MOD);
    listens_ = false;
  }

  /// false: none has had its time yet. Keys grow, so the oldest is the first.
  bool drop_oldest_stranger() {
    for (const auto& [key, client] : clients_) {
      if (client.rank != wire::kNoRank) continue;
      if (now_ - client.since < kGraceForStrangers) return false;
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
    client.heard = now_;
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
    if (client.rank != wire::kNoRank && !client.leaving) {
      meeting_.lose(client.rank, client.connection.why());
    }
    drop(key);
  }

  /// Handles one frame. false: no rank says that.
  bool take(uint64_t key, Client& client) {
    const wire::FrameReader& in = client.connection.in();
    if (client.rank == wire::kNoRank) {
      return in.kind() == FrameKind::hello && admit(key, client, in.payload());
    }
    switch (in.kind()) {
      case FrameKind::gather: {
        const auto gather = wire::read_gather(in.payload());
        if (gather) meeting_.gather(client.rank, *gather, now_);
        return gather.has_value();
      }
      case FrameKind::give_up: {
        const auto why = wire::read_give_up(in.payload());
        if (why) meeting_.give_up(client.rank, *why);
        return why.has_value();
      }
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

  bool admit(uint64_t key, Client& client, wire::Payload payload) {
    const auto hello = wire::read_hello(payload);
    if (!hello) return false;
    const Digest expected = wire::proof(options_.secret, wire::Side::rank, client.nonce, *hello);
    std::optional<wire::Refused> refused;
    if (!same_digest(expected, hello->proof)) {
      refused = {wire::Refusal::wrong_secret, "its secret is another job's"};
    } else {
      refused = meeting_.admit(*hello,
                               fmt::format("process {} on {}", hello->process, client.where), now_);
    }
    if (refused) {
      client.connection.send(wire::frame(*refused));
      client.leaving = true;
      flush(key);
      return true;
    }
    --strangers_;
    client.rank = hello->rank;
    client.connection.in().set_limit(wire::kMostFromRank);
    by_rank_.insert_or_assign(hello->rank, key);
    client.connection.send(wire::frame(wire::Welcome{
        .timeout_ms = static_cast<uint32_t>(options_.timeout.count()),
        .silence_ms = static_cast<uint32_t>(silence_.count()),
        .hub_rank = options_.rank,
        .proof = wire::proof(options_.secret, wire::Side::hub, client.nonce, *hello)}));
    flush(key);
    if (meeting_.complete()) listener_.reset();
    return true;
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

  /// Forgets a client; its descriptor leaves the epoll set as it closes.
  void drop(uint64_t key) {
    const auto found = clients_.find(key);
    if (found == clients_.end()) return;
    if (found->second.rank == wire::kNoRank) {
      --strangers_;
    } else {
      by_rank_.erase(found->second.rank);
    }
    clients_.erase(found);
  }

  void tick() {
    last_tick_ = now_;
    if (!listens_ && listener_.valid()) {
      watch(listener_.get(), kListenerKey, EPOLLIN, EPOLL_CTL_MOD);
      listens_ = true;
    }
    for (auto i = clients_.begin(); i != clients_.end();) {
      const uint64_t key = i->first;
      check((i++)->second, key);
    }
    meeting_.tick(now_);
  }

  void check(Client& client, uint64_t key) {
    if (client.rank == wire::kNoRank) {
      if (now_ - client.since >= options_.hello_time) drop(key);
      return;
    }
    const auto silence = now_ - client.heard;
    if (silence >= silence_) {
      if (!client.leaving) {
        meeting_.lose(
            client.rank,
            "it has been silent for " +
                seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(silence)));
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
  Fd listener_;
  const Fd epoll_, waker_;
  const std::chrono::milliseconds silence_;
  // What follows is the thread's, but for stop_.
  RankMeeting meeting_;
  std::map<uint64_t, Client> clients_;
  std::map<uint32_t, uint64_t> by_rank_;  ///< keys of those who were admitted
  uint64_t next_key_ = kFirstKey;
  size_t strangers_ = 0;  ///< clients without a rank
  bool listens_ = true, closing_ = false;
  SteadyTime now_ = std::chrono::steady_clock::now(), last_tick_, close_deadline_;
  std::mutex mutex_;
  bool stop_ = false;
  std::thread thread_;
};

/// What a process has open besides, as a rule.
constexpr uint64_t kOtherDescriptors = 64;

bool enough_descriptors(uint32_t ranks, Diagnostics& diagnostics) {
  rlimit limit{};
  const uint64_t needed = ranks + kOtherDescriptors;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return true;
  diagnostics
      .error("too-few-descriptors", {},
             fmt::format("the bootstrap of {} ranks needs {} file descriptors in the process that "
                         "runs its hub, which may have {}",
                         ranks, needed, limit.rlim_cur))
      .notes.push_back({fmt::format("'ulimit -n {}' raises the limit", needed)});
  return false;
}

}  // namespace

std::unique_ptr<Hub> Hub::start(const HubOptions& options, Diagnostics& diagnostics) {
  if (!enough_descriptors(options.size, diagnostics)) return nullptr;
  Listener listener = open_listener(options, diagnostics);
  if (!listener.socket.valid()) return nullptr;
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC)), waker = make_waker();
  if (!epoll.valid() || !waker.valid()) {
    diagnostics.error("cannot-listen", {}, "the bootstrap cannot start: " + error_text(errno));
    return nullptr;
  }
  auto hub = std::make_unique<EpollHub>(options, listener.address, std::move(listener.socket),
                                        std::move(epoll), std::move(waker));
  return hub->has_thread(diagnostics) ? std::move(hub) : nullptr;
}

}  // namespace mscclc
