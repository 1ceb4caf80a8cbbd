#include "compiler/unroll/op_reader.h"

#include <fmt/format.h>

#include "compiler/resolve/options.h"
#include "ir/program/applied.h"

namespace mscclc {

bool OpReader::part_option(const ast::Option& o, OpOptions& out) {
  List part;
  if (!evaluator_.list(o.value, part)) return false;
  const bool good = part.count == 2 && part[0] >= 0 && part[1] > part[0] && part[1] <= 0xffff;
  if (!good) {
    evaluator_.fail("option-value", o.value,
                    "'part' takes [i, n] with i below n, and n below 65536");
    return false;
  }
  out.part = static_cast<uint32_t>(part[0]);
  out.parts = static_cast<uint32_t>(part[1]);
  out.part_mark = scope_.mark_of(o.place);
  return true;
}

/// An op adds up in one way.
bool OpReader::summation_option(const ast::Option& o, OpOptions& out) {
  if (out.summation != Summation::in_turn) {
    evaluator_.fail(
        "option", o.place,
        fmt::format("'{}' and '{}' exclude each other", name(out.summation), ast_.text(o.name)));
    return false;
  }
  out.summation = *find_summation(ast_.text(o.name));
  out.summation_mark = scope_.mark_of(o.place);
  return true;
}

bool OpReader::op_options(const ast::OpStmt& s, OpOptions& out) {
  for (const ast::Option& o : s.options) {
    const Mark mark = scope_.mark_of(o.place);
    switch (o.name.id) {
      case ast::w_relaxed:
        out.relaxed = true;
        out.relaxed_mark = mark;
        break;
      case ast::w_tree:
      case ast::w_exact:
        if (!summation_option(o, out)) return false;
        break;
      case ast::w_complete:
        out.complete = true;
        out.complete_mark = mark;
        break;
      case ast::w_op: {
        const std::string_view word = ast_.text(o.value.place);
        const auto reduce = find_reduce_op(word);
        if (!reduce) {
          evaluator_.fail(
              "unknown-reduction", o.value.place,
              fmt::format("unknown reduction '{}'{}", word, suggestion(word, reduce_names())));
          return false;
        }
        out.reduce = *reduce;
        out.reduce_mark = mark;
        break;
      }
      case ast::w_part:
        if (!part_option(o, out)) return false;
        break;
      default:
        return false;  // reported by the resolver
    }
  }
  return true;
}

void OpReader::op(const ast::OpStmt& s) {
  scope_.set_place(s.place);
  if (scope_.main.is_ir) {
    sites_.written_locations(s.locations);
    operands_.read(s.dsts(), dsts_);
    operands_.read(s.srcs(), srcs_);
    if (s.has_then) operands_.read(s.results(), results_);
    if (s.has_then) operands_.read(s.params(), params_);
  } else {
    OpPlan& plan = sites_.plan_of(s);
    if (s.locations.empty()) {
      builder_.at_site(plan.site, sites_.present_values());
    } else {
      sites_.written_locations(s.locations);
    }
    const std::span<OperandPlan> all(plan.operands);
    operands_.read(all.first(s.dst_count), dsts_);
    operands_.read(all.subspan(s.dst_count, s.src_count), srcs_);
    if (s.has_then) {
      const size_t after = s.dst_count + s.src_count;
      operands_.read(all.subspan(after, s.result_count), results_);
      operands_.read(all.subspan(after + s.result_count), params_);
    }
  }
  OpOptions options;
  if (!s.options.empty() && !op_options(s, options)) return;
  if (info(s.op).has(kApplies) || s.has_then) {
    apply(s, options);
  } else {
    builder_.op(s.op, dsts_.all(), srcs_.all(), options);
  }
  evaluator_.steps().earn(UnrollScope::kStepsPerOp);
}

void OpReader::apply(const ast::OpStmt& s, const OpOptions& options) {
  const Value& function = evaluator_.value(s.function.id);
  if (s.has_then && !may_apply(info(s.op))) return;  // reported by the resolver
  if (function.kind == ValueKind::row && s.has_then) {
    const ThenRows then{function.thing, results_.all(), params_.all(), s.output, s.sum};
    builder_.op_then(s.op, dsts_.all(), srcs_.all(), then, options);
  } else if (function.kind == ValueKind::row) {
    builder_.apply(function.thing, dsts_.all(), srcs_.all(), options);
  } else if (function.kind != ValueKind::unbound) {
    evaluator_.fail("wrong-kind", ast_.place(s.function),
                    fmt::format("'{}' is {}; expected a row function", ast_.text(s.function),
                                kind_text(function.kind)));
  }
}

void OpReader::barrier(const ast::Barrier& s) {
  scope_.set_place(s.keyword);
  List blocks;
  if (!evaluator_.list(s.blocks, blocks)) return;
  if (scope_.main.is_ir || !s.locations.empty()) {
    sites_.written_locations(s.locations);
  } else {
    builder_.at_site(sites_.plan_of(s).site, sites_.present_values());
  }
  builder_.barrier(blocks, scope_.mark_of(s.blocks.place));
}

}  // namespace mscclc
