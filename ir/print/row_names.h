// Chunks as their author names them: by the indices of the buffer's dimensions, which may be lists,
// not by their numbers in the flat buffer. For messages; IR text counts chunks.
#pragma once

#include <span>
#include <string>

#include "ir/print/text_writer.h"
#include "ir/program/program.h"

namespace mscclc {

/// Writes Buffer::rows, dimension by dimension.
class RowNames {
 public:
  explicit RowNames(Program& program) : program_(program) {}
  /// The numbers first, first + 1, …, n in all, without the one at position `hole` (-1: none is
  /// left out).
  void range(int64_t n, int64_t first, int64_t hole);
  void list(std::span<const int64_t> indices);
  /// All indices of each chunk, of a buffer whose dimensions depend on one another.
  void tuples(uint32_t dims, std::span<const int64_t> indices);
  Slice take() const { return plain_ ? Slice{} : rows_; }

 private:
  void add(std::initializer_list<int64_t> values);
  Program& program_;
  Slice rows_;
  bool plain_ = true;  ///< all indices are 0, 1, …
};

/// "inbox[p, 0..2]": a run of chunks of a buffer. Counts chunks where indices are not known.
void print_run(TextWriter& out, const Program& program, const Buffer& buffer, uint32_t first,
               uint32_t count);
std::string run_text(const Program& program, const Buffer& buffer, uint32_t first, uint32_t count);

}  // namespace mscclc
