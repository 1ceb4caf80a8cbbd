// Ops: their options and places in the text. Operands are in unroll_operands.cc.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/unroll/unroll_state.h"

namespace mscclc {

// ---- options ---------------------------------------------------------------------------------

bool Unroller::part_option(const ast::Option& o, OpOptions& out) {
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
  out.part_mark = mark_of(o.place);
  return true;
}

/// An op adds up in one way.
bool Unroller::summation_option(const ast::Option& o, OpOptions& out) {
  if (out.summation != Summation::in_turn) {
    evaluator_.fail(
        "option", o.place,
        fmt::format("'{}' and '{}' exclude each other", name(out.summation), ast_.text(o.name)));
    return false;
  }
  out.summation = *find_summation(ast_.text(o.name));
  out.summation_mark = mark_of(o.place);
  return true;
}

bool Unroller::op_options(const ast::OpStmt& s, OpOptions& out) {
  for (const ast::Option& o : s.options) {
    const Mark mark = mark_of(o.place);
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

// ---- places ----------------------------------------------------------------------------------

FileId Unroller::program_file(std::string_view name) {
  std::vector<std::string>& files = builder_.program().files;
  const auto known = static_cast<FileId>(std::ranges::find(files, name) - files.begin());
  if (known == files.size()) files.emplace_back(name);
  return known;
}

uint32_t Unroller::new_site(const ast::Stmt& s) {
  const Span span = ast_.span(s.place);
  Site site{program_file(sources_.file(span.file).name), span.line, span.column, {}};
  for (const Binding& b : evaluator_.bindings) site.variables.push_back(name_id(b.name));
  Program& p = builder_.program();
  p.sites.push_back(std::move(site));
  return static_cast<uint32_t>(p.sites.size() - 1);
}

/// The values of the variables that distinguish ops, shared by ops in the same round of all loops.
inline Slice Unroller::present_values() {
  if (evaluator_.bindings_changed) {
    evaluator_.bindings_changed = false;
    values_.count = static_cast<uint32_t>(evaluator_.bindings.size());
    int64_t* to = builder_.program().integers.add(values_.count, values_.first);
    for (const Binding& b : evaluator_.bindings) *to++ = b.value;
  }
  return values_;
}

/// What is known of the statement in the present chain of expansions.
inline OpPlan& Unroller::plan_of(const ast::Stmt& s) {
  const auto address = reinterpret_cast<uintptr_t>(&s);
  OpPlan*& cached = plan_cache_[(address >> 4 ^ context_ * 31) % kPlanCache];
  if (cached == nullptr || cached->stmt != &s || cached->context != context_) {
    cached = &make_plan(s);
  }
  return *cached;
}

OpPlan& Unroller::make_plan(const ast::Stmt& s) {
  const auto [it, added] = plans_.try_emplace({&s, context_});
  OpPlan& plan = it->second;
  if (!added) return plan;
  plan.stmt = &s;
  plan.context = context_;
  if (s.kind != ast::StmtKind::op) {
    plan.site = new_site(s);
    return plan;
  }
  const ast::OpStmt& op = s.as<ast::OpStmt>();
  if (op.locations.empty()) plan.site = new_site(s);
  plan.operands.resize(op.operands.size());
  for (size_t i = 0; i < plan.operands.size(); ++i) {
    OperandPlan& o = plan.operands[i];
    o.written = &op.operands[i];
    const ast::Binder* binder = o.written->binder;
    o.steady = binder != nullptr && binder->where == nullptr && o.steady_except(binder->name.id);
  }
  return plan;
}

/// IR text says where its ops come from, and so may programs that another program has written.
void Unroller::written_locations(ast::Array<const ast::Location> written) {
  Program& p = builder_.program();
  Slice locations;
  for (const ast::Location& l : written) {
    Site site{0, l.line, l.column, {}};
    if (!l.file.empty()) {
      site.file = program_file(l.file);
    } else if (!main_.is_ir) {
      site.file = program_file(sources_.file(main_.id).name);
    } else if (p.files.empty()) {
      p.files.push_back(sources_.file(main_.id).name);
    }
    std::vector<int64_t> values;
    for (const ast::LocationValue& v : l.values) {
      site.variables.push_back(name_id(v.name.id));
      values.push_back(v.value);
    }
    p.locations.extend(locations, {builder_.site_id(std::move(site)), p.append(values)});
  }
  builder_.at_locations(locations);
}

// ---- ops -------------------------------------------------------------------------------------

void Unroller::op(const ast::OpStmt& s) {
  op_place_ = s.place;
  if (main_.is_ir) {
    written_locations(s.locations);
    operands(s.dsts(), dsts_);
    operands(s.srcs(), srcs_);
  } else {
    OpPlan& plan = plan_of(s);
    if (s.locations.empty()) {
      builder_.at_site(plan.site, present_values());
    } else {
      written_locations(s.locations);
    }
    const std::span<OperandPlan> all(plan.operands);
    planned_operands(all.first(s.dst_count), dsts_);
    planned_operands(all.subspan(s.dst_count), srcs_);
  }
  OpOptions options;
  if (!s.options.empty() && !op_options(s, options)) return;
  builder_.op(s.op, dsts_.all(), srcs_.all(), options);
  evaluator_.earn_steps(kStepsPerOp);
}

void Unroller::barrier(const ast::Barrier& s) {
  op_place_ = s.keyword;
  List blocks;
  if (!evaluator_.list(s.blocks, blocks)) return;
  if (main_.is_ir || !s.locations.empty()) {
    written_locations(s.locations);
  } else {
    builder_.at_site(plan_of(s).site, present_values());
  }
  builder_.barrier(blocks, mark_of(s.blocks.place));
}

}  // namespace mscclc
