// The warning about rows of scratch that no op touches: memory that is wasted, or a wrong index.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/builder_state.h"

namespace mscclc {
namespace {

/// Rows of all scratch buffers of all ranks, and which of them ops touch.
class RowUse {
 public:
  explicit RowUse(BuilderState& state) : s_(state) {
    for (uint32_t r = 0; r < s_.ranks.size(); ++r) {
      std::vector<uint32_t>& begins = begin_.emplace_back();
      const std::vector<Layout>& layouts = s_.ranks[r].layouts;
      for (uint32_t b = 0; b < layouts.size(); ++b) {
        begins.push_back(static_cast<uint32_t>(used_.size()));
        if (b >= kFirstScratch) used_.resize(used_.size() + rows(layouts[b]));
      }
    }
  }

  bool any() const { return !used_.empty(); }

  void count_ops() {
    for (uint32_t r = 0; r < s_.ranks.size(); ++r) {
      const Rank& rank = s_.program.ranks[r];
      for (const Op& op : rank.ops) {
        if (!info(op.kind).moves_data()) continue;
        for (const Operand& o : s_.program.dsts(op)) touch(r, o);
        for (const Operand& o : s_.program.srcs(op)) touch(r, o);
      }
    }
  }

  void warn() {
    for (uint32_t r = 0; r < s_.ranks.size(); ++r) {
      const std::vector<Layout>& layouts = s_.ranks[r].layouts;
      for (uint32_t b = kFirstScratch; b < layouts.size(); ++b) warn_of(r, b);
    }
  }

 private:
  /// The axis of the outermost dimension.
  const Axis& outermost(const Layout& layout) const {
    return layout.tree != kNone ? s_.row_nodes[layout.tree].axis : s_.axes[layout.axes];
  }
  uint32_t rows(const Layout& layout) const {
    return layout.chunks == 0 ? 0 : static_cast<uint32_t>(outermost(layout).length());
  }
  /// The row that holds a chunk.
  uint32_t row_of(const Layout& layout, uint32_t chunk) const {
    if (layout.tree == kNone) return chunk / s_.axes[layout.axes].stride;
    const std::vector<uint32_t>& offset = s_.row_nodes[layout.tree].offset;
    return static_cast<uint32_t>(std::ranges::upper_bound(offset, chunk) - offset.begin() - 1);
  }

  void touch(uint32_t rank, const Operand& o) {
    if (o.channel == kNone) return touch_at(rank, o.buffer, o);
    const Channel& c = s_.program.ranks[rank].channels[o.channel];
    if (c.kind != ChannelKind::switch_) return touch_at(c.peer, o.buffer, o);
    const NameId name = s_.program.ranks[rank].buffers[o.buffer].name;
    for (const int64_t member : s_.program.values(c.group)) {
      const auto q = static_cast<uint32_t>(member);
      touch_at(q, s_.decl(q, name).index, o);
    }
  }
  void touch_at(uint32_t rank, uint32_t buffer, const Operand& o) {
    if (buffer < kFirstScratch || buffer == kNone) return;
    const Layout& layout = s_.ranks[rank].layouts[buffer];
    const uint32_t begin = begin_[rank][buffer];
    const uint32_t last = row_of(layout, o.first + o.count - 1);
    for (uint32_t row = row_of(layout, o.first); row <= last; ++row) used_[begin + row] = true;
  }

  /// A buffer that a rank does not use at all is another matter: others may need it.
  void warn_of(uint32_t rank, uint32_t buffer) {
    const Layout& layout = s_.ranks[rank].layouts[buffer];
    const auto begin = used_.begin() + begin_[rank][buffer];
    const auto end = begin + rows(layout);
    const auto unused = std::find(begin, end, false);
    if (unused == end || std::find(begin, end, true) == end) return;
    const Buffer& b = s_.program.ranks[rank].buffers[buffer];
    const auto row = static_cast<size_t>(unused - begin);
    const std::string name(s_.name(b.name));
    Diagnostic& d = s_.diagnostics.warning(
        "unused", b.declared,
        fmt::format("'{}[{}]' of rank {} is never used", name,
                    outermost(layout).list[static_cast<int64_t>(row)], rank));
    d.notes.push_back(
        {fmt::format(
             "the first dimension may be a list of just the rows that are used, as in '{}[others]'",
             name),
         {}});
  }

  BuilderState& s_;
  std::vector<std::vector<uint32_t>> begin_;  ///< by rank and buffer
  std::vector<bool> used_;
};

}  // namespace

void BuilderState::warn_of_unused_rows() {
  if (program.contract.kind == CollectiveKind::alltoallv) return;  // its counts may be 0
  RowUse use(*this);
  if (!use.any()) return;
  use.count_ops();
  use.warn();
}

}  // namespace mscclc
