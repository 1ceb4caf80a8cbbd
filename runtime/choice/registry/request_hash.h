// A hash of requests, so that a choice that was made is found again at once.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/api/plan_provider.h"

namespace mscclc {

/// Over all that differs between calls of a job; what is the same in all of them is left out.
struct RequestHash {
  size_t operator()(const PlanRequest& request) const {
    const LibraryCall& call = request.call;
    const uint64_t small =
        static_cast<uint64_t>(call.order) << 48 | static_cast<uint64_t>(call.kind) << 40 |
        static_cast<uint64_t>(call.dtype) << 32 | static_cast<uint64_t>(call.op) << 24 |
        static_cast<uint64_t>(call.either_place) << 17 |
        static_cast<uint64_t>(call.in_place) << 16 |
        static_cast<uint64_t>(request.registered) << 8 |
        static_cast<uint64_t>(request.call.captured);
    const uint64_t place = static_cast<uint64_t>(call.root) << 32 ^
                           static_cast<uint64_t>(call.shift) ^ request.alignment ^
                           static_cast<uint64_t>(request.most_blocks) << 16;
    return mix(mix(mix(call.bytes) ^ small) ^ place) ^
           (request.tag.empty() ? 0 : std::hash<std::string>()(request.tag));
  }

 private:
  /// splitmix64's finalizer.
  static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }
};

}  // namespace mscclc
