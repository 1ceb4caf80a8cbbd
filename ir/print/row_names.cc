#include "ir/print/row_names.h"

#include <algorithm>
#include <vector>

namespace mscclc {
namespace {

// How Buffer::rows describes a dimension: kRange, n, first, hole; or kList, n, the indices. kTuples
// stands alone: number of chunks, of indices each, and the indices.
constexpr int64_t kRange = 0, kList = 1, kTuples = 2;

/// The indices of one dimension.
struct Names {
  int64_t n = 0, first = 0, hole = -1;
  std::span<const int64_t> list = {};
  int64_t at(int64_t i) const {
    if (!list.empty()) return list[static_cast<size_t>(i)];
    return first + i + (hole >= 0 && i >= hole ? 1 : 0);
  }
};

/// The dimensions of a buffer; none if what is known of them does not fit the buffer, as after
/// `instances` have cut its chunks.
std::vector<Names> names_of(const Program& program, const Buffer& buffer) {
  const std::span<const int64_t> dims = program.values(buffer.dims);
  std::span<const int64_t> rows = program.values(buffer.rows);
  std::vector<Names> out;
  int64_t chunks = 1;
  for (const int64_t n : dims) {
    Names names{.n = n};
    if (!rows.empty()) {
      if (rows.size() < 2 || rows[1] != n || rows[0] == kTuples) return {};
      const size_t size = rows[0] == kRange ? 4 : 2 + static_cast<size_t>(n);
      if (rows.size() < size) return {};
      if (rows[0] == kRange) {
        names.first = rows[2];
        names.hole = rows[3];
      } else {
        names.list = rows.subspan(2, static_cast<size_t>(n));
      }
      rows = rows.subspan(size);
    }
    out.push_back(names);
    chunks *= n;
  }
  if (chunks != buffer.chunks) out.clear();
  return out;
}

void print_numbers(TextWriter& out, uint32_t first, uint32_t count) {
  out.number(first);
  if (count != 1) (out << "..").number(uint64_t{first} + count);
}

/// Some indices of a dimension: one, a range, or a list of neighbours.
void print_indices(TextWriter& out, const Names& names, int64_t first, int64_t count) {
  constexpr int64_t kShown = 8;
  const int64_t from = names.at(first);
  const auto after = [](int64_t v, int64_t n) {  // indices may be any numbers
    return static_cast<int64_t>(static_cast<uint64_t>(v) + static_cast<uint64_t>(n));
  };
  if (count == 1) {
    out.number(from);
    return;
  }
  bool range = true;
  for (int64_t i = 1; range && i < count; ++i) range = names.at(first + i) == after(from, i);
  if (range) {
    (out.number(from) << "..").number(after(from, count));
    return;
  }
  out << '[';
  for (int64_t i = 0; i < std::min(count, kShown); ++i) {
    if (i > 0) out << ", ";
    out.number(names.at(first + i));
  }
  out << (count > kShown ? ", ...]" : "]");
}

/// True if the chunk was named by all its indices.
bool print_tuple(TextWriter& out, std::span<const int64_t> rows, const Buffer& buffer,
                 uint32_t first) {
  if (rows.size() < 3 || rows[0] != kTuples || rows[1] != buffer.chunks) return false;
  const auto n = static_cast<size_t>(rows[2]);
  if (rows.size() != 3 + n * buffer.chunks) return false;
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) out << ", ";
    out.number(rows[3 + first * n + i]);
  }
  return true;
}

/// The outermost dimension in which the run is some whole rows of one row around them.
struct Outermost {
  size_t dim = 0;
  int64_t stride = 0;  ///< chunks of a row; 0: there is no such dimension
  int64_t at = 0;      ///< position of the first of them
};

Outermost whole_rows_of(const std::vector<Names>& dims, int64_t first, int64_t count) {
  int64_t stride = 1;
  for (const Names& d : dims) stride *= d.n;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t outer = stride;
    stride /= dims[i].n;
    const int64_t at = first % outer / stride;
    const bool whole = first % stride == 0 && count % stride == 0;
    if (whole && at + count / stride <= dims[i].n) return {i, stride, at};
  }
  return {};
}

bool whole_rows(const std::vector<Names>& dims, int64_t first, int64_t count) {
  return whole_rows_of(dims, first, count).stride != 0;
}

/// Writes the indices of such rows. False if there is no such dimension.
bool print_rows(TextWriter& out, const std::vector<Names>& dims, int64_t first, int64_t count) {
  const auto [i, stride, at] = whole_rows_of(dims, first, count);
  if (stride == 0) return false;
  int64_t below = stride * dims[i].n;
  std::vector<int64_t> positions;
  for (size_t k = i; k-- > 0;) {
    positions.push_back(first / below % dims[k].n);
    below *= dims[k].n;
  }
  for (size_t k = 0; k < i; ++k) {
    print_indices(out, dims[k], positions[i - 1 - k], 1);
    out << ", ";
  }
  print_indices(out, dims[i], at, count / stride);
  return true;
}

}  // namespace

void RowNames::add(std::initializer_list<int64_t> values) {
  for (const int64_t v : values) program_.integers.extend(rows_, v);
}

void RowNames::range(int64_t n, int64_t first, int64_t hole) {
  add({kRange, n, first, hole});
  plain_ = plain_ && first == 0 && hole < 0;
}

void RowNames::list(std::span<const int64_t> indices) {
  add({kList, static_cast<int64_t>(indices.size())});
  for (const int64_t v : indices) add({v});
  plain_ = false;
}

void RowNames::tuples(uint32_t dims, std::span<const int64_t> indices) {
  add({kTuples, static_cast<int64_t>(indices.size() / dims), dims});
  for (const int64_t v : indices) add({v});
  plain_ = false;
}

void print_run(TextWriter& out, const Program& program, const Buffer& buffer, uint32_t first,
               uint32_t count) {
  const std::string_view name = program.name_of(buffer.name);
  const std::vector<Names> dims = names_of(program, buffer);
  const std::span<const int64_t> rows = program.values(buffer.rows);
  const bool there = count > 0 && uint64_t{first} + count <= buffer.chunks;
  const bool tuples = there && !rows.empty() && rows[0] == kTuples;
  const auto one = [&](uint32_t chunk) {
    out << name << '[';
    if (!print_tuple(out, rows, buffer, chunk) && !print_rows(out, dims, chunk, 1)) {
      out.number(chunk);
    }
    out << ']';
  };
  if (tuples || (there && dims.size() > 1 && !whole_rows(dims, first, count))) {
    one(first);
    if (count == 1) return;
    out << " to ";
    return one(first + count - 1);
  }
  out << name << '[';
  if (!there || !print_rows(out, dims, first, count)) print_numbers(out, first, count);
  out << ']';
}

std::string run_text(const Program& program, const Buffer& buffer, uint32_t first, uint32_t count) {
  TextWriter out(64);
  print_run(out, program, buffer, first, count);
  return out.take();
}

}  // namespace mscclc
