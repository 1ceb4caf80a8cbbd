// What version 3 of the prover still proved, and goes wrong: packets that come twice, and sets of
// plans whose scratch overlays.
#include "tests/random_programs/known_holes.h"

namespace mscclc::random_programs {
namespace {

/// Two ranks send what rank 0 has given them. When it has polled the packets of one, it gives rank
/// 1 something else, which that may send instead.
constexpr const char* kTwins = R"(ir 1
program twins
collective custom(ranks: 3, input: 2, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
launch split: true
rank 0 {
  buffer s[1] packets: LL16, copies: 2
  channel a = memory(1) to a
  channel b = memory(2) to b
  tb 0 {
    put_packets b.v[0] <- input[0]
    put a.w[0] <- input[0]
    sync
    signal a
    wait b
    sync
    unpack_packets output[0] <- s[0]
    sync
    put a.w[0] <- input[1]
    wait b
    sync
    wait a
    sync
    unpack_packets output[0] <- s[0]
    sync
  }
}
rank 1 {
  buffer w[1]
  channel a = memory(0) to a
  tb 0 {
    wait a
    sync
    put_packets a.s[0] <- w[0]
    sync
    signal a
  }
}
rank 2 {
  buffer v[1] packets: LL16, copies: 2
  channel b = memory(0) to b
  tb 0 {
    read_put_packets b.s[0] <- v[0]
    signal b
    sync
    signal b
  }
}
)";

/// Rank 0 polls the packets of rank 2; those of rank 1 are on their way by a port, from a slot that
/// the call after next fills again.
constexpr const char* kEcho = R"(ir 1
program echo
collective custom(ranks: 3, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
launch split: true
rank 0 {
  buffer y[1]
  buffer s[1] packets: LL16, copies: 2
  channel b = memory(2) to b
  channel a = memory(1) to a
  channel n = port(1) to n
  tb 0 {
    put b.w[0] <- input[0]
    sync
    signal b
    put_packets a.v[0] <- input[0]
    wait b
    sync
    unpack_packets y[0] <- s[0]
    copy output[0] <- input[0]
  }
}
rank 1 {
  buffer v[1] packets: LL16, copies: 2
  channel a = memory(0) to a
  channel n = port(0) to n
  tb 0 {
    read_put_packets n.s[0] <- v[0]
  }
}
rank 2 {
  buffer w[1]
  channel b = memory(0) to b
  tb 0 {
    wait b
    sync
    put_packets b.s[0] <- w[0]
    sync
    signal b
  }
}
)";

/// What is sent is in no call written, so the same in all; its flags are not.
constexpr const char* kJunk = R"(ir 1
program junk
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
launch split: true
rank 0 {
  buffer w[1]
  buffer y[1]
  buffer s[1] packets: LL16
  channel c = memory(1) to c
  tb 0 {
    unpack_packets y[0] <- s[0]
    sync
    copy output[0] <- input[0]
    copy_packets s[0] <- w[0]
    signal c
    wait c
  }
}
rank 1 {
  buffer w[1]
  channel c = memory(0) to c
  tb 0 {
    put_packets c.s[0] <- w[0]
    sync
    signal c
    wait c
  }
}
)";

/// Rank 1 sends its input to rank 0 in a slot that is emptied when it has been read.
constexpr const char* kSend = R"(ir 1
program send
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 1
select dtypes: [f32]
launch reuse_scratch: true, split: true
rank 0 {
  buffer s[1] packets: sentinel
  channel m = memory(1) to m
  channel n = port(1) to n
  tb 0 {
    unpack_packets output[0] <- s[0]
    sync
    signal m
    wait m
    sync
  }
}
rank 1 {
  buffer s[1] packets: sentinel
  channel m = memory(0) to m
  channel n = port(0) to n
  tb 0 {
    put_packets m.s[0] <- input[0]
    wait m
    sync
    signal m
  }
}
)";

/// Rank 0 hands packets on by a port, and empties their slot when it likes.
constexpr const char* kForward = R"(ir 1
program forward
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 1
select dtypes: [f32]
launch reuse_scratch: true, split: true
rank 0 {
  buffer s[2] packets: sentinel, copies: 2
  channel m = memory(1) to m
  channel n = port(1) to n
  tb 0 {
    read_put_packets n.s[1] <- s[0]
  }
}
rank 1 {
  buffer s[2] packets: sentinel, copies: 2
  channel m = memory(0) to m
  channel n = port(0) to n
  tb 0 {
    put_packets m.s[0] <- input[0]
    unpack_packets output[0] <- s[1]
  }
}
)";

/// Rank 0 leaves packets in a slot of its own, which a port has sent from there.
constexpr const char* kBox = R"(ir 1
program box
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
select dtypes: [f32]
launch reuse_scratch: true, split: true
rank 0 {
  buffer s[2] packets: sentinel
  channel m = memory(1) to m
  channel n = port(1) to n
  tb 0 {
    copy_packets s[0] <- input[0]
    sync
    put_packets n.s[1] <- s[0]
    wait m
    sync
    flush n
    sync
    signal m
  }
}
rank 1 {
  buffer s[2] packets: sentinel
  channel m = memory(0) to m
  channel n = port(0) to n
  tb 0 {
    unpack_packets output[0] <- s[1]
    sync
    signal m
    wait m
    sync
  }
}
)";

std::string aligned(uint32_t align) {
  std::string text = kSend;
  return text.replace(text.find("split: true"), 11,
                      "align: " + std::to_string(align) + ", split: true");
}

/// Rank 1 puts into scratch that rank 0 has used in this call; that the put of the call before is
/// over rank 0 hears by a signal that it takes a call late.
constexpr const char* kCredit = R"(ir 1
program credit
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
launch reuse_scratch: true, split: true
rank 0 {
  buffer s[1]
  channel m = memory(1) to m
  channel n = port(1) to n credits: 1
  tb 0 {
    wait n
    sync
    copy s[0] <- input[0]
    sync
    copy output[0] <- s[0]
    sync
    signal m
  }
}
rank 1 {
  channel m = memory(0) to m
  channel n = port(0) to n
  tb 0 {
    wait m
    sync
    put n.s[0] <- input[0]
    signal n
    flush n
  }
}
)";

/// The same without the put: its signal says nothing.
constexpr const char* kRelaxed = R"(ir 1
program relaxed
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
launch reuse_scratch: true, split: true
rank 0 {
  channel m = memory(1) to m
  channel n = port(1) to n credits: 1
  tb 0 {
    wait n relaxed
    copy output[0] <- input[0]
    sync
    signal m
  }
}
rank 1 {
  channel m = memory(0) to m
  channel n = port(0) to n
  tb 0 {
    wait m
    sync
    signal n relaxed
  }
}
)";

}  // namespace

std::vector<KnownHole> holes_of_version_3() {
  return {{"the same packets by two ranks", kTwins, 4},
          {"the same packets by a port", kEcho, 4},
          {"junk in packets of other calls", kJunk, 4}};
}

std::vector<KnownSetHole> set_holes_of_version_3() {
  return {{"a slot emptied after a port has sent it", {kForward, kSend}, 4},
          {"a slot left full by a port", {kBox, kSend}, 4},
          {"chunks of other lengths", {aligned(16), aligned(128)}, 4},
          {"a credit that a relaxed signal gives back", {kCredit, kRelaxed}, 4}};
}

}  // namespace mscclc::random_programs
