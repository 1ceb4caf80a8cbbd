// The C++ front end by itself: the same program as its text gives, and what it says of mistakes.
#include "compiler/builder/builder.h"

#include <catch2/catch.hpp>
#include <limits>

#include "compiler/compile.h"
#include "ir/print/print.h"
#include "ir/verify/verify.h"

using namespace mscclc;

namespace {

std::string ir_of_text(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  const auto program = parse_program(sources, sources.add("a.mscl", text), {}, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(program);
  return print_ir(*program);
}

/// The text without its locations and first line, which say where a program comes from.
std::string without_places(const std::string& ir) {
  std::string out;
  size_t begin = ir.find('\n') + 1;
  while (begin < ir.size()) {
    const size_t end = ir.find('\n', begin);
    const std::string line = ir.substr(begin, end - begin);
    out += line.substr(0, line.find("  @")) + '\n';
    begin = end + 1;
  }
  return out;
}

/// A builder of two ranks that are joined by a channel, its declarations done.
struct Pair {
  Sources sources;
  Diagnostics diagnostics;
  Builder b{diagnostics, nullptr, &sources};
  Pair() {
    b.collective({.kind = CollectiveKind::allreduce, .ranks = 2, .chunks = {2}});
    for (uint32_t r = 0; r < 2; ++r) {
      b.rank(r);
      b.buffer(b.intern("inbox"), std::vector<Dim>{2, Dim(List::range(3, 5))});
      b.channel(ChannelKind::memory, b.intern("ch"), {}, 1 - r);
      b.semaphore(b.intern("sem"), std::vector<int64_t>{7}, 1);
    }
    b.rank(0);
    b.block(0);
  }
  std::string only_message() {
    REQUIRE(diagnostics.all().size() == 1);
    return diagnostics.all()[0].message;
  }
};

const char* const kOneShot = R"(program one_shot
param R = 4, B = 2
collective allreduce(ranks: R, chunks: B)
select sizes: 1KiB..32KiB, nodes: 1
launch threads: 512
rank r in 0..R {
  let others = 0..R except r
  buffer inbox[others, B] packets: LL16, copies: 2
  channel ch[p in others] = memory(p)
  tb b in 0..B {
    for p in others { put_packets ch[p].inbox[r, b] <- input[b] }
    reduce_packets output[b] <- input[b], inbox[p, b] for p in others
  }
}
)";

std::optional<Program> one_shot(Diagnostics& diagnostics) {
  constexpr uint32_t R = 4, B = 2;
  Builder b(diagnostics);
  b.program().name = "one_shot";
  b.program().select.sizes = {1024, 32 * 1024 - 1};
  b.program().select.nodes = {1, 1};
  b.launch({.threads = 512});
  b.collective({.kind = CollectiveKind::allreduce, .ranks = R, .chunks = {B}});
  const auto others = [](uint32_t r) {
    List list = List::range(0, R);
    --list.count;
    list.hole = r;
    return list;
  };
  for (uint32_t r = 0; r < R; ++r) {
    b.rank(r);
    b.buffer(b.intern("inbox"), std::vector<Dim>{Dim(others(r)), B},
             {.packets = PacketFormat::LL16, .copies = 2});
    for (int64_t i = 0; i < R - 1; ++i) {
      const std::vector<int64_t> key = {others(r)[i]};
      b.channel(ChannelKind::memory, b.intern("ch"), key, key[0]);
    }
  }
  for (uint32_t r = 0; r < R; ++r) {
    b.rank(r);
    for (int64_t k = 0; k < B; ++k) {
      b.block(k);
      std::vector<Ref> sources = {b.local("input", {k})};
      for (int64_t i = 0; i < R - 1; ++i) {
        const int64_t p = others(r)[i];
        b.op(OpKind::put_packets, {b.far("ch", {p}, "inbox", {r, k})}, {b.local("input", {k})});
        sources.push_back(b.local("inbox", {p, k}));
      }
      const Ref result = b.local("output", {k});
      b.op(OpKind::reduce_packets, {&result, 1}, sources);
    }
  }
  return b.finish();
}

}  // namespace

TEST_CASE("the builder gives the same program as the text") {
  Diagnostics diagnostics;
  const auto program = one_shot(diagnostics);
  REQUIRE(program);
  CHECK(diagnostics.all().empty());
  CHECK(verify_structure(*program, diagnostics));
  CHECK(without_places(print_ir(*program)) == without_places(ir_of_text(kOneShot)));
}

TEST_CASE("ops say where the C++ program wrote them") {
  Pair pair;
  const auto line = static_cast<uint32_t>(__LINE__);
  pair.b.at({{"i", 5}});
  pair.b.op(OpKind::copy, {pair.b.local("output")}, {pair.b.local("input")});
  pair.b.rank(1);
  const auto program = pair.b.finish();
  REQUIRE(program);
  CHECK(print_location(*program, program->ranks[0].ops[0]) ==
        "compiler/builder/builder_test.cc:" + std::to_string(line + 1) + ":1 (i = 5)");
}

TEST_CASE("mistakes have the place and the variables of at()") {
  Pair pair;
  const auto line = static_cast<uint32_t>(__LINE__);
  pair.b.at({{"i", 5}});
  CHECK_FALSE(pair.b.op(OpKind::copy, {pair.b.local("outptu")}, {pair.b.local("input")}));
  CHECK_FALSE(pair.b.finish());
  CHECK(render_text(pair.diagnostics, pair.sources)
            .starts_with("compiler/builder/builder_test.cc:" + std::to_string(line + 1) +
                         ":1: error: rank 0 has no buffer 'outptu'"));
  CHECK(pair.diagnostics.all()[0].notes[0].text == "when i = 5");
}

TEST_CASE("declarations come before ops") {
  Pair pair;
  pair.b.op(OpKind::sync, {});
  CHECK_FALSE(pair.b.buffer(pair.b.intern("late"), std::vector<Dim>{2}));
  CHECK(pair.only_message() == "declare what every rank owns before the first op");
}

TEST_CASE("every rank must be entered") {
  Diagnostics diagnostics;
  Builder b(diagnostics);
  b.collective({.kind = CollectiveKind::allreduce, .ranks = 3});
  b.rank(0);
  b.rank(2);
  CHECK_FALSE(b.check());
  CHECK(diagnostics.all()[0].message == "rank 1 has no body");
}

TEST_CASE("calls in the wrong order do no harm") {
  Diagnostics diagnostics;
  Builder b(diagnostics);
  b.rank(0);
  CHECK_FALSE(b.block(0));
  CHECK_FALSE(b.group(List::range(0, 2)));
  CHECK_FALSE(b.op(OpKind::sync, {}));
  CHECK_FALSE(b.op(OpKind::copy, {b.local("output")}, {b.local("input")}));
  CHECK_FALSE(b.op(OpKind::signal, {b.end("ch")}));
  CHECK_FALSE(b.op(OpKind::release, {b.sem("s")}));
  CHECK_FALSE(b.op(OpKind::put, {b.far("ch", {}, "x")}, {b.local("input")}));
  CHECK_FALSE(b.barrier(List::range(0, 2)));
  CHECK_FALSE(b.buffer(b.intern("x"), std::vector<Dim>{1}));
  CHECK_FALSE(b.channel(ChannelKind::port, b.intern("x"), {}, 0));
  CHECK_FALSE(b.switch_channel(b.intern("x"), {}, List::range(0, 2)));
  CHECK_FALSE(b.semaphore(b.intern("x"), {}));
  CHECK_FALSE(b.finish());
  CHECK(diagnostics.has_errors());
}

TEST_CASE("indexes of lists and keys") {
  Pair pair;
  CHECK(pair.b.local("inbox", {1, 4}).operand.first == 3);
  CHECK(pair.b.local("inbox", {1}).operand.count == 2);
  CHECK(pair.b.local("inbox", {0, Index::range(3, 5)}).operand.count == 2);
  CHECK(pair.b.sem("sem", {7}).operand.first == 0);
  CHECK(pair.diagnostics.all().empty());
  CHECK_FALSE(pair.b.local("inbox", {1, 5}).valid());
  CHECK(pair.only_message() == "'inbox' has no row 5 on rank 0");
}

TEST_CASE("an op beyond the limit") {
  Pair pair;
  pair.b.set_max_ops(3);
  for (int i = 0; i < 5; ++i) {
    CHECK(pair.b.op(OpKind::copy, {pair.b.local("output")}, {pair.b.local("input")}) == (i < 3));
  }
  CHECK(pair.b.gave_up());
  CHECK(pair.only_message() == "more than 3 ops");
}

TEST_CASE("groups of the same blocks are one group") {
  Pair pair;
  pair.b.group(List::range(0, 3));
  pair.b.op(OpKind::sync, {});
  const std::vector<int64_t> blocks = {0, 1, 2};
  pair.b.group(List::stored(blocks));
  pair.b.op(OpKind::sync, {});
  pair.b.group(List::range(0, 2));
  pair.b.op(OpKind::sync, {});
  const auto program = pair.b.finish();
  REQUIRE(program);
  CHECK(program->groups.size() == 2);
  CHECK(program->ranks[0].ops[0].group == program->ranks[0].ops[1].group);
  CHECK(program->ranks[0].blocks == 3);
}

TEST_CASE("builder: lists") {
  CHECK(List::range(2, 2).count == 0);
  CHECK(List::range(5, 2).count == 0);
  List hole = List::range(0, 4);
  --hole.count;
  hole.hole = 1;
  CHECK(hole[0] == 0);
  CHECK(hole[1] == 2);
  CHECK(hole[2] == 3);
  CHECK_FALSE(hole.consecutive());
  const std::vector<int64_t> stored = {4, 5, 6};
  CHECK(List::stored(stored).consecutive());
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> largest = {kLargest - 1, kLargest}, beyond = {kLargest, 5};
  CHECK(List::stored(largest).consecutive());
  CHECK_FALSE(List::stored(beyond).consecutive());
}
