// What version 8 of the prover still proved, and goes wrong: programs with row functions.
#include "tests/random_programs/known_holes.h"

namespace mscclc::random_programs {
namespace {

/// Rank 1 puts a result where rank 0 makes the same, in no order with it. There the sum may lie for
/// a while.
constexpr const char* kSumInBetween = R"(program sum_in_between
row twice(x: row T) {
  out y: row T = T(x) * 2
}
collective allreduce(ranks: 2, columns: 8, then: twice, inplace: false)
rank 0 {
  buffer inbox[1] packets: LL16, copies: 2
  channel ch = memory(1)
  tb 0 {
    put_packets ch.inbox[0] <- input[0]
    reduce_packets output[0] <- input[0], inbox[0] then twice _ <- _
  }
  tb 1 { wait ch }
}
rank 1 {
  buffer inbox[1] packets: LL16, copies: 2
  channel ch = memory(0)
  tb 0 {
    put_packets ch.inbox[0] <- input[0] part: [0, 2]
    reduce_packets output[0] <- inbox[0], input[0] then twice _ <- _
    sync
    put ch.output[0] <- output[0]
    sync
    signal ch
    put_packets ch.inbox[0] <- input[0] part: [1, 2]
  }
}
)";

/// The same, where the compiler makes one op of the sum and the function.
constexpr const char* kFusedSum = R"(program fused
row twice(x: row T) {
  out y: row T = T(x) * 2
}
collective allreduce(ranks: 2, columns: 8, then: twice, inplace: false)
rank 0 {
  buffer inbox[1] packets: LL16, copies: 2
  channel ch = memory(1)
  tb 0 {
    put_packets ch.inbox[0] <- input[0]
    reduce_packets output[0] <- input[0], inbox[0]
    apply twice output[0] <- output[0]
  }
  tb 1 { wait ch }
}
rank 1 {
  buffer inbox[1] packets: LL16, copies: 2
  channel ch = memory(0)
  tb 0 {
    put_packets ch.inbox[0] <- input[0] part: [0, 2]
    reduce_packets output[0] <- inbox[0], input[0] then twice _ <- _
    sync
    put ch.output[0] <- output[0]
    sync
    signal ch
    put_packets ch.inbox[0] <- input[0] part: [1, 2]
  }
}
)";

/// Part 1 of rows of e4m3, which may be nothing, is taken for part 1 of rows of f32.
constexpr const char* kTypedParts = R"(program typed_parts
row twice(x: row T) {
  out y: row T = T(x) * 2
}
row narrow(x: row T) {
  out y: row e4m3 = x
}
collective allreduce(ranks: 2, columns: 16, then: twice, inplace: false)
rank 0 {
  buffer inbox[1] packets: LL16, copies: 2
  buffer x[1]
  buffer w[1] type: e4m3
  buffer u[1] packets: LL16, copies: 2, type: e4m3
  buffer v[1] packets: LL16, copies: 2
  channel ch = memory(1)
  tb 0 {
    copy x[0] <- input[0]
    sync
    signal ch
    unpack_packets w[0] <- u[0] part: [1, 2]
    sync
    unpack_packets x[0] <- v[0] part: [1, 2]
    put_packets ch.back[0] <- input[0]
    reduce_packets output[0] <- input[0], inbox[0] then twice _ <- _
    wait ch
  }
}
rank 1 {
  buffer y[1]
  buffer z[1] type: e4m3
  buffer back[1] packets: LL16, copies: 2
  channel ch = memory(0)
  tb 0 {
    put_packets ch.v[0] <- input[0]
    put_packets ch.inbox[0] <- input[0]
    wait ch
    sync
    get y[0] <- ch.x[0]
    sync
    apply narrow z[0] <- y[0]
    sync
    put_packets ch.u[0] <- z[0]
    reduce output[0] <- y[0], input[0] then twice _ <- _
    sync
    unpack_packets y[0] <- back[0]
    sync
    signal ch
  }
}
)";

}  // namespace

std::vector<KnownHole> holes_of_version_8() {
  return {{"a sum where its result goes", kSumInBetween, 9},
          {"a sum and its function in one op", kFusedSum, 9},
          {"parts of rows of two types", kTypedParts, 9}};
}

}  // namespace mscclc::random_programs
