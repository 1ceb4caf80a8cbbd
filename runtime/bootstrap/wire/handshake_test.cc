// What a proof covers: everything that was said before it.
#include "runtime/bootstrap/wire/handshake.h"

#include <catch2/catch.hpp>
#include <functional>

namespace mscclc::wire {
namespace {

struct Meeting {
  Secret secret{};
  KeyPair rank = KeyPair::make(), hub = KeyPair::make();
  Challenge challenge;
  Hello hello{.rank = 3, .size = 8, .process = 1234};
  Welcome welcome{.timeout_ms = 1000, .silence_ms = 2000, .hub_rank = 0};
  Meeting() {
    challenge.key = hub.open;
    hello.key = rank.open;
  }
  Digest said() const { return transcript(challenge, hello); }
};

TEST_CASE("a change of any word changes both proofs and both keys") {
  const Meeting one;
  const std::vector<std::function<void(Meeting&)>> changes = {
      [](Meeting& m) { m.secret[15] ^= 1; },        [](Meeting& m) { m.challenge.nonce[0] ^= 1; },
      [](Meeting& m) { m.challenge.key[31] ^= 1; }, [](Meeting& m) { ++m.hello.rank; },
      [](Meeting& m) { ++m.hello.size; },           [](Meeting& m) { ++m.hello.process; },
      [](Meeting& m) { ++m.hello.timeout_ms; },     [](Meeting& m) { m.hello.nonce[15] ^= 1; },
      [](Meeting& m) { m.hello.key[0] ^= 1; },      [](Meeting& m) { m.hello.from[18] ^= 1; },
      [](Meeting& m) { m.hello.to[17] ^= 1; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    Meeting other = one;
    changes[i](other);
    CHECK(rank_proof(one.secret, one.said()) != rank_proof(other.secret, other.said()));
    CHECK(hub_proof(one.secret, one.said(), one.welcome) !=
          hub_proof(other.secret, other.said(), other.welcome));
    const auto a = session_keys(one.secret, one.said(), one.welcome, one.hub, one.rank.open);
    const auto b =
        session_keys(other.secret, other.said(), other.welcome, other.hub, other.rank.open);
    CHECK(a->to_hub != b->to_hub);
    CHECK(a->to_rank != b->to_rank);
  }
}

TEST_CASE("the hub's proof and the keys cover all that the welcome says") {
  const Meeting one;
  for (uint32_t Welcome::*field :
       {&Welcome::timeout_ms, &Welcome::silence_ms, &Welcome::hub_rank, &Welcome::process}) {
    Welcome other = one.welcome;
    ++(other.*field);
    CHECK(hub_proof(one.secret, one.said(), one.welcome) !=
          hub_proof(one.secret, one.said(), other));
    CHECK(session_keys(one.secret, one.said(), one.welcome, one.hub, one.rank.open)->to_hub !=
          session_keys(one.secret, one.said(), other, one.hub, one.rank.open)->to_hub);
  }
}

TEST_CASE("a rank's proof is not one of the hub's") {
  const Meeting one;
  CHECK(rank_proof(one.secret, one.said()) != hub_proof(one.secret, one.said(), one.welcome));
}

TEST_CASE("both ends work out the same keys, one for each direction; a third does not") {
  const Meeting m;
  const auto hub = session_keys(m.secret, m.said(), m.welcome, m.hub, m.rank.open);
  const auto rank = session_keys(m.secret, m.said(), m.welcome, m.rank, m.hub.open);
  REQUIRE((hub && rank));
  CHECK(hub->to_hub == rank->to_hub);
  CHECK(hub->to_rank == rank->to_rank);
  CHECK(hub->to_hub != hub->to_rank);
  // A third process, which knows the secret and has heard all, but has neither key.
  const auto third = session_keys(m.secret, m.said(), m.welcome, KeyPair::make(), m.hub.open);
  CHECK(third->to_hub != hub->to_hub);
  CHECK_FALSE(session_keys(m.secret, m.said(), m.welcome, m.hub, PublicKey{}));
}

TEST_CASE("the name of a job's unix socket") {
  Secret one{}, other{};
  other[0] = 1;
  CHECK(local_name(one) == local_name(one));
  CHECK(local_name(one) != local_name(other));
  CHECK(Address::local(local_name(one), 1) != Address::local(local_name(one), 2));
  CHECK(Address::local(local_name(one), 1).text().starts_with("@mscclc-hub-"));
}

}  // namespace
}  // namespace mscclc::wire
