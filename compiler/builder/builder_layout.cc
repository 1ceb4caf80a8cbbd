// Buffers of the builder: their dimensions, and from the indexes of a reference to its run of
// chunks.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/builder/builder_state.h"

namespace mscclc {
namespace {

/// Stored lists get a table of positions unless their elements lie too far apart.
constexpr uint64_t kSparse = 4, kSmall = 64;

}  // namespace

/// Of elements far apart; ranges have their look-up, so they have no such element.
uint32_t Axis::search(int64_t v) const {
  if (list.data == nullptr) return kNone;
  for (int64_t i = 0; i < list.count; ++i) {
    if (list.data[i] == v) return static_cast<uint32_t>(i);
  }
  return kNone;
}

Axis BuilderState::make_axis(const Dim& dim) {
  Axis axis;
  axis.is_list = dim.is_list;
  axis.list = dim.list;
  if (dim.list.count == 0 || dim.list.count > kMaxChunks) return axis;
  if (dim.list.data == nullptr) {
    const bool hole = dim.list.hole < dim.list.count;
    axis.low = dim.list.first;
    axis.limit = static_cast<uint32_t>(dim.list.count + (hole ? 1 : 0));
    if (hole) axis.hole = static_cast<uint32_t>(dim.list.hole);
    return axis;
  }
  // The caller's elements may go; programs repeat lists, so look at the last one first.
  const std::span<const int64_t> elements(dim.list.data, static_cast<size_t>(dim.list.count));
  if (axis_elements.empty() || !std::ranges::equal(axis_elements.back(), elements)) {
    last_axis = table_axis(elements);
  }
  axis = last_axis;
  axis.is_list = dim.is_list;
  return axis;
}

/// A dimension with a table of positions, unless its elements lie too far apart.
Axis BuilderState::table_axis(std::span<const int64_t> elements) {
  Axis axis;
  axis_elements.emplace_back(elements.begin(), elements.end());
  axis.list = List::stored(axis_elements.back());
  const auto [low, high] = std::minmax_element(elements.begin(), elements.end());
  const uint64_t extent = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low) + 1;
  if (extent == 0 || extent > kSparse * elements.size() + kSmall) return axis;
  std::vector<uint32_t>& table = axis_tables.emplace_back(extent, kNone);
  for (size_t i = elements.size(); i-- > 0;) {
    table[static_cast<size_t>(elements[i] - *low)] = static_cast<uint32_t>(i);
  }
  axis.table = table.data();
  axis.low = *low;
  axis.limit = static_cast<uint32_t>(extent);
  return axis;
}

bool BuilderState::check_axis(NameId buffer, const Axis& axis, Mark mark) {
  if (axis.length() > kMaxChunks) {
    fail("buffer-size", mark,
         fmt::format("'{}' has more than {} chunks", name(buffer), kMaxChunks));
    return false;
  }
  if (axis.list.data == nullptr) return true;
  std::vector<int64_t> sorted(axis.list.data, axis.list.data + axis.length());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return true;
  fail("buffer-rows", mark, fmt::format("'{}' has row {} twice", name(buffer), *twice));
  return false;
}

bool BuilderState::add_layout(std::span<Axis> dims, Mark dims_mark, NameId name_id, Mark mark) {
  Layout layout;
  int64_t chunks = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    dims[i].stride = static_cast<uint32_t>(chunks);
    chunks *= dims[i].length();
    if (chunks > kMaxChunks) {
      fail("buffer-size", mark,
           fmt::format("'{}' has more than {} chunks", name(name_id), kMaxChunks));
      return false;
    }
  }
  layout.axes = static_cast<uint32_t>(axes.size());
  layout.dims = static_cast<uint32_t>(dims.size());
  layout.dims_mark = dims_mark;
  layout.chunks = static_cast<uint32_t>(chunks);
  layout.unusual = chunks == 0;
  axes.insert(axes.end(), dims.begin(), dims.end());
  here->layouts.push_back(layout);
  return true;
}

/// The node of these rows, whose first chunk is `chunks`, which it moves past them. kNone after
/// reporting a mistake.
uint32_t BuilderState::add_rows(const Rows& rows, NameId name_id, Mark mark, uint64_t& chunks) {
  RowNode node;
  node.axis = make_axis(Dim(List::stored(rows.index)));
  if (!check_axis(name_id, node.axis, mark)) return kNone;
  for (size_t i = 0; i < rows.index.size(); ++i) {
    node.offset.push_back(static_cast<uint32_t>(chunks));
    if (rows.below.empty()) {
      ++chunks;
    } else {
      node.below.push_back(add_rows(rows.below[i], name_id, mark, chunks));
      if (node.below.back() == kNone) return kNone;
    }
    if (chunks > kMaxChunks) {
      fail("buffer-size", mark,
           fmt::format("'{}' has more than {} chunks", name(name_id), kMaxChunks));
      return kNone;
    }
  }
  node.offset.push_back(static_cast<uint32_t>(chunks));
  row_nodes.push_back(std::move(node));
  return static_cast<uint32_t>(row_nodes.size() - 1);
}

bool BuilderState::add_tree(const Rows& rows, uint32_t dims, Mark dims_mark, NameId name_id,
                            Mark mark) {
  Layout layout;
  uint64_t chunks = 0;
  layout.tree = add_rows(rows, name_id, mark, chunks);
  if (layout.tree == kNone) return false;
  layout.dims = dims;
  layout.dims_mark = dims_mark;
  layout.chunks = static_cast<uint32_t>(chunks);
  layout.unusual = true;
  here->layouts.push_back(layout);
  return true;
}

/// Dimensions of a buffer of the caller; ranks that have the same share them.
uint32_t BuilderState::caller_axes(std::span<const int64_t> dims, uint32_t chunks) {
  constexpr size_t kLast = 4;
  const size_t known = known_dims.size();
  for (size_t i = known - std::min(known, kLast); i < known; ++i) {
    if (std::ranges::equal(known_dims[i].first, dims)) return known_dims[i].second;
  }
  const auto first = static_cast<uint32_t>(axes.size());
  uint32_t stride = chunks;
  for (const int64_t n : dims) {
    Axis axis = make_axis(Dim(n));
    axis.stride = stride = n > 0 ? stride / static_cast<uint32_t>(n) : 0;
    axes.push_back(axis);
  }
  known_dims.emplace_back(std::vector<int64_t>(dims.begin(), dims.end()), first);
  return first;
}

/// Takes the buffer of the rank before, if that is the same.
bool BuilderState::copy_caller_buffer(Side side) {
  const Contract& contract = program.contract;
  const uint32_t index = side == Side::input ? kInput : kOutput;
  if (rank == 0 || !ranks[rank - 1].entered || contract.kind == CollectiveKind::alltoallv ||
      contract.exists(side, rank) != contract.exists(side, rank - 1)) {
    return false;
  }
  here->layouts.push_back(ranks[rank - 1].layouts[index]);
  out->buffers.push_back(program.ranks[rank - 1].buffers[index]);
  return true;
}

void BuilderState::add_caller_buffer(Side side) {
  if (copy_caller_buffer(side)) return;
  const Shape shape = program.contract.shape(side, rank);
  const bool is_input = side == Side::input;
  Buffer buffer;
  buffer.name = is_input ? input_name : output_name;
  buffer.kind = is_input ? BufferKind::input : BufferKind::output;
  buffer.chunks = shape.chunks();
  std::vector<int64_t> dims(shape.dims.begin(), shape.dims.end());
  if (flat || (buffer.chunks == 0 && shape.lengths.empty())) dims = {buffer.chunks};
  buffer.dims = program.append(dims);
  Layout layout;
  layout.axes = caller_axes(dims, buffer.chunks);
  layout.dims = static_cast<uint32_t>(dims.size());
  layout.chunks = buffer.chunks;
  if (!shape.lengths.empty()) {
    layout.rows = static_cast<uint32_t>(row_offsets.size());
    row_offsets.push_back(0);
    for (const uint32_t n : shape.lengths) row_offsets.push_back(row_offsets.back() + n);
    layout.row_count = static_cast<uint32_t>(shape.lengths.size());
    layout.ragged = !flat;
  }
  layout.unusual = layout.ragged || layout.chunks == 0;
  layout.traits = kCallerTrait;
  here->layouts.push_back(layout);
  out->buffers.push_back(buffer);
}

void BuilderState::add_caller_buffers() {
  add_caller_buffer(Side::input);
  add_caller_buffer(Side::output);
  here->decls.resize(std::max<size_t>(here->decls.size(), output_name + 1));
  here->decls[input_name] = {DeclKind::buffer, kInput};
  here->decls[output_name] = {DeclKind::buffer, kOutput};
}

std::string BuilderState::dims_text(uint32_t of_rank, uint32_t buffer) const {
  const Layout& layout = ranks[of_rank].layouts[buffer];
  if (layout.ragged) return counted(layout.row_count, "row");
  if (layout.tree != kNone) return counted(layout.chunks, "chunk");
  std::string text = "[";
  for (uint32_t i = 0; i < layout.dims; ++i) {
    const Axis& axis = axes[layout.axes + i];
    if (i > 0) text += ", ";
    text += axis.is_list ? list_text(axis.list) : fmt::format("{}", axis.length());
  }
  // A single list is its own brackets: [twins] is [0].
  if (layout.dims == 1 && axes[layout.axes].is_list) return text.substr(1);
  return text + "]";
}

void BuilderState::note_buffer(Diagnostic& d, uint32_t of_rank, uint32_t buffer) {
  const Buffer& b = program.ranks[of_rank].buffers[buffer];
  const std::string dims = dims_text(of_rank, buffer);
  if (b.kind != BufferKind::scratch) {
    note(d, kind_mark, fmt::format("'{}' is {} on rank {}", name(b.name), dims, of_rank));
    return;
  }
  const std::string_view written = origin->text(ranks[of_rank].layouts[buffer].dims_mark);
  std::string text = fmt::format("'{}' is declared here as {}", name(b.name),
                                 written.empty() ? dims : std::string(written));
  if (!written.empty() && written != dims) {
    text += fmt::format(", which is {} on rank {}", dims, of_rank);
  }
  d.notes.push_back({std::move(text), b.declared});
}

/// Reports an index outside its dimension. Rows are what lists and outer dimensions have.
bool BuilderState::no_such_index(uint32_t owner, uint32_t buffer, uint32_t dim, int64_t value,
                                 Mark mark) {
  const Layout& layout = ranks[owner].layouts[buffer];
  const bool row = dim + 1 < layout.dims || layout.ragged || layout.tree != kNone ||
                   axes[layout.axes + dim].is_list;
  const NameId id = program.ranks[owner].buffers[buffer].name;
  Diagnostic& d = fail(
      "no-such-chunk", mark,
      fmt::format("'{}' has no {} {} on rank {}", name(id), row ? "row" : "chunk", value, owner));
  note_buffer(d, owner, buffer);
  return false;
}

/// A run of positions of one dimension, or false after reporting the first index that is missing.
bool BuilderState::find_run(uint32_t owner, uint32_t buffer, uint32_t dim, const Axis& axis,
                            const Index& index, Mark mark, uint32_t& first, uint32_t& count) {
  if (index.mark.end != 0) mark = index.mark;
  if (index.count == 0) {
    fail("empty-range", mark, "an empty range");
    return false;
  }
  for (int64_t i = 0; i < index.count; ++i) {
    const uint32_t position = axis.find(index.first + i);
    if (position == kNone) return no_such_index(owner, buffer, dim, index.first + i, mark);
    if (i == 0) first = position;
    if (position != first + i) {
      Diagnostic& d =
          fail("not-one-run", mark,
               fmt::format("{} and {} are not neighbours in '{}'", index.first + i - 1,
                           index.first + i, name(program.ranks[owner].buffers[buffer].name)));
      note_buffer(d, owner, buffer);
      return false;
    }
  }
  count = static_cast<uint32_t>(index.count);
  return true;
}

bool BuilderState::locate(uint32_t owner, uint32_t buffer, std::span<const Index> index, Mark mark,
                          Operand& out_operand) {
  const Layout& layout = ranks[owner].layouts[buffer];
  const Buffer& b = program.ranks[owner].buffers[buffer];
  const size_t dims = layout.dims + (layout.ragged ? 1 : 0);
  if (index.size() > dims) {
    const std::string given =
        index.size() == 1 ? "1 index is" : fmt::format("{} indexes are", index.size());
    Diagnostic& d = fail("index-count", mark,
                         fmt::format("'{}' has {}; {} given", name(b.name),
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
    const Axis& axis = axes[layout.axes + i];
    if (!find_run(owner, buffer, static_cast<uint32_t>(i), axis, index[i], mark, at, n)) {
      return false;
    }
    if (several && n != axis.length()) {
      Diagnostic& d = fail("not-one-run", mark, "the chunks do not follow one another");
      note_buffer(d, owner, buffer);
      return false;
    }
    count = several ? count : n * axis.stride;
    several = several || n > 1;
    first += at * axis.stride;
  }
  if (count == 0) {
    Diagnostic& d = fail("empty-range", mark,
                         fmt::format("'{}' has no chunks on rank {}", name(b.name), owner));
    note_buffer(d, owner, buffer);
    return false;
  }
  out_operand.first = first;
  out_operand.count = count;
  return true;
}

/// Rows of different lengths, of which some may be empty (alltoallv).
bool BuilderState::locate_ragged(uint32_t owner, uint32_t buffer, std::span<const Index> index,
                                 Mark mark, Operand& out_operand) {
  const Layout& layout = ranks[owner].layouts[buffer];
  const uint32_t* offsets = row_offsets.data() + layout.rows;
  uint32_t row = 0, rows = layout.row_count;
  if (!index.empty() && !find_run(owner, buffer, 0, axes[layout.axes], index[0], mark, row, rows)) {
    return false;
  }
  out_operand.first = offsets[row];
  out_operand.count = offsets[row + rows] - offsets[row];
  if (index.size() < 2) return true;
  if (rows != 1) {
    note_buffer(fail("not-one-run", mark, "the chunks do not follow one another"), owner, buffer);
    return false;
  }
  const Index& column = index[1];
  if (column.count == 0) {
    fail("empty-range", mark, "an empty range");
    return false;
  }
  const int64_t length = out_operand.count;
  const int64_t last = column.first + column.count - 1;
  if (column.first < 0 || column.first >= length || last >= length) {
    fail("no-such-chunk", mark,
         fmt::format("row {} of '{}' has no chunk {} on rank {}; it has {}", index[0].first,
                     name(program.ranks[owner].buffers[buffer].name),
                     column.first < 0 || column.first >= length ? column.first : length, owner,
                     length));
    return false;
  }
  out_operand.first += static_cast<uint32_t>(column.first);
  out_operand.count = static_cast<uint32_t>(column.count);
  return true;
}

/// Rows that depend on the indices before them.
bool BuilderState::locate_in_tree(uint32_t owner, uint32_t buffer, std::span<const Index> index,
                                  Mark mark, Operand& out_operand) {
  const Layout& layout = ranks[owner].layouts[buffer];
  const RowNode* node = &row_nodes[layout.tree];
  out_operand.first = 0;
  out_operand.count = layout.chunks;
  bool several = false;
  for (size_t i = 0; i < index.size(); ++i) {
    uint32_t at = 0, n = 0;
    if (several) {
      note_buffer(fail("not-one-run", mark, "the chunks do not follow one another"), owner, buffer);
      return false;
    }
    if (!find_run(owner, buffer, static_cast<uint32_t>(i), node->axis, index[i], mark, at, n)) {
      return false;
    }
    out_operand.first = node->offset[at];
    out_operand.count = node->offset[at + n] - node->offset[at];
    several = n > 1;
    if (!node->below.empty()) node = &row_nodes[node->below[at]];
  }
  if (out_operand.count > 0) return true;
  const std::string what(name(program.ranks[owner].buffers[buffer].name));
  note_buffer(
      fail("empty-range", mark, fmt::format("'{}' has no chunks there on rank {}", what, owner)),
      owner, buffer);
  return false;
}

// ---- sizes -----------------------------------------------------------------------------------

void BuilderState::prepare_classes() {
  const Contract& c = program.contract;
  for (const Side side : {Side::input, Side::output}) {
    const Shape shape = c.kind == CollectiveKind::alltoallv ? Shape{} : c.shape(side, c.root);
    modulus[side == Side::output] = shape.caller_rows ? c.part_chunks() : kNone;
  }
}

uint64_t BuilderState::size_class(uint32_t owner, uint32_t buffer, uint32_t chunk) const {
  const Layout& layout = ranks[owner].layouts[buffer];
  if (layout.row_count == 0) return chunk % modulus[buffer == kOutput];
  const uint32_t* begin = row_offsets.data() + layout.rows;
  const uint32_t* next = std::upper_bound(begin, begin + layout.row_count + 1, chunk);
  const uint64_t length = *next - *(next - 1);
  return length << 32 | (chunk - *(next - 1));
}

}  // namespace mscclc
