// The connections to a hub: strangers, which have proved nothing so far; processes of the job; and
// those of them that have joined as a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/tcp/epoll_set.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/bootstrap/wire/handshake.h"
#include "runtime/support/fixed_times.h"

namespace mscclc {

/// A connection to the hub.
struct HubClient {
  explicit HubClient(Fd socket) : connection(std::move(socket), wire::kMaxHello) {}
  Connection connection;
  Address from, to;                ///< the connection's ends
  std::optional<int32_t> process;  ///< if it has proved itself and is on this machine
  wire::Challenge challenge;
  std::optional<wire::Hello> hello;  ///< once it has proved that it knows the secret
  uint32_t rank = wire::kNoRank;     ///< once it has joined
  bool leaving = false;              ///< nothing more is read of it; it goes when all is written
  bool polls_write = false;
  /// When it came; said something that counts as a sign of life: hello, or anything once it is a
  /// rank; and was last sent something.
  SteadyTime since, heard, spoke;

  bool joined() const { return rank != wire::kNoRank; }
};

/// Keys grow: the oldest is the first. Thread safety: one thread at a time.
class HubClients {
 public:
  std::pair<const uint64_t, HubClient>& add(Fd socket);
  /// nullptr: it has gone.
  HubClient* find(uint64_t key);
  /// nullopt: this rank has not joined, or has gone.
  std::optional<uint64_t> key_of(uint32_t rank) const;
  /// Its descriptor leaves the epoll set as it closes.
  void drop(uint64_t key);
  void clear() { all_.clear(); }
  std::map<uint64_t, HubClient>& all() { return all_; }
  bool empty() const { return all_.empty(); }

  /// It has proved that it knows the secret, by this.
  void prove(HubClient& client, const wire::Hello& hello);
  void join(uint64_t key, HubClient& client);

  size_t strangers() const { return strangers_; }
  /// Also one that has been refused: it may stay for long. nullopt: there is no stranger.
  std::optional<uint64_t> oldest_stranger() const;
  /// Is a rank welcome that has not joined yet? It takes this hub for its job's, and looks no
  /// further: it must hear how that has ended.
  bool any_about_to_join() const;
  /// Connections of a process.
  std::vector<uint64_t> of_process(int32_t process) const;
  /// Ranks that have joined whose processes are on this machine.
  std::vector<RankProcess> rank_processes() const;

 private:
  std::map<uint64_t, HubClient> all_;
  std::map<uint32_t, uint64_t> by_rank_;  ///< keys of those that have joined
  uint64_t next_key_ = kFirstKey;
  size_t strangers_ = 0;
};

}  // namespace mscclc
