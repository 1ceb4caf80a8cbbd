#include "compiler/resolve/scopes.h"

#include <fmt/format.h>

#include <utility>

namespace mscclc {

using ast::Name;
using ast::Symbol;

namespace {

ValueKind value_kind(NameKind kind) {
  switch (kind) {
    case NameKind::function:
      return ValueKind::function;
    case NameKind::def:
      return ValueKind::def;
    case NameKind::buffer:
      return ValueKind::buffer;
    case NameKind::channel:
      return ValueKind::channel;
    case NameKind::semaphore:
      return ValueKind::semaphore;
    case NameKind::external:
      return ValueKind::external;
    case NameKind::flags:
      return ValueKind::flags;
    case NameKind::row:
      return ValueKind::row;
    default:
      return ValueKind::integer;
  }
}

}  // namespace

Scopes::Scopes(const ast::Ast& ast, Resolution& resolution, Diagnostics& diagnostics)
    : ast_(ast),
      resolution_(resolution),
      diagnostics_(diagnostics),
      names_(ast.names().size()),
      things_(ast.names().size()) {
  for (const Symbol s : {ast::w_input, ast::w_output}) {
    names_[s] = {NameKind::buffer, true, false, {s, 0}};
    things_[s].buffer = true;
  }
}

Diagnostic& Scopes::error(std::string code, ast::TextRange place, std::string message) {
  good_ = false;
  if (code == "redeclared" || code == "recursion" || code == "nesting") {
    resolution_.usable = false;
  }
  return diagnostics_.error(std::move(code), ast_.span(place), std::move(message));
}

void Scopes::declared_note(Diagnostic& d, const Name& name) {
  if (name.begin == 0 && name.id <= ast::w_output) return;
  d.notes.push_back({fmt::format("'{}' is declared here", ast_.text(name)), ast_.span(name)});
}

std::string Scopes::place_text(const Name& name) const {
  const Span span = ast_.span(name);
  return fmt::format("{}:{}", span.line, span.column);
}

template <class Filter>
std::string Scopes::did_you_mean(const Name& name, Filter wanted) const {
  std::vector<std::string_view> candidates;
  for (Symbol s = 0; s < names_.size(); ++s) {
    if (wanted(s)) candidates.push_back(ast_.text(s));
  }
  const std::string near = nearest(ast_.text(name), candidates);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

void Scopes::unknown(const Name& name, std::string_view remedy) {
  const std::string near =
      did_you_mean(name, [&](Symbol s) { return names_[s].kind != NameKind::none; });
  error("unknown-name", ast_.place(name),
        fmt::format("unknown name '{}'{}", ast_.text(name), near.empty() ? remedy : near));
}

void Scopes::wrong_kind(const Name& name, std::string_view expected) {
  Declared& d = names_[name.id];
  if (d.two_kinds) return;  // reported where the other is declared
  const std::string_view found =
      d.kind == NameKind::value ? "a value" : kind_text(value_kind(d.kind));
  d.used = things_[name.id].used = true;
  declared_note(error("wrong-kind", ast_.place(name),
                      fmt::format("'{}' is {}; expected {}", ast_.text(name), found, expected)),
                d.name);
}

bool Scopes::declare(const Name& name, NameKind kind, bool warn) {
  if (name.id == ast::w_input || name.id == ast::w_output) {
    error("redeclared", ast_.place(name),
          fmt::format("'{}' is the caller's buffer; choose another name", ast_.text(name)));
    return false;
  }
  Declared& d = names_[name.id];
  if (d.kind != NameKind::none) {
    d.two_kinds = d.two_kinds || d.kind != kind;
    error("redeclared", ast_.place(name),
          fmt::format("'{}' is already declared at {}{}", ast_.text(name), place_text(d.name),
                      d.kind == kind ? "" : "; rename one"));
    return false;
  }
  d = {kind, false, warn, name};
  scope_.push_back(name.id);
  if (body_names_ != nullptr) body_names_->push_back(name.id);
  return true;
}

void Scopes::leave(size_t mark) {
  while (scope_.size() > mark) {
    Declared& d = names_[scope_.back()];
    if (!d.used && d.warn) resolution_.unused.push_back(d.name);
    d = {};
    scope_.pop_back();
  }
}

void Scopes::use_thing(const Name& name, std::string_view expected, bool (*fits)(NameKind),
                       std::string_view remedy) {
  Declared& d = names_[name.id];
  d.used = things_[name.id].used = true;
  if (d.kind == NameKind::none) {
    unknown(name, remedy);
  } else if (d.kind != NameKind::argument && !fits(d.kind)) {
    wrong_kind(name, expected);
  }
}

void Scopes::use_value(const Name& name) {
  Declared& d = names_[name.id];
  if (d.kind == NameKind::none) {
    if (ast::is_function(name.id)) {
      error("wrong-kind", ast_.place(name),
            fmt::format("'{}' is a function; expected a value", ast_.text(name)));
    } else {
      calls_itself(name) ? void() : unknown(name);
    }
  } else if (d.kind != NameKind::value && d.kind != NameKind::argument) {
    wrong_kind(name, "a value");
  }
  d.used = true;
}

bool Scopes::calls_itself(const Name& name) {
  if (name.id != being_defined_) return false;
  error("recursion", ast_.place(name), fmt::format("'{}' calls itself", ast_.text(name)));
  return true;
}

void Scopes::use_callee(const Name& name, NameKind kind) {
  if (kind == NameKind::function && ast::is_function(name.id)) return;
  if (calls_itself(name)) return;
  Declared& d = names_[name.id];
  d.used = true;
  if (d.kind == NameKind::none) {
    unknown(name);
  } else if (d.kind != kind) {
    wrong_kind(name, kind == NameKind::function ? "a function" : "a def");
  }
}

void Scopes::far_name(const Name& name, bool Thing::*kind, std::string_view expected) {
  Thing& thing = things_[name.id];
  thing.used = true;
  if (thing.*kind) return;
  if (thing.buffer || thing.channel) {
    error("wrong-kind", ast_.place(name),
          fmt::format("'{}' is {}; expected {}", ast_.text(name),
                      thing.channel ? "a channel" : "a buffer", expected));
    return;
  }
  resolution_.unknown_far.push_back(name.id);
  error("unknown-name", ast_.place(name),
        fmt::format("unknown name '{}'{}", ast_.text(name),
                    did_you_mean(name, [&](Symbol s) { return things_[s].*kind; })));
}

void Scopes::declare_thing(const Name& name, NameKind kind, bool literal_keys, bool warn) {
  Thing& thing = things_[name.id];
  thing.buffer = thing.buffer || kind == NameKind::buffer;
  thing.channel = thing.channel || kind == NameKind::channel;
  if (literal_keys && names_[name.id].kind == kind) return;
  if (declare(name, kind, false) && warn) declared_things_.push_back(name);
}

void Scopes::begin_body(Symbol name, Locals* locals) {
  being_defined_ = name;
  body_names_ = locals;
}

void Scopes::end_body() {
  being_defined_ = ast::kNoSymbol;
  body_names_ = nullptr;
}

void Scopes::finish() {
  leave(0);
  for (const Name& n : far_buffers_) far_name(n, &Thing::buffer, "a buffer");
  for (const Name& n : far_channels_) far_name(n, &Thing::channel, "a channel");
  for (const Name& name : declared_things_) {
    if (!std::exchange(things_[name.id].used, true)) resolution_.unused_things.push_back(name);
  }
}

}  // namespace mscclc
