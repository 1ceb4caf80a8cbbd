#include "executor/cost/choices/explain_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/compile.h"
#include "plans/format/embedded_library.h"
#include "plans/format/library_table.h"

namespace mscclc {
namespace {

/// Plans of more ranks than this are not compared with the library's others, which takes long.
constexpr uint32_t kMaxCompared = 32;
constexpr size_t kMaxTried = 12;  ///< rows, the nearest in size first
constexpr size_t kMaxShown = 4;

std::string_view file_of_library(std::string_view name) {
  for (const LibraryFile& file : embedded_library()) {
    if (file.name == name) return file.text;
  }
  return {};
}

LibraryCall library_call(const Program& program, const cost::Explanation& e, Dtype dtype,
                         SumOrder order, const Machine& machine) {
  const Contract& c = program.contract;
  LibraryCall call{.kind = c.kind, .ranks = c.ranks, .bytes = e.bytes, .dtype = dtype};
  call.root = c.root;
  if (c.shift != 0) call.shift = c.shift;
  call.links = machine.links;
  call.order = std::max(order, c.order);
  call.nodes = c.ranks % machine.gpus == 0 ? c.ranks / machine.gpus
               : c.ranks > machine.gpus    ? 0
                                           : 1;
  call.nodes = c.ranks <= machine.gpus ? 1 : call.nodes;
  return call;
}

/// How far a row's largest size is from the call's, in powers of two.
double distance(const LibraryRow& row, uint64_t bytes) {
  return std::abs(std::log2(static_cast<double>(row.bytes) + 1) -
                  std::log2(static_cast<double>(bytes) + 1));
}

std::string plan_text(const LibraryChoice& choice) {
  return choice.params.empty() ? choice.program
                               : fmt::format("{}:{}", choice.program, choice.params_text());
}

/// Microseconds of a call by a row's plan; nothing if it cannot do it.
std::optional<double> time_of(const LibraryChoice& choice, const LibraryCall& library_call,
                              const Call& call, const Machine& machine) {
  const std::string_view text = file_of_library(choice.program + ".mscl");
  if (text.empty()) return std::nullopt;
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add(choice.program + ".mscl", std::string(text));
  FrontEndOptions options;
  options.defines = choice.defines(library_call);
  const auto program = compile(sources, file, options, {}, diagnostics);
  if (!program) return std::nullopt;
  Call own = call;
  own.part_bytes =
      Chunking::part_for_message(program->contract, library_call.bytes, info(call.dtype).bytes);
  const auto timeline = cost::Model(*program).predict(own, machine, diagnostics);
  if (!timeline) return std::nullopt;
  return timeline->back_to_back_ns / 1e3;
}

std::string range_text(const LibraryRow& row) {
  return row.bytes == ~uint64_t{0} ? "any size" : fmt::format("up to {} bytes", row.bytes);
}

}  // namespace

void explain_choices(const Program& program, const Call& call, const Machine& machine,
                     SumOrder order, cost::Explanation& explanation) {
  // Those of the library's table compute nothing of rows.
  if (explanation.ranks > kMaxCompared || !program.functions.empty()) return;
  Diagnostics diagnostics;
  const auto table =
      LibraryTable::parse(file_of_library("library.json"), "library.json", diagnostics);
  if (!table || program.contract.kind == CollectiveKind::none) return;
  const LibraryCall wanted = library_call(program, explanation, call.dtype, order, machine);
  const LibraryChoice* picked = table->choose(wanted);
  if (picked == nullptr) return;
  std::vector<const LibraryRow*> rows;
  for (const LibraryRow& row : table->rows()) {
    LibraryCall smaller = wanted;
    smaller.bytes = std::min(smaller.bytes, row.bytes);
    if (row.mismatch(smaller) == Mismatch::none) rows.push_back(&row);
  }
  std::ranges::stable_sort(rows, {},
                           [&](const LibraryRow* row) { return distance(*row, wanted.bytes); });
  std::vector<const LibraryChoice*> tried{picked};
  for (const LibraryRow* row : rows) {
    const bool known =
        std::ranges::any_of(tried, [&](const LibraryChoice* c) { return *c == row->choice; });
    if (!known && tried.size() < kMaxTried) tried.push_back(&row->choice);
  }
  for (const LibraryChoice* choice : tried) {
    const auto us = time_of(*choice, wanted, call, machine);
    if (us) explanation.choices.push_back({plan_text(*choice), *us, choice == picked});
  }
  std::ranges::stable_sort(explanation.choices, {}, &cost::ChoiceLine::us);
  size_t shown = 0;
  std::erase_if(explanation.choices,
                [&](const cost::ChoiceLine& c) { return ++shown > kMaxShown && !c.picked; });
  const auto row =
      std::ranges::find_if(table->rows(), [&](const LibraryRow& r) { return &r.choice == picked; });
  explanation.why_picked = fmt::format(
      "the library picks {} for this call: the first row of its table that fits, for {}",
      plan_text(*picked), range_text(*row));
}

}  // namespace mscclc
