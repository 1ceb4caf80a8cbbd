#include "executor/oracle/row_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executor/rows/evaluate.h"

namespace mscclc {
namespace {

constexpr size_t kMaxReported = 8;

uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/// A value of an external: nothing is too large for any type or below its least step. What
/// functions divide by is not zero.
float value_of(const rows::External& e, uint64_t random) {
  switch (e.kind) {
    case rows::Kind::row:
      return (static_cast<float>(random % 129) - 64.0f) / 16.0f;
    case rows::Kind::scalar:
      return 1.0f / static_cast<float>(uint64_t{1} << (1 + random % 6));
    default:
      return 0.5f + static_cast<float>(random % 65) / 64.0f;
  }
}

}  // namespace

RowCheck::RowCheck(const Program& program, uint64_t part_bytes, const TestValues& values)
    : program_(program),
      values_(values),
      chunking_(program.contract, part_bytes, program.granule(values.dtype())),
      then_(bind_then(program).value()),
      function_(program.functions[then_.function]) {
  for (uint32_t r = 0; r < program.contract.ranks; ++r) {
    layouts_.push_back(rows::lay_out_externals(program, r, chunking_, values.dtype()));
  }
}

/// What an external has for a row of a rank's output; replicated and sharded ones have the same at
/// all ranks.
std::vector<uint8_t> RowCheck::values_of_row(uint32_t rank, uint64_t call, uint32_t external,
                                             uint64_t row) const {
  const rows::External& e = program_.externals[external];
  const uint64_t of_rank = e.holding == rows::Holding::local ? rank + 1 : 0;
  const uint64_t seed = mixed(mixed(external, of_rank),
                              mixed(call % TestValues::kVariants, e.has_rows() ? row + 1 : 0));
  std::vector<float> values(rows::values_of(e.kind, e.group, program_.contract.columns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = value_of(e, mixed(seed, i));
  return rows::stored_as(e.type, values_.dtype(), values);
}

void RowCheck::fill(uint32_t rank, uint64_t call, std::span<uint8_t* const> externals) const {
  for (uint32_t e = 0; e < externals.size(); ++e) {
    const rows::ExternalLayout& layout = layouts_[rank][e];
    if (!program_.externals[e].is_read()) {
      std::fill_n(externals[e], layout.bytes(), kUnwrittenByte);
      continue;
    }
    for (uint64_t i = 0; i < layout.rows; ++i) {
      std::ranges::copy(values_of_row(rank, call, e, layout.first_row + i),
                        externals[e] + i * layout.row_bytes);
    }
  }
}

/// `columns` elements of a promised sum, from `element` of the chunk on.
std::vector<uint8_t> RowCheck::sum_of_row(const Promise& promise, uint64_t call,
                                          uint64_t element) const {
  const uint32_t columns = program_.contract.columns;
  std::vector<int64_t> keys(columns);
  for (size_t i = 0; i < promise.inputs.size(); ++i) {
    const CallerChunk& input = promise.inputs[i];
    const uint64_t first =
        chunking_.offset(Side::input, input.rank, input.chunk) / values_.element() + element;
    values_.reduce(input.rank, call, first, columns, i == 0, keys.data());
  }
  std::vector<uint8_t> bytes(size_t{columns} * values_.element());
  values_.finish(keys.data(), columns, static_cast<uint32_t>(promise.inputs.size()), bytes.data());
  return bytes;
}

/// Has the rank this chunk of the external?
bool RowCheck::is_own(uint32_t rank, const rows::External& external, uint32_t chunk) const {
  return external.holding != rows::Holding::sharded ||
         owner_of_shard(program_.contract, chunk) == rank;
}

void RowCheck::compare(uint32_t rank, uint64_t call, const uint8_t* output,
                       std::span<uint8_t* const> externals) {
  const uint32_t chunks = program_.contract.chunk_count(Side::output, rank);
  for (uint32_t c = 0; c < chunks; ++c) compare_chunk(rank, call, c, output, externals);
}

void RowCheck::compare_chunk(uint32_t rank, uint64_t call, uint32_t chunk, const uint8_t* output,
                             std::span<uint8_t* const> externals) {
  Promise promise;
  if (!program_.contract.promise(rank, chunk, promise)) return;
  const uint64_t granule = uint64_t{program_.contract.columns} *
                           rows::bytes_of(program_.contract.output_type, values_.dtype());
  const uint64_t first = chunking_.rows_before(rank, chunk);
  const uint64_t rows = chunking_.length(Side::output, rank, chunk) / granule;
  for (uint64_t i = 0; i < rows; ++i) {
    std::vector<std::vector<uint8_t>> arguments;
    for (const uint32_t e : then_.params) {
      arguments.push_back(e == kNone ? sum_of_row(promise, call, i * program_.contract.columns)
                                     : values_of_row(rank, call, e, first + i));
    }
    const auto results =
        rows::evaluate(function_, values_.dtype(), program_.contract.columns, arguments);
    for (size_t k = 0; k < results.size(); ++k) {
      const uint32_t element = rows::bytes_of(function_.outputs[k].type, values_.dtype());
      const uint32_t e = then_.results[k];
      if (e == kNone) {
        compare_bytes(rank, call, first + i, "output", element, results[k],
                      output + (first + i) * granule);
      } else if (is_own(rank, program_.externals[e], chunk)) {
        compare_bytes(rank, call, first + i, program_.externals[e].name, element, results[k],
                      externals[e] + layouts_[rank][e].offset(first + i));
      }
    }
  }
}

void RowCheck::compare_bytes(uint32_t rank, uint64_t call, uint64_t row, const std::string& name,
                             uint32_t element, const std::vector<uint8_t>& wanted,
                             const uint8_t* got) {
  if (std::memcmp(wanted.data(), got, wanted.size()) == 0) return;
  for (size_t at = 0; at < wanted.size(); at += element) {
    if (std::memcmp(&wanted[at], got + at, element) == 0) continue;
    ++wrong_;
    Wrong& wrong = wrongs_[{rank, name}];
    if (wrong.count++ == 0) wrong = {1, call, row, at / element};
  }
}

void RowCheck::report(Diagnostics& diagnostics, const std::string& of_plan) const {
  size_t reported = 0;
  for (const auto& [where, wrong] : wrongs_) {
    if (reported++ == kMaxReported) return;
    Diagnostic& d = diagnostics.error("wrong-data", {},
                                      fmt::format("rank {}{}: {} wrong elements in '{}'",
                                                  where.first, of_plan, wrong.count, where.second));
    d.notes.push_back(
        {fmt::format("the first in call {}, row {}, column {}: it is not what '{}' "
                     "makes of the sum",
                     wrong.call, wrong.row, wrong.column, function_.name)});
  }
}

}  // namespace mscclc
