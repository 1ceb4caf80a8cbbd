#include "tests/gpu/planted.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/testing/test_plans.h"

namespace mscclc::testing {
namespace {

struct Row {
  const char* program;
  OpKind taken;         ///< the last of thread block 0 of rank 0
  const char* line;     ///< of the program: where rank 1 waits
  const char* waiting;  ///< what it says
};

constexpr Row kRows[] = {
    {"sendrecv", OpKind::signal, "wait prev[b]",
     "waits for signal 1 at 'prev[0]'; 0 came; rank 0 should send it from 'next[0]'"},
    {"allreduce_1shot", OpKind::put_packets, "reduce_packets",
     "waits for a packet in 'inbox[0]' with flag"},
    {"allreduce_1shot_ordered", OpKind::put_packets, "reduce_packets",
     "waits for a packet in 'inbox[0]', which is empty; no op writes it"},
    {"sendrecv_port", OpKind::put_with_signal_and_flush, "wait prev[b]",
     "waits for signal 1 at 'prev[0]'; 0 came; rank 0 should send it from 'next[0]'"},
};

/// "sendrecv.mscl:22:": the last line of a program that begins so.
std::string place_of(std::string_view program, std::string_view begin) {
  const std::string text = library_text(program);
  const size_t at = text.rfind(begin);
  if (at == std::string::npos) return "the program has no such line";
  return fmt::format("{}.mscl:{}:", program, 1 + std::count(text.begin(), text.begin() + at, '\n'));
}

bool take_away(Program& plan, OpKind kind) {
  const std::vector<Op>& ops = plan.ranks[0].ops;
  for (size_t i = ops.size(); i > 0; --i) {
    if (ops[i - 1].block != 0 || ops[i - 1].kind != kind) continue;
    erase(plan, 0, static_cast<uint32_t>(i - 1));
    return true;
  }
  return false;
}

}  // namespace

Result<std::vector<PlantedHang>> planted_hangs(uint32_t ranks) {
  std::vector<PlantedHang> planted;
  for (const Row& row : kRows) {
    auto c = library_case(row.program, ranks);
    if (!c) return c.error();
    Program plan = *c->plan;
    if (!take_away(plan, row.taken)) {
      return Error{fmt::format("{} has no such op", row.program)};
    }
    c->plan = std::make_shared<const Program>(std::move(plan));
    c->name = fmt::format("{} without its {}", row.program, info(row.taken).name);
    planted.push_back(
        {std::move(*c), {"error: ", "rank 1, tb 0", place_of(row.program, row.line), row.waiting}});
  }
  return planted;
}

}  // namespace mscclc::testing
