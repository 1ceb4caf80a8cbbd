// How buffers are made of dimensions; how references find their chunks is in layouts_locate.cc.
#include "compiler/builder/declare/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/builder/draft/texts.h"
#include "ir/print/row_names.h"

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

Axis Layouts::make_axis(const Dim& dim) {
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
  if (axis_elements_.empty() || !std::ranges::equal(axis_elements_.back(), elements)) {
    last_axis_ = table_axis(elements);
  }
  axis = last_axis_;
  axis.is_list = dim.is_list;
  return axis;
}

/// A dimension with a table of positions, unless its elements lie too far apart.
Axis Layouts::table_axis(std::span<const int64_t> elements) {
  Axis axis;
  axis_elements_.emplace_back(elements.begin(), elements.end());
  axis.list = List::stored(axis_elements_.back());
  const auto [low, high] = std::minmax_element(elements.begin(), elements.end());
  const uint64_t extent = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low) + 1;
  if (extent == 0 || extent > kSparse * elements.size() + kSmall) return axis;
  std::vector<uint32_t>& table = axis_tables_.emplace_back(extent, kNone);
  for (size_t i = elements.size(); i-- > 0;) {
    table[static_cast<size_t>(elements[i] - *low)] = static_cast<uint32_t>(i);
  }
  axis.table = table.data();
  axis.low = *low;
  axis.limit = static_cast<uint32_t>(extent);
  return axis;
}

bool Layouts::check_axis(NameId buffer, const Axis& axis, Mark mark) {
  if (axis.length() > kMaxChunks) {
    reports_.fail("buffer-size", mark,
                  fmt::format("'{}' has more than {} chunks", draft_.name(buffer), kMaxChunks));
    return false;
  }
  if (axis.list.data == nullptr) return true;
  std::vector<int64_t> sorted(axis.list.data, axis.list.data + axis.length());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return true;
  reports_.fail("buffer-rows", mark,
                fmt::format("'{}' has row {} twice", draft_.name(buffer), *twice));
  return false;
}

std::optional<std::span<Axis>> Layouts::make_axes(NameId name, std::span<const Dim> dims,
                                                  Mark mark) {
  axis_scratch_.clear();
  for (const Dim& dim : dims) {
    axis_scratch_.push_back(make_axis(dim));
    if (!check_axis(name, axis_scratch_.back(), mark)) return std::nullopt;
  }
  return axis_scratch_;
}

bool Layouts::add(std::span<Axis> dims, Mark dims_mark, NameId name_id, Mark mark) {
  Layout layout;
  int64_t chunks = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    dims[i].stride = static_cast<uint32_t>(chunks);
    chunks *= dims[i].length();
    if (chunks > kMaxChunks) {
      reports_.fail("buffer-size", mark,
                    fmt::format("'{}' has more than {} chunks", draft_.name(name_id), kMaxChunks));
      return false;
    }
  }
  layout.axes = static_cast<uint32_t>(axes_.size());
  layout.dims = static_cast<uint32_t>(dims.size());
  layout.dims_mark = dims_mark;
  layout.chunks = static_cast<uint32_t>(chunks);
  layout.unusual = chunks == 0;
  axes_.insert(axes_.end(), dims.begin(), dims.end());
  layouts_[draft_.rank].push_back(layout);
  return true;
}

/// The node of these rows, whose first chunk is `chunks`, which it moves past them. kNone after
/// reporting a mistake.
uint32_t Layouts::add_rows(const Rows& rows, NameId name_id, Mark mark, uint64_t& chunks) {
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
      reports_.fail("buffer-size", mark,
                    fmt::format("'{}' has more than {} chunks", draft_.name(name_id), kMaxChunks));
      return kNone;
    }
  }
  node.offset.push_back(static_cast<uint32_t>(chunks));
  row_nodes_.push_back(std::move(node));
  return static_cast<uint32_t>(row_nodes_.size() - 1);
}

bool Layouts::add_tree(const Rows& rows, uint32_t dims, Mark dims_mark, NameId name_id, Mark mark) {
  Layout layout;
  uint64_t chunks = 0;
  layout.tree = add_rows(rows, name_id, mark, chunks);
  if (layout.tree == kNone) return false;
  layout.dims = dims;
  layout.dims_mark = dims_mark;
  layout.chunks = static_cast<uint32_t>(chunks);
  layout.unusual = true;
  layouts_[draft_.rank].push_back(layout);
  return true;
}

/// Dimensions of a buffer of the caller; ranks that have the same share them.
uint32_t Layouts::caller_axes(std::span<const int64_t> dims, uint32_t chunks) {
  constexpr size_t kLast = 4;
  const size_t known = known_dims_.size();
  for (size_t i = known - std::min(known, kLast); i < known; ++i) {
    if (std::ranges::equal(known_dims_[i].first, dims)) return known_dims_[i].second;
  }
  const auto first = static_cast<uint32_t>(axes_.size());
  uint32_t stride = chunks;
  for (const int64_t n : dims) {
    Axis axis = make_axis(Dim(n));
    axis.stride = stride = n > 0 ? stride / static_cast<uint32_t>(n) : 0;
    axes_.push_back(axis);
  }
  known_dims_.emplace_back(std::vector<int64_t>(dims.begin(), dims.end()), first);
  return first;
}

/// Takes the buffer of the rank before, if that is the same.
bool Layouts::copy_caller_buffer(Side side) {
  const Contract& contract = draft_.program.contract;
  const uint32_t index = side == Side::input ? kInput : kOutput;
  if (draft_.rank == 0 || !draft_.entered(draft_.rank - 1) ||
      contract.kind == CollectiveKind::alltoallv ||
      contract.exists(side, draft_.rank) != contract.exists(side, draft_.rank - 1)) {
    return false;
  }
  layouts_[draft_.rank].push_back(layouts_[draft_.rank - 1][index]);
  draft_.out->buffers.push_back(draft_.program.ranks[draft_.rank - 1].buffers[index]);
  return true;
}

void Layouts::add_caller_buffer(Side side) {
  if (copy_caller_buffer(side)) return;
  const Shape shape = draft_.program.contract.shape(side, draft_.rank);
  const bool is_input = side == Side::input;
  Buffer buffer;
  buffer.name = is_input ? draft_.input_name : draft_.output_name;
  buffer.kind = is_input ? BufferKind::input : BufferKind::output;
  buffer.chunks = shape.chunks();
  std::vector<int64_t> dims(shape.dims.begin(), shape.dims.end());
  if (draft_.flat || (buffer.chunks == 0 && shape.lengths.empty())) dims = {buffer.chunks};
  buffer.dims = draft_.program.append(dims);
  Layout layout;
  layout.axes = caller_axes(dims, buffer.chunks);
  layout.dims = static_cast<uint32_t>(dims.size());
  layout.chunks = buffer.chunks;
  if (!shape.lengths.empty()) {
    layout.rows = static_cast<uint32_t>(row_offsets_.size());
    row_offsets_.push_back(0);
    for (const uint32_t n : shape.lengths) row_offsets_.push_back(row_offsets_.back() + n);
    layout.row_count = static_cast<uint32_t>(shape.lengths.size());
    layout.ragged = !draft_.flat;
  }
  layout.unusual = layout.ragged || layout.chunks == 0;
  layout.traits = kCallerTrait;
  layouts_[draft_.rank].push_back(layout);
  draft_.out->buffers.push_back(buffer);
}

void Layouts::begin_rank() {
  // Ranks are much alike.
  if (draft_.rank > 0) layouts_[draft_.rank].reserve(layouts_[draft_.rank - 1].size());
  add_caller_buffer(Side::input);
  add_caller_buffer(Side::output);
}

void Layouts::set_ranks(uint32_t ranks) {
  layouts_.resize(ranks);
  prepare_classes();
}

void Layouts::prepare_classes() {
  const Contract& c = draft_.program.contract;
  for (const Side side : {Side::input, Side::output}) {
    const Shape shape = c.kind == CollectiveKind::alltoallv ? Shape{} : c.shape(side, c.root);
    modulus_[side == Side::output] = shape.caller_rows ? c.part_chunks() : kNone;
  }
}

/// What messages call the rows of a buffer with these dimensions.
Slice Layouts::name_rows(std::span<const Axis> dims) {
  const auto plain = [](const Axis& axis) {
    return axis.list.data == nullptr && axis.list.first == 0 && axis.list.hole >= axis.list.count;
  };
  if (std::ranges::all_of(dims, plain)) return {};
  RowNames names(draft_.program);
  for (const Axis& axis : dims) {
    const List& list = axis.list;
    if (list.data != nullptr) {
      names.list({list.data, static_cast<size_t>(list.count)});
    } else {
      names.range(list.count, list.first, list.hole < list.count ? list.hole : -1);
    }
  }
  return names.take();
}

}  // namespace mscclc
