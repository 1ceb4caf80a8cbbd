#include "runtime/network/verbs/verbs_end.h"

#include <endian.h>
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "executor/shared_atomics.h"
#include "ir/diagnostics/first_message.h"
#include "runtime/network/sockets/socket_errors.h"
#include "runtime/network/verbs/control.h"
#include "runtime/network/verbs/resources/completion_text.h"
#include "runtime/network/verbs/resources/own_pages.h"

namespace mscclc::verbs {
namespace {

/// After so many messages of the socket others have their turn.
constexpr int kMessagesInARow = 16;

/// All but its construction and end runs on the reactor's thread.
class VerbsEnd final : public LaneEnd, private net::SocketNet::Taker {
 public:
  VerbsEnd(uint32_t peer, std::shared_ptr<Adapter> adapter, std::shared_ptr<ExposedMemory> memory,
           LaneFailed failed, std::unique_ptr<Arrivals> arrivals, LaneNoted noted)
      : peer_(peer),
        adapter_(std::move(adapter)),
        memory_(std::move(memory)),
        failed_(std::move(failed)),
        noted_(std::move(noted)),
        arrivals_(std::move(arrivals)) {
    fill_random(key_);
    const auto held = net().reactor().hold();
    number_ = net().announce(*this);
    offer_ = encode(VerbsOffer{has_atomics(), {net().address(), number_, key_}});
  }

  ~VerbsEnd() override {
    const auto held = net().reactor().hold();
    net().withdraw(number_);
    if (line_ == nullptr) return;
    (void)line_->send(ControlMessage::gone);
    let_go();
  }

 private:
  net::SocketNet& net() const { return *adapter_->net(); }
  /// Not where memory may lie on a GPU: a count may be seen there, or in host memory, before what
  /// the device has written to the GPU.
  bool has_atomics() const { return adapter_->port().atomics && arrivals_ == nullptr; }
  const net::Key& key() const override { return key_; }

  bool take(Fd& socket, const net::Hello& hello, const net::Welcome& reply) override {
    if (taken_ || hello.connections != 1) return false;
    const net::Bytes welcome = encode(reply);
    token_ = net().reactor().add(
        socket, EPOLLIN, [this](uint32_t) { attend(); }, [this] { end_without_memory(); });
    if (token_ == 0) return false;
    taken_ = true;
    line_ = std::make_unique<ControlLine>(std::move(socket));
    if (!line_->send_plain(welcome)) end_break(EPIPE);
    return true;
  }

  void cannot_take(const std::string& why) override {
    if (!taken_)
      end(fmt::format("the connection of rank {}'s lane cannot be taken: {}", peer_, why));
  }

  /// Something has come on the socket.
  void attend() {
    for (int i = 0; i < kMessagesInARow && line_ != nullptr; ++i) {
      const auto message = line_->next();
      if (message) {
        carry_out(*message);
      } else if (line_->ended()) {
        return hang_up();
      } else {
        return;
      }
    }
  }

  /// The connection has ended. After a bye that is in order, though messages may still come by the
  /// device.
  void hang_up() {
    if (!bye_at_ || line_->error() != 0) return end_break(line_->error());
    net().reactor().remove(line_->socket(), token_);
  }

  void carry_out(const ControlMessage& message) {
    const auto number = number_of(message);
    if (message.what == ControlMessage::connect && pairs_.empty()) return meet(message);
    if (message.what == ControlMessage::failed) {
      return end(fmt::format("rank {} ends its lane: {}", peer_, text_of(message)));
    }
    if (message.what == ControlMessage::note && !pairs_.empty()) return take_note(message.body);
    const bool flush = message.what == ControlMessage::flush;
    if ((!flush && message.what != ControlMessage::bye) || !number || pairs_.empty()) {
      return end(fmt::format("the lane of rank {} brings message {}, which has no place there",
                             peer_, static_cast<int>(message.what)));
    }
    (flush ? flush_at_ : bye_at_) = *number;
    answer();
  }

  void take_note(const net::Bytes& body) {
    LaneNote note;
    if (body.size() != sizeof note) {
      return end(fmt::format("the lane of rank {} brings a note of {} bytes", peer_, body.size()));
    }
    std::memcpy(note.data(), body.data(), sizeof note);
    const std::string why = noted_ ? noted_(note) : "";
    if (!why.empty()) return end(fmt::format("the lane of rank {} brings {}", peer_, why));
    if (!line_->send(ControlMessage::noted, ++notes_)) {
      end(fmt::format("the lane of rank {} brings notes whose answers it does not read", peer_));
    }
  }

  /// What waits until so many signals have been carried out.
  void answer() {
    if (flush_at_ && *flush_at_ <= carried_out_) {
      const auto settled = arrivals_ != nullptr ? arrivals_->settle() : Result<void>();
      if (!settled) return end(cannot_arrive(settled.error()));
      if (!line_->send(ControlMessage::flushed, *flush_at_)) {
        return end(fmt::format("the lane of rank {} brings flushes whose answers it does not read",
                               peer_));
      }
      flush_at_.reset();
    }
    if (bye_at_ && *bye_at_ <= carried_out_) let_go();
  }

  void meet(const ControlMessage& message) {
    const auto theirs = decode_meeting(message.body);
    const auto refuse = [this](const Error& error) {
      end(fmt::format("the lane of rank {} cannot be made: {}", peer_, error.text()));
    };
    if (!theirs) return refuse({"what it says of itself is cut off"});
    if (const auto differs = why_not(*theirs)) return refuse(*differs);
    const auto ours = make_pairs(*theirs);
    if (!ours) return refuse(ours.error());
    if (!line_->send(ControlMessage::ready, encode(*ours))) end_break(EPIPE);
  }

  /// Why the peer's end and this one do not fit.
  std::optional<Error> why_not(const Meeting& theirs) const {
    if (auto differs = mismatch(path_end(adapter_->port()), theirs.path)) return differs;
    if (theirs.mode != SignalMode::host) return std::nullopt;
    if (!adapter_->port().atomics) {
      return Error{fmt::format("{} has no atomics, which MSCCLC_IBV_MODE=host needs",
                               adapter_->port().context->name()),
                   "host-no-atomic does without them"};
    }
    if (has_atomics()) return std::nullopt;
    return Error{
        "memory here is a GPU's, where a count that a device adds to may be seen before what it "
        "has written",
        "MSCCLC_IBV_MODE=host-no-atomic is for GPUs"};
  }

  Result<Meeting> make_pairs(const Meeting& theirs) {
    Meeting ours;
    const auto queues = static_cast<uint32_t>(theirs.queues.size());
    const bool messages = theirs.mode == SignalMode::host_no_atomic;
    const uint32_t receives = messages ? kRecords : 1;
    const Port& port = adapter_->port();
    auto events = CompletionQueue::make(port.context, queues * (receives + 1));
    if (!events) return events.error();
    events_ = *std::move(events);
    const auto recorded = messages ? make_records(queues, ours) : Result<void>();
    if (!recorded) return recorded.error();
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                       (messages || !has_atomics() ? 0 : IBV_ACCESS_REMOTE_ATOMIC);
    ours.mode = theirs.mode;
    ours.path = path_end(port);
    for (uint32_t i = 0; i < queues; ++i) {
      auto pair = QueuePair::make(adapter_->domain(), events_, {1, receives, 0});
      if (!pair) return pair.error();
      const auto prepared = prepare(**pair, port, adapter_->options(), access);
      if (!prepared) return prepared.error();
      const uint32_t first = random_packet_number();
      ours.queues.push_back({(*pair)->number(), first});
      pairs_.push_back(*std::move(pair));
      for (uint32_t r = 0; messages && r < kRecords; ++r) {
        if (const auto awaited = await_message(i); !awaited) return awaited.error();
      }
      const auto connected =
          connect(*pairs_.back(), port, adapter_->options(), first, theirs.path, theirs.queues[i]);
      if (!connected) return connected.error();
    }
    const auto watched = messages ? watch() : Result<void>();
    if (!watched) return watched.error();
    return ours;
  }

  Result<void> make_records(uint32_t queues, Meeting& ours) {
    records_.emplace(size_t{queues} * kRecords);
    Diagnostics problems;
    region_ = adapter_->expose(records_->data(), records_->bytes(), problems);
    if (region_ == nullptr) return Error{first_message(problems)};
    ours.records = reinterpret_cast<uintptr_t>(records_->data());
    ours.records_key = region_->remote_key();
    return {};
  }

  Result<void> await_message(uint32_t queue) {
    ibv_recv_wr order{};
    order.wr_id = queue;
    const int error = pairs_[queue]->receive(&order);
    if (error != 0) return Error{"no message can be awaited: " + error_text(error)};
    return {};
  }

  Result<void> watch() {
    messages_ = net().reactor().add(
        events_->events(), EPOLLIN, [this](uint32_t) { take_messages(); },
        [this] { end_without_memory(); });
    if (messages_ != 0 && events_->arm()) return {};
    return Error{"messages cannot be waited for: " + error_text(errno)};
  }

  void take_messages() {
    events_->take_events();
    if (!events_->arm()) {
      return end(
          fmt::format("the lane of rank {} has ended: its messages cannot be waited for", peer_));
    }
    std::array<ibv_wc, 32> come;
    for (int count = 1; count > 0;) {
      count = events_->poll(come);
      for (int i = 0; i < count; ++i) {
        if (!take_message(come[static_cast<size_t>(i)])) return;
      }
    }
    answer();
  }

  /// False: the lane has ended.
  bool take_message(const ibv_wc& come) {
    if (come.status != IBV_WC_SUCCESS) {
      end(fmt::format("the lane of rank {} has ended: {}", peer_,
                      status_text(come.status, come.vendor_err)));
      return false;
    }
    const auto queue = static_cast<uint32_t>(come.wr_id);
    const uint32_t place = be32toh(come.imm_data);
    const bool known = (come.wc_flags & IBV_WC_WITH_IMM) != 0 && place < kRecords;
    Result<void> taken = Error{"a message that has no place there"};
    if (known) taken = take_record((*records_)[size_t{queue} * kRecords + place]);
    if (taken) taken = await_message(queue);
    if (taken) {
      ++carried_out_;
      return true;
    }
    end(fmt::format("the lane of rank {} brings {}", peer_, taken.error().text()));
    return false;
  }

  Result<void> take_record(const Record& record) {
    const Record said = record;  // the peer can write it at any time
    const bool signal = said.bytes == 0;
    const uint64_t bytes = signal ? sizeof said.value : said.bytes;
    const auto piece = memory_->find(said.memory, said.offset, bytes);
    const bool here = piece.state == ExposedMemory::Piece::State::here;
    const bool fits = signal ? reinterpret_cast<uintptr_t>(piece.data) % sizeof said.value == 0
                             : !here || (piece.staging != nullptr && arrivals_ != nullptr);
    if (piece.state == ExposedMemory::Piece::State::unknown || !fits) {
      return Error{fmt::format("{} bytes at byte {} of memory {}, which it may not write", bytes,
                               said.offset, said.memory)};
    }
    if (!here) return {};
    if (signal && arrivals_ == nullptr)
      return store_release(piece.data, said.value), Result<void>();
    const auto done = signal ? arrivals_->signal(piece, said.value) : arrivals_->land(piece, bytes);
    if (!done) return Error{"orders that cannot be carried out: " + done.error().text()};
    return {};
  }

  std::string cannot_arrive(const Error& error) const {
    return fmt::format("the lane of rank {} brings orders that cannot be carried out: {}", peer_,
                       error.text());
  }

  void end_break(int error) {
    end(fmt::format("the lane of rank {} has ended: {}", peer_,
                    net::connection_error_text(error, net().options().dead)));
  }

  /// An order may be half carried out: nothing more can be taken.
  void end_without_memory() {
    end(fmt::format("the lane of rank {} has ended: there is not enough memory here", peer_));
  }

  /// No more can be taken: the rank, and the peer if it still listens, learn why.
  void end(const std::string& why) {
    taken_ = true;
    if (line_ != nullptr) {
      line_->send_failure(why);
      let_go();
    }
    failed_(why);
  }

  /// Nothing more comes: what writes memory here ends first.
  void let_go() {
    if (messages_ != 0) net().reactor().remove(events_->events(), messages_);
    messages_ = 0;
    pairs_.clear();
    if (line_ == nullptr) return;
    net().reactor().remove(line_->socket(), token_);
    net().close_later(line_->release());
    line_.reset();
  }

  const uint32_t peer_;
  const std::shared_ptr<Adapter> adapter_;
  const std::shared_ptr<ExposedMemory> memory_;
  const LaneFailed failed_;
  const LaneNoted noted_;
  const std::unique_ptr<Arrivals> arrivals_;  ///< nullptr: all memory is the processor's
  net::Key key_{};
  uint64_t number_ = 0;
  bool taken_ = false;                 ///< a sender has come, or none may any more
  std::unique_ptr<ControlLine> line_;  ///< nullptr: the lane is not open
  net::Reactor::Token token_ = 0, messages_ = 0;
  std::optional<OwnPages<Record>> records_;     ///< of messages, in this mode
  std::shared_ptr<const MemoryRegion> region_;  ///< of the records
  std::shared_ptr<CompletionQueue> events_;
  std::vector<std::unique_ptr<QueuePair>> pairs_;
  uint64_t carried_out_ = 0;  ///< messages
  uint64_t notes_ = 0;
  std::optional<uint64_t> flush_at_, bye_at_;  ///< wait for so many
};

}  // namespace

std::unique_ptr<LaneEnd> await_verbs_lane(uint32_t peer, std::shared_ptr<Adapter> adapter,
                                          std::shared_ptr<ExposedMemory> memory, LaneFailed failed,
                                          std::unique_ptr<Arrivals> arrivals, LaneNoted noted) {
  return std::make_unique<VerbsEnd>(peer, std::move(adapter), std::move(memory), std::move(failed),
                                    std::move(arrivals), std::move(noted));
}

}  // namespace mscclc::verbs
