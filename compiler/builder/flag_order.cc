#include "compiler/builder/flag_order.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <vector>

#include "ir/program/flag_regions.h"
#include "ir/report/op_error.h"

namespace mscclc {
namespace {

/// The flag that a place has come to last, as the other side counts.
struct Last {
  uint32_t position = 0, flag = kNone;
};

class FlagOrder {
 public:
  FlagOrder(const Program& program, Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics), warned_(program.flags.size()) {}

  void run(uint32_t rank) {
    last_.clear();
    for (const Op& op : program_.ranks[rank].ops) {
      if (info(op.kind).has_flags()) visit(rank, op);
    }
  }

 private:
  void visit(uint32_t rank, const Op& op) {
    std::map<uint32_t, Last> reached;  // by array: of this op, whose flags have no order
    for (const Operand& o : program_.dsts(op)) {
      const FlagArray& array = program_.flags[o.buffer];
      if (array.tiles == TileOrder::any) continue;
      const uint32_t position = tile_position(program_, array, rank, o.first);
      const Last& before = last_[{op.block, op.group, o.buffer}];
      if (before.flag != kNone && position < before.position) warn(rank, op, o, before.flag);
      Last& now = reached[o.buffer];
      if (now.flag == kNone || position > now.position) now = {position, o.first};
    }
    for (const auto& [array, now] : reached) last_[{op.block, op.group, array}] = now;
  }

  void warn(uint32_t rank, const Op& op, const Operand& o, uint32_t before) {
    if (warned_[o.buffer]) return;
    warned_[o.buffer] = true;
    const FlagArray& array = program_.flags[o.buffer];
    Diagnostic& d = diagnostics_.warning(
        "flag-order", span_of(program_, op),
        fmt::format("{} comes after '{}', which the other side {} later",
                    describe_op(program_, rank, op), flag_text(program_, o.buffer, before),
                    array.of_output ? "reads" : "raises"));
    d.notes.push_back(
        {fmt::format("'{}' says 'tiles: {}': go through its flags in that order, or "
                     "say what the other side does",
                     array.name, name(array.tiles))});
  }

  const Program& program_;
  Diagnostics& diagnostics_;
  std::vector<bool> warned_;                                       ///< by array
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Last> last_;  ///< by block, group, array
};

}  // namespace

void warn_of_flag_order(const Program& program, Diagnostics& diagnostics) {
  if (program.flags.empty()) return;
  FlagOrder order(program, diagnostics);
  for (uint32_t r = 0; r < program.ranks.size(); ++r) order.run(r);
}

}  // namespace mscclc
