#include "compiler/unroll/least_work.h"

#include <algorithm>
#include <limits>

namespace mscclc {
namespace {

uint64_t sum(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<uint64_t>::max() : out;
}

uint64_t product(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<uint64_t>::max() : out;
}

}  // namespace

LeastWork WorkCounter::count(const ast::Stmt& s) {
  switch (s.kind) {
    case ast::StmtKind::for_:
      return loop(s.as<ast::For>().binders, s.as<ast::For>().body);
    case ast::StmtKind::tb: {
      const ast::Placed& tb = s.as<ast::Placed>();
      return tb.at.name.given() ? loop({&tb.at, 1}, tb.body) : block(tb.body);
    }
    case ast::StmtKind::group:
      return block(s.as<ast::Group>().body);
    case ast::StmtKind::pipeline:
      return block(s.as<ast::Pipeline>().body);
    case ast::StmtKind::let:
      for (const ast::Definition& d : s.as<ast::Let>().definitions) inner_.push_back(d.name.id);
      return {};
    case ast::StmtKind::op: {
      const auto varies = [](const ast::Operand& o) { return o.binder != nullptr; };
      const bool one = ops_stay_ && std::ranges::none_of(s.as<ast::OpStmt>().operands, varies);
      return {.ops = one ? 1u : 0u, .may_do_ops = true};
    }
    case ast::StmtKind::barrier:
      return {.may_do_ops = true};
    case ast::StmtKind::call:
      return call(s.as<ast::DefCall>().def.id);
    case ast::StmtKind::if_: {
      LeastWork none;
      for (const ast::If::Arm& arm : s.as<ast::If>().arms) {
        none.may_do_ops = block(arm.body).may_do_ops || none.may_do_ops;
      }
      return none;
    }
    default:
      return {};
  }
}

LeastWork WorkCounter::block(const ast::Block& b) {
  LeastWork all;
  for (const ast::Stmt* s : b.statements) {
    const LeastWork work = count(*s);
    all = {sum(all.rounds, work.rounds), sum(all.ops, work.ops), all.may_do_ops || work.may_do_ops};
  }
  return all;
}

/// A call is a step itself. Its arguments are not looked at, so it is the same everywhere.
LeastWork WorkCounter::call(ast::Symbol def) {
  const Value& v = evaluator_.value(def);
  if (v.kind != ValueKind::def) return {};
  if (const auto known = defs_.find(def); known != defs_.end()) return known->second;
  if (depth_ >= kMaxExpansion) return {.may_do_ops = true};  // refused later
  ++depth_;
  const size_t outer = inner_.size();
  const Locals& locals = evaluator_.names().locals(def);
  inner_.insert(inner_.end(), locals.begin(), locals.end());
  LeastWork work = block(v.def->body);
  work.rounds = sum(work.rounds, 1);
  inner_.resize(outer);
  --depth_;
  defs_.emplace(def, work);
  return work;
}

LeastWork WorkCounter::loop(ast::Array<const ast::Binder> binders, const ast::Block& body,
                            uint32_t at) {
  if (at == binders.size()) return block(body);
  const ast::Binder& b = binders[at];
  const uint64_t rounds = length(b.list).value_or(0);
  inner_.push_back(b.name.id);
  const LeastWork each = loop(binders, body, at + 1);
  if (b.where != nullptr) return {.rounds = rounds, .may_do_ops = each.may_do_ops};
  return {product(rounds, sum(each.rounds, 1)), product(rounds, each.ops), each.may_do_ops};
}

std::optional<uint64_t> WorkCounter::length(const ast::Expr& e) const {
  if (e.kind == ast::ExprKind::name && known(e.name.id)) {
    const Value& v = evaluator_.value(e.name.id);
    if (v.kind == ValueKind::list) return static_cast<uint64_t>(v.list->count);
  }
  if (e.kind != ast::ExprKind::binary || e.op != ast::BinaryOp::range) return std::nullopt;
  const auto from = number(e.kids[0]), to = number(e.kids[1]);
  if (!from || !to) return std::nullopt;
  return *to <= *from ? 0 : static_cast<uint64_t>(*to) - static_cast<uint64_t>(*from);
}

std::optional<int64_t> WorkCounter::number(const ast::Expr& e) const {
  if (e.kind == ast::ExprKind::integer) return e.value;
  if (e.kind != ast::ExprKind::name || !known(e.name.id)) return std::nullopt;
  const Value& v = evaluator_.value(e.name.id);
  if (v.kind != ValueKind::integer) return std::nullopt;
  return v.integer;
}

bool WorkCounter::known(ast::Symbol name) const {
  return std::ranges::find(inner_, name) == inner_.end();
}

}  // namespace mscclc
