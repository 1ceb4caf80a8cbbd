// A thread reads and writes the connection; callers leave frames for it and wait.
#include "runtime/bootstrap/tcp/tcp_bootstrap.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "runtime/support/fixed_times.h"
#include "runtime/support/observe/log.h"
#include "runtime/support/process/quiet_thread.h"
#include "runtime/support/process_end.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using wire::FrameKind;

/// Adds an error whose text has notes in its further lines.
void report_lines(const std::string& code, const std::string& text, Diagnostics& diagnostics) {
  size_t end = std::min(text.find('\n'), text.size());
  Diagnostic& error = diagnostics.error(code, {}, text.substr(0, end));
  while (end < text.size()) {
    const size_t begin = end + 1;
    end = std::min(text.find('\n', begin), text.size());
    error.notes.push_back({text.substr(begin, end - begin)});
  }
}

std::string code_of(wire::FailureKind kind) {
  switch (kind) {
    case wire::FailureKind::timeout:
      return "bootstrap-timeout";
    case wire::FailureKind::died:
      return "rank-died";
    case wire::FailureKind::gave_up:
      return "rank-gave-up";
    case wire::FailureKind::left:
      return "rank-left";
    case wire::FailureKind::mismatch:
      return "call-differs";
    case wire::FailureKind::too_long:
      return "message-too-long";
    case wire::FailureKind::protocol:
      return "bootstrap-protocol";
    case wire::FailureKind::refused:
      return "bootstrap-refused";
    case wire::FailureKind::hang:
      return "hang";
  }
  return "rank-died";
}

std::string name_of_hub(const Connected& connected) {
  const std::string at = connected.address.is_local() ? "" : " at " + connected.address.text();
  if (connected.welcome.hub_rank == wire::kNoRank) return "the bootstrap's hub" + at;
  return fmt::format("rank {}, which runs the bootstrap's hub{},", connected.welcome.hub_rank, at);
}

/// Reports to the hub, and so to all others, that this rank cannot take part.
void give_up_at_once(Connection& connection, const std::string& why) {
  connection.send(wire::give_up_frame(why));
  const SteadyTime deadline = Clock::now() + kGoodbyeTime;
  while (connection.write_some() && connection.wants_write() &&
         await(connection.fd(), POLLOUT, deadline)) {
  }
}

class SocketBootstrap final : public Bootstrap {
 public:
  SocketBootstrap(uint32_t rank, uint32_t size, Connected connected, Fd waker,
                  std::shared_ptr<Hub> hub)
      : rank_(rank),
        size_(size),
        timeout_(connected.welcome.timeout_ms),
        silence_(connected.welcome.silence_ms),
        hub_name_(name_of_hub(connected)),
        hub_(std::move(hub)),
        waker_(std::move(waker)),
        hub_end_(end_of_process(
            connected.connection.process(connected.welcome.process, connected.welcome.began)
                .value_or(0))),
        connection_(std::move(connected.connection)) {
    thread_ = quiet_thread(
        "mscclc-boot", [this] { serve(); }, [this] { end_without_memory(); });
  }

  ~SocketBootstrap() override {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    wake(waker_);
    if (thread_.joinable()) thread_.join();
  }
  /// If not, the others learn why.
  bool has_thread(Diagnostics& diagnostics) {
    if (has_started(thread_, "a rank of the bootstrap", diagnostics)) return true;
    give_up_at_once(connection_, diagnostics.all().back().message);
    return false;
  }

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }

  /// `gives_up`: that of the Rendezvous. It is asked at the end, too: it may have begun before all
  /// came.
  bool wait_until_all_are_here(const std::function<bool(Diagnostics&)>& gives_up,
                               bool announced_elsewhere, Diagnostics& diagnostics) {
    std::unique_lock lock(mutex_);
    const auto over = [this] { return failure_ || ready_; };
    for (bool waits = gives_up != nullptr; waits;) {
      waits = !changed_.wait_for(lock, kAskAgain, over);
      if (failure_ || !gives_up(diagnostics)) continue;
      lock.unlock();
      const std::string& why = diagnostics.all().back().message;
      fail(why);
      if (announced_elsewhere && hub_ != nullptr) hub_->fail(why, true);
      return false;
    }
    return wait(
        lock, "the bootstrap", [this] { return ready_; }, diagnostics);
  }

  bool all_gather(std::span<const uint8_t> own, std::string_view what,
                  std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics) override {
    if (!fits(own.size(), what.size(), diagnostics)) return false;
    const std::lock_guard one_at_a_time(step_mutex_);
    // Without the other mutex: the log may have to wait for its reader, and the thread has to speak
    // to the hub meanwhile.
    log(LogLevel::trace, LogArea::bootstrap, rank_,
        fmt::format("step {}, '{}': {} bytes", step_, what, own.size()));
    std::unique_lock lock(mutex_);
    if (failure_) return report(diagnostics);
    gathers_ = true;
    outbox_.push_back(wire::frame(wire::Gather{.step = step_, .name = what, .data = own}));
    wake(waker_);
    if (!wait(
            lock, what, [this] { return result_.has_value(); }, diagnostics))
      return false;
    ++step_;
    all = std::move(*result_);
    result_.reset();
    return true;
  }

  void on_failure(std::function<void(const std::string& why)> fn) override {
    std::unique_lock lock(mutex_);
    if (!failure_) {
      watchers_.push_back(std::move(fn));
      return;
    }
    const std::string why = failure_->why;
    lock.unlock();
    fn(why);
  }

  std::optional<std::string> report_waits(const WaitReport& own, bool wait) override {
    constexpr auto limit = kReportTime + kGraceForHub;
    std::unique_lock lock(mutex_);
    if (failure_) return failure_->why;
    if (!verdict_deadline_) {
      verdict_deadline_ = Clock::now() + limit;
      outbox_.push_back(wire::frame(own));
      wake(waker_);
    }
    if (!wait && Clock::now() < *verdict_deadline_) return std::nullopt;
    if (!changed_.wait_until(lock, *verdict_deadline_, [&] { return failure_.has_value(); })) {
      failure_ = {
          wire::FailureKind::hang,
          fmt::format("{} does not answer: it has not said within {} which rank waits for which",
                      hub_name_, seconds_text(limit))};
      notify_watchers(lock);
    }
    return failure_->why;
  }

  void fail(const std::string& why) override {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    std::string text = "this rank has given up: " + why;  // what takes memory comes first
    outbox_.push_back(wire::give_up_frame(why));
    failure_ = {wire::FailureKind::gave_up, std::move(text)};
    changed_.notify_all();
    wake(waker_);
  }

 private:
  bool fits(uint64_t bytes, uint64_t name, Diagnostics& diagnostics) const {
    if (bytes <= kMaxBytes && name <= wire::kMaxName) return true;
    diagnostics.error(
        "message-too-long", {},
        bytes > kMaxBytes
            ? fmt::format("rank {} gives {} bytes to a step, at most {} are allowed", rank_, bytes,
                          kMaxBytes)
            : fmt::format("rank {} gives a step a name of {} bytes, at most {} are allowed", rank_,
                          name, wire::kMaxName));
    return false;
  }

  /// Waits for `done`, which the thread brings about. `lock` holds mutex_.
  template <class Done>
  bool wait(std::unique_lock<std::mutex>& lock, std::string_view what, Done done,
            Diagnostics& diagnostics) {
    const auto limit = timeout_ + kGraceForHub;
    if (!changed_.wait_for(lock, limit, [&] { return failure_ || done(); })) {
      failure_ = {wire::FailureKind::timeout, fmt::format("{} has not answered at '{}' within {}",
                                                          hub_name_, what, seconds_text(limit))};
      notify_watchers(lock);
    }
    if (done()) return true;
    return report(diagnostics);
  }

  bool report(Diagnostics& diagnostics) {
    report_lines(code_of(failure_->kind), failure_->why, diagnostics);
    return false;
  }

  /// Calls the watchers with the failure, without the lock.
  void notify_watchers(std::unique_lock<std::mutex>& lock) {
    const auto watchers = std::exchange(watchers_, {});
    const std::string why = failure_->why;
    changed_.notify_all();
    lock.unlock();
    for (const auto& watcher : watchers) watcher(why);
    log(LogLevel::warn, LogArea::bootstrap, rank_, why);  // last: it may wait for its reader
    lock.lock();
  }

  /// Others have given up waiting: this rank's waits are to end too, so that it can say what they
  /// were for.
  void answer() {
    connection_.send(wire::frame(FrameKind::answer));
    std::unique_lock lock(mutex_);
    const auto watchers = std::exchange(watchers_, {});
    lock.unlock();
    for (const auto& watcher : watchers) watcher("blocks of another rank waited too long");
  }

  void fail_with(wire::FailureKind kind, std::string why) {
    std::unique_lock lock(mutex_);
    if (failure_) return;
    failure_ = {kind, std::move(why)};
    notify_watchers(lock);
  }

  // The thread.

  void serve() {
    now_ = spoke_ = heard_ = Clock::now();
    take_frames();  // what came after the welcome
    while (!ended_) {
      collect();
      if (!connection_.write_some()) broken_ = true;  // reading says why
      if (said_goodbye_ && !connection_.wants_write() && !shut_) {
        connection_.end_writing();
        shut_ = true;
      }
      const short events = connection_.wants_write() && !broken_ ? POLLIN | POLLOUT : POLLIN;
      pollfd polled[3] = {{waker_.get(), POLLIN, 0},
                          {connection_.fd(), events, 0},
                          {hub_end_ != nullptr ? hub_end_->get() : -1, POLLIN, 0}};
      ::poll(
          polled, 3,
          said_goodbye_ || broken_ ? static_cast<int>(kBusyTick.count()) : idle_tick_ms(silence_));
      if ((polled[0].revents & POLLIN) != 0) drain(waker_);
      look();
      if (polled[1].revents != 0 || polled[2].revents != 0) read();
      if (polled[2].revents != 0 && !ended_) end_with_hub();
      check_times();
    }
  }

  /// A rank that was stopped as a whole has been thrown out by the others, whatever came of them.
  void look() {
    now_ = Clock::now();
    if (!stops_.look(now_)) return;
    heard_ = now_;  // what the hub has said meanwhile is not read yet
    if (now_ - spoke_ >= silence_) blame_itself(*stops_.just_stopped());
  }
  void blame_itself(SteadyTime::duration asleep) {
    fail_with(wire::FailureKind::died,
              fmt::format("rank {} itself is to blame: {}", rank_, asleep_text(asleep)));
  }

  /// Takes over what callers have left.
  void collect() {
    const std::lock_guard lock(mutex_);
    for (wire::Bytes& frame : outbox_) connection_.send(std::move(frame)), spoke_ = Clock::now();
    outbox_.clear();
    if (!leaving_ || said_goodbye_) return;
    said_goodbye_ = true;
    goodbye_deadline_ = Clock::now() + kGoodbyeTime;
    if (!failure_) connection_.send(wire::frame(FrameKind::goodbye));
  }

  void read() {
    const bool alive = connection_.read_some();
    heard_ = Clock::now();
    take_frames();
    if (alive || ended_) return;
    ended_ = true;
    look();  // it may have been stopped since this turn began
    if (connection_.tampered()) {
      fail_with(wire::FailureKind::protocol,
                fmt::format("the connection to {} is broken: {}", hub_name_, connection_.why()));
    } else if (said_goodbye_) {
      return;
    } else if (const auto asleep = stops_.just_stopped()) {
      blame_itself(*asleep);
    } else {
      fail_with(wire::FailureKind::died,
                fmt::format("{} has died: {}", hub_name_, connection_.why()));
    }
  }

  /// The hub sees the connection end, and reports it to the others.
  void end_without_memory() {
    ::shutdown(connection_.fd(), SHUT_RDWR);
    connection_.in().clear();
    fail_with(wire::FailureKind::gave_up, "this rank has no memory for what the others send");
  }

  /// Its process has ended, though a child of that holds the connection.
  void end_with_hub() {
    ended_ = true;
    if (!said_goodbye_) {
      fail_with(wire::FailureKind::died, hub_name_ + " has died: its process has ended");
    }
  }

  void take_frames() {
    for (;;) {
      const wire::FrameReader::Next next = connection_.in().next();
      if (next == wire::FrameReader::Next::more) return;
      if (next == wire::FrameReader::Next::bad || !take()) {
        fail_with(wire::FailureKind::protocol, hub_name_ + " has sent something that no hub sends");
        ended_ = true;
        return;
      }
    }
  }

  bool take() {
    const wire::FrameReader& in = connection_.in();
    switch (in.kind()) {
      case FrameKind::ready: {
        log(LogLevel::trace, LogArea::bootstrap, rank_, "all ranks have come");
        const std::lock_guard lock(mutex_);
        ready_ = true;
        changed_.notify_all();
        return true;
      }
      case FrameKind::gathered:
        return take_result(in.payload());
      case FrameKind::failed: {
        auto failure = wire::read_failure(in.payload());
        if (failure) fail_with(failure->kind, std::move(failure->why));
        return failure.has_value();
      }
      case FrameKind::asked:
        if (std::exchange(asked_, true)) return false;
        answer();
        return true;
      case FrameKind::closing:
        close();
        return true;
      case FrameKind::heartbeat:
        return true;
      default:
        return false;
    }
  }

  bool take_result(wire::Payload payload) {
    const auto gathered = wire::read_gathered(payload);
    if (!gathered || gathered->all.size() != size_) return false;
    const std::lock_guard lock(mutex_);
    if (gathered->step != step_ || !std::exchange(gathers_, false)) return false;
    result_.emplace();
    for (const wire::Payload& data : gathered->all) result_->emplace_back(data.begin(), data.end());
    changed_.notify_all();
    return true;
  }

  /// The hub closes in peace: no more steps, but nothing that watchers must know.
  void close() {
    ended_ = true;
    connection_.end_writing();  // the hub waits for that
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = {wire::FailureKind::left, hub_name_ + " has left"};
    watchers_.clear();
    changed_.notify_all();
  }

  /// By the time at which the turn began: were this rank stopped since, it would seem to be the
  /// hub that was silent.
  void check_times() {
    if (said_goodbye_ && now_ >= goodbye_deadline_) ended_ = true;
    if (now_ - heard_ >= silence_ && !ended_) {
      fail_with(
          wire::FailureKind::died,
          fmt::format("{} has died: it has been silent for {}: it is stopped, or its machine is",
                      hub_name_,
                      seconds_text(std::chrono::duration_cast<milliseconds>(now_ - heard_))));
      ended_ = true;
    }
    if (now_ - spoke_ >= heartbeat(silence_) && !connection_.wants_write() && !said_goodbye_) {
      connection_.send(wire::frame(FrameKind::heartbeat));
      spoke_ = now_;
    }
  }

  const uint32_t rank_, size_;
  const milliseconds timeout_, silence_;
  const std::string hub_name_;
  const std::shared_ptr<Hub> hub_;
  const Fd waker_;

  std::mutex step_mutex_;  ///< held by the caller of all_gather()
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<wire::Bytes> outbox_;
  bool ready_ = false, leaving_ = false;
  uint64_t step_ = 0;
  bool gathers_ = false;  ///< the hub is to answer at this step
  std::optional<std::vector<std::vector<uint8_t>>> result_;
  std::optional<wire::Failure> failure_;
  std::optional<SteadyTime> verdict_deadline_;  ///< set once this rank has reported its waits
  std::vector<std::function<void(const std::string&)>> watchers_;

  // The thread's own.
  const std::shared_ptr<const Fd> hub_end_;  ///< readable once the hub's process has ended
  Connection connection_;
  SteadyTime now_, spoke_, heard_, goodbye_deadline_;
  StopDetector stops_{silence_};
  bool asked_ = false;  ///< which rank waits for which: once is enough
  bool said_goodbye_ = false, shut_ = false, broken_ = false, ended_ = false;
  std::thread thread_;
};

std::unique_ptr<Bootstrap> begin(Connected connected, uint32_t rank, uint32_t size,
                                 std::shared_ptr<Hub> hub,
                                 const std::function<bool(Diagnostics&)>& gives_up,
                                 bool announced_elsewhere, Diagnostics& diagnostics) {
  Fd waker = make_waker();
  if (!waker.valid()) {
    const std::string why = "the bootstrap cannot start: " + error_text(errno);
    give_up_at_once(connected.connection, why);
    diagnostics.error("no-descriptors", {}, fmt::format("rank {}: {}", rank, why));
    return nullptr;
  }
  auto bootstrap = std::make_unique<SocketBootstrap>(rank, size, std::move(connected),
                                                     std::move(waker), std::move(hub));
  if (!bootstrap->has_thread(diagnostics)) return nullptr;
  if (!bootstrap->wait_until_all_are_here(gives_up, announced_elsewhere, diagnostics)) {
    return nullptr;
  }
  return bootstrap;
}

}  // namespace

std::unique_ptr<Bootstrap> join(const Rendezvous& where, uint32_t rank, uint32_t size,
                                milliseconds timeout, std::shared_ptr<Hub> hub,
                                Diagnostics& diagnostics) {
  auto connected = connect_to_hub(where, rank, size, timeout, diagnostics);
  if (!connected) return nullptr;
  return begin(std::move(*connected), rank, size, std::move(hub), where.gives_up,
               where.announced_elsewhere, diagnostics);
}

std::unique_ptr<Bootstrap> join(Connected connected, uint32_t rank, uint32_t size,
                                std::shared_ptr<Hub> hub, Diagnostics& diagnostics) {
  return begin(std::move(connected), rank, size, std::move(hub), nullptr, false, diagnostics);
}

}  // namespace mscclc
