#include "executor/rows/externals.h"

#include <algorithm>

#include "executor/rows/evaluate.h"
#include "ir/support/precondition.h"

namespace mscclc::rows {

std::vector<ExternalLayout> lay_out_externals(const Program& program, uint32_t rank,
                                              const Chunking& chunking, Dtype t) {
  precondition(can_be_t(t));
  const Contract& contract = program.contract;
  const uint64_t all = chunking.rows(rank);
  std::vector<ExternalLayout> layouts;
  for (const External& e : program.externals) {
    ExternalLayout& layout = layouts.emplace_back();
    layout.row_bytes = bytes_of_row(e, t, contract.columns);
    layout.shared = !e.has_rows();
    if (layout.shared) continue;
    layout.rows = all;
    if (e.holding != Holding::sharded) continue;
    const uint32_t each = contract.part_chunks() / contract.ranks;
    const auto row_of = [&](uint32_t chunk) {
      return chunk == contract.part_chunks() ? all : chunking.rows_before(rank, chunk);
    };
    layout.first_row = row_of(rank * each);
    layout.rows = row_of((rank + 1) * each) - layout.first_row;
  }
  return layouts;
}

void apply_row(const Program& program, const Applied& what, Dtype t, const RowMemory& memory,
               uint64_t i, uint64_t row) {
  const Function& function = program.functions[what.function];
  const auto bytes = [&](const Stored& stored) {
    return bytes_of_row(stored, t, program.contract.columns);
  };
  const auto place = [&](const RowValue& value, std::span<uint8_t* const> operands,
                         const Stored& stored) {
    return value.external ? memory.externals[value.index] + memory.layouts[value.index].offset(row)
                          : operands[value.index] + i * bytes(stored);
  };
  std::vector<std::vector<uint8_t>> arguments;
  for (size_t k = 0; k < function.params.size(); ++k) {
    const uint8_t* from = place(what.param(k), memory.srcs, function.params[k]);
    arguments.emplace_back(from, from + bytes(function.params[k]));
  }
  const auto results = evaluate(function, t, program.contract.columns, arguments);
  for (size_t k = 0; k < results.size(); ++k) {
    std::ranges::copy(results[k], place(what.result(k), memory.dsts, function.outputs[k]));
  }
}

}  // namespace mscclc::rows
