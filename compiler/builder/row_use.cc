#include "compiler/builder/row_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace mscclc {
namespace {

/// Rows of a buffer that are looked at one by one.
constexpr int64_t kMostRows = 1 << 20;

/// Rows of all scratch buffers of all ranks, and which of them ops touch.
class RowUse {
 public:
  RowUse(const Program& program, const Names& names, const Layouts& layouts)
      : program_(program), names_(names), layouts_(layouts) {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      std::vector<uint64_t>& begins = begin_.emplace_back();
      for (uint32_t b = 0; b < layouts_.count(r); ++b) {
        begins.push_back(used_.size());
        if (b >= kFirstScratch) used_.resize(used_.size() + rows(layouts_.of(r, b)));
      }
    }
  }

  bool any() const { return !used_.empty(); }

  void count_ops() {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      const Rank& rank = program_.ranks[r];
      for (const Op& op : rank.ops) {
        if (!info(op.kind).moves_data()) continue;
        for (const Operand& o : program_.dsts(op)) touch(r, o);
        for (const Operand& o : program_.srcs(op)) touch(r, o);
      }
    }
  }

  void warn(Diagnostics& diagnostics) const {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (uint32_t b = kFirstScratch; b < layouts_.count(r); ++b) warn_of(r, b, diagnostics);
    }
  }

 private:
  /// 0 if there are none, or too many to look at.
  uint32_t rows(const Layout& layout) const {
    const int64_t all = layout.chunks == 0 ? 0 : layouts_.outermost(layout).length();
    return all > kMostRows ? 0 : static_cast<uint32_t>(all);
  }

  void touch(uint32_t rank, const Operand& o) {
    if (o.channel == kNone) return touch_at(rank, o.buffer, o);
    const Channel& c = program_.ranks[rank].channels[o.channel];
    if (c.kind != ChannelKind::switch_) return touch_at(c.peer, o.buffer, o);
    const NameId name = program_.ranks[rank].buffers[o.buffer].name;
    for (const int64_t member : program_.values(c.group)) {
      const auto q = static_cast<uint32_t>(member);
      touch_at(q, names_.decl(q, name).index, o);
    }
  }
  void touch_at(uint32_t rank, uint32_t buffer, const Operand& o) {
    if (buffer < kFirstScratch || buffer == kNone) return;
    const Layout& layout = layouts_.of(rank, buffer);
    if (rows(layout) == 0) return;
    const uint64_t begin = begin_[rank][buffer];
    const uint32_t last = layouts_.row_of(layout, o.first + o.count - 1);
    for (uint32_t row = layouts_.row_of(layout, o.first); row <= last; ++row)
      used_[begin + row] = true;
  }

  /// A buffer that a rank does not use at all is another matter: others may need it.
  void warn_of(uint32_t rank, uint32_t buffer, Diagnostics& diagnostics) const {
    const Layout& layout = layouts_.of(rank, buffer);
    const auto begin = used_.begin() + static_cast<std::ptrdiff_t>(begin_[rank][buffer]);
    const auto end = begin + rows(layout);
    const auto unused = std::find(begin, end, false);
    if (unused == end || std::find(begin, end, true) == end) return;
    const Buffer& b = program_.ranks[rank].buffers[buffer];
    const auto row = static_cast<size_t>(unused - begin);
    const std::string name(program_.name_of(b.name));
    Diagnostic& d = diagnostics.warning(
        "unused", b.declared,
        fmt::format("'{}[{}]' of rank {} is never used", name,
                    layouts_.outermost(layout).list[static_cast<int64_t>(row)], rank));
    d.notes.push_back(
        {fmt::format(
             "the first dimension may be a list of just the rows that are used, as in '{}[others]'",
             name),
         {}});
  }

  const Program& program_;
  const Names& names_;
  const Layouts& layouts_;
  std::vector<std::vector<uint64_t>> begin_;  ///< by rank and buffer
  std::vector<bool> used_;
};

}  // namespace

void warn_of_unused_rows(const Program& program, const Names& names, const Layouts& layouts,
                         Diagnostics& diagnostics) {
  if (program.contract.kind == CollectiveKind::alltoallv) return;  // its counts may be 0
  RowUse use(program, names, layouts);
  if (!use.any()) return;
  use.count_ops();
  use.warn(diagnostics);
}

}  // namespace mscclc
