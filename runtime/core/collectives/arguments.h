// Calls by name in the runtime's own terms: whether the arguments are sound, which call a plan has
// to serve, and how many bytes its message has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/api/collectives.h"

namespace mscclc {

/// Checks what a rank says of its call. Errors (bad-call, overlap). `buffers`:
/// Collectives::check().
[[nodiscard]] bool check_arguments(const CollectiveCall& call, uint32_t rank, uint32_t ranks,
                                   BuffersOf buffers, Diagnostics& diagnostics);

/// Bytes that a call moves on its own rank, where no other has part in it.
struct LocalCopy {
  const uint8_t* from = nullptr;
  uint8_t* to = nullptr;
  uint64_t bytes = 0;
};
LocalCopy local_copy(const CollectiveCall& call);

/// How a call's buffers lie, as far as its rank knows it of all ranks.
enum class CallPlace : uint8_t {
  apart,
  in_place,
  either  ///< there is a root: ranks have one buffer, and do not know of the others
};

/// What moves data between ranks: the call itself, or the call that serves it.
struct PlannedCall : CollectiveCall {
  CallPlace place = CallPlace::apart;
};
/// An alltoallv is an alltoall of rows as long as the longest; a barrier is an allreduce of one
/// element. nullopt: no plan is needed, as there is one rank, nothing to move, or nothing to move
/// elsewhere. The buffers are those of `call`. REQUIRES: check_arguments().
std::optional<PlannedCall> planned_call(const CollectiveCall& call, uint32_t rank, uint32_t ranks);

/// Bytes of the larger of input and output. REQUIRES: check_arguments().
uint64_t message_bytes(const CollectiveCall& call, uint32_t ranks);

/// What of a call must be the same on all ranks, in words: "an allreduce of 8 elements of 'f32',
/// sum". REQUIRES: check_arguments().
std::string text_of(const CollectiveCall& call, uint32_t rank, bool capturing);

}  // namespace mscclc
