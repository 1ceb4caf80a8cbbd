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

/// A first destination, or one that comes after it.
std::string destination(const Slot& slot, const std::string& to, bool first) {
  const std::string ch = first ? "ch[3]." : "ch[1].";
  switch (slot.kind) {
    case SlotKind::local:
      return slot.packets ? "k[5]" : to;
    case SlotKind::remote:
      return ch + (slot.packets ? (first ? "q[6]" : "q[7]") : (first ? "u[2]" : "u[1]"));
    default:
      return "sw.u[3]";
  }
}

/// A first source, or one that comes after it; `packets`: a slot of them.
std::string source(const Slot& slot, const std::string& from, const std::string& packets,
                   bool first) {
  switch (slot.kind) {
    case SlotKind::local:
      return slot.packets ? packets : first ? from : "u[0]";
    case SlotKind::remote:
      return first ? "ch[1].s[3]" : "ch[2].u[0]";
    default:
      return "sw.s[2]";
  }
}

/// One op with a given destination and (first) source; `number` distinguishes packets of several
/// ops.
std::string text(OpKind kind, const std::string& to, const std::string& from, int number) {
  const OpInfo& row = info(kind);
  // What is forwarded has been kept here; what is taken has been sent by others.
  const bool forwards = row.dsts.slot[0].kind != SlotKind::local;
  const std::string packets = forwards ? "k[5]" : "q[" + std::to_string(number) + "]";
  std::string out(row.name), separator = " ";
  for (const Slot& slot : row.dsts) {
    out += separator + destination(slot, to, &slot == row.dsts.begin());
    separator = ", ";
  }
  separator = " <- ";
  for (const Slot& slot : row.srcs) {
    out += separator + source(slot, from, packets, &slot == row.srcs.begin());
    separator = ", ";
  }
  return out;
}

/// Two ops alike, for peers 1 and 2.
Pair join_pair(OpKind kind) {
  const OpInfo& row = info(kind);
  const bool port = (row.channels & kMemory) == 0;
  const auto op = [&](int i) {
    const std::string own = "[" + std::to_string(i) + "]";
    const std::string end = (port ? "net[" : "ch[") + std::to_string(i + 1) + "]";
    const Slot& dst = row.dsts.slot[0];
    std::string out(row.name);
    if (dst.kind == SlotKind::channel) return out + " " + end;
    if (dst.kind == SlotKind::semaphore) return out + (i == 0 ? " a" : " b");
    if (dst.kind == SlotKind::flag) return out + (row.has(kAwaitsFlags) ? " made" : " given") + own;
    const bool far = dst.kind == SlotKind::remote;
    out += " " + (far ? end + (dst.packets ? ".q[0]" : ".t[0]") : "t" + own) + " <- ";
    const Slot& src = row.srcs.slot[0];
    if (src.kind == SlotKind::remote) return out + end + ".s[0]";
    if (!src.packets) return out + "s[0]";
    return out + (far ? "k[0]" : "q" + own);
  };
  return {op(0), op(1)};
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
    case Form::rows:  // fuse_rows_test.cc
      break;
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
    if (rule.form == Form::rows) continue;
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
    // Packets that nothing else reads are not kept.
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
      // The right op could move up past the second of these, were it not for the first.
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
