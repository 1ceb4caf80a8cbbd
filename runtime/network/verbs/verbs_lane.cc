#include "runtime/network/verbs/verbs_lane.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "executor/shared_atomics.h"
#include "runtime/network/lane_state.h"
#include "runtime/network/sockets/dial.h"
#include "runtime/network/sockets/socket_errors.h"
#include "runtime/network/verbs/control.h"
#include "runtime/network/verbs/resources/completion_text.h"
#include "runtime/network/verbs/send_queue.h"
#include "runtime/network/verbs/staging.h"
#include "runtime/network/verbs/stall_watch.h"
#include "runtime/support/deadline.h"
#include "runtime/support/fixed_times.h"

namespace mscclc::verbs {
namespace {

/// Memory of the peer is divided into blocks of so many bytes; each has its queue pair.
constexpr uint64_t kBlock = Staging::kMax;
/// With so many orders that the device has not taken a lane takes no more.
constexpr size_t kMaxWaiting = 1024;
/// It takes so many at once.
constexpr size_t kMaxBlocks = 16;
/// Orders that a queue pair holds. As many as records: a record is free when its message is done.
constexpr uint32_t kDepth = kRecords;
constexpr size_t kPolled = 32;

using net::refuse_lane;

class VerbsLane final : public Lane {
 public:
  VerbsLane(const LanePeer& peer, std::shared_ptr<Adapter> adapter, FindSource find_source,
            SignalMode mode)
      : state_(peer),
        mode_(mode),
        adapter_(std::move(adapter)),
        find_source_(std::move(find_source)),
        stall_(adapter_->net()->options().dead) {}

  /// Meets the peer on a socket that it has proved to be its own.
  Result<void> meet(Fd socket, SteadyTime deadline) {
    line_ = std::make_unique<ControlLine>(std::move(socket));
    auto met = try_to_meet(deadline);
    if (!met) break_with(met.error().text());
    return met;
  }

  ~VerbsLane() override {
    const auto held = net().reactor().hold();
    forget_all();
    const std::lock_guard lock(mutex_);
    if (line_ == nullptr) return;
    poll_all();
    // Otherwise the far end sees that it was cut off.
    if (state_.is_open() && is_empty()) (void)line_->send(ControlMessage::bye, messages_);
    queues_.clear();
    net().close_later(line_->release());
  }

  /// A put of n blocks may be n + 1 orders. (The first whose bytes must be staged may wait for the
  /// device: what is put is not known here.)
  uint64_t room() override {
    const std::lock_guard lock(mutex_);
    if (!state_.is_open() || state_.is_over()) return kAnyRoom;
    push_some();
    poll_all();
    complete_some();
    if (!state_.is_open()) return kAnyRoom;
    if (answered_notes_ < notes_) return 0;
    if (waiting_.size() + kMaxBlocks >= kMaxWaiting) return 0;
    if (staging_ == nullptr) return kMaxBlocks * kBlock;
    staging_->done_before(first_pending());
    return staging_->has_room_for_a_block() ? kBlock : 0;
  }

  bool put(const RemotePlace& to, const void* from, uint64_t bytes,
           Diagnostics& diagnostics) override {
    if (bytes == 0) return true;
    const NamedMemory* const memory = find(to, bytes, diagnostics);
    if (memory == nullptr) return false;
    Source how;
    if (bytes > kInline) how = find_source_(from, bytes);
    if (!how.error.empty()) return refuse_lane(diagnostics, how.error);
    std::unique_lock lock(mutex_);
    const auto* source = static_cast<const uint8_t*>(from);
    for (uint64_t at = to.offset, end = to.offset + bytes; at < end;) {
      const uint64_t count = std::min(end, (at / kBlock + 1) * kBlock) - at;
      latest_ = (*memory->exposed() + at / kBlock) % queues_.size();
      Work work{.key = memory->device_key()->key,
                .bytes = static_cast<uint32_t>(count),
                .to = memory->device_key()->address + at};
      if (!await_room(lock, diagnostics)) return false;
      if (!take_source(work, source, how.key, lock, diagnostics)) return false;
      if (state_.gone()) return true;
      order(work);
      if (memory->device_key()->staged) {
        order(message(Work::What::landing, {*memory->exposed(), at, 0, count}));
      }
      source += count;
      at += count;
    }
    return go_on(diagnostics);
  }

  bool signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) override {
    const NamedMemory* const memory = find(count, sizeof value, diagnostics);
    if (memory == nullptr) return false;
    std::unique_lock lock(mutex_);
    if (!await_room(lock, diagnostics)) return false;
    if (state_.gone()) return true;
    order(mode_ == SignalMode::host
              ? add(*memory, count, value)
              : message(Work::What::message, {*memory->exposed(), count.offset, value}));
    return go_on(diagnostics);
  }

  bool complete(uint64_t* count, uint64_t value, Diagnostics& diagnostics) override {
    const std::lock_guard lock(mutex_);
    if (!state_.is_whole(diagnostics)) return false;
    completions_.push_back({count, value, latest_read_});
    return go_on(diagnostics);
  }

  void cork() override {
    const std::lock_guard lock(mutex_);
    corked_ = true;
  }

  bool uncork(Diagnostics& diagnostics) override {
    const std::lock_guard lock(mutex_);
    corked_ = false;
    return go_on(diagnostics);
  }

  /// The device's orders overtake what the peer's processor has still to read: it answers first.
  bool note(const LaneNote& note, Diagnostics& diagnostics) override {
    const std::lock_guard lock(mutex_);
    if (!state_.is_whole(diagnostics)) return false;
    if (state_.gone()) return true;
    Bytes body(sizeof note);
    std::memcpy(body.data(), note.data(), sizeof note);
    ++notes_;
    if (!line_->send(ControlMessage::note, body)) end_break(errno);
    return state_.is_whole(diagnostics);
  }

  FlushState try_flush(Diagnostics& diagnostics) override {
    const std::lock_guard lock(mutex_);
    if (!go_on(diagnostics)) return FlushState::failed;
    if (state_.is_open() && is_empty() && asked_ < messages_) {
      asked_ = messages_;
      if (!line_->send(ControlMessage::flush, messages_)) end_break(errno);
    }
    return state_.state_of_flush(!is_empty() || flushed_ < messages_, diagnostics);
  }

 private:
  struct Waiting {
    Work work;
    size_t queue;
  };
  /// A count of this rank to be set when the orders up to this one are done.
  struct Completion {
    uint64_t* count;
    uint64_t value;
    uint64_t number;
  };

  net::SocketNet& net() const { return *adapter_->net(); }

  Result<void> try_to_meet(SteadyTime deadline) {
    const auto ours = make_queues();
    if (!ours) return ours.error();
    if (!line_->send(ControlMessage::connect, encode(*ours))) {
      return Error{net::connection_error_text(errno, net().options().dead)};
    }
    const auto theirs = hear_meeting(deadline);
    if (!theirs) return theirs.error();
    const auto connected = connect_all(*theirs);
    return connected ? watch() : connected;
  }

  Result<Meeting> make_queues() {
    Meeting ours;
    const Port& port = adapter_->port();
    const uint32_t queues = adapter_->options().queues;
    const uint32_t depth = std::min(kDepth, port.most_orders);
    auto region = MemoryRegion::make(adapter_->domain(), old_values_.get(), sizeof *old_values_,
                                     IBV_ACCESS_LOCAL_WRITE);
    if (!region) return region.error();
    old_values_key_ = *std::move(region);
    auto events = CompletionQueue::make(port.context, queues * (depth + 1));
    if (!events) return events.error();
    events_ = *std::move(events);
    ours.mode = mode_;
    ours.path = path_end(port);
    for (uint32_t i = 0; i < queues; ++i) {
      auto pair = QueuePair::make(adapter_->domain(), events_, {depth, 1, kInline});
      if (!pair) return pair.error();
      const auto prepared = prepare(**pair, port, adapter_->options(), 0);
      if (!prepared) return prepared.error();
      ours.queues.push_back({(*pair)->number(), random_packet_number()});
      queues_.emplace_back(*std::move(pair), depth, old_values_.get(),
                           old_values_key_->local_key());
    }
    own_ = ours.queues;
    return ours;
  }

  Result<Meeting> hear_meeting(SteadyTime deadline) {
    for (;;) {
      const auto message = line_->next();
      if (message && message->what == ControlMessage::failed) {
        return Error{"it says: " + text_of(*message)};
      }
      if (message) {
        auto theirs =
            message->what == ControlMessage::ready ? decode_meeting(message->body) : std::nullopt;
        if (theirs) return *std::move(theirs);
        return Error{"its answer is cut off"};
      }
      if (line_->ended()) {
        return Error{net::connection_error_text(line_->error(), net().options().dead)};
      }
      const SteadyTime now = std::chrono::steady_clock::now();
      if (await(line_->socket().get(), POLLIN, std::min<SteadyTime>(deadline, now + kAskAgain))) {
        continue;
      }
      if (now >= deadline) return Error{"it does not answer"};
      if (state_.is_over()) return Error{"the communicator has failed"};
    }
  }

  Result<void> connect_all(const Meeting& theirs) {
    if (theirs.queues.size() != queues_.size()) {
      return Error{"it has another number of queue pairs"};
    }
    if (auto differs = mismatch(path_end(adapter_->port()), theirs.path)) {
      return *std::move(differs);
    }
    records_ = {theirs.records, theirs.records_key};
    next_record_.resize(queues_.size());
    for (size_t i = 0; i < queues_.size(); ++i) {
      const auto connected = connect(queues_[i].pair(), adapter_->port(), adapter_->options(),
                                     own_[i].first, theirs.path, theirs.queues[i]);
      if (!connected) return connected;
    }
    return {};
  }

  Result<void> watch() {
    net::Reactor& reactor = net().reactor();
    const auto held = reactor.hold();
    const auto end = [this] { end_without_memory(); };
    heard_ = reactor.add(
        line_->socket(), EPOLLIN, [this](uint32_t) { attend(false); }, end);
    done_ = reactor.add(
        events_->events(), EPOLLIN, [this](uint32_t) { attend(true); }, end);
    const bool watched = stall_.open(reactor, [this] { look_for_stall(); });
    if (watched && heard_ != 0 && done_ != 0 && events_->arm()) return {};
    return Error{"cannot wait for it: " + error_text(errno)};
  }

  const NamedMemory* find(const RemotePlace& place, uint64_t bytes,
                          Diagnostics& diagnostics) const {
    const NamedMemory* const memory = NamedMemory::find(place, bytes);
    if (memory != nullptr && memory->device_key()) return memory;
    refuse_lane(diagnostics,
                fmt::format("{} bytes at byte {} of a region of rank {} are not for its lane",
                            bytes, place.offset, state_.peer()));
    return nullptr;
  }

  /// Where the bytes of an order come from: with a key the processor need not be able to read them.
  /// False: reported.
  bool take_source(Work& work, const uint8_t* from, std::optional<uint32_t> key,
                   std::unique_lock<std::mutex>& lock, Diagnostics& diagnostics) {
    if (!key && work.bytes <= kInline) {
      work.carried = true;
      std::memcpy(work.data.data(), from, work.bytes);
    } else if (key) {
      work.from = from;
      work.source_key = *key;
      latest_read_ = orders_ + 1;
    } else {
      return stage(work, from, lock, diagnostics);
    }
    return true;
  }

  bool stage(Work& work, const uint8_t* from, std::unique_lock<std::mutex>& lock,
             Diagnostics& diagnostics) {
    if (staging_ == nullptr) {
      auto made = Staging::make(*adapter_);
      if (!made) return refuse_lane(diagnostics, made.error().text());
      staging_ = *std::move(made);
    }
    while (go_on(diagnostics)) {
      if (state_.gone()) return true;
      staging_->done_before(first_pending());
      if (uint8_t* const place = staging_->take(work.bytes, orders_ + 1)) {
        std::memcpy(place, from, work.bytes);
        work.from = place;
        work.source_key = staging_->key();
        return true;
      }
      push_all();  // what is corked may hold the room
      if (!state_.await_news(lock, diagnostics)) return false;
    }
    return false;
  }

  Work add(const NamedMemory& memory, const RemotePlace& count, uint64_t value) {
    const uint64_t address = memory.device_key()->address + count.offset;
    const uint64_t before = std::exchange(counts_[address], value);
    return {.what = Work::What::add,
            .key = memory.device_key()->key,
            .bytes = sizeof value,
            .to = address,
            .value = value - before};
  }

  Work message(Work::What what, const Record& record) {
    const auto place = static_cast<uint32_t>(next_record_[latest_]++ % kRecords);
    ++messages_;
    Work work{.what = what,
              .carried = true,
              .key = records_.key,
              .bytes = sizeof record,
              .place = place,
              .to = records_.address + (latest_ * kRecords + place) * sizeof record};
    static_assert(sizeof record <= kInline);
    std::memcpy(work.data.data(), &record, sizeof record);
    return work;
  }

  void order(Work work) {
    work.number = ++orders_;
    stall_.start();
    waiting_.push_back({work, latest_});
  }

  /// Gives the device what it has room for, and takes what it has done. False: reported.
  bool go_on(Diagnostics& diagnostics) {
    push_some();
    poll_all();
    complete_some();
    return state_.is_whole(diagnostics);
  }

  /// A signal follows what the other queue pairs have been given.
  bool may_push(const Waiting& next) const {
    if (!queues_[next.queue].has_room()) return false;
    if (next.work.what == Work::What::write || next.work.what == Work::What::landing) return true;
    for (size_t i = 0; i < queues_.size(); ++i) {
      if (i != next.queue && !queues_[i].is_empty()) return false;
    }
    return true;
  }

  /// While the lane is corked a few orders wait, so that the device gets them, and rings, at once.
  void push_some() {
    if (!corked_ || waiting_.size() >= kMaxBlocks) push_all();
  }

  void push_all() {
    int error = 0;
    while (state_.broken().empty() && !waiting_.empty() && may_push(waiting_.front()) &&
           error == 0) {
      error = queues_[waiting_.front().queue].add(waiting_.front().work);
      waiting_.pop_front();
    }
    for (SendQueue& queue : queues_) {
      if (error == 0 && state_.broken().empty()) error = queue.ring();
    }
    if (error != 0) {
      break_with(fmt::format("the lane to rank {} has ended: {} takes no orders: {}", state_.peer(),
                             adapter_->port().context->name(), error_text(error)));
    }
  }

  /// What is done makes room for what waits.
  void poll_all() {
    std::array<ibv_wc, kPolled> come;
    for (int count = 1; count > 0 && state_.is_open();) {
      count = events_->poll(come);
      for (int i = 0; i < count; ++i) take_done(come[static_cast<size_t>(i)]);
      if (count > 0) push_all();
      if (count < 0) {
        break_with(fmt::format("the lane to rank {} has ended: {} fails", state_.peer(),
                               adapter_->port().context->name()));
      }
    }
  }

  void take_done(const ibv_wc& come) {
    SendQueue* queue = nullptr;
    for (SendQueue& each : queues_) {
      if (each.pair().number() == come.qp_num) queue = &each;
    }
    if (queue == nullptr || !state_.is_open()) return;
    if (come.status == IBV_WC_SUCCESS) return queue->done(come.wr_id);
    listen();  // it may have gone in good order, or have said why
    if (!state_.is_open()) return;
    const auto problem = adapter_->port().problem();
    break_with(fmt::format("the lane to rank {} has ended: {}: {}{}", state_.peer(),
                           queue->text(come.wr_id), status_text(come.status, come.vendor_err),
                           problem ? "; " + adapter_->port().text() + " " + problem->text() : ""));
  }

  bool is_empty() const { return first_pending() == orders_ + 1; }

  /// The first order that is not done.
  uint64_t first_pending() const {
    uint64_t first = orders_ + 1;
    if (!waiting_.empty()) first = waiting_.front().work.number;
    for (const SendQueue& queue : queues_) {
      if (!queue.is_empty()) first = std::min(first, queue.first());
    }
    return first;
  }

  void complete_some() {
    const uint64_t first = first_pending();
    while (state_.broken().empty() && !completions_.empty() &&
           (state_.gone() || completions_.front().number < first)) {
      store_release(completions_.front().count, completions_.front().value);
      completions_.pop_front();
    }
  }

  /// Waits while too much waits for the device. False: reported.
  bool await_room(std::unique_lock<std::mutex>& lock, Diagnostics& diagnostics) {
    return state_.await_while(
        lock, [&] { return waiting_.size() >= kMaxWaiting; }, diagnostics);
  }

  void listen() {
    while (const auto message = line_->next()) {
      const auto number = number_of(*message);
      if (message->what == ControlMessage::gone) {
        state_.leave();
        waiting_.clear();
        return;
      }
      if (message->what == ControlMessage::failed) {
        return break_with(
            fmt::format("rank {} ends its lane: {}", state_.peer(), text_of(*message)));
      }
      if (message->what == ControlMessage::noted && number && *number == answered_notes_ + 1 &&
          answered_notes_ < notes_) {
        ++answered_notes_;
        continue;
      }
      // Messages are counted up: so each question has an answer, and no answer comes twice.
      const bool asked = number && *number > flushed_ && *number <= asked_;
      if (message->what != ControlMessage::flushed || !asked) {
        return break_with(fmt::format("rank {} sends message {}{}, which has no place there",
                                      state_.peer(), static_cast<int>(message->what),
                                      number ? fmt::format(" of {}", *number) : ""));
      }
      flushed_ = *number;
    }
    if (line_->ended() && state_.broken().empty()) end_break(line_->error());
  }

  void end_break(int error) {
    break_with(fmt::format("the lane to rank {} has ended: {}", state_.peer(),
                           net::connection_error_text(error, net().options().dead)));
  }

  /// The first reason counts, and the far end learns it.
  void break_with(const std::string& why) {
    if (!state_.break_with(why)) return;
    waiting_.clear();
    line_->send_failure(why);
  }

  /// On the reactor's thread: what has come may be half dealt with.
  void end_without_memory() {
    const std::string why =
        fmt::format("the lane to rank {} has ended: there is not enough memory", state_.peer());
    {
      const std::lock_guard lock(mutex_);
      break_with(why);
      forget_all();
    }
    state_.announce(why);
  }

  /// On the reactor's thread: the peer has said something, or the device has done something.
  void attend(bool done) {
    std::string why;
    {
      const std::lock_guard lock(mutex_);
      if (done) {
        events_->take_events();
        if (!events_->arm()) break_with("the device's events cannot be waited for");
      } else if (state_.is_open()) {
        listen();
      }
      if (state_.broken().empty()) poll_all();
      complete_some();
      why = state_.broken();
      if (!state_.is_open()) forget_all();
    }
    state_.announce(why);
  }

  /// On the reactor's thread, each second while there are orders.
  void look_for_stall() {
    std::string why;
    {
      const std::lock_guard lock(mutex_);
      if (state_.is_open()) poll_all();
      complete_some();
      if (stall_.is_dead(!is_empty(), first_pending())) {
        break_with(fmt::format(
            "the lane to rank {} has ended: {} has done nothing for {} s, and reports no error; "
            "check that the process of rank {} is not stopped, and the log of this system",
            state_.peer(), adapter_->port().context->name(), net().options().dead.count(),
            state_.peer()));
      }
      why = state_.broken();
      if (!state_.is_open()) forget_all();
    }
    state_.announce(why);
  }

  void forget_all() {
    stall_.close(net().reactor());
    if (heard_ != 0) net().reactor().remove(line_->socket(), heard_);
    if (done_ != 0) net().reactor().remove(events_->events(), done_);
    heard_ = done_ = 0;
  }

  net::LaneState state_;
  const SignalMode mode_;
  const std::shared_ptr<Adapter> adapter_;
  const FindSource find_source_;
  std::mutex mutex_;  ///< for state_ and all below; taken after the reactor's
  std::unique_ptr<ControlLine> line_;
  net::Reactor::Token heard_ = 0, done_ = 0;
  StallWatch stall_;
  const std::unique_ptr<uint64_t> old_values_ = std::make_unique<uint64_t>();
  std::shared_ptr<const MemoryRegion> old_values_key_;
  std::unique_ptr<Staging> staging_;  ///< nullptr: not needed so far
  std::shared_ptr<CompletionQueue> events_;
  std::vector<QueueEnd> own_;
  std::deque<SendQueue> queues_;
  DeviceKey records_;                  ///< of the peer, for messages
  std::vector<uint64_t> next_record_;  ///< by queue
  size_t latest_ = 0;                  ///< the queue of the latest put
  uint64_t orders_ = 0;                ///< so many were given
  uint64_t latest_read_ = 0;           ///< the latest whose bytes the device reads where they lie
  std::deque<Waiting> waiting_;        ///< the device has no room for them, or they wait for others
  std::deque<Completion> completions_;
  std::map<uint64_t, uint64_t> counts_;  ///< what was signalled last, by address
  /// Signals sent as messages; those that the peer was asked about; known to be carried out.
  uint64_t messages_ = 0, asked_ = 0, flushed_ = 0;
  uint64_t notes_ = 0, answered_notes_ = 0;
  bool corked_ = false;
};

}  // namespace

std::unique_ptr<Lane> open_verbs_lane(const LanePeer& peer, std::shared_ptr<Adapter> adapter,
                                      FindSource find_source, std::chrono::milliseconds timeout,
                                      Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& why) {
    refuse_lane(diagnostics, fmt::format("no lane to rank {}: {}", peer.rank, why));
    return nullptr;
  };
  const auto offer = decode_verbs_offer(peer.offer);
  if (!offer) return fail("its offer is not a lane over verbs: MSCCLC_LANE differs between ranks");
  const SteadyTime deadline = std::chrono::steady_clock::now() + timeout;
  auto sockets = net::dial(offer->socket, {1, timeout, adapter->net()->options().dead, peer.over});
  const std::string at = "at " + offer->socket.address.text() + ": ";
  if (!sockets) return fail(at + sockets.error().text());
  const SignalMode mode = adapter->options().mode.value_or(
      offer->atomics ? SignalMode::host : SignalMode::host_no_atomic);
  auto lane = std::make_unique<VerbsLane>(peer, std::move(adapter), std::move(find_source), mode);
  const auto met = lane->meet(std::move(sockets->front()), deadline);
  if (!met) return fail(at + met.error().text());
  return lane;
}

}  // namespace mscclc::verbs
