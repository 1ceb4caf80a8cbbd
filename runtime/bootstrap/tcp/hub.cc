// A rank is here when it has said so in a sealed record: by then it knows the hub, and will not try
// again. What ranks say goes to the meeting, and what that has to say to them.
#include "runtime/bootstrap/tcp/hub.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "runtime/bootstrap/tcp/epoll_hub.h"
#include "runtime/support/failed_call.h"
#include "runtime/support/observe/log.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {
namespace {

using wire::FrameKind;

/// Wakes all hubs of this process, each of which looks whether it is meant: that is rare, and one
/// for each would take a descriptor. Never read: hubs wait for its changes.
struct HubsWaker {
  std::mutex mutex;
  std::weak_ptr<const Fd> waker;
};

/// Invalid: errno says why.
std::shared_ptr<const Fd> waker_of_hubs() {
  auto& here = process_wide<HubsWaker>();
  const std::lock_guard lock(here.mutex);
  std::shared_ptr<const Fd> waker = here.waker.lock();
  if (waker != nullptr) return waker;
  waker = std::make_shared<const Fd>(make_waker());
  if (waker->valid()) here.waker = waker;
  return waker;
}

}  // namespace

EpollHub::EpollHub(const HubOptions& options, std::vector<Listener> listeners, Fd epoll,
                   const std::shared_ptr<const Fd>& waker)
    : options_(options),
      address_(listeners.front().address),
      silence_(options.silence),
      requests_(waker),
      epoll_(std::move(epoll)),
      stops_(options.silence),
      listeners_(epoll_, std::move(listeners)),
      meeting_({.size = options.size,
                .hub_rank = options.rank,
                .hub_process = options.process,
                .timeout = options.timeout}),
      // Not if these descriptors could take the room of ranks that still come.
      processes_(epoll_, has_descriptors(2 * uint64_t{options.size} + kOtherDescriptors)) {
  if (options.two_jobs) {
    meeting_.refuse_both(options.failed);
  } else if (!options.failed.empty()) {
    meeting_.refuse_all(options.failed);
  }
  say("ranks meet at " + listeners_.text());
  spare_ = make_waker();
  epoll_.add(waker->get(), kWakerKey, EPOLLIN | EPOLLET);
  // Ranks see their connections end.
  thread_ = quiet_thread(
      "mscclc-hub", [this] { serve(); }, [this] { stop_serving(); });
}

EpollHub::~EpollHub() {
  requests_.stop();
  if (thread_.joinable()) thread_.join();
}

void EpollHub::announce_in_this_thread() {
  requests_.stop();
  serve();
}

void EpollHub::serve() {
  while (!done()) {
    epoll_event events[256];
    const int count = epoll_.wait(events, tick_ms());
    look();
    for (int i = 0; i < count; ++i) handle(events[i]);
    if (now_ - last_tick_ >= std::chrono::milliseconds(tick_ms())) tick();
    deliver();
  }
  stop_serving();
}

void EpollHub::stop_serving() {
  clients_.clear();
  listeners_.stop();
}

void EpollHub::look() {
  now_ = std::chrono::steady_clock::now();
  if (!stops_.look(now_)) return;
  bool silent = false;
  for (auto& [key, client] : clients_.all()) {
    client.heard = now_;
    silent |= client.joined() && now_ - client.spoke >= silence_;
  }
  if (silent) meeting_.give_up_hub(asleep_text(*stops_.just_stopped()));
}

int EpollHub::tick_ms() const {
  const bool busy =
      clients_.strangers() > 0 || meeting_.waiting() || closing_ || listeners_.looks_away();
  return busy ? static_cast<int>(kBusyTick.count()) : idle_tick_ms(silence_);
}

bool EpollHub::done() {
  if (!closing_) {
    const HubRequests::Asked asked = requests_.asked();
    if (!asked.fail.empty()) {
      meeting_.refuse_all(asked.fail);
      deliver();
    }
    if (asked.stop) close_all(asked.announced_elsewhere);
  }
  if (!closing_) return false;
  const bool all_informed = clients_.empty() && listeners_.empty();
  return all_informed || now_ >= close_deadline_;
}

void EpollHub::close_all(bool announced_elsewhere) {
  closing_ = true;
  now_ = std::chrono::steady_clock::now();
  // Ranks that have not come yet would wait for a hub that is gone.
  const SteadyTime end = end_of_announcing();
  const bool announces =
      meeting_.failure() && !all_informed() && !announced_elsewhere && now_ < end;
  close_deadline_ = now_ + kGoodbyeTime;
  if (announces || clients_.any_about_to_join()) close_deadline_ = std::max(close_deadline_, end);
  if (!announces) listeners_.stop();
  for (auto i = clients_.all().begin(); i != clients_.all().end();) {
    const uint64_t key = i->first;
    HubClient& client = (i++)->second;
    if (client.joined()) {
      say_closing(key, client);
    } else if (!announces && !client.hello) {
      clients_.drop(key);
    }
  }
}

SteadyTime EpollHub::end_of_announcing() const {
  if (!others_.all_heard()) return now_ + options_.timeout;
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
  HubClient* const found = clients_.find(key);
  if (found == nullptr) return;
  HubClient& client = *found;
  const bool alive = client.connection.read_some();
  const bool joined = client.joined() && !client.leaving;
  if (joined && !client.connection.tampered()) client.heard = now_;
  while (!client.leaving) {
    const wire::FrameReader::Next next = client.connection.in().next();
    if (next == wire::FrameReader::Next::more) break;
    if (next == wire::FrameReader::Next::bad || !take(key, client)) {
      if (client.joined()) meeting_.misbehave(client.rank);
      return clients_.drop(key);
    }
  }
  if (client.leaving) client.connection.in().clear();
  if (alive) return;
  look();  // it may have been stopped since this turn began
  if (client.joined() && !client.leaving) {
    if (client.connection.tampered()) {
      meeting_.distrust(client.rank, client.connection.why());
    } else if (const auto asleep = stops_.just_stopped()) {
      meeting_.give_up_hub(asleep_text(*asleep));
    } else {
      meeting_.lose(client.rank, client.connection.why());
    }
  }
  clients_.drop(key);
}

bool EpollHub::take(uint64_t key, HubClient& client) {
  const wire::FrameReader& in = client.connection.in();
  if (!client.hello) {
    return in.kind() == FrameKind::hello && welcome(key, client, in.payload());
  }
  if (!client.joined()) {
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
      const auto key = clients_.key_of(message.rank);
      if (!key) continue;
      clients_.find(*key)->connection.send(std::move(message.frame));
      flush(*key);
    }
  }
}

void EpollHub::flush(uint64_t key) {
  HubClient* const found = clients_.find(key);
  if (found == nullptr) return;
  HubClient& client = *found;
  // Its end is read, too, and handled there: what it has said before comes first.
  if (!client.connection.write_some()) return;
  client.spoke = now_;
  if (client.leaving && !client.connection.wants_write()) client.connection.end_writing();
  const bool write = client.connection.wants_write();
  if (write != client.polls_write) {
    client.polls_write = write;
    epoll_.change(client.connection.fd(), key, write ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }
}

void EpollHub::process_ended(int32_t process) {
  if (!processes_.forget(process)) return;
  for (const uint64_t key : clients_.of_process(process)) {
    read(key);  // what it has said before
    HubClient* const client = clients_.find(key);
    if (client == nullptr) continue;
    if (client->joined() && !client->leaving) {
      meeting_.lose(client->rank, "its process has ended");
    }
    clients_.drop(key);
  }
}

void EpollHub::tick() {
  last_tick_ = now_;
  listeners_.look_again();
  if (closing_ && !others_.all_heard()) {
    others_.forget_ended();
    if (others_.all_heard()) listeners_.stop();
  }
  for (auto i = clients_.all().begin(); i != clients_.all().end();) {
    const uint64_t key = i->first;
    check((i++)->second, key);
  }
  meeting_.tick(now_);
}

void EpollHub::check(HubClient& client, uint64_t key) {
  if (!client.hello) {
    if (now_ - client.since >= options_.hello_time) clients_.drop(key);
    return;
  }
  const auto silence = now_ - client.heard;
  if (silence >= silence_) {
    if (!client.leaving && client.joined()) {
      meeting_.lose(
          client.rank,
          fmt::format(
              "it has been silent for {}: it is stopped, or its machine is",
              seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(silence))));
    }
    return clients_.drop(key);
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
