// A process that connects gets a challenge and has some seconds to prove that it knows the secret;
// until then it costs a hundred bytes of memory and one of a limited number of places. Once all
// ranks have come, the hub listens only at a unix socket for ranks of this machine that come too
// late: they hear it at once.
#include <fmt/format.h>

#include <cerrno>

#include "runtime/bootstrap/tcp/epoll_hub.h"

namespace mscclc {

void EpollHub::accept_some(size_t i) {
  for (int n = 0; n < 64 && !listeners_.empty(); ++n) {
    if (clients_.strangers() >= most_strangers() && !drop_oldest_stranger(kLeastTimeToProve)) {
      return listeners_.look_away();
    }
    HubListeners::Caller caller = listeners_.accept(i);
    if (caller.socket.valid()) {
      greet(std::move(caller.socket), caller.from, caller.to);
    } else if (is_out_of_descriptors(caller.error) || caller.error == ENOMEM ||
               caller.error == ENOBUFS) {
      return make_room(error_text(caller.error));
    } else if (caller.error != 0) {
      return;
    }
  }
}

void EpollHub::make_room(const std::string& why) {
  if (clients_.strangers() > 0) {
    if (!drop_oldest_stranger(kLeastTimeToProve)) listeners_.look_away();
    return;
  }
  if (meeting_.complete()) return listeners_.look_away();  // no rank is waited for
  meeting_.give_up_hub("it has no room for another connection: " + why);
  if (!spare_.valid()) return listeners_.look_away();
  spare_.reset();
}

void EpollHub::greet(Fd socket, const Address& from, const Address& to) {
  auto& [key, client] = clients_.add(std::move(socket));
  epoll_.add(client.connection.fd(), key, EPOLLIN);
  client.connection.set_silence(silence_);
  client.from = from;
  client.to = to;
  client.since = client.heard = client.spoke = now_;
  fill_random(client.challenge.nonce);
  client.challenge.key = keys_.open;
  client.connection.send(wire::frame(client.challenge));
  flush(key);
}

std::optional<Listener> EpollHub::listen_for_the_late() const {
  if (!options_.local || closing_) return std::nullopt;
  const Address address = Address::local(wire::local_name(options_.secret), kLateName);
  Fd socket = listen_on(address);
  if (!socket.valid()) return std::nullopt;
  return Listener{std::move(socket), address};
}

void EpollHub::look_for_another_job(const HubClient& last) {
  if (!options_.find_other_job) return;
  std::vector<RankProcess> ranks = clients_.rank_processes();
  if (last.process) ranks.push_back({last.hello->rank, *last.process});
  OtherJob other = options_.find_other_job(ranks);
  if (other.why.empty()) return;
  others_.await(std::move(other.processes));
  meeting_.refuse_both(other.why);
}

bool EpollHub::drop_oldest_stranger(std::chrono::milliseconds grace) {
  const auto key = clients_.oldest_stranger();
  if (!key || now_ - clients_.find(*key)->since < grace) return false;
  clients_.drop(*key);
  return true;
}

bool EpollHub::welcome(uint64_t key, HubClient& client, wire::Payload payload) {
  const auto hello = wire::read_hello(payload);
  if (!hello) return false;
  const Digest said = wire::transcript(client.challenge, *hello);
  if (!same_digest(wire::rank_proof(options_.secret, said), hello->proof)) {
    return refuse(key, client, wire::Refusal::wrong_secret);
  }
  if (hello->from != client.from.bytes() || hello->to != client.to.bytes()) {
    return refuse(key, client, wire::Refusal::other_ends);
  }
  wire::Welcome welcome{.timeout_ms = static_cast<uint32_t>(meeting_.patience(*hello).count()),
                        .silence_ms = static_cast<uint32_t>(silence_.count()),
                        .hub_rank = options_.rank,
                        .process = static_cast<uint32_t>(::getpid()),
                        .began = began_};
  welcome.proof = wire::hub_proof(options_.secret, said, welcome);
  const auto keys = wire::session_keys(options_.secret, said, welcome, keys_, hello->key);
  if (!keys) return false;
  if (meeting_.complete() && !meeting_.too_late(*hello, where(client, *hello))) return false;
  clients_.prove(client, *hello);
  client.process = client.connection.process(hello->process, hello->began);
  client.heard = now_;
  client.connection.send(wire::frame(welcome));
  if (!client.connection.seal(keys->to_rank, keys->to_hub)) return false;
  flush(key);
  return true;
}

bool EpollHub::refuse(uint64_t key, HubClient& client, wire::Refusal code) {
  client.connection.send(wire::frame(wire::Refused{code}));
  client.leaving = true;
  flush(key);
  return true;
}

std::string EpollHub::where(const HubClient& client, const wire::Hello& hello) {
  return fmt::format("process {} on {}", hello.process,
                     client.to.is_local() ? client.to.host() : client.from.host());
}

void EpollHub::turn_away(uint64_t key, HubClient& client, const wire::Failure& why) {
  client.connection.send(wire::frame(why));
  client.leaving = true;
  flush(key);
}

void EpollHub::admit(uint64_t key, HubClient& client) {
  const std::string at = where(client, *client.hello);
  if (meeting_.complete()) {
    const wire::Failure ended{wire::FailureKind::refused, kJustEnded};
    const auto late = meeting_.too_late(*client.hello, at);
    if (late && others_.began_before_all_came(client.process)) meeting_.refuse_both(late->why);
    others_.has_heard(client.process);
    meeting_.turned_away();
    turn_away(key, client, late.value_or(ended));
    if (closing_ && all_informed()) listeners_.stop();
    return deliver();
  }
  if (meeting_.lacks_one() && !meeting_.failure()) look_for_another_job(client);
  if (!meeting_.admit(*client.hello, at, now_)) {
    turn_away(key, client, *meeting_.failure());
    if (closing_ && all_informed()) listeners_.stop();
    return;
  }
  clients_.join(key, client);
  if (client.process) processes_.watch(*client.process);
  client.heard = now_;
  say(fmt::format("rank {} has joined: {}", client.rank, at));
  client.connection.in().set_limit(wire::kMaxFromRank);
  const bool all_came = meeting_.complete() && !meeting_.failure();
  if (all_came) {
    others_.all_came();
    spare_.reset();  // no rank is waited for
  }
  // First, so that a hub of this name that begins now finds one or the other.
  std::optional<Listener> late = all_came ? listen_for_the_late() : std::nullopt;
  if (all_came || ((meeting_.complete() || closing_) && all_informed())) listeners_.stop();
  if (late) listeners_.add(std::move(*late));
  deliver();
  if (closing_) say_closing(key, client);
}

}  // namespace mscclc
