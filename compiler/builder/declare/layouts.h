// The buffers of all ranks: how their chunks are indexed, and which chunks a reference names.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/builder/declare/axis.h"
#include "compiler/builder/draft/draft.h"
#include "ir/support/precondition.h"

namespace mscclc {

class Layouts {
 public:
  Layouts(BuildReports& reports, Draft& draft) : reports_(reports), draft_(draft) {}

  /// There are so many ranks, without buffers; the contract is known.
  void set_ranks(uint32_t ranks);
  /// The rank at hand gets `input` and `output`.
  void begin_rank();

  // ---- buffers of the rank at hand; mistakes are reported ----
  /// The dimensions of a buffer, until the next call; nothing after a mistake.
  std::optional<std::span<Axis>> make_axes(NameId name, std::span<const Dim> dims, Mark mark);
  /// What messages call the rows of a buffer with these dimensions.
  Slice name_rows(std::span<const Axis> dims);
  bool add(std::span<Axis> dims, Mark dims_mark, NameId name, Mark mark);
  /// A buffer of `dims` dimensions whose rows differ in length.
  bool add_tree(const Rows& rows, uint32_t dims, Mark dims_mark, NameId name, Mark mark);
  /// Of the buffer added last.
  Layout& last() { return layouts_[draft_.rank].back(); }

  // ---- look-ups ----
  uint32_t count(uint32_t rank) const { return static_cast<uint32_t>(layouts_[rank].size()); }
  const Layout& of(uint32_t rank, uint32_t buffer) const { return layouts_[rank][buffer]; }
  /// The first dimension. REQUIRES: dimensions that do not depend on others.
  const Axis* axes(const Layout& layout) const {
    precondition(layout.tree == kNone);
    return axes_.data() + layout.axes;
  }
  /// True if indexes that are numbers are looked up by Axis::find alone.
  static bool fast(const Layout& layout, size_t indexes) {
    return !layout.unusual && indexes <= layout.dims;
  }
  /// The run of chunks of a reference; false after reporting.
  bool locate(uint32_t owner, uint32_t buffer, std::span<const Index> index, Mark mark,
              Operand& out) const;
  /// Chunks of input and output that are in the same class are equally long for every message.
  uint64_t size_class(uint32_t owner, uint32_t buffer, uint32_t chunk) const;

  /// The outermost dimension.
  const Axis& outermost(const Layout& layout) const {
    return layout.tree != kNone ? row_nodes_[layout.tree].axis : axes_[layout.axes];
  }
  /// The row of the outermost dimension that holds a chunk.
  uint32_t row_of(const Layout& layout, uint32_t chunk) const;

  // ---- messages ----
  std::string dims_text(uint32_t rank, uint32_t buffer) const;
  /// Adds "'inbox' is declared here as [others, B], which is …".
  void note_buffer(Diagnostic& d, uint32_t rank, uint32_t buffer) const;

 private:
  Axis make_axis(const Dim& dim);
  Axis table_axis(std::span<const int64_t> elements);
  bool check_axis(NameId buffer, const Axis& axis, Mark mark);
  uint32_t add_rows(const Rows& rows, NameId name, Mark mark, uint64_t& chunks);
  uint32_t caller_axes(std::span<const int64_t> dims, uint32_t chunks);
  bool copy_caller_buffer(Side side);
  void add_caller_buffer(Side side);
  void prepare_classes();

  bool no_such_index(uint32_t owner, uint32_t buffer, uint32_t dim, int64_t value, Mark mark) const;
  bool find_run(uint32_t owner, uint32_t buffer, uint32_t dim, const Axis& axis, const Index& index,
                Mark mark, uint32_t& first, uint32_t& count) const;
  bool locate_ragged(uint32_t owner, uint32_t buffer, std::span<const Index> index, Mark mark,
                     Operand& out) const;
  bool locate_in_tree(uint32_t owner, uint32_t buffer, std::span<const Index> index, Mark mark,
                      Operand& out) const;

  BuildReports& reports_;
  Draft& draft_;
  std::vector<std::vector<Layout>> layouts_;  ///< by rank and buffer
  std::vector<Axis> axes_;
  std::deque<std::vector<uint32_t>> axis_tables_;
  std::deque<std::vector<int64_t>> axis_elements_;
  std::deque<RowNode> row_nodes_;
  std::vector<uint32_t> row_offsets_;
  std::vector<Axis> axis_scratch_;
  Axis last_axis_;
  std::vector<std::pair<std::vector<int64_t>, uint32_t>> known_dims_;  ///< of callers' buffers
  /// Contract::size_class without its look-ups: chunk % modulus, of input and of output.
  uint32_t modulus_[2] = {kNone, kNone};
};

}  // namespace mscclc
