// What a fused op may be moved past, and what not.
#include <catch2/catch.hpp>

#include "passes/fuse/fuse_test_text.h"

namespace mscclc {

using testing::fused;
using testing::keeps;
using testing::World;

TEST_CASE("fuse: past ops that touch nothing of it") {
  REQUIRE(fused(R"(
    put ch[1].t[0] <- input[0]
    copy output[1] <- input[1]
    put ch[2].t[0] <- input[0])") == R"(
0: put ch[1].t[0], ch[2].t[0] <- input[0], input[0]
0: copy output[1] <- input[1]
)");
}

TEST_CASE("fuse: down, where the way up is blocked") {
  REQUIRE(fused(R"(
    put ch[1].t[0] <- input[0]
    copy output[1] <- input[1]
    put ch[2].t[0] <- output[1])") == R"(
0: copy output[1] <- input[1]
0: put ch[1].t[0], ch[2].t[0] <- input[0], output[1]
)");
}

TEST_CASE("fuse: not where both ways are blocked") {
  REQUIRE(keeps(R"(
    put ch[1].t[0] <- output[0]
    reduce output[0] <- output[0], s[0]
    put ch[2].t[0] <- output[0])") == false);
  REQUIRE(keeps(R"(
    put ch[1].t[0] <- output[0]
    get output[0] <- ch[1].s[0]
    put ch[2].t[0] <- output[0])"));
  // In place, input[0] is output[0].
  REQUIRE(keeps(R"(
    put ch[1].t[0] <- input[0]
    get output[0] <- ch[1].s[0]
    put ch[2].t[0] <- output[0])"));
  const World apart{.contract = "allreduce(ranks: 4, chunks: 8, inplace: false)"};
  REQUIRE(!apart.keeps(R"(
    put ch[1].t[0] <- input[0]
    get output[0] <- ch[1].s[0]
    put ch[2].t[0] <- output[0])"));
}

TEST_CASE("fuse: chunks that coincide in place lie where the collective says") {
  const World gather{.contract = "allgather(ranks: 4)"};
  REQUIRE(gather.keeps(R"(
    put ch[1].t[0] <- output[0]
    get output[0] <- ch[1].s[0]
    put ch[2].t[0] <- input)"));
  REQUIRE(!gather.keeps(R"(
    put ch[1].t[0] <- output[1]
    get output[1] <- ch[1].s[0]
    put ch[2].t[0] <- input)"));
  // At a far end, too: the input of rank 1 is its output[1].
  REQUIRE(gather.keeps(R"(
    get s[0] <- ch[1].input[0]
    put ch[1].output[1] <- s[1]
    get s[2] <- ch[1].input[0])"));
  REQUIRE(!gather.keeps(R"(
    get s[0] <- ch[1].input[0]
    put ch[1].output[2] <- s[1]
    get s[2] <- ch[1].input[0])"));
}

TEST_CASE("fuse: past ops of other blocks, but not what they do to its chunks") {
  REQUIRE(fused(R"(
    tb 0 { put ch[1].t[0] <- s[0] }
    tb 1 { signal ch[3] ; wait ch[3] }
    tb 0 { put ch[2].t[0] <- s[0] })") == R"(
0: put ch[1].t[0], ch[2].t[0] <- s[0], s[0]
1: signal ch[3]
1: wait ch[3]
)");
  REQUIRE(keeps(R"(
    tb 0 { put ch[1].t[0] <- s[0] }
    tb 1 { get s[0] <- ch[3].t[0] }
    tb 0 { put ch[2].t[0] <- s[0] })"));
  REQUIRE(keeps(R"(
    tb 0 { put ch[1].t[0] <- s[0] }
    tb 1 { put ch[1].t[0] <- s[1] }
    tb 0 { put ch[1].t[0] <- s[2] ; put ch[1].t[1] <- s[2] })") == false);
}

TEST_CASE("fuse: data stay between the waits, signals and syncs they were written between") {
  for (const char* between : {"wait ch[3]", "wait ch[3] relaxed", "acquire a", "signal ch[3]",
                              "signal ch[3] relaxed", "release a", "flush net[3]", "sync"}) {
    INFO(between);
    const std::string ops =
        "put ch[1].t[0] <- s[0]\n" + std::string(between) + "\nput ch[2].t[0] <- s[0]";
    REQUIRE(keeps(ops));
    REQUIRE(keeps("group 0..2 {\n" + ops + "\n}"));
  }
  REQUIRE(keeps(R"(
    tb 0 { put ch[1].t[0] <- s[0] }
    barrier 0..2
    tb 0 { put ch[2].t[0] <- s[0] }
    tb 1 {})"));
}

TEST_CASE("fuse: signals and releases pass each other, nothing else") {
  REQUIRE(fused("signal ch[1] ; release a ; signal ch[2]") == R"(
0: signal ch[1], ch[2]
0: release a
)");
  for (const char* between : {"wait ch[3]", "acquire a", "flush net[3]", "sync",
                              "copy output[1] <- input[1]", "put ch[3].t[0] <- s[0]"}) {
    INFO(between);
    for (const std::string op : {"signal ch[1]", "release a"}) {
      const std::string ops =
          op + "\n" + between + "\n" + (op[0] == 's' ? "signal ch[2]" : "release b");
      REQUIRE(keeps(ops));
      REQUIRE(keeps("group 0..2 {\n" + ops + "\n}"));
    }
  }
}

TEST_CASE("fuse: waits, acquires and flushes pass each other, nothing else") {
  REQUIRE(fused("wait ch[1] ; acquire a ; flush net[3] ; wait ch[2]") == R"(
0: wait ch[1], ch[2]
0: acquire a
0: flush net[3]
)");
  for (const char* between : {"signal ch[3]", "release a", "sync", "copy output[1] <- input[1]",
                              "unpack_packets output[1] <- q[1]"}) {
    INFO(between);
    for (const std::string op : {"wait ch[1]", "acquire a"}) {
      const std::string ops =
          op + "\n" + between + "\n" + (op[0] == 'w' ? "wait ch[2]" : "acquire b");
      REQUIRE(keeps(ops));
      REQUIRE(keeps("group 0..2 {\n" + ops + "\n}"));
    }
  }
}

TEST_CASE("fuse: what polls moves past nothing, nothing moves past it") {
  REQUIRE(keeps(R"(
    unpack_packets output[0] <- q[0]
    put_packets ch[1].q[0] <- input[5]
    unpack_packets output[1] <- q[1])"));
  REQUIRE(keeps(R"(
    unpack_packets output[0] <- q[0]
    copy output[5] <- input[5]
    unpack_packets output[1] <- q[1])"));
  // Rank 2 may be written to once packets have come.
  REQUIRE(keeps(R"(
    put ch[1].t[0] <- s[0]
    unpack_packets output[1] <- q[1]
    put ch[2].t[0] <- s[0])"));
}

TEST_CASE("fuse: unpacking, if no other block waits for a part of it") {
  REQUIRE(keeps(R"(
    tb 0 { unpack_packets s[0] <- q[0] ; unpack_packets s[1] <- q[1] }
    tb 1 { put_packets ch[1].q[1] <- s[0] })"));
  // Here it waits for both anyway.
  REQUIRE(fused(R"(
    tb 0 { unpack_packets s[0] <- q[0] ; unpack_packets s[1] <- q[1] ; release a }
    tb 1 { acquire a ; put_packets ch[1].q[1] <- s[0] })") == R"(
0: unpack_packets s[0], s[1] <- q[0], q[1]
0: release a
1: acquire a
1: put_packets ch[1].q[1] <- s[0]
)");
  const World alone{.launch = "launch auto_sync: false\n"};
  REQUIRE(!alone.keeps(R"(
    tb 0 { unpack_packets s[0] <- q[0] ; unpack_packets s[1] <- q[1] }
    tb 1 { put_packets ch[1].q[1] <- s[0] })"));
}

// Rank 1 answers the first packets; one op would wait for the answer before it sends them.
TEST_CASE("fuse: not what waits for another block with what that block waits for") {
  const char* body = R"(
    tb 1 { reduce_packets output[0] <- input[0], q[0] }
    tb 0 { put_packets ch[1].q[0] <- input[1] ; put_packets ch[1].q[1] <- output[0] })";
  REQUIRE(keeps(body));
  REQUIRE(keeps(R"(
    tb 1 { reduce_packets output[0] <- input[0], q[0] ; release a }
    tb 0 {
      put_packets ch[1].q[0] <- input[1]
      acquire a
      put_packets ch[1].q[1] <- output[0]
    })"));
  // Where the author lets tb 0 wait before both, they can be one.
  REQUIRE(fused(R"(
    tb 1 { reduce_packets output[0] <- input[0], q[0] ; release a }
    tb 0 { acquire a ; put_packets ch[1].q[0] <- input[1] ; put_packets ch[1].q[1] <- output[0] })") ==
          R"(
1: reduce_packets output[0] <- input[0], q[0]
1: release a
0: acquire a
0: put_packets ch[1].q[0], ch[1].q[1] <- input[1], output[0]
)");
  REQUIRE(fused(R"(
    tb 1 { reduce_packets output[0] <- input[0], q[0] }
    barrier 0..2
    tb 0 { put_packets ch[1].q[0] <- input[1] ; put_packets ch[1].q[1] <- output[0] })") == R"(
1: reduce_packets output[0] <- input[0], q[0]
0: barrier 0..2
1: barrier 0..2
0: put_packets ch[1].q[0], ch[1].q[1] <- input[1], output[0]
)");
  const World alone{.launch = "launch auto_sync: false\n"};
  REQUIRE(!alone.keeps(body));
}

TEST_CASE("fuse: nothing moves past an op that waits for another block") {
  REQUIRE(keeps(R"(
    tb 0 { put ch[1].t[0] <- s[0] }
    tb 1 { get s[1] <- ch[3].t[0] }
    tb 0 { copy output[1] <- s[1] ; put ch[2].t[0] <- s[0] })"));
}

TEST_CASE("fuse: what polls does not take in an op that another block waits for") {
  REQUIRE(keeps(R"(
    tb 0 {
      copy output[0] <- s[0]
      reduce_packets output[0] <- output[0], q[0]
    }
    tb 1 { get s[0] <- ch[1].t[0] ; put_packets ch[1].q[0] <- s[0] })"));
}

TEST_CASE("fuse: nothing moves down past an op that another block waits for") {
  REQUIRE(keeps(R"(
    tb 0 {
      put ch[1].t[0] <- s[0]
      get s[1] <- ch[3].t[0]
      put ch[2].t[0] <- s[1]
    }
    tb 1 { copy output[1] <- s[1] ; signal ch[1] })"));
}

TEST_CASE("fuse: semaphores that several blocks release or acquire settle nothing") {
  REQUIRE(keeps(R"(
    tb 1 { reduce_packets output[0] <- input[0], q[0] ; release a }
    tb 2 { release a }
    tb 0 {
      acquire a
      put_packets ch[1].q[0] <- input[1]
      put_packets ch[1].q[1] <- output[0]
    })"));
}

TEST_CASE("fuse: pipelines fuse by themselves") {
  REQUIRE(fused(R"(
    pipeline unit: 1KiB {
      tb 0 {
        wait ch[1]
        reduce output[0] <- input[0], s[0]
        put ch[2].output[0] <- output[0]
        signal ch[1]
      }
      tb 1 { wait ch[2] ; signal ch[2] }
    })") == R"(
0~ wait ch[1]
0~ reduce_send output[0], ch[2].output[0] <- input[0], s[0]
0~ signal ch[1]
1~ wait ch[2]
1~ signal ch[2]
)");
  REQUIRE(keeps(R"(group 0..2 {
    put ch[1].t[0] <- s[0]
    pipeline unit: 1KiB { put ch[2].t[0] <- s[0] }
    put ch[1].t[1] <- s[0]
  })"));
  // A sync in front of a pipeline, or at its end, stays.
  REQUIRE(keeps(R"(tb 0 {
    sync
    pipeline unit: 1KiB { put ch[1].t[0] <- s[0] ; sync }
    put ch[1].t[1] <- s[1]
  })"));
}

TEST_CASE("fuse: ops without a place stay, and in the way") {
  Program program = testing::parse(World{}.text(R"(
    tb 0 { put ch[1].t[0] <- s[0] }
    copy output[1] <- input[1]
    copy output[2] <- input[2]
    tb 0 { put ch[2].t[0] <- s[0] })"));
  fuse_ops(program);
  REQUIRE(program.ranks[0].ops.size() == 4);
}

TEST_CASE("fuse: launch fuse: false") {
  const World off{.launch = "launch fuse: false\n"};
  Program program = testing::parse(off.text("put ch[1].t[0] <- s[0] ; put ch[2].t[0] <- s[0]"));
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  REQUIRE(run_fuse(program, context));
  REQUIRE(program.ranks[0].ops.size() == 2);
  program.launch.fuse = true;
  REQUIRE(run_fuse(program, context));
  REQUIRE(program.ranks[0].ops.size() == 1);
}

TEST_CASE("fuse: ops grow no larger than the target takes") {
  const World small{.limits = {.operands = 2, .channels = 2, .semaphores = 2}};
  REQUIRE(small.fused(R"(
    put ch[1].t[0] <- s[0] ; put ch[2].t[0] <- s[0] ; put ch[3].t[0] <- s[0]
    signal ch[1] ; signal ch[2] ; signal ch[3]
    acquire a
    reduce output[0] <- input[0], s[0]
    reduce output[0] <- output[0], s[1]
    put ch[1].output[0] <- output[0]
    put ch[2].output[0] <- output[0]
    put ch[3].output[0] <- output[0])") == R"(
0: put ch[1].t[0], ch[2].t[0] <- s[0], s[0]
0: put ch[3].t[0] <- s[0]
0: signal ch[1], ch[2]
0: signal ch[3]
0: acquire a
0: reduce output[0] <- input[0], s[0]
0: reduce_send output[0], ch[1].output[0] <- output[0], s[1]
0: put ch[2].output[0], ch[3].output[0] <- output[0], output[0]
)");
  const World ports{.limits = {.channels = 1}};
  REQUIRE(ports.keeps("put net[1].t[0] <- s[0] ; put net[2].t[0] <- s[0]"));
  REQUIRE(!ports.keeps("put ch[1].t[0] <- s[0] ; put ch[2].t[0] <- s[0]"));
  const World single{.limits = {.semaphores = 1}};
  REQUIRE(single.keeps("acquire a ; acquire b ; sync ; release a ; release b"));
}

TEST_CASE("fuse: makes no op that the target lacks or runs otherwise") {
  const World lacking{
      .limits = {.absent = 1u << static_cast<uint32_t>(OpKind::reduce_packets_put)}};
  const std::string sum_and_put = R"(
    reduce_packets output[0] <- input[0], q[0]
    put ch[1].output[0], ch[2].output[0] <- output[0], output[0])";
  REQUIRE(lacking.keeps(sum_and_put));
  REQUIRE(!World().keeps(sum_and_put));

  const std::string get_and_copy = "get s[0] <- ch[1].s[0] ; copy output[3] <- s[0]";
  REQUIRE(World{.limits = {.fixed_gets = true}}.keeps(get_and_copy));
  REQUIRE(!World().keeps(get_and_copy));

  const OpLimits unmixed{.unmixed_shared_sums = true};
  const World shared{.launch = "launch reuse_scratch: true", .limits = unmixed};
  const std::string to_output = "reduce t[0] <- s[0], s[1] ; copy output[0] <- t[0]";
  const std::string from_input = "copy s[2] <- input[0] ; reduce t[0] <- s[2], s[1]";
  const std::string in_scratch = "reduce t[0] <- s[0], s[1] ; reduce t[0] <- t[0], s[2]";
  REQUIRE(shared.keeps(to_output));
  REQUIRE(shared.keeps(from_input));
  REQUIRE(!shared.keeps(in_scratch));
  REQUIRE(!World{.limits = unmixed}.keeps(to_output));
  REQUIRE(!World{.limits = unmixed}.keeps(from_input));
}

}  // namespace mscclc
