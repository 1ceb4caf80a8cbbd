#include "compiler/unroll/unroll_scope.h"

#include <algorithm>

namespace mscclc {

UnrollScope::UnrollScope(const UnrollInput& input, Diagnostics& diagnostics_in)
    : sources(input.sources),
      ast(input.ast),
      main(input.main),
      defines(input.defines),
      options(input.options),
      resolution(input.resolution),
      diagnostics(diagnostics_in),
      evaluator(ast, diagnostics),
      builder(diagnostics, this),
      name_ids_(ast.names().size(), kNone) {
  // Half a second's worth without any op; more as ops are made, up to what all of them may take.
  constexpr uint64_t kFreeSteps = uint64_t{1} << 26, kLeastSteps = 1 << 20;
  builder.set_max_ops(options.max_ops);
  const uint64_t ops = std::min(options.max_ops, uint64_t{1} << 40);
  evaluator.steps().set_max(kFreeSteps, kLeastSteps + kStepsPerOp * ops);
}

/// Members of a family are declared one by one, all at the same place.
Span UnrollScope::span(Mark mark) {
  const ast::TextRange place = mark.end == 0 ? place_ : ast::TextRange{mark.begin, mark.end};
  if (place.begin != last_place_.begin || place.end != last_place_.end || place.end == 0) {
    last_span_ = ast.span(place);
    last_place_ = place;
  }
  return last_span_;
}

std::string_view UnrollScope::text(Mark mark) {
  return mark.end == 0 ? std::string_view{} : ast.text(ast::TextRange{mark.begin, mark.end});
}

void UnrollScope::add_context(Diagnostic& diagnostic) { evaluator.context().add_to(diagnostic); }

void UnrollScope::let(const ast::Let& s) {
  for (const ast::Definition& d : s.definitions) {
    Value v;
    if (d.function) {
      v.kind = ValueKind::function;
      v.function = &d;
      evaluator.names().set_locals(d.name.id, resolution.by_symbol[d.name.id]);
    } else if (!evaluator.eval(d.value, v)) {
      v = {};
    } else if (v.kind > ValueKind::list) {
      evaluator.expected("a value", v.kind, d.value);
      v = {};
    }
    evaluator.value(d.name.id) = v;
  }
}

/// From here on the declared names stand for things.
void UnrollScope::bind_names(const ast::Stmt& s) {
  const auto bind = [&](const ast::Name& name, ValueKind kind) {
    Value& v = evaluator.value(name.id);
    v.kind = kind;
    v.thing = name_id(name.id);
  };
  if (s.kind == ast::StmtKind::buffer) bind(s.as<ast::BufferDecl>().name, ValueKind::buffer);
  if (s.kind == ast::StmtKind::channel) bind(s.as<ast::ChannelDecl>().name, ValueKind::channel);
  if (s.kind != ast::StmtKind::semaphore) return;
  for (const ast::SemaphoreDecl& d : s.as<ast::Semaphores>().semaphores) {
    bind(d.name, ValueKind::semaphore);
  }
}

}  // namespace mscclc
