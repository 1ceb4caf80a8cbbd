// Header lines: names, parameters, conditions. The contract is in unroll_contract.cc, `select` and
// `launch` are in unroll_options.cc.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/unroll/unroll_state.h"

namespace mscclc {
void Unroller::header(const Item& item) {
  const ast::Stmt& s = *item.stmt;
  op_place_ = s.keyword;
  switch (s.kind) {
    case ast::StmtKind::ir:
      if (const auto from = s.as<ast::Version>().from; !from.empty()) {
        builder_.program().files.emplace_back(from);
      }
      break;
    case ast::StmtKind::program:
      builder_.program().name = ast_.text(s.as<ast::ProgramItem>().name);
      builder_.program().description = s.as<ast::ProgramItem>().description;
      break;
    case ast::StmtKind::param:
      param(s.as<ast::Let>());
      break;
    case ast::StmtKind::let:
      let(s.as<ast::Let>());
      break;
    case ast::StmtKind::def:
      evaluator_.value(s.as<ast::Def>().name.id).kind = ValueKind::def;
      evaluator_.value(s.as<ast::Def>().name.id).def = &s.as<ast::Def>();
      evaluator_.set_locals(s.as<ast::Def>().name.id,
                            resolution_.by_symbol[s.as<ast::Def>().name.id]);
      break;
    case ast::StmtKind::require:
      require(s.as<ast::Require>());
      break;
    case ast::StmtKind::collective:
      collective(s.as<ast::Collective>());
      break;
    case ast::StmtKind::ensure:
      ensure(s.as<ast::Ensure>());
      break;
    case ast::StmtKind::select:
      select(s.as<ast::Options>());
      break;
    case ast::StmtKind::launch:
      launch(s.as<ast::Options>());
      break;
    default:
      break;
  }
}

// ---- names -----------------------------------------------------------------------------------

void Unroller::let(const ast::Let& s) {
  for (const ast::Definition& d : s.definitions) {
    Value v;
    if (d.function) {
      v.kind = ValueKind::function;
      v.function = &d;
      evaluator_.set_locals(d.name.id, resolution_.by_symbol[d.name.id]);
    } else if (!evaluator_.eval(d.value, v)) {
      v = {};
    } else if (v.kind > ValueKind::list) {
      evaluator_.expected("a value", v.kind, d.value);
      v = {};
    }
    evaluator_.value(d.name.id) = v;
  }
}

void Unroller::param(const ast::Let& s) {
  for (const ast::Definition& d : s.definitions) {
    Value v;
    params_.push_back(ast_.text(d.name));
    if (const auto format = packet_format_word(ast_, d.value)) {
      v.kind = ValueKind::format;
      v.format = *format;
    } else if (!evaluator_.eval(d.value, v)) {
      v = {};
    }
    for (size_t i = 0; i < defines_.size(); ++i) {
      if (defines_[i].symbol != d.name.id) continue;
      used_defines_[i] = true;
      if (v.kind != ValueKind::unbound && !override_param(d, defines_[i], v)) v = {};
    }
    evaluator_.value(d.name.id) = v;
  }
}

/// Replaces a default by what -D says, of the default's type. A list of one may lack its brackets.
bool Unroller::override_param(const ast::Definition& d, const Define& define, Value& v) {
  const auto refuse = [&] {
    evaluator_.fail(
        "define", ast_.place(d.name),
        fmt::format("'{}' is {}; -D says '{}'", ast_.text(d.name), kind_text(v.kind), define.text));
    return false;
  };
  const ast::Expr& e = define.value;
  if (!e.given()) return refuse();
  if (v.kind == ValueKind::format) {
    const auto format = packet_format_word(ast_, e);
    if (!format) return refuse();
    v.format = *format;
    return true;
  }
  if (e.kind == ast::ExprKind::name && evaluator_.value(e.name.id).kind == ValueKind::unbound) {
    return refuse();
  }
  Value said;
  if (!evaluator_.eval(e, said)) return false;
  if (v.kind == ValueKind::list && said.kind == ValueKind::integer) {
    int64_t* element = evaluator_.lists().allocate(1);
    if (element == nullptr) return refuse();
    *element = said.integer;
    said.kind = ValueKind::list;
    said.list = evaluator_.lists().make(List::stored({element, 1}));
    if (said.list == nullptr) return refuse();
  }
  if (said.kind != v.kind) return refuse();
  v = said;
  return true;
}

void Unroller::unknown_defines() {
  for (size_t i = 0; i < used_defines_.size(); ++i) {
    if (used_defines_[i]) continue;
    const Define& d = defines_[i];
    usable_ = false;
    diagnostics_.error("define", {},
                       fmt::format("no parameter '{0}' for -D {0}={1}", d.name, d.text));
  }
}

void Unroller::require(const ast::Require& s) {
  bool good = false;
  if (!evaluator_.boolean(s.condition, good)) {
    usable_ = false;
    return;
  }
  if (good) return;
  usable_ = false;
  const std::string variables = evaluator_.variables_text(s.condition);
  diagnostics_.error("require", ast_.span(s.condition.place),
                     fmt::format("condition failed: \"{}\"{}", s.message,
                                 variables.empty() ? "" : fmt::format(" ({})", variables)));
}

}  // namespace mscclc
