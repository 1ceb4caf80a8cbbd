// How both ends of a connection prove that they know the job's secret, and the keys that come of
// it. Pure functions.
//
// A proof covers all that was said before it: protocol version, random numbers, public keys, which
// rank it is, and between which addresses each end believes that the connection runs. So no process
// can sit between a rank and its hub, pass a proof on to another connection, or change a word.
#pragma once

#include <optional>

#include "runtime/bootstrap/wire/frames.h"

namespace mscclc::wire {

struct KeyPair {
  PublicKey open{};
  std::array<uint8_t, 32> hidden{};
  /// Of X25519, new each time.
  static KeyPair make();
};

/// What both ends have said before the proofs: the challenge, and the hello except its proof.
Digest transcript(const Challenge& challenge, const Hello& hello);

Digest rank_proof(const Secret& secret, const Digest& transcript);
/// Covers all that `welcome` says.
Digest hub_proof(const Secret& secret, const Digest& transcript, const Welcome& welcome);

using SessionKey = std::array<uint8_t, 32>;
/// One key for each direction.
struct SessionKeys {
  SessionKey to_hub{}, to_rank{};
};
/// Of the secret, the transcript, the welcome, and of what only the two ends can work out of their
/// keys: an attacker that guesses the secret later cannot read what it has recorded. nullopt: the
/// other end's key is invalid.
[[nodiscard]] std::optional<SessionKeys> session_keys(const Secret& secret,
                                                      const Digest& transcript,
                                                      const Welcome& welcome, const KeyPair& own,
                                                      const PublicKey& other);

/// The name of the unix socket at which a job's hub listens: reveals nothing of the secret.
std::array<uint8_t, 16> local_name(const Secret& secret);

}  // namespace mscclc::wire
