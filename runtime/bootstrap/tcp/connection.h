// One connection of a bootstrap: frames in, frames out, without ever waiting. The hub and the ranks
// use it alike. It begins in the clear; what comes after the proofs goes in sealed records.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "runtime/bootstrap/wire/records.h"
#include "runtime/support/address/sockets.h"
#include "runtime/support/fd.h"

namespace mscclc {

/// Frames are shared: the hub sends the same bytes to all ranks.
using SharedBytes = std::shared_ptr<const wire::Bytes>;

class Connection {
 public:
  /// `socket` does not block. `limit`: most bytes of a payload that is taken.
  Connection(Fd socket, uint64_t limit);

  int fd() const { return socket_.get(); }
  /// The process at the other end, if it is on this machine. Over TCP: of what it has said of
  /// itself, its number and when it began (ProcessFacts), if there is such a process here.
  std::optional<int32_t> process(uint32_t said, uint64_t began) const;
  /// It breaks when the other machine has not answered for so long.
  void set_silence(std::chrono::milliseconds silence);
  wire::FrameReader& in() { return in_; }

  /// From here on, after the frame of the last in().next(), both directions are sealed. What was
  /// sent before goes in the clear. false: what has already arrived after it is not what the other
  /// end has sealed; why() says so.
  [[nodiscard]] bool seal(const wire::SessionKey& out, const wire::SessionKey& in);

  /// Reads what has come, but at most a few hundred KiB. false: the other end has closed, or the
  /// connection broke; why() says which.
  [[nodiscard]] bool read_some();
  /// Writes what can be written now. false: the connection broke.
  [[nodiscard]] bool write_some();
  void send(SharedBytes frame) { out_.push_back({std::move(frame), sealer_.has_value()}); }
  void send(wire::Bytes frame) { send(std::make_shared<const wire::Bytes>(std::move(frame))); }
  bool wants_write() const { return written_ < ready_.size() || !out_.empty(); }
  /// Says that nothing more will be written; what is read still comes.
  void end_writing();
  const std::string& why() const { return why_; }
  /// True if it ended because what came was not what the other end had sealed.
  bool tampered() const { return tampered_; }

 private:
  struct Outgoing {
    SharedBytes frame;
    bool sealed;
  };
  [[nodiscard]] bool take(wire::Payload bytes);
  [[nodiscard]] bool prepare();

  Fd socket_;
  wire::FrameReader in_;
  std::optional<wire::Sealer> sealer_;
  std::optional<wire::Opener> opener_;
  std::deque<Outgoing> out_;
  uint64_t taken_ = 0;    ///< bytes of the first of out_ that have been sealed
  wire::Bytes ready_;     ///< as they go over the wire
  uint64_t written_ = 0;  ///< bytes of ready_
  std::string why_;
  bool tampered_ = false;
};

}  // namespace mscclc
