// One TCP connection of a bootstrap: frames in, frames out, without ever waiting. The hub and the
// ranks use it alike.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/frames.h"
#include "runtime/fd.h"

namespace mscclc {

/// Frames are shared: the hub sends the same bytes to all ranks.
using SharedBytes = std::shared_ptr<const wire::Bytes>;

class Connection {
 public:
  /// `socket` does not block. `limit`: most bytes of a payload that is taken.
  Connection(Fd socket, uint64_t limit);

  int fd() const { return socket_.get(); }
  wire::FrameReader& in() { return in_; }

  /// Reads what has come, but at most a few hundred KiB. false: the other end has closed, or the
  /// connection broke; why() says which.
  bool read_some();
  /// Writes what can be written now. false: the connection broke.
  bool write_some();
  void send(SharedBytes frame) { out_.push_back(std::move(frame)); }
  void send(wire::Bytes frame) { send(std::make_shared<const wire::Bytes>(std::move(frame))); }
  bool wants_write() const { return !out_.empty(); }
  /// Says that nothing more will be written; what is read still comes.
  void end_writing();
  const std::string& why() const { return why_; }

 private:
  Fd socket_;
  wire::FrameReader in_;
  std::deque<SharedBytes> out_;
  uint64_t written_ = 0;  ///< bytes of out_.front()
  std::string why_;
};

/// Time without an answer from a machine after which its connections break.
constexpr int kDeadMachineSeconds = 30;
/// Sets what all connections of a bootstrap have: no delays, dead machines noticed.
void set_options(const Fd& socket);
/// A TCP socket that does not block. Invalid: errno says why.
Fd open_tcp(int family);
void set_option(const Fd& socket, int level, int option, int value);
uint16_t local_port(const Fd& socket);
/// Begins to connect. Invalid: errno says why. Writable: connected, or connect_error() says why
/// not.
Fd begin_connect(const Address& address);
int connect_error(const Fd& socket);

}  // namespace mscclc
