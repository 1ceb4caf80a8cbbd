#include "runtime/bootstrap/tcp/hub_clients.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

wire::Hello hello_of(uint32_t rank) {
  wire::Hello hello;
  hello.rank = rank;
  return hello;
}

TEST_CASE("a connection to a hub is a stranger, proves itself, and joins as a rank") {
  HubClients clients;
  CHECK(clients.empty());
  const uint64_t first = clients.add(make_waker()).first;
  const uint64_t second = clients.add(make_waker()).first;
  CHECK(first == kFirstKey);
  CHECK(second > first);
  CHECK(clients.strangers() == 2);
  CHECK(clients.oldest_stranger() == first);
  CHECK_FALSE(clients.any_about_to_join());

  HubClient& client = *clients.find(first);
  clients.prove(client, hello_of(3));
  client.process = 12;
  CHECK(clients.strangers() == 1);
  CHECK(clients.oldest_stranger() == second);
  CHECK(clients.any_about_to_join());
  CHECK_FALSE(clients.key_of(3));
  CHECK(clients.rank_processes().empty());

  clients.join(first, client);
  CHECK(client.joined());
  CHECK_FALSE(clients.any_about_to_join());
  CHECK(clients.key_of(3) == first);
  REQUIRE(clients.rank_processes().size() == 1);
  CHECK(clients.rank_processes()[0].rank == 3);
  CHECK(clients.rank_processes()[0].process == 12);
  CHECK(clients.of_process(12) == std::vector<uint64_t>{first});
  CHECK(clients.of_process(13).empty());
}

TEST_CASE("what leaves a hub is counted no more") {
  HubClients clients;
  const uint64_t stranger = clients.add(make_waker()).first;
  const uint64_t rank = clients.add(make_waker()).first;
  clients.prove(*clients.find(rank), hello_of(0));
  clients.join(rank, *clients.find(rank));
  clients.drop(rank);
  CHECK(clients.find(rank) == nullptr);
  CHECK_FALSE(clients.key_of(0));
  CHECK(clients.strangers() == 1);
  clients.find(stranger)->leaving = true;  // refused, it still has a place that others may want
  CHECK(clients.oldest_stranger() == stranger);
  clients.drop(stranger);
  clients.drop(stranger);
  CHECK(clients.strangers() == 0);
  CHECK(clients.empty());
}

}  // namespace
}  // namespace mscclc
