// One attempt of a rank to reach its hub at one place: connect, prove, be proved. It never waits,
// so that attempts at several places run side by side, and silence at one of them delays no other.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "ir/support/precondition.h"
#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/support/deadline.h"

namespace mscclc {

class Attempt {
 public:
  /// Begins to connect.
  Attempt(const Address& address, const Secret& secret, const wire::Hello& hello);

  enum class State : uint8_t { connecting, greeting, proving, proved, failed };
  State state() const { return state_; }
  bool ended() const { return state_ == State::proved || state_ == State::failed; }
  /// For poll(2). REQUIRES: not ended.
  int fd() const {
    precondition(!ended());
    return socket_.valid() ? socket_.get() : connection_->fd();
  }
  short events() const;
  /// When it fails if nothing comes.
  SteadyTime deadline() const { return deadline_; }
  /// Goes on with what has come; fails if its time is over.
  void go_on(bool ready);

  const Address& address() const { return address_; }
  /// Why it has failed. Text of the other end, which is not trusted, is quoted.
  const std::string& why() const { return why_; }
  /// Nothing is listening there.
  bool refused() const { return refused_; }
  /// Something listens there, but has said nothing.
  bool silent() const { return silent_; }
  /// This process has no descriptors left.
  bool out_of_descriptors() const { return out_of_descriptors_; }
  /// REQUIRES: proved. Sealed from here on.
  Connection take_connection() {
    precondition(state_ == State::proved);
    return std::move(*connection_);
  }
  const wire::Welcome& welcome() const { return welcome_; }

 private:
  void fail(std::string why);
  void fail_with(int error);
  void connected();
  void read();
  void take();
  void greet();
  void check_welcome();
  void expect_more();

  const Address address_;
  const Secret& secret_;
  wire::Hello hello_;
  wire::KeyPair keys_;  ///< once there is a challenge
  State state_ = State::connecting;
  SteadyTime deadline_;
  Fd socket_;  ///< until it is connected
  std::optional<Connection> connection_;
  Digest said_{};
  wire::PublicKey hub_key_{};
  wire::Welcome welcome_;
  std::string why_;
  bool refused_ = false, silent_ = false, out_of_descriptors_ = false;
};

}  // namespace mscclc
