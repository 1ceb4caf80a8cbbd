#include "runtime/bootstrap/tcp/attempt.h"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>

#include "ir/diagnostics/printable.h"
#include "runtime/api/bootstrap.h"
#include "runtime/bootstrap/wire/handshake.h"
#include "runtime/support/fixed_times.h"

namespace mscclc {
namespace {

using wire::FrameKind;

/// A port where nothing listens may be given to the very socket that connects there, which then
/// talks to itself.
bool connected_to_itself(const Fd& socket) {
  const Address own = own_end(socket), other = other_end(socket);
  return own.family() != AF_UNSPEC && own == other;
}

constexpr size_t kMaxShown = 32;

}  // namespace

Attempt::Attempt(const Address& address, const Secret& secret, const wire::Hello& hello)
    : address_(address), secret_(secret), hello_(hello) {
  expect_more();
  socket_ = begin_connect(address_);
  if (!socket_.valid()) fail_with(errno);
}

short Attempt::events() const {
  if (state_ == State::connecting) return POLLOUT;
  return connection_->wants_write() ? POLLIN | POLLOUT : POLLIN;
}

void Attempt::expect_more() { deadline_ = std::chrono::steady_clock::now() + kAnswerPatience; }

void Attempt::fail(std::string why) {
  why_ = std::move(why);
  state_ = State::failed;
  socket_.reset();
  connection_.reset();
}

void Attempt::fail_with(int error) {
  refused_ = error == ECONNREFUSED;
  out_of_descriptors_ = is_out_of_descriptors(error);
  fail(error_text(error));
}

void Attempt::go_on(bool ready) {
  if (ended()) return;
  if (ready && state_ == State::connecting) {
    connected();
  } else if (ready) {
    read();
  }
  if (!ended() && std::chrono::steady_clock::now() >= deadline_) {
    silent_ = state_ != State::connecting;
    fail(state_ == State::connecting ? "no answer"
         : state_ == State::greeting ? "what listens there says nothing"
                                     : "what listens there does not answer a proof");
  }
}

void Attempt::connected() {
  if (const int error = connect_error(socket_); error != 0) return fail_with(error);
  if (address_.is_local() && !same_user(socket_)) {
    const auto user = peer_user(socket_);
    return fail(user ? fmt::format("user {} listens there, not this one", *user)
                     : std::string("the system does not say which user listens there"));
  }
  if (connected_to_itself(socket_)) {
    refused_ = true;
    return fail("nothing is listening");
  }
  hello_.from = own_end(socket_).bytes();
  hello_.to = (address_.is_local() ? address_ : other_end(socket_)).bytes();
  connection_.emplace(std::move(socket_), wire::kMaxGreeting);
  connection_->set_silence(kSilence);  // until the hub says another
  state_ = State::greeting;
  expect_more();
}

void Attempt::read() {
  if (!connection_->write_some()) return fail(connection_->why());
  const bool alive = connection_->read_some();
  for (;;) {
    const wire::FrameReader::Next next = connection_->in().next();
    if (next == wire::FrameReader::Next::bad) {
      const wire::Payload said = connection_->in().held();
      return fail(fmt::format(
          "what answers there is not a bootstrap: it says {}",
          quoted({reinterpret_cast<const char*>(said.data()), said.size()}, kMaxShown)));
    }
    if (next == wire::FrameReader::Next::more) break;
    take();
    if (ended()) return;
  }
  if (!alive) return fail(connection_->why());
  if (!connection_->write_some()) fail(connection_->why());
}

void Attempt::take() {
  const FrameKind kind = connection_->in().kind();
  if (state_ == State::greeting && kind == FrameKind::challenge) return greet();
  if (state_ == State::proving && kind == FrameKind::welcome) return check_welcome();
  if (state_ == State::proving && kind == FrameKind::refused) {
    if (const auto refused = wire::read_refused(connection_->in().payload())) {
      return fail(refused->code == wire::Refusal::wrong_secret
                      ? "it says that this rank's secret is another job's"
                      : "it says that the connection's ends are not those that it sees: something "
                        "is in between, or addresses are translated (NAT)");
    }
  }
  fail("what answers there is not a bootstrap of this version");
}

void Attempt::greet() {
  const auto challenge = wire::read_challenge(connection_->in().payload());
  if (!challenge) return fail("what answers there is not a bootstrap of this version");
  fill_random(hello_.nonce);
  keys_ = wire::KeyPair::make();
  hello_.key = keys_.open;
  said_ = wire::transcript(*challenge, hello_);
  hello_.proof = wire::rank_proof(secret_, said_);
  hub_key_ = challenge->key;
  connection_->send(wire::frame(hello_));
  state_ = State::proving;
  expect_more();
}

void Attempt::check_welcome() {
  const auto welcome = wire::read_welcome(connection_->in().payload());
  if (!welcome) return fail("what answers there is not a bootstrap of this version");
  if (!same_digest(wire::hub_proof(secret_, said_, *welcome), welcome->proof)) {
    return fail("what answers there does not know the job's secret");
  }
  const auto keys = wire::session_keys(secret_, said_, *welcome, keys_, hub_key_);
  if (!keys) return fail("what answers there has no key");
  welcome_ = *welcome;
  connection_->in().set_limit(wire::kMaxFromHub);
  connection_->set_silence(std::chrono::milliseconds(welcome_.silence_ms));
  if (!connection_->seal(keys->to_hub, keys->to_rank)) return fail(connection_->why());
  connection_->send(wire::frame(FrameKind::joined));
  state_ = State::proved;
}

}  // namespace mscclc
