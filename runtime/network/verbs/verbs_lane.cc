#include "runtime/network/verbs/verbs_lane.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "runtime/network/lane_state.h"
#include "runtime/network/sockets/dial.h"
#include "runtime/network/sockets/socket_errors.h"
#include "runtime/network/verbs/control.h"
#include "runtime/network/verbs/device_queues.h"
#include "runtime/network/verbs/lane_orders.h"
#include "runtime/network/verbs/order_maker.h"
#include "runtime/network/verbs/peer_answers.h"
#include "runtime/network/verbs/resources/completion_text.h"
#include "runtime/network/verbs/staging.h"
#include "runtime/network/verbs/stall_watch.h"
#include "runtime/support/deadline.h"
#include "runtime/support/fixed_times.h"

namespace mscclc::verbs {
namespace {

constexpr size_t kPolled = 32;

using net::refuse_lane;

class VerbsLane final : public Lane {
 public:
  VerbsLane(const LanePeer& peer, std::shared_ptr<Adapter> adapter, FindSource find_source,
            SignalMode mode)
      : state_(peer),
        adapter_(std::move(adapter)),
        find_source_(std::move(find_source)),
        maker_(mode),
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
    if (state_.is_open() && orders_.is_empty()) {
      (void)line_->send(ControlMessage::bye, maker_.messages());
    }
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
    if (answers_.awaits_note() || orders_.is_nearly_full()) return 0;
    if (staging_ == nullptr) return LaneOrders::kMaxBlocks * kBlock;
    staging_->done_before(orders_.first_pending());
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
      Work work = maker_.put(*memory, at, end);
      if (!await_room(lock, diagnostics)) return false;
      if (!take_source(work, source, how.key, lock, diagnostics)) return false;
      if (state_.gone()) return true;
      order(work, how.key.has_value());
      if (memory->device_key()->staged) order(maker_.landing(*memory, at, work.bytes));
      source += work.bytes;
      at += work.bytes;
    }
    return go_on(diagnostics);
  }

  bool signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) override {
    const NamedMemory* const memory = find(count, sizeof value, diagnostics);
    if (memory == nullptr) return false;
    std::unique_lock lock(mutex_);
    if (!await_room(lock, diagnostics)) return false;
    if (state_.gone()) return true;
    order(maker_.signal(*memory, count.offset, value));
    return go_on(diagnostics);
  }

  bool complete(uint64_t* count, uint64_t value, Diagnostics& diagnostics) override {
    const std::lock_guard lock(mutex_);
    if (!state_.is_whole(diagnostics)) return false;
    orders_.complete(count, value);
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
    answers_.ask_note();
    if (!line_->send(ControlMessage::note, body)) end_break(errno);
    return state_.is_whole(diagnostics);
  }

  FlushState try_flush(Diagnostics& diagnostics) override {
    const std::lock_guard lock(mutex_);
    if (!go_on(diagnostics)) return FlushState::failed;
    const uint64_t messages = maker_.messages();
    if (state_.is_open() && orders_.is_empty() && answers_.ask_flush(messages) &&
        !line_->send(ControlMessage::flush, messages)) {
      end_break(errno);
    }
    return state_.state_of_flush(!orders_.is_empty() || !answers_.has_carried_out(messages),
                                 diagnostics);
  }

 private:
  net::SocketNet& net() const { return *adapter_->net(); }

  Result<void> try_to_meet(SteadyTime deadline) {
    const auto ours = queues_.make(*adapter_, maker_.mode());
    if (!ours) return ours.error();
    if (!line_->send(ControlMessage::connect, encode(*ours))) {
      return Error{net::connection_error_text(errno, net().options().dead)};
    }
    const auto theirs = hear_meeting(deadline);
    if (!theirs) return theirs.error();
    const auto connected = queues_.connect(*adapter_, *theirs);
    if (!connected) return connected;
    maker_.open(queues_.all().size(), {theirs->records, theirs->records_key});
    return watch();
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

  Result<void> watch() {
    net::Reactor& reactor = net().reactor();
    const auto held = reactor.hold();
    const auto end = [this] { end_without_memory(); };
    heard_ = reactor.add(
        line_->socket(), EPOLLIN, [this](uint32_t) { attend(false); }, end);
    done_ = reactor.add(
        queues_.events()->events(), EPOLLIN, [this](uint32_t) { attend(true); }, end);
    const bool watched = stall_.open(reactor, [this] { look_for_stall(); });
    if (watched && heard_ != 0 && done_ != 0 && queues_.events()->arm()) return {};
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
      staging_->done_before(orders_.first_pending());
      if (uint8_t* const place = staging_->take(work.bytes, orders_.next())) {
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

  void order(const Work& work, bool in_place = false) {
    stall_.start();
    orders_.add(work, maker_.queue(), in_place);
  }

  /// Gives the device what it has room for, and takes what it has done. False: reported.
  bool go_on(Diagnostics& diagnostics) {
    push_some();
    poll_all();
    complete_some();
    return state_.is_whole(diagnostics);
  }

  /// While the lane is corked a few orders wait, so that the device gets them, and rings, at once.
  void push_some() {
    if (!corked_ || !orders_.are_few()) push_all();
  }

  void push_all() {
    if (!state_.broken().empty()) return;
    if (const int error = orders_.push(); error != 0) {
      break_with(fmt::format("the lane to rank {} has ended: {} takes no orders: {}", state_.peer(),
                             adapter_->port().context->name(), error_text(error)));
    }
  }

  /// What is done makes room for what waits.
  void poll_all() {
    std::array<ibv_wc, kPolled> come;
    for (int count = 1; count > 0 && state_.is_open();) {
      count = queues_.events()->poll(come);
      for (int i = 0; i < count; ++i) take_done(come[static_cast<size_t>(i)]);
      if (count > 0) push_all();
      if (count < 0) {
        break_with(fmt::format("the lane to rank {} has ended: {} fails", state_.peer(),
                               adapter_->port().context->name()));
      }
    }
  }

  void take_done(const ibv_wc& come) {
    SendQueue* const queue = queues_.find(come.qp_num);
    if (queue == nullptr || !state_.is_open()) return;
    if (come.status == IBV_WC_SUCCESS) return queue->done(come.wr_id);
    listen();  // it may have gone in good order, or have said why
    if (!state_.is_open()) return;
    const auto problem = adapter_->port().problem();
    break_with(fmt::format("the lane to rank {} has ended: {}: {}{}", state_.peer(),
                           queue->text(come.wr_id), status_text(come.status, come.vendor_err),
                           problem ? "; " + adapter_->port().text() + " " + problem->text() : ""));
  }

  void complete_some() {
    if (state_.broken().empty()) orders_.set_counts(state_.gone());
  }

  /// Waits while too much waits for the device. False: reported.
  bool await_room(std::unique_lock<std::mutex>& lock, Diagnostics& diagnostics) {
    return state_.await_while(
        lock, [&] { return orders_.is_full(); }, diagnostics);
  }

  void listen() {
    while (const auto message = line_->next()) {
      if (message->what == ControlMessage::gone) {
        state_.leave();
        orders_.drop_waiting();
        return;
      }
      if (message->what == ControlMessage::failed) {
        return break_with(
            fmt::format("rank {} ends its lane: {}", state_.peer(), text_of(*message)));
      }
      if (answers_.take(*message)) continue;
      const auto number = number_of(*message);
      return break_with(fmt::format("rank {} sends message {}{}, which has no place there",
                                    state_.peer(), static_cast<int>(message->what),
                                    number ? fmt::format(" of {}", *number) : ""));
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
    orders_.drop_waiting();
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
        queues_.events()->take_events();
        if (!queues_.events()->arm()) break_with("the device's events cannot be waited for");
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
      if (stall_.is_dead(!orders_.is_empty(), orders_.first_pending())) {
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
    if (done_ != 0) net().reactor().remove(queues_.events()->events(), done_);
    heard_ = done_ = 0;
  }

  net::LaneState state_;
  const std::shared_ptr<Adapter> adapter_;
  const FindSource find_source_;
  std::mutex mutex_;  ///< for state_ and all below; taken after the reactor's
  std::unique_ptr<ControlLine> line_;
  net::Reactor::Token heard_ = 0, done_ = 0;
  OrderMaker maker_;
  DeviceQueues queues_;
  LaneOrders orders_{queues_};
  PeerAnswers answers_;
  StallWatch stall_;
  std::unique_ptr<Staging> staging_;  ///< nullptr: not needed so far
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
  const bool atomics = offer->atomics && adapter->port().atomics;
  const SignalMode mode =
      adapter->options().mode.value_or(atomics ? SignalMode::host : SignalMode::host_no_atomic);
  auto lane = std::make_unique<VerbsLane>(peer, std::move(adapter), std::move(find_source), mode);
  const auto met = lane->meet(std::move(sockets->front()), deadline);
  if (!met) return fail(at + met.error().text());
  return lane;
}

}  // namespace mscclc::verbs
