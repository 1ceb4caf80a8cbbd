#include "ir/report/op_error.h"

#include <utility>

#include "ir/print/print.h"
#include "ir/print/print_parts.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// Fills the place of a diagnostic or note from the op's first location.
template <class T>
void set_place(T& message, const Program& program, const Op& op) {
  message.span = span_of(program, op);
  if (op.locations.count == 0) return;
  const Site& site = program.sites[program.locations[op.locations.first].site];
  if (site.file < program.files.size()) message.file = program.files[site.file];
}

}  // namespace

Span span_of(const Program& program, const Op& op) {
  if (op.locations.count == 0) return {};
  const Site& site = program.sites[program.locations[op.locations.first].site];
  return {.file = site.file, .line = site.line, .column = site.column};
}

std::vector<LoopValue> loop_values(const Program& program, const Op& op) {
  if (op.locations.count == 0) return {};
  const Location& location = program.locations[op.locations.first];
  const std::vector<NameId>& variables = program.sites[location.site].variables;
  std::vector<LoopValue> values;
  for (size_t i = 0; i < variables.size(); ++i) {
    values.push_back(
        {std::string(program.name_of(variables[i])), program.values(location.values)[i]});
  }
  return values;
}

EdgeEnd access_of(const Program& program, uint32_t rank, const Op& op, std::string does) {
  EdgeEnd found;
  found.op = print_op(program, rank, op);
  found.does = std::move(does);
  if (op.block != kNone) found.block = "tb " + std::to_string(op.block);
  found.rank = rank;
  set_place(found, program, op);
  found.loop = loop_values(program, op);
  return found;
}

std::string describe_op(const Program& program, uint32_t rank, const Op& op) {
  std::string text = '\'' + print_op(program, rank, op) + '\'';
  if (op.block != kNone) text += " in tb " + std::to_string(op.block);
  text += " of rank " + std::to_string(rank);
  const std::string bindings = print_bindings(program, op);
  return bindings.empty() ? text : text + " (" + bindings + ')';
}

std::string print_place(const Program& program, uint32_t rank, const Op& op) {
  TextWriter out(128);
  (out << "rank ").number(rank);
  if (op.block != kNone) {
    (out << ", tb ").number(op.block);
  } else if (op.group != kNone) {
    print_set(out << ", group ", program.values(program.groups[op.group]));
  }
  return out.take();
}

Note op_note(const Program& program, const Op& op, std::string text) {
  Note note;
  note.text = std::move(text);
  set_place(note, program, op);
  return note;
}

Diagnostic& op_error(Diagnostics& diagnostics, std::string code, const Program& program,
                     uint32_t rank, const Op& op, std::string message) {
  precondition(rank < program.ranks.size());
  Diagnostic d;
  d.code = std::move(code);
  d.message = std::move(message);
  set_place(d, program, op);
  d.loop = loop_values(program, op);
  const std::string bindings = print_bindings(program, op);
  if (!bindings.empty()) d.notes.push_back({"when " + bindings});
  d.notes.push_back(
      {"in '" + print_op(program, rank, op) + "' (" + print_place(program, rank, op) + ')'});
  return diagnostics.add(std::move(d));
}

}  // namespace mscclc
