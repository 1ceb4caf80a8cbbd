// Ops as text, and where they stand.
#include "ir/print/print.h"
#include "ir/print/print_parts.h"
#include "ir/print/row_names.h"
#include "ir/program/applied.h"
#include "ir/support/precondition.h"

namespace mscclc {

void OpPrinter::Texts::add(std::string_view piece) {
  text += piece;
  ends.push_back(static_cast<uint32_t>(text.size()));
}

std::string_view OpPrinter::Texts::operator[](size_t i) const {
  const uint32_t begin = i == 0 ? 0 : ends[i - 1];
  return std::string_view(text).substr(begin, ends[i] - begin);
}

void OpPrinter::begin_rank(uint32_t rank, bool remember) {
  rank_ = rank;
  remembers_ = remember;
  if (!remember) return;
  channels_ = semaphores_ = {};
  for (const Channel& c : program_.ranks[rank].channels) channels_.add(program_.text(c.label));
  for (const Semaphore& s : program_.ranks[rank].semaphores) {
    semaphores_.add(program_.text(s.label));
  }
}

void OpPrinter::print(TextWriter& out, const Op& op) {
  const OpInfo& row = info(op.kind);
  out << row.name;
  if (row.has(kApplies)) return print_applied(out, op);
  if (op.dsts > 0) {
    out << ' ';
    print_side(out, row.dsts, program_.dsts(op));
  }
  if (op.srcs > 0) {
    out << " <- ";
    print_side(out, row.srcs, program_.srcs(op));
  }
  if (applies(op)) {
    out << " then";
    return print_applied(out, op);
  }
  print_options(out, op);
}

/// Operands and externals as the function has them: results, then arguments. Of a sum that is
/// handed over, `_` stands for the sum and for where its result goes.
void OpPrinter::print_applied(TextWriter& out, const Op& op) {
  const Applied what = applied(program_, op);
  const bool sums = !info(op.kind).has(kApplies);
  out << ' ' << program_.functions[what.function].name << ' ';
  const auto print_all = [&](std::span<const int64_t> values, std::span<const Operand> operands) {
    Separator list(out);
    for (const int64_t v : values) {
      const RowValue value = Applied::value(v);
      list.next();
      if (value.external) {
        print_rows(out, program_.externals[value.index], what.first, operands[0].count);
      } else if (sums) {
        out << '_';
      } else {
        print_operand(out, SlotKind::local, operands[value.index]);
      }
    }
  };
  print_all(what.results, program_.dsts(op));
  out << " <- ";
  print_all(what.params, program_.srcs(op));
  print_options(out, op);
}

/// Rows of an external; one that has none is all meant.
void OpPrinter::print_rows(TextWriter& out, const rows::External& external, uint32_t first,
                           uint32_t count) {
  out << external.name;
  if (!external.has_rows()) return;
  (out << '[').number(first);
  if (count != 1) (out << "..").number(uint64_t{first} + count);
  out << ']';
}

void OpPrinter::print_side(TextWriter& out, const Slots& slots, std::span<const Operand> operands) {
  const SlotKind kind = slots.slot[0].kind;  // chunks of all kinds are written alike
  if (kind == SlotKind::block) return print_blocks(out, operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) out << ", ";
    print_operand(out, kind, operands[i]);
  }
}

void OpPrinter::print_operand(TextWriter& out, SlotKind kind, const Operand& o) {
  const Rank& rank = program_.ranks[rank_];
  if (kind == SlotKind::flag) {
    (out << program_.flags[o.buffer].name << '[').number(o.first) << ']';
    return;
  }
  if (kind == SlotKind::semaphore) {
    if (remembers_) {
      out << semaphores_[o.first];
    } else {
      out << program_.text(rank.semaphores[o.first].label);
    }
    return;
  }
  if (o.channel != kNone) {
    if (remembers_) {
      out << channels_[o.channel];
    } else {
      out << program_.text(rank.channels[o.channel].label);
    }
    if (kind == SlotKind::channel) return;
    out << '.';
  }
  if (names_rows_) return print_run(out, program_, program_.buffer_of(rank_, o), o.first, o.count);
  out << program_.name_of(program_.buffer_of(rank_, o).name) << '[';
  out.number(o.first);
  if (o.count != 1) {
    out << "..";
    out.number(uint64_t{o.first} + o.count);
  }
  out << ']';
}

void OpPrinter::print_blocks(TextWriter& out, std::span<const Operand> blocks) {
  std::vector<int64_t> ids;
  ids.reserve(blocks.size());
  for (const Operand& o : blocks) ids.push_back(o.first);
  print_set(out, ids);
}

void OpPrinter::print_options(TextWriter& out, const Op& op) {
  if (!op.relaxed && op.reduce == ReduceOp::call && op.parts == 0 &&
      op.summation == Summation::in_turn && !op.complete) {
    return;
  }
  out << ' ';
  Separator options(out);
  if (op.relaxed) options.next() << "relaxed";
  if (op.reduce != ReduceOp::call) options.next() << "op: " << name(op.reduce);
  if (op.parts > 0) {
    options.next() << "part: ";
    const int64_t part[] = {op.part, op.parts};
    print_list(out, part);
  }
  if (op.summation != Summation::in_turn) options.next() << name(op.summation);
  if (op.complete) options.next() << "complete";
}

void OpPrinter::prepare_sites() {
  for (size_t i = sites_.size(); i < program_.sites.size(); ++i) {
    const Site& site = program_.sites[i];
    TextWriter head(64);
    head << '@';
    if (site.file != 0) {
      print_string(head, program_.files[site.file]);
      head << ':';
    }
    head.number(site.line) << ':';
    head.number(site.column);
    SiteText text{head.take(), {}};
    for (const NameId variable : site.variables) {
      text.values.push_back((text.values.empty() ? "(" : ", ") +
                            std::string(program_.name_of(variable)) + '=');
    }
    sites_.push_back(std::move(text));
  }
}

void OpPrinter::print_locations(TextWriter& out, const Op& op) {
  if (sites_.size() < program_.sites.size()) prepare_sites();
  std::string_view gap = "  ";
  for (const Location& location : program_.locations.of(op.locations)) {
    const SiteText& site = sites_[location.site];
    out << gap << site.head;
    gap = " ";
    if (site.values.empty()) continue;
    const int64_t* value = program_.integers.at(location.values.first);
    for (const std::string& piece : site.values) (out << piece).number(*value++);
    out << ')';
  }
}

std::string print_op(const Program& program, uint32_t rank, const Op& op) {
  TextWriter out(256);
  OpPrinter printer(program);
  printer.begin_rank(rank, false);
  printer.name_rows();
  printer.print(out, op);
  return out.take();
}

std::string print_chunks(const Program& program, uint32_t rank, const Operand& operand) {
  precondition(operand.channel == kNone || operand.channel < program.ranks[rank].channels.size());
  TextWriter out(64);
  if (operand.channel != kNone) {
    out << program.text(program.ranks[rank].channels[operand.channel].label) << '.';
  }
  print_run(out, program, program.buffer_of(rank, operand), operand.first, operand.count);
  return out.take();
}

std::string print_bindings(const Program& program, const Op& op) {
  if (op.locations.count == 0) return {};
  const Location& location = program.locations[op.locations.first];
  const std::vector<NameId>& variables = program.sites[location.site].variables;
  std::string out;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (i > 0) out += ", ";
    out += program.name_of(variables[i]);
    out += " = " + std::to_string(program.values(location.values)[i]);
  }
  return out;
}

std::string print_location(const Program& program, const Op& op) {
  if (op.locations.count == 0) return {};
  const Site& site = program.sites[program.locations[op.locations.first].site];
  std::string out = program.files[site.file] + ':' + std::to_string(site.line) + ':' +
                    std::to_string(site.column);
  const std::string bindings = print_bindings(program, op);
  if (!bindings.empty()) out += " (" + bindings + ')';
  return out;
}

}  // namespace mscclc
