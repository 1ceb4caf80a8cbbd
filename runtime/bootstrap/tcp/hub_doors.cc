// A process that connects gets a challenge and has some seconds to prove that it knows the secret;
// until then it costs a hundred bytes of memory and one of a limited number of places. Once all
// ranks have come, the hub listens only at a unix socket for ranks of this machine that come too
// late: they hear it at once.
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "runtime/bootstrap/tcp/epoll_hub.h"
#include "runtime/support/process_end.h"

namespace mscclc {

void EpollHub::accept_some(size_t i) {
  for (int n = 0; n < 64 && i < listeners_.size(); ++n) {
    if (strangers_ >= most_strangers() && !drop_oldest_stranger(kLeastTimeToProve)) {
      return look_away();
    }
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    auto* raw = reinterpret_cast<sockaddr*>(&peer);
    const Listener& listener = listeners_[i];
    Fd socket(::accept4(listener.socket.get(), raw, &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (is_out_of_descriptors(errno) || errno == ENOMEM || errno == ENOBUFS) {
        make_room(error_text(errno));
      }
      return;
    }
    const bool local = listener.address.is_local();
    if (local && !same_user(socket)) continue;
    const Address to = local ? listener.address : own_end(socket);
    greet(std::move(socket), Address::from(raw).value_or(Address()), to);
  }
}

void EpollHub::make_room(const std::string& why) {
  if (strangers_ > 0) {
    if (!drop_oldest_stranger(kLeastTimeToProve)) look_away();
    return;
  }
  if (meeting_.complete()) return look_away();  // no rank is waited for
  meeting_.give_up_hub("it has no room for another connection: " + why);
  if (!spare_.valid()) return look_away();
  spare_.reset();
}

void EpollHub::greet(Fd socket, const Address& from, const Address& to) {
  const uint64_t key = next_key_++;
  watch(socket.get(), key, EPOLLIN, EPOLL_CTL_ADD);
  HubClient& client = clients_.emplace(key, std::move(socket)).first->second;
  client.connection.set_silence(silence_);
  client.from = from;
  client.to = to;
  client.since = client.heard = client.spoke = now_;
  ++strangers_;
  fill_random(client.challenge.nonce);
  client.challenge.key = keys_.open;
  client.connection.send(wire::frame(client.challenge));
  flush(key);
}

void EpollHub::look_away() {
  for (const Listener& listener : listeners_) {
    watch(listener.socket.get(), 0, 0, EPOLL_CTL_MOD);
  }
  listens_ = false;
}

void EpollHub::listen_again(int how) {
  for (size_t i = 0; i < listeners_.size(); ++i) {
    watch(listeners_[i].socket.get(), kListenerKey + i, EPOLLIN, how);
  }
  listens_ = true;
}

void EpollHub::stop_listening() {
  for (const Listener& listener : listeners_) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.socket.get(), nullptr);
    ::shutdown(listener.socket.get(), SHUT_RDWR);
  }
  listeners_.clear();
}

std::optional<Listener> EpollHub::listen_for_the_late() const {
  if (!options_.local || closing_) return std::nullopt;
  const Address address = Address::local(wire::local_name(options_.secret), kLateName);
  Fd socket = listen_on(address);
  if (!socket.valid()) return std::nullopt;
  return Listener{std::move(socket), address};
}

bool EpollHub::began_before_all_came(const HubClient& client) const {
  const auto facts = client.process ? facts_of(*client.process) : std::nullopt;
  return facts && facts->began < complete_since_;
}

void EpollHub::look_for_another_job(const HubClient& last) {
  if (!options_.find_other_job) return;
  std::vector<RankProcess> ranks;
  const auto add = [&](const HubClient& client) {
    if (client.process) ranks.push_back({client.hello->rank, *client.process});
  };
  for (const auto& [rank, key] : by_rank_) add(clients_.at(key));
  add(last);
  OtherJob other = options_.find_other_job(ranks);
  if (other.why.empty()) return;
  others_ = std::move(other.processes);
  meeting_.refuse_both(other.why);
}

void EpollHub::forget_others_that_ended() {
  std::erase_if(others_, [](int32_t process) {
    const auto facts = facts_of(process);
    return !facts || facts->state == 'Z';
  });
}

bool EpollHub::drop_oldest_stranger(std::chrono::milliseconds grace) {
  for (const auto& [key, client] : clients_) {
    if (client.hello || client.leaving) continue;
    if (now_ - client.since < grace) return false;
    drop(key);
    return true;
  }
  return false;
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
  --strangers_;
  client.hello = *hello;
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
    if (late && began_before_all_came(client)) meeting_.refuse_both(late->why);
    std::erase(others_, client.process.value_or(0));
    meeting_.turned_away();
    turn_away(key, client, late.value_or(ended));
    if (closing_ && all_informed()) stop_listening();
    return deliver();
  }
  if (meeting_.lacks_one() && !meeting_.failure()) look_for_another_job(client);
  if (!meeting_.admit(*client.hello, at, now_)) {
    turn_away(key, client, *meeting_.failure());
    if (closing_ && all_informed()) stop_listening();
    return;
  }
  client.rank = client.hello->rank;
  watch_process(client);
  client.heard = now_;
  say(fmt::format("rank {} has joined: {}", client.rank, at));
  client.connection.in().set_limit(wire::kMaxFromRank);
  by_rank_.insert_or_assign(client.rank, key);
  const bool all_came = meeting_.complete() && !meeting_.failure();
  if (all_came) {
    complete_since_ = ticks_now();
    spare_.reset();  // no rank is waited for
  }
  // First, so that a hub of this name that begins now finds one or the other.
  std::optional<Listener> late = all_came ? listen_for_the_late() : std::nullopt;
  if (all_came || ((meeting_.complete() || closing_) && all_informed())) stop_listening();
  if (late) {
    listeners_.push_back(std::move(*late));
    listen_again(EPOLL_CTL_ADD);
  }
  deliver();
  if (closing_) say_closing(key, client);
}

void EpollHub::watch_process(const HubClient& client) {
  const int32_t process = client.process.value_or(0);
  if (!watches_processes_ || processes_.contains(process)) return;
  const auto end = end_of_process(process);
  if (end == nullptr) return;
  watch(end->get(), kProcessKey + static_cast<uint64_t>(process), EPOLLIN, EPOLL_CTL_ADD);
  processes_.emplace(process, end);
}

}  // namespace mscclc
