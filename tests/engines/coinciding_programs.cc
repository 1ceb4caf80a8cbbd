#include "tests/engines/coinciding_programs.h"

namespace mscclc {
namespace {

// The fuse pass once made one op of the first two, which took from the slot and stored there: GPUs
// empty a slot after they have stored.
constexpr const char* kFilledAgain = R"(
program    filled_again
collective custom(ranks: 2, input: 1, output: 1)
ensure     output[0] at 0 = reduce(input[0] at 0, input[0] at 1)
select     dtypes: [f32]
rank 0 {
  buffer s[1] packets: sentinel, copies: 2
  buffer x[1]
  channel ch = memory(1)
  tb 0 {
    reduce_packets x[0] <- input[0], s[0]
    copy_packets s[0] <- x[0]
    unpack_packets output[0] <- s[0]
    signal ch
  }
}
rank 1 {
  channel ch = memory(0)
  tb 0 {
    put_packets ch.s[0] <- input[0]
    wait ch
  }
}
)";

// In place, the copy is no access; as a move of the step that unpacks it once loaded before it
// polled, and stored what it had loaded over what had been put there since.
constexpr const char* kSelfCopy = R"(
program    self_copy
collective custom(ranks: 2, input: 1, output: 1, inplace: true)
ensure     output[0] at 1 = input[0] at 0
rank 0 {
  channel ch = memory(1)
  tb 0 {
    wait ch
    put ch.output[0] <- input[0]
    signal ch
    put_packets ch.s[0] <- input[0]
  }
}
rank 1 {
  buffer s[1] packets: FORMAT, copies: 2
  buffer x[1]
  channel ch = memory(0)
  tb 0 {
    FIRST
    SECOND
  }
  tb 1 { signal ch ; wait ch }
}
)";
constexpr const char* kOntoItself = "copy output[0] <- input[0]";
constexpr const char* kUnpack = "unpack_packets x[0] <- s[0]";

// The root's copy of what it sends is a destination of the step that sends.
constexpr const char* kKept = R"(
program    kept
collective broadcast(ranks: 2, root: 0)
rank 0 {
  channel ch = memory(1)
  tb 0 {
    put_packets ch.s[0] <- input[0]
    copy output[0] <- input[0]
  }
  tb 1 { wait ch relaxed }
}
rank 1 {
  buffer s[1] packets: FORMAT, copies: 2
  channel ch = memory(0)
  tb 0 { unpack_packets output[0] <- s[0] }
  tb 1 { signal ch relaxed }
}
)";

// A sum is stored where one of its terms lies.
constexpr const char* kInItsPlace = R"(
program    in_its_place
collective custom(ranks: 2, input: 1, output: 1)
ensure     output[0] at r = reduce(input[0] at 0, input[0] at 1) for r in 0..2
select     dtypes: [f32]
rank r in 0..2 {
  buffer s[1] packets: FORMAT, copies: 2
  buffer x[1]
  channel ch = memory(1 - r)
  tb 0 {
    put_packets ch.s[0] <- input[0]
    copy x[0] <- input[0]
    reduce_packets x[0] <- x[0], s[0]
    copy output[0] <- x[0]
  }
}
)";

// A copy of something else is a move of its own beside the packets.
constexpr const char* kBeside = R"(
program    beside
collective custom(ranks: 2, input: 2, output: 2)
ensure     output[1] at r = input[1] at r for r in 0..2
ensure     output[0] at 1 = input[0] at 0
rank 0 {
  channel ch = memory(1)
  tb 0 {
    put_packets ch.s[0] <- input[0]
    copy output[1] <- input[1]
  }
  tb 1 { wait ch relaxed }
}
rank 1 {
  buffer s[1] packets: FORMAT, copies: 2
  channel ch = memory(0)
  tb 0 {
    copy output[1] <- input[1]
    unpack_packets output[0] <- s[0]
  }
  tb 1 { signal ch relaxed }
}
)";

std::string with(std::string text, std::string_view word, std::string_view in_its_place) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) {
    text.replace(at, word.size(), in_its_place);
  }
  return text;
}

std::vector<CoincidingProgram> make() {
  std::vector<CoincidingProgram> all = {{"filled again", kFilledAgain, false}};
  for (const std::string_view format : {"LL8", "LL16", "LL128", "sentinel"}) {
    const auto add = [&](std::string_view name, const std::string& text, bool in_place) {
      all.push_back(
          {std::string(name) + ' ' + std::string(format), with(text, "FORMAT", format), in_place});
    };
    add("copied onto itself, then unpacked",
        with(with(kSelfCopy, "FIRST", kOntoItself), "SECOND", kUnpack), true);
    add("unpacked, then copied onto itself",
        with(with(kSelfCopy, "FIRST", kUnpack), "SECOND", kOntoItself), true);
    add("kept", kKept, true);
    add("kept", kKept, false);
    add("beside", kBeside, false);
    add("in its place", kInItsPlace, false);
  }
  return all;
}

}  // namespace

const std::vector<CoincidingProgram>& coinciding_programs() {
  static const std::vector<CoincidingProgram> all = make();
  return all;
}

}  // namespace mscclc
