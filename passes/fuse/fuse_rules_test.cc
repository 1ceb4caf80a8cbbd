// The table of rules against the op table.
#include "passes/fuse/fuse_rules.h"

#include <catch2/catch.hpp>
#include <set>

namespace mscclc::fusion {

TEST_CASE("fuse: every op that is made of others has a rule that makes it") {
  for (const OpInfo& row : op_table()) {
    if (row.made_of.empty()) continue;
    INFO(row.name);
    const std::string_view last = row.made_of.substr(row.made_of.rfind(' ') + 1);
    const std::string_view rest = row.made_of.substr(0, row.made_of.rfind(' '));
    bool found = false;
    for (const Rule& rule : rules()) {
      if (rule.result != row.kind || info(rule.right).name != last) continue;
      found |= info(rule.left).name == rest || info(rule.left).made_of == rest;
    }
    REQUIRE(found);
  }
}

TEST_CASE("fuse: a sum that is sent on takes further destinations") {
  for (const Rule& rule : rules()) {
    if (rule.form != Form::send || info(rule.right).dsts.slot[0].kind != SlotKind::remote) continue;
    INFO(print_rule(rule));
    bool found = false;
    for (const Rule& again : rules(rule.result, rule.right)) found |= again.result == rule.result;
    REQUIRE(found);
  }
}

TEST_CASE("fuse: rules of a pair are found, in the order of the table") {
  std::set<const Rule*> seen;
  for (const Rule& rule : rules()) {
    for (const Rule& found : rules(rule.left, rule.right)) {
      REQUIRE(found.left == rule.left);
      REQUIRE(found.right == rule.right);
      seen.insert(&found);
    }
    REQUIRE((lefts_of(rule.right) >> static_cast<int>(rule.left) & 1) == 1);
  }
  REQUIRE(seen.size() == rules().size());
  REQUIRE(rules(OpKind::signal, OpKind::put).empty());
}

TEST_CASE("fuse: ops that join or fan out take many operands") {
  for (const Rule& rule : rules()) {
    if (rule.form != Form::join && rule.form != Form::fan) continue;
    INFO(print_rule(rule));
    REQUIRE(rule.left == rule.right);
    REQUIRE(rule.result == rule.left);
    REQUIRE(info(rule.left).dsts.slot[0].many);
  }
  // And every op that takes many of one kind has such a rule, but what waits or meets in between,
  // or gives each of them another value.
  const std::set<OpKind> alone = {OpKind::put_with_signal_and_flush, OpKind::barrier,
                                  OpKind::apply};
  for (const OpInfo& row : op_table()) {
    if (row.dsts.count != 1 || !row.dsts.slot[0].many || alone.contains(row.kind)) continue;
    INFO(row.name);
    REQUIRE(rules(row.kind, row.kind).size() == 1);
  }
}

TEST_CASE("fuse: rules print") {
  REQUIRE(print_rule(rules(OpKind::reduce, OpKind::put)[0]) == "reduce + put -> reduce_send");
}

}  // namespace mscclc::fusion
