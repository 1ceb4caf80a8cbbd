// All rules of fusing, derived ones and others, written down.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <sstream>

#include "passes/fuse/fuse_rules.h"

namespace mscclc::fusion {
namespace {

constexpr const char* kExpected = R"(
join: put + put -> put
join: get + get -> get
join: put_with_signal + put_with_signal -> put_with_signal
join: put_packets + put_packets -> put_packets
join: unpack_packets + unpack_packets -> unpack_packets
join: signal + signal -> signal
join: wait + wait -> wait
join: flush + flush -> flush
join: release + release -> release
join: acquire + acquire -> acquire
fan: read_put_packets + read_put_packets -> read_put_packets
sum: copy + reduce -> reduce
through: copy + reduce -> reduce
sum: copy + reduce_send -> reduce_send
through: copy + reduce_send -> reduce_send
sum: copy + read_reduce -> read_reduce
through: copy + read_reduce -> read_reduce
sum: copy + read_reduce_send -> read_reduce_send
through: copy + read_reduce_send -> read_reduce_send
sum: copy + reduce_packets -> reduce_packets
through: copy + reduce_packets -> reduce_packets
sum: copy + reduce_send_packets -> reduce_send_packets
through: copy + reduce_send_packets -> reduce_send_packets
sum: copy + reduce_packets_put -> reduce_packets_put
through: copy + reduce_packets_put -> reduce_packets_put
sum: copy + reduce_copy_packets -> reduce_copy_packets
through: copy + reduce_copy_packets -> reduce_copy_packets
sum: copy + reduce_copy_send_packets -> reduce_copy_send_packets
through: copy + reduce_copy_send_packets -> reduce_copy_send_packets
sum: reduce + reduce -> reduce
sum: reduce + reduce_send -> reduce_send
sum: read_reduce + read_reduce -> read_reduce
sum: read_reduce + read_reduce_send -> read_reduce_send
sum: reduce_packets + reduce_packets -> reduce_packets
sum: reduce_packets + reduce_send_packets -> reduce_send_packets
sum: reduce_packets + reduce_packets_put -> reduce_packets_put
sum: reduce_packets + reduce_copy_packets -> reduce_copy_packets
sum: reduce_packets + reduce_copy_send_packets -> reduce_copy_send_packets
send: reduce + put -> reduce_send
send: reduce_send + put -> reduce_send
send: read_reduce + put -> read_reduce_send
send: read_reduce_send + put -> read_reduce_send
send: reduce_packets + put_packets -> reduce_send_packets
send: reduce_send_packets + put_packets -> reduce_send_packets
send: reduce_packets + put -> reduce_packets_put
send: reduce_packets_put + put -> reduce_packets_put
send: reduce_packets + copy_packets -> reduce_copy_packets
send: reduce_send_packets + copy_packets -> reduce_copy_send_packets
send: reduce_copy_packets + put_packets -> reduce_copy_send_packets
send: reduce_copy_send_packets + put_packets -> reduce_copy_send_packets
forward: reduce_copy_packets + read_put_packets -> reduce_copy_send_packets
forward: reduce_copy_send_packets + read_put_packets -> reduce_copy_send_packets
queue: put + signal -> put_with_signal
queue: put_with_signal + flush -> put_with_signal_and_flush
through: copy + copy -> copy
through: copy + put -> put
through: copy + copy_packets -> copy_packets
through: copy + put_packets -> put_packets
through: copy + switch_broadcast -> switch_broadcast
through: get + reduce -> read_reduce
through: get + reduce_send -> read_reduce_send
through: unpack_packets + reduce -> reduce_packets
through: unpack_packets + put_packets -> read_put_packets
through: copy_packets + unpack_packets -> copy
through: copy_packets + read_put_packets -> put_packets
retarget: get + copy -> get
retarget: unpack_packets + copy -> unpack_packets
retarget: reduce + copy -> reduce
retarget: reduce_send + copy -> reduce_send
retarget: read_reduce + copy -> read_reduce
retarget: read_reduce_send + copy -> read_reduce_send
retarget: reduce_packets + copy -> reduce_packets
retarget: reduce_send_packets + copy -> reduce_send_packets
retarget: reduce_packets_put + copy -> reduce_packets_put
retarget: reduce_copy_packets + copy -> reduce_copy_packets
retarget: reduce_copy_send_packets + copy -> reduce_copy_send_packets
retarget: switch_reduce + copy -> switch_reduce
exchange: switch_reduce + switch_broadcast -> switch_reduce_broadcast
rows: reduce + apply -> reduce
rows: read_reduce + apply -> read_reduce
rows: reduce_packets + apply -> reduce_packets
)";

std::string_view name(Form form) {
  static constexpr std::string_view kNames[] = {
      // in the order of the forms
      "join", "fan", "sum", "send", "forward", "queue", "through", "retarget", "exchange", "rows"};
  static_assert(std::size(kNames) == static_cast<size_t>(Form::rows) + 1);
  return kNames[static_cast<size_t>(form)];
}

std::vector<std::string> sorted(std::vector<std::string> lines) {
  std::ranges::sort(lines);
  return lines;
}

std::vector<std::string> expected() {
  std::vector<std::string> lines;
  std::stringstream text(kExpected);
  for (std::string line; std::getline(text, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

// Rules with ops that are not in the list are left out: a new op needs no line here.
TEST_CASE("fuse: the rules, derived and not, are these") {
  std::string all = kExpected;
  std::ranges::replace(all, '\n', ' ');
  const auto known = [&](OpKind kind) {
    return all.find(' ' + std::string(info(kind).name) + ' ') != all.npos;
  };
  std::vector<std::string> lines;
  for (const Rule& rule : rules()) {
    if (!known(rule.left) || !known(rule.right) || !known(rule.result)) continue;
    lines.push_back(std::string(name(rule.form)) + ": " + print_rule(rule));
  }
  CHECK(sorted(lines) == sorted(expected()));
}

// A copy and a sum may match both ways; the sum keeps what was copied.
TEST_CASE("fuse: of two rules for a pair the sum is tried first") {
  for (const Rule& rule : rules()) {
    INFO(print_rule(rule));
    const std::span<const Rule> pair = rules(rule.left, rule.right);
    REQUIRE(pair.size() <= 2);
    if (pair.size() == 1) continue;
    CHECK(pair[0].form == Form::sum);
    CHECK(pair[1].form == Form::through);
  }
}

}  // namespace mscclc::fusion
