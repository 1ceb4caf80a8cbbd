#include "ir/report/program_report.h"

#include <fmt/format.h>

#include <utility>

#include "ir/report/op_error.h"
#include "ir/support/precondition.h"

namespace mscclc {

void ProgramReport::error(std::string code, Span span, std::string message) {
  ++errors_;
  diagnostics_.error(std::move(code), span, std::move(message));
}

void ProgramReport::error(std::string code, uint32_t rank, const Op& op, std::string message,
                          std::string remedy) {
  ++errors_;
  Diagnostic& d = op_error(diagnostics_, std::move(code), program_, rank, op, std::move(message));
  if (!remedy.empty()) d.notes.push_back({std::move(remedy)});
}

void ProgramReport::error_unprintable(std::string code, uint32_t rank, const Op& op,
                                      std::string message) {
  precondition([&] { return program_.locations.has(op.locations.first, op.locations.count); });
  ++errors_;
  Note place = op_note(program_, op, {});
  Diagnostic d;
  d.code = std::move(code);
  d.span = place.span;
  d.file = std::move(place.file);
  d.message = std::move(message);
  d.notes.push_back({fmt::format("in '{}' of rank {}", info(op.kind).name, rank)});
  diagnostics_.add(std::move(d));
}

}  // namespace mscclc
