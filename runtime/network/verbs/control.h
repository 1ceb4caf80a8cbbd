// The connection beside a lane over verbs: a socket, opened and proved as those of lanes over
// sockets are (runtime/network/lane_wire.h). The ends meet there, and each learns there that the
// other goes or has died, which queue pairs do not say.
//
//   rank that sends                     rank that receives
//   connect ──▶                         creates queue pairs
//                        ◀── ready
//   flush ──▶            ◀── flushed
//   note ──▶             ◀── noted
//   bye ──▶              ◀── gone       the end in good order
//   failed ──▶           ◀── failed     any other end
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/network/lane_wire.h"
#include "runtime/network/verbs/port/path.h"
#include "runtime/support/fd.h"

namespace mscclc::verbs {

using net::Bytes;

/// What the receiver offers through the bootstrap, and nothing else does: a lane over sockets is
/// none over verbs.
struct VerbsOffer {
  bool atomics = false;  ///< its device has them
  net::LaneOffer socket;
};
Bytes encode(const VerbsOffer& offer);
[[nodiscard]] std::optional<VerbsOffer> decode_verbs_offer(std::span<const uint8_t> bytes);

/// Where a message is put, one after the other. A queue has so many places.
struct Record {
  uint64_t memory = 0, offset = 0;
  uint64_t value = 0;  ///< of a signal
  uint64_t bytes = 0;  ///< otherwise: so many have come to staging memory
};
constexpr uint32_t kRecords = 128;

/// What the ends send each other: connect and ready.
struct Meeting {
  SignalMode mode = SignalMode::host;
  PathEnd path;
  uint64_t records = 0;  ///< ready: where those of its first queue are; the next follow
  uint32_t records_key = 0;
  std::vector<QueueEnd> queues;
};
Bytes encode(const Meeting& meeting);
[[nodiscard]] std::optional<Meeting> decode_meeting(std::span<const uint8_t> bytes);

struct ControlMessage {
  enum What : uint8_t { connect = 1, ready, flush, flushed, gone, failed, bye, note, noted };
  What what = connect;
  Bytes body = {};  ///< connect, ready: a Meeting; failed: text; flush, flushed, bye, noted: a
                    ///< number; note: a LaneNote
};

/// One end. Never waits. Thread safety: one thread at a time.
class ControlLine {
 public:
  explicit ControlLine(Fd socket) : socket_(std::move(socket)) {}

  const Fd& socket() const { return socket_; }
  Fd release() { return std::move(socket_); }
  /// Sends what is no message: the end of the greeting. False: there is no room, or the connection
  /// broke; so in all that follows.
  bool send_plain(const Bytes& bytes);
  bool send(ControlMessage::What what, const Bytes& body = {});
  bool send(ControlMessage::What what, uint64_t number);
  /// `failed`, with as much of the text as is taken.
  void send_failure(const std::string& why);
  /// The next message that has come whole. nullopt: none; ended() says whether there will be more.
  [[nodiscard]] std::optional<ControlMessage> next();
  bool ended() const { return ended_; }
  int error() const { return error_; }  ///< of the system; 0: the other end has closed it

 private:
  bool fill(size_t wanted);

  Fd socket_;
  Bytes come_;
  bool ended_ = false;
  int error_ = 0;
};

/// The number in a message. nullopt: it holds none.
[[nodiscard]] std::optional<uint64_t> number_of(const ControlMessage& message);
std::string text_of(const ControlMessage& message);

}  // namespace mscclc::verbs
