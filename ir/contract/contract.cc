// What a row of the table of collectives means for the chunks of a contract: how many where, and
// which input chunks an output chunk is made of. Chunking is in chunking.cc.
#include "ir/contract/contract.h"

#include <algorithm>
#include <numeric>

namespace mscclc {
namespace {

uint32_t product(const std::vector<uint32_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), 1u, std::multiplies<>());
}

Shape regular_shape(std::vector<uint32_t> chunks, uint32_t parts, bool caller_rows) {
  if (chunks.empty()) chunks = {1};
  Shape shape;
  shape.columns = chunks.back();
  shape.part_rows = chunks.size() > 1 ? chunks.front() : 1;
  shape.rows = shape.part_rows * parts;
  shape.caller_rows = caller_rows;
  if (caller_rows) shape.dims.push_back(parts);
  shape.dims.insert(shape.dims.end(), chunks.begin(), chunks.end());
  return shape;
}

Shape ragged_shape(const Contract& c, Side side, uint32_t rank) {
  Shape shape;
  shape.rows = c.ranks;
  shape.caller_rows = true;
  shape.dims = {c.ranks};
  shape.lengths.reserve(c.ranks);
  const uint32_t unit = product(c.chunks);
  for (size_t p = 0; p < c.ranks; ++p) {
    const size_t at = side == Side::input ? size_t{rank} * c.ranks + p : p * c.ranks + rank;
    shape.lengths.push_back(static_cast<uint32_t>(c.counts[at]) * unit);
  }
  return shape;
}

bool before(const Promise& a, const CallerChunk& b) {
  return a.output.rank != b.rank ? a.output.rank < b.rank : a.output.chunk < b.chunk;
}

/// Row and column of a flat chunk in rows of different lengths.
std::pair<uint32_t, uint32_t> find_row(const std::vector<uint32_t>& lengths, uint32_t chunk) {
  uint32_t row = 0;
  while (row < lengths.size() && chunk >= lengths[row]) chunk -= lengths[row++];
  return {row, chunk};
}

}  // namespace

uint32_t Shape::chunks() const {
  return lengths.empty() ? rows * columns : std::accumulate(lengths.begin(), lengths.end(), 0u);
}

bool Contract::is_there(Side side, uint32_t rank) const {
  const SideInfo& here = info().side(side);
  return here.form != SideForm::nothing && !(here.only_at_root && rank != root);
}

Shape Contract::shape(Side side, uint32_t rank) const {
  if (!is_there(side, rank)) return {};
  switch (info().side(side).form) {
    case SideForm::nothing:
      return {};
    case SideForm::whole:
      return regular_shape(chunks, 1, false);
    case SideForm::rows:
      return regular_shape(chunks, ranks, true);
    case SideForm::counted:
      return ragged_shape(*this, side, rank);
    case SideForm::declared:
      return regular_shape(side == Side::input ? input : output, 1, false);
  }
  return {};
}

uint32_t Contract::chunk_count(Side side, uint32_t rank) const {
  if (!is_there(side, rank)) return 0;
  switch (info().side(side).form) {
    case SideForm::nothing:
      return 0;
    case SideForm::whole:
      return product(chunks);
    case SideForm::rows:
      return product(chunks) * ranks;
    case SideForm::counted:
      return shape(side, rank).chunks();
    case SideForm::declared:
      return product(side == Side::input ? input : output);
  }
  return 0;
}

bool Contract::laid_out_alike(Side side, uint32_t a, uint32_t b) const {
  if (info().side(side).form == SideForm::counted)
    return shape(side, a).lengths == shape(side, b).lengths;
  return chunk_count(side, a) == chunk_count(side, b);
}

bool Contract::exists(Side side, uint32_t rank) const { return chunk_count(side, rank) > 0; }

std::optional<Contract::Alias> Contract::alias(uint32_t rank) const {
  if (!can_alias() || !exists(Side::input, rank) || !exists(Side::output, rank)) {
    return std::nullopt;
  }
  const uint32_t own_row = rank * part_chunks();
  const bool input_rows = info().has_rows(Side::input);
  const bool output_rows = info().has_rows(Side::output);
  if (input_rows == output_rows) return Alias{};
  return input_rows ? Alias{.input_chunk = own_row} : Alias{.output_chunk = own_row};
}

bool Contract::reduces() const {
  if (info().source == Source::everyone) return true;
  return std::any_of(promises.begin(), promises.end(), [](const Promise& p) { return p.reduced; });
}

uint32_t Contract::contributions() const {
  if (!reduces()) return 0;
  if (info().source == Source::everyone) return ranks;
  size_t most = 0, least = ~size_t{0};
  for (const Promise& p : promises) {
    if (!p.reduced) continue;
    most = std::max(most, p.inputs.size());
    least = std::min(least, p.inputs.size());
  }
  return most == least ? static_cast<uint32_t>(most) : 0;
}

// Nothing in the promise then depends on the rank that has the output.
bool Contract::uniform() const {
  const CollectiveInfo& row = info();
  const bool same = row.source == Source::everyone || row.source == Source::row_rank ||
                    row.source == Source::root_rank;
  return same && row.input.form == SideForm::whole && !row.output.only_at_root;
}

uint32_t Contract::part_chunks() const {
  if (info().input.form == SideForm::declared) return std::max(product(input), product(output));
  return product(chunks);
}

std::optional<Promise> Contract::promise(uint32_t rank, uint32_t chunk) const {
  Promise out;
  if (!promise(rank, chunk, out)) return std::nullopt;
  return out;
}

const Promise* Contract::find_promise(CallerChunk output) const {
  const auto found = std::lower_bound(promises.begin(), promises.end(), output, before);
  return found == promises.end() || found->output != output ? nullptr : &*found;
}

bool Contract::promise_of_counted_row(Promise& out) const {
  const auto [rank, chunk] = out.output;
  const auto [source, column] = find_row(shape(Side::output, rank).lengths, chunk);
  if (source == ranks) return false;
  const std::vector<uint32_t> rows = shape(Side::input, source).lengths;
  const uint32_t first = std::accumulate(rows.begin(), rows.begin() + rank, 0u);
  out.inputs.push_back({source, first + column});
  return true;
}

bool Contract::promise(uint32_t rank, uint32_t chunk, Promise& out) const {
  if (!is_there(Side::output, rank)) return false;
  out.output = {rank, chunk};
  out.reduced = info().source == Source::everyone;
  out.inputs.clear();
  const uint32_t part = part_chunks();
  const uint32_t in_part = info().has_rows(Side::output) ? chunk % part : chunk;
  const uint32_t from = info().has_rows(Side::input) ? rank * part + in_part : in_part;
  switch (info().source) {
    case Source::none:
      return false;
    case Source::everyone:
      for (uint32_t p = 0; p < ranks; ++p) out.inputs.push_back({p, from});
      return true;
    case Source::row_rank:
      out.inputs.push_back({chunk / part, from});
      return true;
    case Source::root_rank:
      out.inputs.push_back({root, from});
      return true;
    case Source::shifted: {
      const int64_t n = ranks;
      const int64_t source = ((rank - shift % n) % n + n) % n;
      out.inputs.push_back({static_cast<uint32_t>(source), from});
      return true;
    }
    case Source::counted_row:
      return promise_of_counted_row(out);
    case Source::promised: {
      const Promise* found = find_promise(out.output);
      if (found != nullptr) out = *found;
      return found != nullptr;
    }
  }
  return false;
}

void Contract::sort_promises() {
  std::stable_sort(promises.begin(), promises.end(),
                   [](const Promise& a, const Promise& b) { return before(a, b.output); });
}

uint64_t Contract::size_class(Side side, uint32_t rank, uint32_t chunk) const {
  if (even_only) return 0;
  if (info().side(side).form == SideForm::counted) {
    const std::vector<uint32_t> lengths = shape(side, rank).lengths;
    const auto [row, column] = find_row(lengths, chunk);
    return row < lengths.size() ? uint64_t{lengths[row]} << 32 | column : 0;
  }
  return info().has_rows(side) ? chunk % part_chunks() : chunk;
}

}  // namespace mscclc
