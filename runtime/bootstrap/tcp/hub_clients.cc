#include "runtime/bootstrap/tcp/hub_clients.h"

#include <algorithm>

namespace mscclc {

std::pair<const uint64_t, HubClient>& HubClients::add(Fd socket) {
  ++strangers_;
  return *all_.emplace(next_key_++, std::move(socket)).first;
}

HubClient* HubClients::find(uint64_t key) {
  const auto found = all_.find(key);
  return found == all_.end() ? nullptr : &found->second;
}

std::optional<uint64_t> HubClients::key_of(uint32_t rank) const {
  const auto found = by_rank_.find(rank);
  return found == by_rank_.end() ? std::nullopt : std::optional(found->second);
}

void HubClients::drop(uint64_t key) {
  const auto found = all_.find(key);
  if (found == all_.end()) return;
  if (!found->second.hello) --strangers_;
  if (found->second.joined()) by_rank_.erase(found->second.rank);
  all_.erase(found);
}

void HubClients::prove(HubClient& client, const wire::Hello& hello) {
  --strangers_;
  client.hello = hello;
}

void HubClients::join(uint64_t key, HubClient& client) {
  client.rank = client.hello->rank;
  by_rank_.insert_or_assign(client.rank, key);
}

std::optional<uint64_t> HubClients::oldest_stranger() const {
  for (const auto& [key, client] : all_) {
    if (!client.hello) return key;
  }
  return std::nullopt;
}

bool HubClients::any_about_to_join() const {
  return std::ranges::any_of(all_, [](const auto& entry) {
    return entry.second.hello && !entry.second.joined() && !entry.second.leaving;
  });
}

std::vector<uint64_t> HubClients::of_process(int32_t process) const {
  std::vector<uint64_t> keys;
  for (const auto& [key, client] : all_) {
    if (client.process == process) keys.push_back(key);
  }
  return keys;
}

std::vector<RankProcess> HubClients::rank_processes() const {
  std::vector<RankProcess> ranks;
  for (const auto& [rank, key] : by_rank_) {
    const HubClient& client = all_.at(key);
    if (client.process) ranks.push_back({rank, *client.process});
  }
  return ranks;
}

}  // namespace mscclc
