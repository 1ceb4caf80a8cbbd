#include "runtime/network/sockets/dial.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "runtime/network/sockets/socket_errors.h"
#include "runtime/support/address/sockets.h"
#include "runtime/support/deadline.h"
#include "runtime/support/fixed_times.h"

namespace mscclc::net {
namespace {

class Dialling {
 public:
  Dialling(const LaneOffer& offer, const DialOptions& options)
      : offer_(offer),
        options_(options),
        deadline_(std::chrono::steady_clock::now() + options.timeout) {}

  /// The connection number `index`. A far end closes connections that say nothing: this rank may
  /// have been stopped, and tries again.
  Result<Fd> open(uint32_t index) {
    for (;;) {
      const SteadyTime begun = std::chrono::steady_clock::now();
      closed_ = false;
      Result<Fd> socket = open_once(index);
      const SteadyTime now = std::chrono::steady_clock::now();
      const bool again = closed_ && now - begun >= kMayHaveBeenSlow && now < deadline_;
      if (socket || !again || (options_.over && options_.over())) return socket;
    }
  }

 private:
  Result<Fd> open_once(uint32_t index) {
    Fd socket = begin_connect(offer_.address);
    if (!socket.valid()) return Error{error_text(errno)};
    set_options(socket, options_.dead);
    if (const auto connected = wait(socket, POLLOUT); !connected) return connected.error();
    if (const int error = connect_error(socket); error != 0) return cannot_connect(error);
    if (const auto greeted = greet(socket, index); !greeted) return greeted.error();
    return socket;
  }

  Error cannot_connect(int error) const {
    return {error == ETIMEDOUT ? connection_error_text(error, options_.dead) : error_text(error),
            remedy(error)};
  }

  /// A rank offers loopback if it has no other address, or if its variable says so.
  std::string remedy(int error) const {
    if (error != ECONNREFUSED || !offer_.address.is_loopback()) return "";
    return "if that rank is on another machine, its MSCCLC_SOCKET_IFNAME must name an interface "
           "that others reach";
  }

  /// The far end has closed, or the connection broke.
  Error ended(int error) {
    closed_ = true;
    return {connection_error_text(error, options_.dead)};
  }

  Result<void> greet(const Fd& socket, uint32_t index) {
    Bytes bytes(Challenge::kBytes);
    if (const auto received = receive(socket, bytes); !received) return received;
    const auto challenge = decode_challenge(bytes);
    if (!challenge) return Error{"what listens there is not a rank of this job"};
    Hello hello{.lane = offer_.lane, .connection = index, .connections = options_.connections};
    fill_random(hello.nonce);
    hello.proof = sender_proof(offer_.key, *challenge, hello);
    const Bytes said = encode(hello);
    // So little has room in a new connection.
    if (::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(said.size())) {
      return ended(errno);
    }
    bytes.resize(Welcome::kBytes);
    if (const auto received = receive(socket, bytes); !received) return received;
    const auto welcome = decode_welcome(bytes);
    if (welcome && same_digest(receiver_proof(offer_.key, *challenge, hello), welcome->proof)) {
      return {};
    }
    return Error{"what listens there does not know the key of the lane"};
  }

  Result<void> receive(const Fd& socket, Bytes& bytes) {
    for (size_t got = 0; got < bytes.size();) {
      if (const auto come = wait(socket, POLLIN); !come) return come;
      const ssize_t n = ::recv(socket.get(), bytes.data() + got, bytes.size() - got, 0);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return ended(n == 0 ? 0 : errno);
      got += static_cast<size_t>(n);
    }
    return {};
  }

  Result<void> wait(const Fd& socket, short events) {
    for (;;) {
      const SteadyTime now = std::chrono::steady_clock::now();
      if (await(socket.get(), events, std::min<SteadyTime>(deadline_, now + kAskAgain))) return {};
      if (options_.over && options_.over()) return Error{"the communicator has failed"};
      if (now >= deadline_) {
        return Error{fmt::format("no answer within {:g} s",
                                 std::chrono::duration<double>(options_.timeout).count())};
      }
    }
  }

  const LaneOffer& offer_;
  const DialOptions& options_;
  const SteadyTime deadline_;
  bool closed_ = false;  ///< the far end has closed the latest connection
};

}  // namespace

Result<std::vector<Fd>> dial(const LaneOffer& offer, const DialOptions& options) {
  Dialling dialling(offer, options);
  std::vector<Fd> sockets;
  for (uint32_t i = 0; i < options.connections; ++i) {
    auto socket = dialling.open(i);
    if (!socket) return socket.error();
    sockets.push_back(*std::move(socket));
  }
  return sockets;
}

}  // namespace mscclc::net
