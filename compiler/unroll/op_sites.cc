#include "compiler/unroll/op_sites.h"

#include <algorithm>

namespace mscclc {

FileId OpSites::program_file(std::string_view name) {
  std::vector<std::string>& files = builder_.program().files;
  const auto known = static_cast<FileId>(std::ranges::find(files, name) - files.begin());
  if (known == files.size()) files.emplace_back(name);
  return known;
}

uint32_t OpSites::new_site(const ast::Stmt& s) {
  const Span span = ast_.span(s.place);
  Site site{program_file(scope_.sources.file(span.file).name), span.line, span.column, {}};
  for (const Binding& b : evaluator_.context().bindings)
    site.variables.push_back(scope_.name_id(b.name));
  Program& p = builder_.program();
  p.sites.push_back(std::move(site));
  return static_cast<uint32_t>(p.sites.size() - 1);
}

/// The values of the variables that distinguish ops, shared by ops in the same round of all loops.
Slice OpSites::present_values() {
  if (evaluator_.context().bindings_changed) {
    evaluator_.context().bindings_changed = false;
    values_.count = static_cast<uint32_t>(evaluator_.context().bindings.size());
    int64_t* to = builder_.program().integers.add(values_.count, values_.first);
    for (const Binding& b : evaluator_.context().bindings) *to++ = b.value;
  }
  return values_;
}

/// What is known of the statement in the present chain of expansions.
OpPlan& OpSites::plan_of(const ast::Stmt& s) {
  const auto address = reinterpret_cast<uintptr_t>(&s);
  OpPlan*& cached = plan_cache_[(address >> 4 ^ context_ * 31) % kPlanCache];
  if (cached == nullptr || cached->stmt != &s || cached->context != context_) {
    cached = &make_plan(s);
  }
  return *cached;
}

OpPlan& OpSites::make_plan(const ast::Stmt& s) {
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
void OpSites::written_locations(ast::Array<const ast::Location> written) {
  Program& p = builder_.program();
  Slice locations;
  for (const ast::Location& l : written) {
    Site site{0, l.line, l.column, {}};
    if (!l.file.empty()) {
      site.file = program_file(l.file);
    } else if (!scope_.main.is_ir) {
      site.file = program_file(scope_.sources.file(scope_.main.id).name);
    } else if (p.files.empty()) {
      p.files.push_back(scope_.sources.file(scope_.main.id).name);
    }
    std::vector<int64_t> values;
    for (const ast::LocationValue& v : l.values) {
      site.variables.push_back(scope_.name_id(v.name.id));
      values.push_back(v.value);
    }
    p.locations.extend(locations, {builder_.site_id(std::move(site)), p.append(values)});
  }
  builder_.at_locations(locations);
}

// ---- expansions ------------------------------------------------------------------------------

std::optional<uint32_t> OpSites::enter(const ast::DefCall& s) {
  const uint32_t outer = context_;
  const auto next = static_cast<uint32_t>(contexts_.size() + 1);
  const auto [chain, added] = contexts_.try_emplace({&s, outer}, next);
  if (added && !evaluator_.steps().take(s.place, kStepsOfChain)) return std::nullopt;
  context_ = chain->second;
  return outer;
}

// ---- several unrollers -----------------------------------------------------------------------

/// By chain of expansions of another unroller: ours.
std::vector<uint32_t> OpSites::take_contexts(const OpSites& other) {
  std::vector<const std::pair<const ast::Stmt*, uint32_t>*> chains(other.contexts_.size());
  for (const auto& [chain, id] : other.contexts_) chains[id - 1] = &chain;
  std::vector<uint32_t> ours = {0};
  for (const auto* chain : chains) {  // what a chain continues has a lower number
    const auto next = static_cast<uint32_t>(contexts_.size() + 1);
    ours.push_back(contexts_.try_emplace({chain->first, ours[chain->second]}, next).first->second);
  }
  return ours;
}

/// By site of another unroller: ours. New ones come in the order of its own.
std::vector<uint32_t> OpSites::take(const OpSites& other) {
  const Program& theirs = other.builder_.state().draft().program;
  const std::vector<uint32_t> contexts = take_contexts(other);
  std::vector<const OpPlan*> plans(theirs.sites.size());
  for (const auto& [key, plan] : other.plans_) plans[plan.site] = &plan;
  std::vector<NameId> names;
  for (const std::string& name : theirs.names()) names.push_back(builder_.intern(name));
  std::vector<uint32_t> ours;
  for (const OpPlan* plan : plans) {
    const uint32_t context = contexts[plan->context];
    const auto [known, added] = plans_.try_emplace({plan->stmt, context});
    if (added) {
      Site site = theirs.sites[plan->site];
      site.file = program_file(theirs.files[site.file]);
      for (NameId& variable : site.variables) variable = names[variable];
      std::vector<Site>& sites = builder_.program().sites;
      known->second.site = static_cast<uint32_t>(sites.size());
      sites.push_back(std::move(site));
    }
    ours.push_back(known->second.site);
  }
  return ours;
}

}  // namespace mscclc
