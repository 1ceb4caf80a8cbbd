// The contracts of the language's table, each as a few integers: how many chunks where, and which
// input chunks an output chunk is made of. Chunking is in chunking.cc.
#include "ir/contract.h"

#include <algorithm>
#include <numeric>

namespace mscclc {
namespace {

constexpr std::string_view kKinds[] = {
    "none",      "allreduce", "reduce",  "allgather", "gather",  "reducescatter", "alltoall",
    "alltoallv", "broadcast", "scatter", "sendrecv",  "barrier", "custom",
};

uint32_t product(const std::vector<uint32_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), 1u, std::multiplies<>());
}

/// True if this side of the collective has a row for every rank.
bool has_rank_rows(CollectiveKind kind, Side side) {
  switch (kind) {
    case CollectiveKind::allgather:
    case CollectiveKind::gather:
      return side == Side::output;
    case CollectiveKind::reducescatter:
    case CollectiveKind::scatter:
      return side == Side::input;
    case CollectiveKind::alltoall:
      return true;
    default:
      return false;
  }
}

/// True if only the root has this side's buffer.
bool only_at_root(CollectiveKind kind, Side side) {
  switch (kind) {
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
      return side == Side::output;
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter:
      return side == Side::input;
    default:
      return false;
  }
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

bool before(const Promise& a, const Place& b) {
  return a.output.rank != b.rank ? a.output.rank < b.rank : a.output.chunk < b.chunk;
}

/// Row and column of a flat chunk in rows of different lengths.
std::pair<uint32_t, uint32_t> find_row(const std::vector<uint32_t>& lengths, uint32_t chunk) {
  uint32_t row = 0;
  while (row < lengths.size() && chunk >= lengths[row]) chunk -= lengths[row++];
  return {row, chunk};
}

}  // namespace

std::string_view name(CollectiveKind kind) { return kKinds[static_cast<size_t>(kind)]; }

std::optional<CollectiveKind> find_collective(std::string_view name) {
  const auto found = std::find(std::begin(kKinds) + 1, std::end(kKinds), name);
  if (found == std::end(kKinds)) return std::nullopt;
  return static_cast<CollectiveKind>(found - std::begin(kKinds));
}

bool has_root(CollectiveKind kind) {
  return only_at_root(kind, Side::input) || only_at_root(kind, Side::output);
}

uint32_t Shape::chunks() const {
  return lengths.empty() ? rows * columns : std::accumulate(lengths.begin(), lengths.end(), 0u);
}

Shape Contract::shape(Side side, uint32_t rank) const {
  switch (kind) {
    case CollectiveKind::none:
    case CollectiveKind::barrier:
      return {};
    case CollectiveKind::alltoallv:
      return ragged_shape(*this, side, rank);
    case CollectiveKind::custom:
      return regular_shape(side == Side::input ? input : output, 1, false);
    default:
      break;
  }
  if (only_at_root(kind, side) && rank != root) return {};
  const bool rank_rows = has_rank_rows(kind, side);
  return regular_shape(chunks, rank_rows ? ranks : 1, rank_rows);
}

uint32_t Contract::chunk_count(Side side, uint32_t rank) const {
  switch (kind) {
    case CollectiveKind::none:
    case CollectiveKind::barrier:
      return 0;
    case CollectiveKind::alltoallv:
      return shape(side, rank).chunks();
    case CollectiveKind::custom:
      return product(side == Side::input ? input : output);
    default:
      break;
  }
  if (only_at_root(kind, side) && rank != root) return 0;
  return product(chunks) * (has_rank_rows(kind, side) ? ranks : 1);
}

bool Contract::exists(Side side, uint32_t rank) const {
  switch (kind) {
    case CollectiveKind::none:
    case CollectiveKind::barrier:
      return false;
    case CollectiveKind::alltoallv:
      return shape(side, rank).chunks() > 0;
    case CollectiveKind::custom:
      return product(side == Side::input ? input : output) > 0;
    default:
      return product(chunks) > 0 && !(only_at_root(kind, side) && rank != root);
  }
}

bool Contract::can_alias() const {
  switch (kind) {
    case CollectiveKind::none:
    case CollectiveKind::alltoallv:
    case CollectiveKind::sendrecv:
    case CollectiveKind::barrier:
      return false;
    default:
      return true;
  }
}

std::optional<Contract::Alias> Contract::alias(uint32_t rank) const {
  if (!can_alias() || !exists(Side::input, rank) || !exists(Side::output, rank)) {
    return std::nullopt;
  }
  const uint32_t own_row = rank * part_chunks();
  const bool input_rows = has_rank_rows(kind, Side::input);
  const bool output_rows = has_rank_rows(kind, Side::output);
  if (input_rows == output_rows) return Alias{};
  return input_rows ? Alias{.input_chunk = own_row} : Alias{.output_chunk = own_row};
}

bool Contract::reduces() const {
  switch (kind) {
    case CollectiveKind::allreduce:
    case CollectiveKind::reduce:
    case CollectiveKind::reducescatter:
      return true;
    case CollectiveKind::custom:
      return std::any_of(promises.begin(), promises.end(),
                         [](const Promise& p) { return p.reduced; });
    default:
      return false;
  }
}

uint32_t Contract::contributions() const {
  if (!reduces()) return 0;
  if (kind != CollectiveKind::custom) return ranks;
  size_t most = 0, least = ~size_t{0};
  for (const Promise& p : promises) {
    if (!p.reduced) continue;
    most = std::max(most, p.inputs.size());
    least = std::min(least, p.inputs.size());
  }
  return most == least ? static_cast<uint32_t>(most) : 0;
}

bool Contract::uniform() const {
  return kind == CollectiveKind::allreduce || kind == CollectiveKind::allgather ||
         kind == CollectiveKind::broadcast;
}

uint32_t Contract::part_chunks() const {
  if (kind == CollectiveKind::custom) return std::max(product(input), product(output));
  return product(chunks);
}

std::optional<Promise> Contract::promise(uint32_t rank, uint32_t chunk) const {
  Promise out;
  if (!promise(rank, chunk, out)) return std::nullopt;
  return out;
}

bool Contract::promise(uint32_t rank, uint32_t chunk, Promise& out) const {
  if (kind == CollectiveKind::custom) {
    const auto found =
        std::lower_bound(promises.begin(), promises.end(), Place{rank, chunk}, before);
    if (found == promises.end() || found->output != Place{rank, chunk}) return false;
    out = *found;
    return true;
  }
  if (only_at_root(kind, Side::output) && rank != root) return false;
  out.output = {rank, chunk};
  out.reduced = reduces();
  out.inputs.clear();
  const uint32_t part = part_chunks();
  const auto all_ranks = [&](uint32_t input_chunk) {
    for (uint32_t p = 0; p < ranks; ++p) out.inputs.push_back({p, input_chunk});
  };
  switch (kind) {
    case CollectiveKind::none:
    case CollectiveKind::barrier:
    case CollectiveKind::custom:
      return false;
    case CollectiveKind::allreduce:
    case CollectiveKind::reduce:
      all_ranks(chunk);
      break;
    case CollectiveKind::reducescatter:
      all_ranks(rank * part + chunk);
      break;
    case CollectiveKind::allgather:
    case CollectiveKind::gather:
      out.inputs.push_back({chunk / part, chunk % part});
      break;
    case CollectiveKind::alltoall:
      out.inputs.push_back({chunk / part, rank * part + chunk % part});
      break;
    case CollectiveKind::broadcast:
      out.inputs.push_back({root, chunk});
      break;
    case CollectiveKind::scatter:
      out.inputs.push_back({root, rank * part + chunk});
      break;
    case CollectiveKind::sendrecv: {
      const int64_t n = ranks;
      const int64_t source = ((rank - shift % n) % n + n) % n;
      out.inputs.push_back({static_cast<uint32_t>(source), chunk});
      break;
    }
    case CollectiveKind::alltoallv: {
      const auto [source, column] = find_row(shape(Side::output, rank).lengths, chunk);
      if (source == ranks) return false;
      const std::vector<uint32_t> rows = shape(Side::input, source).lengths;
      const uint32_t first = std::accumulate(rows.begin(), rows.begin() + rank, 0u);
      out.inputs.push_back({source, first + column});
      break;
    }
  }
  return true;
}

void Contract::sort_promises() {
  std::stable_sort(promises.begin(), promises.end(),
                   [](const Promise& a, const Promise& b) { return before(a, b.output); });
}

uint64_t Contract::size_class(Side side, uint32_t rank, uint32_t chunk) const {
  if (even_only) return 0;
  if (kind == CollectiveKind::alltoallv) {
    const std::vector<uint32_t> lengths = shape(side, rank).lengths;
    const auto [row, column] = find_row(lengths, chunk);
    return row < lengths.size() ? uint64_t{lengths[row]} << 32 | column : 0;
  }
  return has_rank_rows(kind, side) ? chunk % part_chunks() : chunk;
}

}  // namespace mscclc
