// Every row of the table of rules: a pair of ops for which it fires, and the conditions that all
// rows of its form have in common, under which it must not. What is special to single rules is in
// the tests of their forms.
#include <catch2/catch.hpp>

#include "passes/fuse/fuse_rules.h"
#include "passes/fuse/fuse_test_text.h"

namespace mscclc {
namespace {

using fusion::Form;
using fusion::Rule;
using testing::World;
using enum OpKind;

struct Pair {
  std::string left, right;
};

bool is_in(OpKind kind, std::initializer_list<OpKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// One op with a given destination and (first) source; `slot` tells packets of several ops apart.
std::string text(OpKind kind, const std::string& to, const std::string& from, int slot) {
  const std::string name(info(kind).name), q = "q[" + std::to_string(slot) + "]";
  switch (kind) {
    case reduce:
      return name + " " + to + " <- " + from + ", u[0]";
    case reduce_send:
      return name + " " + to + ", ch[1].u[1] <- " + from + ", u[0]";
    case read_reduce:
      return name + " " + to + " <- " + from + ", ch[2].u[0]";
    case read_reduce_send:
      return name + " " + to + ", ch[1].u[1] <- " + from + ", ch[2].u[0]";
    case reduce_packets:
      return name + " " + to + " <- " + from + ", " + q;
    case reduce_send_packets:
      return name + " " + to + ", ch[1].q[7] <- " + from + ", " + q;
    case reduce_packets_put:
      return name + " " + to + ", ch[1].u[1] <- " + from + ", " + q;
    case reduce_copy_packets:
      return name + " " + to + ", k[5] <- " + from + ", " + q;
    case reduce_copy_send_packets:
      return name + " " + to + ", k[5], ch[1].q[7] <- " + from + ", " + q;
    case get:
      return name + " " + to + " <- ch[1].s[3]";
    case unpack_packets:
      return name + " " + to + " <- " + q;
    case switch_reduce:
      return name + " " + to + " <- sw.s[2]";
    case put:
      return name + " ch[3].u[2] <- " + from;
    case put_packets:
      return name + " ch[3].q[6] <- " + from;
    case switch_broadcast:
      return name + " sw.u[3] <- " + from;
    case copy_packets:
      return name + " k[5] <- " + from;
    case read_put_packets:
      return name + " ch[3].q[6] <- k[5]";
    default:
      return name + " " + to + " <- " + from;
  }
}

/// Two ops alike, for peers 1 and 2.
Pair join_pair(OpKind kind) {
  const std::string name(info(kind).name);
  const auto both = [&](const std::string& one, const std::string& other) {
    return Pair{name + " " + one, name + " " + other};
  };
  switch (kind) {
    case put:
      return both("ch[1].t[0] <- s[0]", "ch[2].t[0] <- s[0]");
    case get:
      return both("t[0] <- ch[1].s[0]", "t[1] <- ch[2].s[0]");
    case put_with_signal:
      return both("net[1].t[0] <- s[0]", "net[2].t[0] <- s[0]");
    case put_packets:
      return both("ch[1].q[0] <- s[0]", "ch[2].q[0] <- s[0]");
    case unpack_packets:
      return both("t[0] <- q[0]", "t[1] <- q[1]");
    case read_put_packets:
      return both("ch[1].q[0] <- k[0]", "ch[2].q[0] <- k[0]");
    case release:
    case acquire:
      return both("a", "b");
    case flush:
      return both("net[1]", "net[2]");
    default:
      return both("ch[1]", "ch[2]");
  }
}

Pair through_pair(const Rule& rule) {
  const std::string left = text(rule.left, "t[0]", "s[0]", 0);
  if (rule.left == copy_packets && rule.right == unpack_packets) {
    return {left, "unpack_packets output[0] <- k[5]"};
  }
  if (!is_in(rule.left, {get, unpack_packets}) || !info(rule.right).has(kReduces)) {
    return {left, text(rule.right, "output[0]", "t[0]", 1)};
  }
  // What is read at far ends, or taken from packets, is not the first source.
  const std::string to = rule.right == reduce ? "output[0]" : "output[0], ch[1].u[1]";
  return {left, std::string(info(rule.right).name) + " " + to + " <- input[0], t[0]"};
}

/// Two ops that the rule joins.
Pair pair_of(const Rule& rule) {
  switch (rule.form) {
    case Form::join:
    case Form::fan:
      return join_pair(rule.left);
    case Form::sum:
      return {text(rule.left, "output[0]", "input[0]", 0),
              text(rule.right, "output[0]", "output[0]", 1)};
    case Form::send:
    case Form::forward:
      return {text(rule.left, "output[0]", "input[0]", 0), text(rule.right, "", "output[0]", 1)};
    case Form::queue:
      return {std::string(info(rule.left).name) + " net[1].t[0] <- s[0]",
              std::string(info(rule.right).name) + " net[1]"};
    case Form::through:
      return through_pair(rule);
    case Form::retarget:
      return {text(rule.left, "t[0]", "input[0]", 0), "copy output[0] <- t[0]"};
    case Form::exchange:
      return {text(rule.left, "t[0]", "", 0), text(rule.right, "", "t[0]", 0)};
  }
  return {};
}

/// How often the rule fires in a body of rank 0.
uint64_t fires(const Rule& rule, const std::string& body, const OpLimits& limits = {}) {
  Program program = testing::parse(World{}.text(body));
  testing::run(program, {"assign"});
  const FuseStats stats = fuse_ops(program, limits);
  return stats.fired[static_cast<size_t>(&rule - fusion::rules().data())];
}

bool is_packet_op(OpKind kind) { return info(kind).cost == CostClass::kPacket; }

template <class Check>
void for_each_rule(Check check) {
  for (const Rule& rule : fusion::rules()) {
    const Pair pair = pair_of(rule);
    INFO(fusion::print_rule(rule) << "\n" << pair.left << "\n" << pair.right);
    check(rule, pair);
  }
}

}  // namespace

TEST_CASE("every rule fires, and makes the op that it says") {
  for_each_rule([](const Rule& rule, const Pair& pair) {
    CHECK(fires(rule, pair.left + "\n" + pair.right) == 1);
    const std::string made = "0: " + std::string(info(rule.result).name) + " ";
    // Packets that nobody else reads are not kept.
    const bool kept = rule.form != Form::forward;
    CHECK(testing::fused(pair.left + "\n" + pair.right).find(kept ? made : "0: reduce_send_pack") ==
          1);
  });
}

TEST_CASE("no rule fires across thread blocks") {
  for_each_rule([](const Rule& rule, const Pair& pair) {
    if (rule.form == Form::queue) return;  // a port's sending side serves one block
    CHECK(fires(rule, "tb 0 { " + pair.left + " } tb 1 { " + pair.right + " }") == 0);
  });
}

TEST_CASE("no rule fires across the edge of a pipeline") {
  for_each_rule([](const Rule& rule, const Pair& pair) {
    const bool plain = info(rule.left).moves_data() && info(rule.right).moves_data();
    if (!plain || is_packet_op(rule.left) || is_packet_op(rule.right)) return;
    if (info(rule.left).has(kSignals)) return;  // their waits would be in the pipeline, too
    CHECK(fires(rule, "pipeline unit: 1KiB { tb 0 { " + pair.left + " } } tb 0 { " + pair.right +
                          " }") == 0);
    CHECK(fires(rule, "tb 0 { " + pair.left + " } pipeline unit: 1KiB { tb 0 { " + pair.right +
                          " } }") == 0);
  });
}

TEST_CASE("no rule fires on different parts of a group's op") {
  for_each_rule([](const Rule& rule, const Pair& pair) {
    if (!info(rule.left).moves_data() || !info(rule.right).moves_data()) return;
    if (rule.left == put_with_signal) return;  // ports have no parts
    const std::string part = " part: [0, 2]\n", other = " part: [1, 2]\n";
    CHECK(fires(rule, pair.left + part + pair.right + part) == 1);
    CHECK(fires(rule, pair.left + part + pair.right + other) == 0);
    CHECK(fires(rule, pair.left + part + pair.right) == 0);
  });
}

TEST_CASE("no rule adds up by two reductions") {
  for_each_rule([](const Rule& rule, const Pair& pair) {
    const bool both = info(rule.left).has(kReduces) && info(rule.right).has(kReduces);
    if (!both || rule.form != Form::sum) return;
    CHECK(fires(rule, pair.left + " op: max\n" + pair.right + " op: max") == 1);
    CHECK(fires(rule, pair.left + " op: max\n" + pair.right + " op: min") == 0);
    CHECK(fires(rule, pair.left + "\n" + pair.right + " op: min") == 0);
  });
}

TEST_CASE("no rule takes a value that has been overwritten") {
  for_each_rule([](const Rule& rule, const Pair& pair) {
    std::string between;
    if (rule.form == Form::sum || rule.form == Form::send) between = "get output[0] <- ch[3].s[7]";
    if (rule.form == Form::through && pair.left.find("s[0]") != pair.left.npos) {
      // The right op could move up past the second of these, but for the first.
      between = "wait ch[1]\nget s[0] <- ch[3].s[7]";
    }
    if (between.empty()) return;
    CHECK(fires(rule, pair.left + "\n" + between + "\n" + pair.right) == 0);
  });
}

TEST_CASE("no rule does without scratch that others read") {
  for_each_rule([](const Rule& rule, const Pair& pair) {
    const bool drops =
        rule.form == Form::through || rule.form == Form::retarget || rule.form == Form::exchange;
    if (!drops) return;
    const bool packets = rule.left == copy_packets;
    const std::string body = pair.left + "\n" + pair.right;
    // Another block; another rank; the next call.
    CHECK(fires(rule, "tb 0 { " + body + " } tb 1 { " +
                          (packets ? "unpack_packets u[6] <- k[5]" : "put ch[1].u[6] <- t[0]") +
                          " }") == 0);
    if (packets) return;
    World world;
    world.others = "if r == 1 { get u[6] <- ch[0].t[0] }\n";
    Program program = testing::parse(world.text(body));
    testing::run(program, {"assign"});
    CHECK(fuse_ops(program).fired[static_cast<size_t>(&rule - fusion::rules().data())] == 0);
    CHECK(fires(rule, "put ch[1].u[6] <- t[0]\n" + body) == 0);
  });
}

TEST_CASE("no rule makes an op that is too large") {
  for_each_rule([](const Rule& rule, const Pair& pair) {
    const bool grows = rule.form == Form::join || rule.form == Form::fan ||
                       rule.form == Form::send || rule.form == Form::forward;
    if (!grows) return;
    const OpLimits small{.operands = 1, .channels = 1, .semaphores = 1, .unpacks = 1};
    CHECK(fires(rule, pair.left + "\n" + pair.right, small) == 0);
  });
}

}  // namespace mscclc
