// From the indexes of a reference to its run of chunks, and what to say where there is none.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/declare/layouts.h"
#include "compiler/builder/draft/texts.h"

namespace mscclc {

std::string Layouts::dims_text(uint32_t of_rank, uint32_t buffer) const {
  const Layout& layout = layouts_[of_rank][buffer];
  if (layout.ragged) return counted(layout.row_count, "row");
  if (layout.tree != kNone) return counted(layout.chunks, "chunk");
  std::string text = "[";
  for (uint32_t i = 0; i < layout.dims; ++i) {
    const Axis& axis = axes_[layout.axes + i];
    if (i > 0) text += ", ";
    text += axis.is_list ? list_text(axis.list) : fmt::format("{}", axis.length());
  }
  // A single list is its own brackets: [twins] is [0].
  if (layout.dims == 1 && axes_[layout.axes].is_list) return text.substr(1);
  return text + "]";
}

void Layouts::note_buffer(Diagnostic& d, uint32_t of_rank, uint32_t buffer) const {
  const Buffer& b = draft_.program.ranks[of_rank].buffers[buffer];
  const std::string dims = dims_text(of_rank, buffer);
  if (b.kind != BufferKind::scratch) {
    reports_.note(d, draft_.kind_mark,
                  fmt::format("'{}' is {} on rank {}", draft_.name(b.name), dims, of_rank));
    return;
  }
  const std::string_view written = reports_.text(layouts_[of_rank][buffer].dims_mark);
  std::string text = fmt::format("'{}' is declared here as {}", draft_.name(b.name),
                                 written.empty() ? dims : std::string(written));
  if (!written.empty() && written != dims) {
    text += fmt::format(", which is {} on rank {}", dims, of_rank);
  }
  d.notes.push_back({std::move(text), b.declared});
}

/// Reports an index outside its dimension. Rows are what lists and outer dimensions have.
bool Layouts::no_such_index(uint32_t owner, uint32_t buffer, uint32_t dim, int64_t value,
                            Mark mark) const {
  const Layout& layout = layouts_[owner][buffer];
  const bool row = dim + 1 < layout.dims || layout.ragged || layout.tree != kNone ||
                   axes_[layout.axes + dim].is_list;
  const NameId id = draft_.program.ranks[owner].buffers[buffer].name;
  Diagnostic& d = reports_.fail("no-such-chunk", mark,
                                fmt::format("'{}' has no {} {} on rank {}", draft_.name(id),
                                            row ? "row" : "chunk", value, owner));
  note_buffer(d, owner, buffer);
  return false;
}

/// A run of positions of one dimension, or false after reporting the first index that is missing.
bool Layouts::find_run(uint32_t owner, uint32_t buffer, uint32_t dim, const Axis& axis,
                       const Index& index, Mark mark, uint32_t& first, uint32_t& count) const {
  if (index.mark.end != 0) mark = index.mark;
  if (index.count <= 0) {
    reports_.fail("empty-range", mark, "an empty range");
    return false;
  }
  if (axis.consecutive()) {
    first = axis.find(index.first);
    const int64_t left = first == kNone ? 0 : axis.length() - first;
    if (index.count > left) return no_such_index(owner, buffer, dim, index.first + left, mark);
    count = static_cast<uint32_t>(index.count);
    return true;
  }
  for (int64_t i = 0; i < index.count; ++i) {
    const uint32_t position = axis.find(index.first + i);
    if (position == kNone) return no_such_index(owner, buffer, dim, index.first + i, mark);
    if (i == 0) first = position;
    if (position != first + i) {
      Diagnostic& d = reports_.fail(
          "not-one-run", mark,
          fmt::format("{} and {} are not neighbours in '{}'", index.first + i - 1, index.first + i,
                      draft_.name(draft_.program.ranks[owner].buffers[buffer].name)));
      note_buffer(d, owner, buffer);
      return false;
    }
  }
  count = static_cast<uint32_t>(index.count);
  return true;
}

bool Layouts::locate(uint32_t owner, uint32_t buffer, std::span<const Index> index, Mark mark,
                     Operand& out_operand) const {
  const Layout& layout = layouts_[owner][buffer];
  const Buffer& b = draft_.program.ranks[owner].buffers[buffer];
  const size_t dims = layout.dims + (layout.ragged ? 1 : 0);
  if (index.size() > dims) {
    const std::string given =
        index.size() == 1 ? "1 index is" : fmt::format("{} indexes are", index.size());
    Diagnostic& d =
        reports_.fail("index-count", mark,
                      fmt::format("'{}' has {}; {} given", draft_.name(b.name),
                                  counted(static_cast<int64_t>(dims), "dimension"), given));
    note_buffer(d, owner, buffer);
    return false;
  }
  out_operand.buffer = buffer;
  if (layout.ragged) return locate_ragged(owner, buffer, index, mark, out_operand);
  if (layout.tree != kNone) return locate_in_tree(owner, buffer, index, mark, out_operand);
  uint32_t first = 0, count = b.chunks;
  bool several = false;  // a dimension further out has more than one index
  for (size_t i = 0; i < index.size(); ++i) {
    uint32_t at = 0, n = 0;
    const Axis& axis = axes_[layout.axes + i];
    if (!find_run(owner, buffer, static_cast<uint32_t>(i), axis, index[i], mark, at, n)) {
      return false;
    }
    if (several && n != axis.length()) {
      Diagnostic& d = reports_.fail("not-one-run", mark, "the chunks do not follow one another");
      note_buffer(d, owner, buffer);
      return false;
    }
    count = several ? count : n * axis.stride;
    several = several || n > 1;
    first += at * axis.stride;
  }
  if (count == 0) {
    Diagnostic& d =
        reports_.fail("empty-range", mark,
                      fmt::format("'{}' has no chunks on rank {}", draft_.name(b.name), owner));
    note_buffer(d, owner, buffer);
    return false;
  }
  out_operand.first = first;
  out_operand.count = count;
  return true;
}

/// Rows of different lengths, of which some may be empty (alltoallv).
bool Layouts::locate_ragged(uint32_t owner, uint32_t buffer, std::span<const Index> index,
                            Mark mark, Operand& out_operand) const {
  const Layout& layout = layouts_[owner][buffer];
  const uint32_t* offsets = row_offsets_.data() + layout.rows;
  uint32_t row = 0, rows = layout.row_count;
  if (!index.empty() &&
      !find_run(owner, buffer, 0, axes_[layout.axes], index[0], mark, row, rows)) {
    return false;
  }
  out_operand.first = offsets[row];
  out_operand.count = offsets[row + rows] - offsets[row];
  if (index.size() < 2) return true;
  if (rows != 1) {
    note_buffer(reports_.fail("not-one-run", mark, "the chunks do not follow one another"), owner,
                buffer);
    return false;
  }
  const Index& column = index[1];
  if (column.count == 0) {
    reports_.fail("empty-range", mark, "an empty range");
    return false;
  }
  const int64_t length = out_operand.count;
  const int64_t last = column.first + column.count - 1;
  if (column.first < 0 || column.first >= length || last >= length) {
    reports_.fail(
        "no-such-chunk", mark,
        fmt::format("row {} of '{}' has no chunk {} on rank {}; it has {}", index[0].first,
                    draft_.name(draft_.program.ranks[owner].buffers[buffer].name),
                    column.first < 0 || column.first >= length ? column.first : length, owner,
                    length));
    return false;
  }
  out_operand.first += static_cast<uint32_t>(column.first);
  out_operand.count = static_cast<uint32_t>(column.count);
  return true;
}

/// Rows that depend on the indices before them.
bool Layouts::locate_in_tree(uint32_t owner, uint32_t buffer, std::span<const Index> index,
                             Mark mark, Operand& out_operand) const {
  const Layout& layout = layouts_[owner][buffer];
  const RowNode* node = &row_nodes_[layout.tree];
  out_operand.first = 0;
  out_operand.count = layout.chunks;
  bool several = false;
  for (size_t i = 0; i < index.size(); ++i) {
    uint32_t at = 0, n = 0;
    if (several) {
      note_buffer(reports_.fail("not-one-run", mark, "the chunks do not follow one another"), owner,
                  buffer);
      return false;
    }
    if (!find_run(owner, buffer, static_cast<uint32_t>(i), node->axis, index[i], mark, at, n)) {
      return false;
    }
    out_operand.first = node->offset[at];
    out_operand.count = node->offset[at + n] - node->offset[at];
    several = n > 1;
    if (!node->below.empty()) node = &row_nodes_[node->below[at]];
  }
  if (out_operand.count > 0) return true;
  const std::string what(draft_.name(draft_.program.ranks[owner].buffers[buffer].name));
  note_buffer(reports_.fail("empty-range", mark,
                            fmt::format("'{}' has no chunks there on rank {}", what, owner)),
              owner, buffer);
  return false;
}

uint32_t Layouts::row_of(const Layout& layout, uint32_t chunk) const {
  if (layout.tree == kNone) return chunk / axes_[layout.axes].stride;
  const std::vector<uint32_t>& offset = row_nodes_[layout.tree].offset;
  return static_cast<uint32_t>(std::ranges::upper_bound(offset, chunk) - offset.begin() - 1);
}

uint64_t Layouts::size_class(uint32_t owner, uint32_t buffer, uint32_t chunk) const {
  const Layout& layout = layouts_[owner][buffer];
  if (layout.row_count == 0) return chunk % modulus_[buffer == kOutput];
  const uint32_t* begin = row_offsets_.data() + layout.rows;
  const uint32_t* next = std::upper_bound(begin, begin + layout.row_count + 1, chunk);
  const uint64_t length = *next - *(next - 1);
  return length << 32 | (chunk - *(next - 1));
}

}  // namespace mscclc
