#include "runtime/bootstrap/connect.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{5}, kLongestPause{250};
/// For one attempt: who takes a connection but says nothing is not a hub, or has too much to do.
constexpr milliseconds kAttempt{3000};

constexpr std::string_view kSilent = "no answer";

/// Why an attempt failed. Not final: another may do.
struct Setback {
  std::string why;
  std::optional<wire::Refusal> refusal = std::nullopt;

  /// An attempt that is cut short by the deadline says less than the one before.
  void replace_with(const Setback& later) {
    if (later.why != kSilent || why.empty()) *this = later;
  }
};

/// A port where nobody listens may be given to the very socket that connects there, which then
/// talks to itself.
bool connected_to_itself(const Fd& socket, const Address& peer) {
  return local_port(socket) == peer.port() && peer.is_loopback();
}

class Attempt {
 public:
  Attempt(const Address& address, const Secret& secret, SteadyTime last)
      : address_(address),
        secret_(secret),
        last_(last),
        deadline_(std::min(last, Clock::now() + kAttempt)) {}

  std::optional<Connected> run(wire::Hello hello) {
    Fd socket = open();
    if (!socket.valid()) return std::nullopt;
    Connection connection(std::move(socket), wire::kMostGreeting);
    if (!receive(connection)) return std::nullopt;
    const auto challenge = connection.in().kind() == wire::FrameKind::challenge
                               ? wire::read_challenge(connection.in().payload())
                               : std::nullopt;
    if (!challenge) return fail("what answers there is not a bootstrap of this version");
    fill_random(hello.nonce);
    hello.proof = wire::proof(secret_, wire::Side::rank, challenge->nonce, hello);
    connection.send(wire::frame(hello));
    // To end the connection now would be the death of this rank, if the hub has let it in.
    deadline_ = last_;
    if (!receive(connection)) return std::nullopt;
    return settle(std::move(connection), challenge->nonce, hello);
  }
  const Setback& setback() const { return setback_; }

 private:
  std::nullopt_t fail(std::string why) {
    setback_.why = std::move(why);
    return std::nullopt;
  }

  Fd open() {
    Fd socket = begin_connect(address_);
    if (!socket.valid()) {
      fail(error_text(errno));
      return socket;
    }
    if (!await(socket.get(), POLLOUT, deadline_)) {
      fail(std::string(kSilent));
      return Fd();
    }
    if (const int error = connect_error(socket); error != 0) {
      fail(error_text(error));
      return Fd();
    }
    if (connected_to_itself(socket, address_)) {
      fail("nobody listens");
      return Fd();
    }
    set_options(socket);
    return socket;
  }

  /// Sends what is to be sent, then waits for a frame.
  bool receive(Connection& connection) {
    for (bool alive = true;; alive = connection.read_some()) {
      if (!connection.write_some()) return fail(connection.why()), false;
      const wire::FrameReader::Next next = connection.in().next();
      if (next == wire::FrameReader::Next::frame) return true;
      if (next == wire::FrameReader::Next::bad) {
        return fail("what answers there is not a bootstrap"), false;
      }
      if (!alive) return fail(connection.why()), false;
      const short events = connection.wants_write() ? POLLIN | POLLOUT : POLLIN;
      if (!await(connection.fd(), events, deadline_)) return fail(std::string(kSilent)), false;
    }
  }

  std::optional<Connected> settle(Connection connection, const wire::Nonce& nonce,
                                  const wire::Hello& hello) {
    const wire::FrameReader& in = connection.in();
    if (in.kind() == wire::FrameKind::refused) {
      if (auto refused = wire::read_refused(in.payload())) {
        setback_ = {std::move(refused->why), refused->code};
        return std::nullopt;
      }
    }
    const auto welcome =
        in.kind() == wire::FrameKind::welcome ? wire::read_welcome(in.payload()) : std::nullopt;
    if (!welcome) return fail("what answers there is not a bootstrap of this version");
    const Digest expected = wire::proof(secret_, wire::Side::hub, nonce, hello);
    if (!same_digest(expected, welcome->proof)) {
      return fail("what answers there does not know the job's secret");
    }
    connection.in().set_limit(wire::kMostFromHub);
    return Connected{std::move(connection), *welcome, address_};
  }

  const Address address_;
  const Secret& secret_;
  const SteadyTime last_;
  SteadyTime deadline_;
  Setback setback_;
};

bool is_final(const Rendezvous& where, const Setback& setback) {
  if (!setback.refusal) return false;
  // Where the port is not certain, another job's hub may be meant by these.
  return where.ports.size() == 1 || *setback.refusal == wire::Refusal::wrong_size ||
         *setback.refusal == wire::Refusal::wrong_rank;
}

std::string places(const Rendezvous& where) {
  std::string ports;
  for (const uint16_t port : where.ports)
    ports += fmt::format("{}{}", ports.empty() ? "" : ", ", port);
  return fmt::format("{} port {}", where.host, ports);
}

}  // namespace

Rendezvous Rendezvous::of(const UniqueId& id) {
  return {.host = id.address.host(), .ports = {id.address.port()}, .secret = id.secret};
}

std::optional<Connected> connect_to_hub(const Rendezvous& where, uint32_t rank, uint32_t size,
                                        milliseconds timeout, Diagnostics& diagnostics) {
  const SteadyTime deadline = Clock::now() + timeout;
  const wire::Hello hello{.rank = rank, .size = size, .process = static_cast<uint32_t>(::getpid())};
  Setback last{.why = {}};
  for (milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    Diagnostics unknown;  // a name may become known later
    const std::vector<Address> addresses = resolve(where.host, 0, unknown);
    if (addresses.empty()) last = {.why = unknown.all().front().message};
    for (const uint16_t port : where.ports) {
      for (Address address : addresses) {
        address.set_port(port);
        Attempt attempt(address, where.secret, deadline);
        if (auto connected = attempt.run(hello)) return connected;
        if (is_final(where, attempt.setback())) {
          diagnostics.error("bootstrap-refused", {},
                            fmt::format("the bootstrap at {} refuses rank {}: {}", address.text(),
                                        rank, attempt.setback().why));
          return std::nullopt;
        }
        last.replace_with(attempt.setback());
      }
    }
    if (left_ms(deadline) == 0) break;
    std::this_thread::sleep_for(std::min(pause, milliseconds(left_ms(deadline))));
  }
  diagnostics.error("bootstrap-timeout", {},
                    fmt::format("rank {} cannot reach the bootstrap at {} within {}: {}", rank,
                                places(where), seconds_text(timeout), last.why));
  return std::nullopt;
}

}  // namespace mscclc
