#include "tools/lsp/features/placements.h"

#include <fmt/format.h>

#include <vector>

namespace mscclc::lsp {
namespace {

class Gatherer {
 public:
  explicit Gatherer(const Program& program) : program_(program) {}

  Placements run() {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) rank(r);
    for (const Rank& r : program_.ranks) removed(r);
    return std::move(out_);
  }

 private:
  std::vector<LineColumn> places_of(const Op& op) const {
    std::vector<LineColumn> places;
    for (const Location& at : program_.locations.of(op.locations)) {
      const Site& site = program_.sites[at.site];
      if (site.file == 0) places.emplace_back(site.line, site.column);
    }
    return places;
  }

  /// Ops without a place are those that passes have added.
  void rank(uint32_t r) {
    std::vector<OpKind> added;
    std::vector<LineColumn> last;
    uint32_t block = kNone;
    for (const Op& op : program_.ranks[r].ops) {
      if (op.block != block) {
        added.clear();
        last.clear();
        block = op.block;
      }
      if (op.locations.count == 0) {
        if (op.kind != OpKind::release) {
          added.push_back(op.kind);
        } else if (!last.empty()) {
          out_.ops[last.back()].after[op.kind].insert(r);
        }
        continue;
      }
      last = places_of(op);
      for (const LineColumn& place : last) {
        out_.ops[place].blocks.insert(op.block);
        out_.ops[place].became.insert(op.kind);
      }
      if (!last.empty()) {
        for (const OpKind kind : added) out_.ops[last.front()].before[kind].insert(r);
      }
      added.clear();
      channels(program_.ranks[r], op);
    }
  }

  void channels(const Rank& rank, const Op& op) {
    const OpInfo& row = info(op.kind);
    for (const Operand& o : program_.dsts(op)) {
      if (o.channel == kNone || o.channel >= rank.channels.size()) continue;
      const Span& declared = rank.channels[o.channel].declared;
      if (!declared.valid() || declared.file != 0) continue;
      ChannelUse& use = out_.channels[{declared.line, declared.column}];
      if (row.has(kSignals)) use.signals.insert(op.block);
      if (row.has(kWaits)) use.waits.insert(op.block);
    }
  }

  void removed(const Rank& rank) {
    for (const RemovedOp& gone : rank.removed) {
      for (const LineColumn& place : places_of(gone.op)) {
        if (!out_.ops.contains(place)) out_.removed[place] = gone.pass;
      }
    }
  }

  const Program& program_;
  Placements out_;
};

}  // namespace

Placements placements_of(const Program& program) { return Gatherer(program).run(); }

std::string text_of(const Numbers& numbers) {
  const std::vector<uint32_t> all(numbers.begin(), numbers.end());
  std::string text;
  for (size_t i = 0; i < all.size();) {
    size_t end = i + 1;
    while (end < all.size() && all[end] == all[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    text +=
        end - i == 1 ? fmt::format("{}", all[i]) : fmt::format("{}..{}", all[i], all[end - 1] + 1);
    i = end;
  }
  return text;
}

}  // namespace mscclc::lsp
