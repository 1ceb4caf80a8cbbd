#include "runtime/network/sockets/socket_lane.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "executor/shared_atomics.h"
#include "ir/diagnostics/printable.h"
#include "runtime/network/lane_state.h"
#include "runtime/network/order_reader.h"
#include "runtime/network/sockets/dial.h"
#include "runtime/network/sockets/sender.h"
#include "runtime/network/sockets/socket_errors.h"
#include "runtime/network/threads/copy_workers.h"
#include "runtime/network/threads/spin_lock.h"
#include "runtime/support/process/insist.h"

namespace mscclc::net {
namespace {

/// Memory of the peer is divided into blocks of so many bytes; each has its connection. Short ones
/// let several connections share a message of middle length. To a GPU each costs the far end a
/// copy, which takes as long for few bytes as for many.
constexpr uint64_t block_bytes(MemoryPlace place) {
  return place == MemoryPlace::host ? 32 << 10 : 256 << 10;
}
static_assert(block_bytes(MemoryPlace::device) <= OrderReader::kMaxPut);
/// With so many orders in its queues a lane takes no more until some are sent.
constexpr uint64_t kMaxQueued = 4096;
/// So many bytes of a connection are sent, even if more orders are to go with them.
constexpr uint64_t kMaxCorked = 16 << 10;
/// How long a worker waits for more orders of a connection.
constexpr std::chrono::microseconds kLinger{20};

class SocketLane final : public Lane {
 public:
  SocketLane(std::vector<Fd> sockets, const LanePeer& peer, std::shared_ptr<SocketNet> net)
      : state_(peer), net_(std::move(net)) {
    for (Fd& socket : sockets) {
      lines_.push_back(std::make_unique<Line>(Sender(std::move(socket), sockets.size())));
    }
  }

  bool watch(Diagnostics& diagnostics) {
    Reactor& reactor = net_->sends();
    const auto held = reactor.hold();
    for (auto& line : lines_) {
      line->token = reactor.add(
          line->sender.socket(), EPOLLIN, [this, l = line.get()](uint32_t) { attend(*l); },
          [this] { end_without_memory(nullptr); });
      if (line->token == 0) {
        return refuse_lane(diagnostics, fmt::format("cannot wait for the lane to rank {}: {}",
                                                    state_.peer(), error_text(errno)));
      }
    }
    return true;
  }

  ~SocketLane() override {
    await_workers();
    const auto held = net_->sends().hold();
    forget_all();
    const auto lock = spin_lock(mutex_);
    if (!state_.is_open() || queued() > 0) return;  // the far end sees that it was cut off
    for (auto& line : lines_) {
      line->sender.push({.what = Order::bye});
      (void)line->sender.send_some();
    }
  }

  uint64_t room() override {
    const auto lock = spin_lock(mutex_);
    return queued() >= kMaxQueued && state_.is_open() && !state_.is_over() ? 0 : kAnyRoom;
  }

  bool put(const RemotePlace& to, const void* from, uint64_t bytes,
           Diagnostics& diagnostics) override {
    if (bytes == 0) return true;
    const NamedMemory* const memory = find(to, bytes, diagnostics);
    auto lock = spin_lock(mutex_);
    if (memory == nullptr || !await_room(lock, diagnostics)) return false;
    if (state_.gone()) return true;
    flushes_all_ = false;
    const auto* source = static_cast<const uint8_t*>(from);
    const ExposedId id = *memory->exposed();
    const Order::What what = bytes < CopyWorkers::kLeastBytes ? Order::put : Order::part;
    const uint64_t block = block_bytes(memory->place());
    for (uint64_t at = to.offset, end = to.offset + bytes; at < end;) {
      const uint64_t count = std::min(end, (at / block + 1) * block) - at;
      latest_ = (id + at / block) % lines_.size();
      lines_[latest_]->sender.push({.what = what, .memory = id, .offset = at, .value = count},
                                   source);
      source += count;
      at += count;
    }
    return send_all(diagnostics);
  }

  bool signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) override {
    const NamedMemory* const memory = find(count, sizeof value, diagnostics);
    return memory != nullptr && order({.what = Order::signal,
                                       .memory = *memory->exposed(),
                                       .offset = count.offset,
                                       .value = value},
                                      diagnostics);
  }

  bool complete(uint64_t* count, uint64_t value, Diagnostics& diagnostics) override {
    const auto lock = spin_lock(mutex_);
    if (!state_.is_whole(diagnostics)) return false;
    Completion completion{count, value, {}};
    for (const auto& line : lines_) completion.orders.push_back(line->sender.pushed());
    completions_.push_back(std::move(completion));
    complete_some();
    return true;
  }

  void cork() override {
    const auto lock = spin_lock(mutex_);
    corked_ = true;
  }

  bool uncork(Diagnostics& diagnostics) override {
    const auto lock = spin_lock(mutex_);
    corked_ = false;
    return send_all(diagnostics);
  }

  /// On each connection, as puts are spread among them.
  bool note(const LaneNote& note, Diagnostics& diagnostics) override {
    auto lock = spin_lock(mutex_);
    if (!await_room(lock, diagnostics)) return false;
    if (state_.gone()) return true;
    flushes_all_ = false;
    std::array<uint64_t, 3 * Order::kNoteOrders> words = {};
    std::copy(note.begin(), note.end(), words.begin());
    for (auto& line : lines_) {
      for (uint32_t i = 0; i < Order::kNoteOrders; ++i) {
        line->sender.push({.what = Order::note,
                           .connection = i,
                           .memory = words[3 * i],
                           .offset = words[3 * i + 1],
                           .value = words[3 * i + 2]});
      }
    }
    return send_all(diagnostics);
  }

  FlushState try_flush(Diagnostics& diagnostics) override {
    if (!flushes_all_) {
      if (room() == 0) return FlushState::under_way;
      if (!order({.what = Order::flush, .value = begin_flush()}, diagnostics)) {
        return FlushState::failed;
      }
      flushes_all_ = true;
    }
    const auto lock = spin_lock(mutex_);
    const FlushState state = state_.state_of_flush(answered_ < flushes_, diagnostics);
    flushes_all_ = state == FlushState::under_way;
    return state;
  }

 private:
  struct Line {
    explicit Line(Sender with) : sender(std::move(with)) {}
    Sender sender;
    Reactor::Token token = 0;
    bool waits_for_room = false;
    bool carried = false;   ///< a worker sends, and nothing else
    int error = 0;          ///< that it has found
    uint64_t answered = 0;  ///< the latest flush that was answered here
  };
  /// A count of this rank to be set when so many orders of each connection have been sent.
  struct Completion {
    uint64_t* count;
    uint64_t value;
    std::vector<uint64_t> orders;
  };

  const NamedMemory* find(const RemotePlace& place, uint64_t bytes,
                          Diagnostics& diagnostics) const {
    const NamedMemory* const memory = NamedMemory::find(place, bytes);
    if (memory == nullptr) {
      refuse_lane(diagnostics,
                  fmt::format("{} bytes at byte {} of a region of rank {} are not for its lane",
                              bytes, place.offset, state_.peer()));
    }
    return memory;
  }

  /// An order that is carried out after all that were given before it.
  bool order(const Order& last, Diagnostics& diagnostics) {
    auto lock = spin_lock(mutex_);
    if (!await_room(lock, diagnostics)) return false;
    if (state_.gone()) return true;
    flushes_all_ = false;
    Sender& sender = lines_[latest_]->sender;
    for (uint32_t other = 0; other < lines_.size(); ++other) {
      const uint64_t before = lines_[other]->sender.pushed();
      uint64_t& known = sender.known()[other];
      if (other == latest_ || known == before) continue;
      sender.push({.what = Order::fence, .connection = other, .value = before});
      known = before;
    }
    sender.push(last);
    return send_all(diagnostics);
  }

  /// Its number. Before it is sent: an answer may come at once.
  uint64_t begin_flush() {
    const auto lock = spin_lock(mutex_);
    return ++flushes_;
  }

  uint64_t queued() const {
    uint64_t orders = 0;
    for (const auto& line : lines_) orders += line->sender.pushed() - line->sender.sent();
    return orders;
  }

  /// Waits while too much is queued. False: reported.
  bool await_room(std::unique_lock<std::mutex>& lock, Diagnostics& diagnostics) {
    return state_.await_while(
        lock, [&] { return queued() >= kMaxQueued; }, diagnostics);
  }

  static bool may_wait(const Sender& sender) {
    return sender.bytes() < kMaxCorked && sender.pushed() - sender.sent() < Batch::kMaxOrders;
  }

  /// Where there was no room, the reactor's thread goes on.
  bool send_all(Diagnostics& diagnostics) {
    for (auto& line : lines_) {
      const bool waits = line->waits_for_room || (corked_ && may_wait(line->sender));
      if (!waits) send_some(*line);
    }
    complete_some();
    return state_.is_whole(diagnostics);
  }

  static bool is_long(const Sender& sender) {
    return sender.has_long() || sender.bytes() >= CopyWorkers::kLeastBytes;
  }

  void send_some(Line& line) {
    if (!state_.is_open() || line.carried || !line.sender.wants_write()) return;
    if (is_long(line.sender) && hand_over(line)) return;
    if (line.error != 0 || !line.sender.send_some()) {
      const int error = line.error != 0 ? line.error : errno;
      listen(line);  // it may have said why
      if (!state_.gone()) break_off(error);
      return;
    }
    watch_room(line);
  }

  void watch_room(Line& line) {
    const bool waits = line.sender.wants_write();
    if (waits == line.waits_for_room) return;
    line.waits_for_room = waits;
    net_->sends().change(line.sender.socket(), line.token, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }

  bool hand_over(Line& line) {
    if (net_->workers() == nullptr || ending_ || line.error != 0) return false;
    give_to_worker(line);
    line.carried = true;  // now that it is given
    if (line.waits_for_room) {
      line.waits_for_room = false;
      net_->sends().change(line.sender.socket(), line.token, EPOLLIN);
    }
    return true;
  }
  void give_to_worker(Line& line) {
    net_->workers()->give([this, &line] {
      try {
        carry(line);
      } catch (const std::bad_alloc&) {
        insist([&] { end_without_memory(&line); });
      }
    });
  }

  /// On a worker's thread: sends what there is and what comes soon, until there is no room for
  /// long, or its turn is over. What comes while it sends goes together.
  void carry(Line& line) {
    const CopyWorkers& workers = *net_->workers();
    const auto begun = CopyWorkers::Clock::now();
    auto moved = begun;
    for (auto lock = spin_lock(mutex_);;) {
      if (!state_.is_open() || ending_) return let_go(line);
      if (!line.sender.wants_write()) {
        if (workers.are_wanted() || CopyWorkers::Clock::now() - moved > kLinger)
          return let_go(line);
        lock.unlock();
        std::this_thread::yield();
        lock = spin_lock(mutex_);
        continue;
      }
      Batch batch = line.sender.batch();
      lock.unlock();
      const ssize_t sent = batch.send(line.sender.socket());
      const int error = sent < 0 ? errno : 0;
      const auto now = CopyWorkers::Clock::now();
      lock = spin_lock(mutex_);
      if (sent >= 0) {
        moved = now;
        line.sender.take_sent(static_cast<uint64_t>(sent));
        complete_some();
        state_.announce("");
        if (workers.are_wanted() && now - begun > CopyWorkers::kTurn) return give_to_worker(line);
      } else if (error != EINTR && error != EAGAIN) {
        line.error = error;
        return let_go(line);
      } else if (workers.are_wanted() || now - moved > CopyWorkers::kPatience) {
        return let_go(line);
      }
    }
  }

  /// The reactor's thread goes on where there is more to do.
  void let_go(Line& line) {
    line.carried = false;
    if (!state_.is_open()) {
      line.sender.close_writing();
    } else {
      watch_room(line);
    }
    state_.announce("");
  }

  void await_workers() {
    auto lock = spin_lock(mutex_);
    ending_ = true;
    const auto carried = [](const auto& line) { return line->carried; };
    while (std::any_of(lines_.begin(), lines_.end(), carried)) {
      lock.unlock();
      std::this_thread::yield();
      lock = spin_lock(mutex_);
    }
  }

  void complete_some() {
    const auto is_sent = [&](const Completion& completion) {
      for (size_t i = 0; i < lines_.size(); ++i) {
        if (lines_[i]->sender.sent() < completion.orders[i]) return false;
      }
      return true;
    };
    while (state_.broken().empty() && !completions_.empty() &&
           (state_.gone() || is_sent(completions_.front()))) {
      store_release(completions_.front().count, completions_.front().value);
      completions_.pop_front();
    }
  }

  void listen(Line& line) {
    while (const auto answer = line.sender.next_answer()) {
      if (answer->number == kGone) return leave();
      if (answer->number == kRefused) {
        return break_with(fmt::format("rank {} ends its lane: {}", state_.peer(),
                                      printable_line(answer->refusal)));
      }
      // Of one connection they come in order; of several any may be read first.
      if (answer->number <= line.answered || answer->number > flushes_) {
        return break_with(fmt::format("rank {} answers flush {}, for which it was not asked",
                                      state_.peer(), answer->number));
      }
      line.answered = answer->number;
      answered_ = std::max(answered_, answer->number);
    }
    if (line.sender.ended() && !state_.gone()) break_off(line.sender.error());
  }

  void break_off(int error) {
    break_with(fmt::format("the lane to rank {} has ended: {}", state_.peer(),
                           connection_error_text(error, net_->options().dead)));
  }
  void break_with(const std::string& why) {
    (void)state_.break_with(why);
    close_writing();
  }
  /// The far end needs no more.
  void leave() {
    state_.leave();
    close_writing();
  }
  void close_writing() {
    for (auto& line : lines_) {
      if (!line->carried) {
        line->sender.close_writing();
      } else {  // the hand still reads what is queued
        ::shutdown(line->sender.socket().get(), SHUT_WR);
      }
    }
  }

  /// On the reactor's thread: something has come, or there is room again.
  void attend(Line& line) {
    std::string why;
    {
      const auto lock = spin_lock(mutex_);
      if (state_.is_open()) {
        listen(line);
        send_some(line);
        complete_some();
        why = state_.broken();
      }
      if (!state_.is_open()) forget_all();
    }
    state_.announce(why);
  }

  /// An order may be half sent. `carried`: by this thread, a worker's; else it is the reactor's.
  void end_without_memory(Line* carried) {
    const std::string why =
        fmt::format("the lane to rank {} has ended: there is not enough memory", state_.peer());
    {
      const auto lock = spin_lock(mutex_);
      break_with(why);
      if (carried == nullptr) forget_all();
    }
    state_.announce(why);
    if (carried == nullptr) return;
    const auto lock = spin_lock(mutex_);
    let_go(*carried);  // last: until then this stays
  }

  void forget_all() {
    for (auto& line : lines_) net_->sends().remove(line->sender.socket(), line->token);
  }

  std::mutex mutex_;  ///< for all below; taken after the reactor's
  LaneState state_;
  const std::shared_ptr<SocketNet> net_;
  std::vector<std::unique_ptr<Line>> lines_;
  size_t latest_ = 0;  ///< the connection of the latest put
  std::deque<Completion> completions_;
  uint64_t flushes_ = 0, answered_ = 0;
  bool flushes_all_ = false;  ///< the latest flush is under way, and nothing was ordered since
  bool corked_ = false, ending_ = false;
};

}  // namespace

std::unique_ptr<Lane> open_socket_lane(const LanePeer& peer, std::shared_ptr<SocketNet> net,
                                       std::chrono::milliseconds timeout,
                                       Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& why) {
    refuse_lane(diagnostics, fmt::format("no lane to rank {}: {}", peer.rank, why));
    return nullptr;
  };
  const auto offer = decode_offer(peer.offer);
  if (!offer) {
    return fail("its offer is not a lane over sockets: MSCCLC_LANE differs between ranks");
  }
  const SocketOptions& options = net->options();
  auto sockets = dial(*offer, {options.connections, timeout, options.dead, peer.over});
  if (!sockets) {
    return fail(fmt::format("at {}: {}", offer->address.text(), sockets.error().text()));
  }
  auto lane = std::make_unique<SocketLane>(*std::move(sockets), peer, std::move(net));
  return lane->watch(diagnostics) ? std::move(lane) : nullptr;
}

}  // namespace mscclc::net
