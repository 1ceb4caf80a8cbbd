// A rank is here when it has said so in a sealed record: by then it knows the hub, and will not try
// again. What ranks say goes to the meeting, and what that has to say to them.
#include "runtime/bootstrap/tcp/hub.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "runtime/bootstrap/tcp/epoll_hub.h"
#include "runtime/support/failed_call.h"
#include "runtime/support/observe/log.h"
#include "runtime/support/process/per_process.h"
#include "runtime/support/process_end.h"

namespace mscclc {
namespace {

using wire::FrameKind;

/// "a unix socket of this machine, port 30500 of all addresses".
std::string places(const std::vector<Listener>& listeners) {
  std::string text;
  for (const Listener& listener : listeners) {
    if (!text.empty()) text += ", ";
    text += place(listener);
  }
  return text;
}

/// Wakes all hubs of this process, each of which looks whether it is meant: that is rare, and one
/// for each would take a descriptor. Never read: hubs wait for its changes.
struct HubsWaker {
  std::mutex mutex;
  std::weak_ptr<const Fd> waker;
};

/// Invalid: errno says why.
std::shared_ptr<const Fd> waker_of_hubs() {
  static PerProcess<HubsWaker> of_process;
  HubsWaker& here = of_process.get();
  const std::lock_guard lock(here.mutex);
  std::shared_ptr<const Fd> waker = here.waker.lock();
  if (waker != nullptr) return waker;
  waker = std::make_shared<const Fd>(make_waker());
  if (waker->valid()) here.waker = waker;
  return waker;
}

}  // namespace

EpollHub::EpollHub(const HubOptions& options, std::vector<Listener> listeners, Fd epoll,
                   std::shared_ptr<const Fd> waker)
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
  watch(waker_->get(), kWakerKey, EPOLLIN | EPOLLET, EPOLL_CTL_ADD);
  // Ranks see their connections end.
  thread_ = quiet_thread(
      "mscclc-hub", [this] { serve(); }, [this] { stop_serving(); });
}

EpollHub::~EpollHub() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake(*waker_);
  if (thread_.joinable()) thread_.join();
}

void EpollHub::announce_in_this_thread() {
  stop_ = true;
  serve();
}

void EpollHub::fail(const std::string& why, bool announced_elsewhere) {
  {
    const std::lock_guard lock(mutex_);
    fail_ = why;
    announced_elsewhere_ = announced_elsewhere;
  }
  wake(*waker_);
}

void EpollHub::watch(int fd, uint64_t key, uint32_t events, int how) {
  epoll_event event{.events = events, .data = {.u64 = key}};
  ::epoll_ctl(epoll_.get(), how, fd, &event);
}

void EpollHub::serve() {
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

void EpollHub::stop_serving() {
  clients_.clear();
  stop_listening();
}

void EpollHub::look() {
  now_ = std::chrono::steady_clock::now();
  if (!stops_.look(now_)) return;
  bool silent = false;
  for (auto& [key, client] : clients_) {
    client.heard = now_;
    silent |= client.rank != wire::kNoRank && now_ - client.spoke >= silence_;
  }
  if (silent) meeting_.give_up_hub(asleep_text(*stops_.just_stopped()));
}

int EpollHub::tick_ms() const {
  const bool busy =
      strangers_ > 0 || meeting_.waiting() || closing_ || (!listens_ && !listeners_.empty());
  return busy ? static_cast<int>(kBusyTick.count()) : idle_tick_ms(silence_);
}

bool EpollHub::done() {
  if (!closing_) {
    const std::lock_guard lock(mutex_);
    if (!fail_.empty()) {
      meeting_.refuse_all(fail_);
      deliver();
    }
    if (stop_) close_all();
  }
  if (!closing_) return false;
  const bool all_informed = clients_.empty() && listeners_.empty();
  return all_informed || now_ >= close_deadline_;
}

void EpollHub::close_all() {
  closing_ = true;
  now_ = std::chrono::steady_clock::now();
  // Ranks that have not come yet would wait for a hub that is gone.
  const SteadyTime end = end_of_announcing();
  const bool announces =
      meeting_.failure() && !all_informed() && !announced_elsewhere_ && now_ < end;
  close_deadline_ = now_ + kGoodbyeTime;
  if (announces || about_to_join()) close_deadline_ = std::max(close_deadline_, end);
  if (!announces) stop_listening();
  for (auto i = clients_.begin(); i != clients_.end();) {
    const uint64_t key = i->first;
    HubClient& client = (i++)->second;
    if (client.rank != wire::kNoRank) {
      say_closing(key, client);
    } else if (!announces && !client.hello) {
      drop(key);
    }
  }
}

bool EpollHub::about_to_join() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const auto& entry) {
    return entry.second.hello && entry.second.rank == wire::kNoRank && !entry.second.leaving;
  });
}

SteadyTime EpollHub::end_of_announcing() const {
  if (!others_.empty()) return now_ + options_.timeout;
  const auto end = now_ + std::min<std::chrono::milliseconds>(kAnnounceTime, options_.timeout);
  return std::min(end, meeting_.deadline().value_or(end));
}

void EpollHub::say_closing(uint64_t key, HubClient& client) {
  if (client.leaving) return;
  client.connection.send(wire::frame(FrameKind::closing));
  client.leaving = true;
  flush(key);
}

void EpollHub::handle(const epoll_event& event) {
  const uint64_t key = event.data.u64;
  if (key == kWakerKey) return;
  if (key < kFirstKey) return accept_some(key - kListenerKey);
  if (key >= kProcessKey) return process_ended(static_cast<int32_t>(key - kProcessKey));
  if ((event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) read(key);
  if ((event.events & EPOLLOUT) != 0) flush(key);
}

void EpollHub::read(uint64_t key) {
  const auto found = clients_.find(key);
  if (found == clients_.end()) return;
  HubClient& client = found->second;
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

bool EpollHub::take(uint64_t key, HubClient& client) {
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

bool EpollHub::has_read_all(HubClient& client) {
  return client.connection.write_some() && !client.connection.wants_write();
}

void EpollHub::say(const std::string& what) const {
  std::optional<uint32_t> rank;
  if (options_.rank != wire::kNoRank) rank = options_.rank;
  log(LogLevel::info, LogArea::bootstrap, rank, what);
}

void EpollHub::deliver() {
  // Sending may lose a rank, of which others must hear.
  for (auto messages = meeting_.take_messages(); !messages.empty();
       messages = meeting_.take_messages()) {
    for (RankMeeting::Message& message : messages) {
      const auto key = by_rank_.find(message.rank);
      if (key == by_rank_.end()) continue;
      HubClient& client = clients_.at(key->second);
      client.connection.send(std::move(message.frame));
      flush(key->second);
    }
  }
}

void EpollHub::flush(uint64_t key) {
  const auto found = clients_.find(key);
  if (found == clients_.end()) return;
  HubClient& client = found->second;
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

void EpollHub::process_ended(int32_t process) {
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

void EpollHub::drop(uint64_t key) {
  const auto found = clients_.find(key);
  if (found == clients_.end()) return;
  if (!found->second.hello) --strangers_;
  if (found->second.rank != wire::kNoRank) by_rank_.erase(found->second.rank);
  clients_.erase(found);
}

void EpollHub::tick() {
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

void EpollHub::check(HubClient& client, uint64_t key) {
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

namespace {

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
  const bool announces = !options.failed.empty();
  if (!announces && !enough_descriptors(options.size, diagnostics)) return nullptr;
  std::vector<Listener> listeners = open_listeners(options, diagnostics);
  if (listeners.empty()) return nullptr;
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  const auto waker = epoll.valid() ? waker_of_hubs() : nullptr;
  if (waker == nullptr || !waker->valid()) {
    report_failed_call(diagnostics, "cannot-listen", "the bootstrap cannot start");
    return nullptr;
  }
  auto hub = std::make_unique<EpollHub>(options, std::move(listeners), std::move(epoll), waker);
  if (hub->has_thread(diagnostics)) return hub;
  if (announces) hub->announce_in_this_thread();
  return nullptr;
}

}  // namespace mscclc
