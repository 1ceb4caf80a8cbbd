#include "tools/lsp/language/name_finder.h"

#include <algorithm>
#include <utility>

#include "compiler/resolve/options.h"

namespace mscclc::lsp {

NameFinder::NameFinder(const Tree& tree, Names& out)
    : tree_(tree),
      ast_(tree.ast),
      out_(out),
      meaning_(tree.ast.names().size(), kNothing),
      things_(tree.ast.names().size(), kNothing) {}

void NameFinder::run() {
  const ast::TextRange everywhere{0, 0xffffffffu};
  for (const ast::Symbol symbol : {ast::w_input, ast::w_output}) {
    meaning_[symbol] = things_[symbol] = static_cast<uint32_t>(out_.all_.size());
    out_.all_.push_back({.kind = Kind::callers, .symbol = symbol, .scopes = {everywhere}});
  }
  for (const Item& i : tree_.items) {
    around_ = kNothing;  // the file's own values are known everywhere
    item(*i.stmt);
  }
  leave(0, 0xffffffffu);
  for (const ast::Name& name : far_) {
    if (things_[name.id] == kNothing) continue;
    out_.uses_.push_back({ast_.place(name), things_[name.id], false});
  }
}

// ---- declaring and using ---------------------------------------------------------------------

uint32_t NameFinder::declare(const ast::Name& name, Declared what, uint32_t begin) {
  const auto number = static_cast<uint32_t>(out_.all_.size());
  what.symbol = name.id;
  what.evaluable = arguments_ == 0;
  what.around = around_;
  what.scopes.push_back({begin == 0 ? name.begin : begin, 0});  // leave() says where it ends
  out_.all_.push_back(std::move(what));
  out_.uses_.push_back({ast_.place(name), number, true});
  meaning_[name.id] = number;
  visible_.push_back(number);
  return number;
}

void NameFinder::declare_value(const ast::Definition& definition, const ast::Stmt& statement,
                               Kind kind) {
  declare(definition.name, {.kind = kind, .statement = &statement, .definition = &definition},
          definition.value.place.end + 1);
  enter({.definition = &definition});
}

void NameFinder::declare_binder(const ast::Binder& binder, const ast::Stmt* statement,
                                uint32_t begin) {
  if (!binder.name.given()) return;
  const uint32_t number =
      declare(binder.name, {.kind = Kind::variable, .statement = statement, .binder = &binder});
  Declared& d = out_.all_[number];
  d.scopes.back().begin = std::min(begin, d.scopes.back().begin);
  enter({.binder = &binder});
}

void NameFinder::declare_arguments(Array<const ast::Name> names, const ast::Stmt& statement) {
  ++arguments_;
  for (const ast::Name& name : names) {
    declare(name, {.kind = Kind::argument, .statement = &statement});
  }
}

/// All things of one name are one, in whatever rank's body they are: the far end of a channel has
/// them by name.
void NameFinder::declare_thing(const ast::Name& name, const ast::Stmt& statement, Kind kind) {
  const uint32_t known = things_[name.id];
  if (known == kNothing) {
    things_[name.id] = declare(name, {.kind = kind, .statement = &statement});
    return;
  }
  out_.uses_.push_back({ast_.place(name), known, true});
  if (meaning_[name.id] == known) return;  // another piece of it
  out_.all_[known].scopes.push_back({ast_.place(name).begin, 0});
  meaning_[name.id] = known;
  visible_.push_back(known);
}

void NameFinder::use(const ast::Name& name) {
  const uint32_t meaning = meaning_[name.id];
  if (meaning != kNothing) out_.uses_.push_back({ast_.place(name), meaning, false});
}

void NameFinder::use_far(const ast::Name& name) {
  const uint32_t meaning = meaning_[name.id];
  if (meaning != kNothing && out_.all_[meaning].kind == Kind::argument) {
    use(name);
  } else {
    far_.push_back(name);
  }
}

void NameFinder::enter(Around around) {
  around.outer = around_;
  around_ = static_cast<uint32_t>(out_.around_.size());
  out_.around_.push_back(around);
}

void NameFinder::leave(size_t mark, uint32_t end) {
  while (visible_.size() > mark) {
    Declared& d = out_.all_[visible_.back()];
    d.scopes.back().end = end;
    const bool callers = d.symbol == ast::w_input || d.symbol == ast::w_output;
    meaning_[d.symbol] = callers ? things_[d.symbol] : kNothing;
    visible_.pop_back();
  }
}

// ---- expressions and options -----------------------------------------------------------------

void NameFinder::expr(const ast::Expr& e) {
  switch (e.kind) {
    case ast::ExprKind::name:
      use({e.name.id, e.place.begin});
      break;
    case ast::ExprKind::comprehension: {
      const size_t before = mark();
      const uint32_t outer = around_;
      for (const ast::Binder& b : e.loop->binders) binder(b, nullptr, e.place.begin);
      expr(e.loop->element);
      leave(before, e.place.end);
      around_ = outer;
      break;
    }
    case ast::ExprKind::integer:
    case ast::ExprKind::boolean:
    case ast::ExprKind::string:
    case ast::ExprKind::none:
      break;
    default:
      exprs(e.children());
  }
}

void NameFinder::exprs(Array<const ast::Expr> list) {
  for (const ast::Expr& e : list) expr(e);
}

void NameFinder::binder(const ast::Binder& b, const ast::Stmt* statement, uint32_t begin) {
  expr(b.list);
  declare_binder(b, statement, begin);
  if (b.where != nullptr) expr(*b.where);
}

void NameFinder::binders(Array<const ast::Binder> list, const ast::Stmt* statement) {
  for (const ast::Binder& b : list) binder(b, statement);
}

/// Words among the values of options stand for themselves, but those of `then` and `after`.
void NameFinder::options(Array<const ast::Option> list) {
  for (const ast::Option& o : list) {
    const bool format = o.name.id == ast::w_packets && !packet_format_word(ast_, o.value);
    if (o.name.id == ast::w_order) order_option(o.value);
    const bool named = o.name.id == ast::w_then || o.name.id == ast::w_after;
    if (format || named || !takes_words(o)) expr(o.value);
  }
}

void NameFinder::order_option(const ast::Expr& e) {
  if (e.kind != ast::ExprKind::conditional) return;
  expr(e.kids[0]);
  order_option(e.kids[1]);
  order_option(e.kids[2]);
}

// ---- items -----------------------------------------------------------------------------------

void NameFinder::item(const ast::Stmt& s) {
  switch (s.kind) {
    case ast::StmtKind::require:
      expr(s.as<ast::Require>().condition);
      break;
    case ast::StmtKind::param:
      definitions(s.as<ast::Let>(), Kind::parameter);
      break;
    case ast::StmtKind::collective:
      options(s.as<ast::Collective>().options);
      break;
    case ast::StmtKind::ensure:
      ensure(s.as<ast::Ensure>());
      break;
    case ast::StmtKind::select:
    case ast::StmtKind::launch:
      options(s.as<ast::Options>().options);
      break;
    case ast::StmtKind::def:
      def(s.as<ast::Def>());
      break;
    case ast::StmtKind::row:
      declare(s.as<ast::RowItem>().name, {.kind = Kind::row, .statement = &s});
      break;
    case ast::StmtKind::external:
      externals(s.as<ast::Externals>());
      break;
    case ast::StmtKind::flags:
      flags(s.as<ast::FlagsDecl>());
      break;
    case ast::StmtKind::rank:
      placed(s.as<ast::Placed>());
      break;
    default:
      statement(s);
  }
}

void NameFinder::definitions(const ast::Let& s, Kind kind) {
  for (const ast::Definition& d : s.definitions) {
    if (d.function) {
      function(d, s);
      continue;
    }
    if (kind != Kind::parameter || !packet_format_word(ast_, d.value)) expr(d.value);
    declare_value(d, s, kind);
  }
}

void NameFinder::function(const ast::Definition& d, const ast::Let& s) {
  const size_t before = mark();
  const uint32_t outer = around_;
  declare_arguments(d.parameters, s);
  for (const ast::Definition& local : d.locals) {
    expr(local.value);
    declare_value(local, s, Kind::value);
  }
  expr(d.value);
  leave(before, d.value.place.end);
  around_ = outer;
  --arguments_;
  declare(d.name, {.kind = Kind::function, .statement = &s, .definition = &d},
          d.value.place.end + 1);
}

void NameFinder::def(const ast::Def& s) {
  const size_t before = mark();
  const uint32_t outer = around_;
  declare_arguments(s.parameters, s);
  block(s.body);
  leave(before, s.place.end);
  around_ = outer;
  --arguments_;
  declare(s.name, {.kind = Kind::def, .statement = &s}, s.place.end + 1);
}

void NameFinder::ensure(const ast::Ensure& s) {
  const auto term = [&](const ast::Term& t) {
    use(t.buffer);
    exprs(t.index);
    expr(t.rank);
  };
  const size_t before = mark();
  const uint32_t outer = around_;
  binders(s.binders, &s);
  term(s.left);
  binders(s.inner, &s);
  for (const ast::Term& t : s.terms) term(t);
  leave(before, s.place.end);
  around_ = outer;
}

void NameFinder::externals(const ast::Externals& s) {
  for (const ast::ExternalDecl& e : s.externals) {
    declare(e.name, {.kind = Kind::external, .statement = &s});
  }
}

void NameFinder::flags(const ast::FlagsDecl& s) {
  exprs(s.count);
  options(s.options);
  declare(s.name, {.kind = Kind::flags, .statement = &s});
}

// ---- statements ------------------------------------------------------------------------------

void NameFinder::placed(const ast::Placed& s) {
  const size_t before = mark();
  const uint32_t outer = around_;
  binder(s.at, &s);
  block(s.body);
  leave(before, s.place.end);
  around_ = outer;
}

void NameFinder::block(const ast::Block& b) {
  const size_t before = mark();
  const uint32_t outer = around_;
  for (const ast::Stmt* s : b.statements) statement(*s);
  leave(before, b.place.end);
  around_ = outer;
}

void NameFinder::statement(const ast::Stmt& s) {
  switch (s.kind) {
    case ast::StmtKind::let:
      return definitions(s.as<ast::Let>(), Kind::value);
    case ast::StmtKind::buffer:
      return buffer(s.as<ast::BufferDecl>());
    case ast::StmtKind::channel:
      return channel(s.as<ast::ChannelDecl>());
    case ast::StmtKind::semaphore:
      return semaphores(s.as<ast::Semaphores>());
    case ast::StmtKind::tb:
      return placed(s.as<ast::Placed>());
    case ast::StmtKind::group:
      expr(s.as<ast::Group>().blocks);
      return block(s.as<ast::Group>().body);
    case ast::StmtKind::for_:
      return for_loop(s.as<ast::For>());
    case ast::StmtKind::pipeline:
      options(s.as<ast::Pipeline>().options);
      return block(s.as<ast::Pipeline>().body);
    case ast::StmtKind::if_:
      return if_chain(s.as<ast::If>());
    case ast::StmtKind::call:
      use(s.as<ast::DefCall>().def);
      return exprs(s.as<ast::DefCall>().arguments);
    case ast::StmtKind::barrier:
      return expr(s.as<ast::Barrier>().blocks);
    case ast::StmtKind::op:
      return op(s.as<ast::OpStmt>());
    default:
      return;
  }
}

void NameFinder::for_loop(const ast::For& s) {
  const size_t before = mark();
  const uint32_t outer = around_;
  binders(s.binders, &s);
  block(s.body);
  leave(before, s.place.end);
  around_ = outer;
}

void NameFinder::if_chain(const ast::If& s) {
  const uint32_t outer = around_;
  for (const ast::If::Arm& arm : s.arms) {
    if (!arm.condition.given()) {
      block(arm.body);
      continue;
    }
    expr(arm.condition);
    const uint32_t before = around_;
    enter({.condition = &arm.condition});
    block(arm.body);
    around_ = before;
    enter({.condition = &arm.condition, .holds = false});
  }
  around_ = outer;
}

void NameFinder::buffer(const ast::BufferDecl& s) {
  const size_t before = mark();
  const uint32_t outer = around_;
  binders(s.dims, &s);
  leave(before, s.place.end);
  around_ = outer;
  options(s.options);
  declare_thing(s.name, s, Kind::buffer);
}

void NameFinder::channel(const ast::ChannelDecl& s) {
  const size_t before = mark();
  const uint32_t outer = around_;
  binders(s.keys, &s);
  expr(s.peer);
  if (s.other.given()) use_far(s.other);
  exprs(s.other_keys);
  if (s.where != nullptr) expr(*s.where);
  options(s.options);
  leave(before, s.place.end);
  around_ = outer;
  declare_thing(s.name, s, Kind::channel);
}

void NameFinder::semaphores(const ast::Semaphores& s) {
  for (const ast::SemaphoreDecl& d : s.semaphores) {
    const size_t before = mark();
    const uint32_t outer = around_;
    binders(d.keys, &s);
    expr(d.initial);
    leave(before, d.place.end);
    around_ = outer;
    declare_thing(d.name, s, Kind::semaphore);
  }
}

// ---- ops -------------------------------------------------------------------------------------

void NameFinder::op(const ast::OpStmt& s) {
  if (s.function.given()) use(s.function);
  for (const ast::Operand& o : s.operands) operand(o);
  options(s.options);
}

/// The loop variable is visible before the 'for' that declares it.
void NameFinder::operand(const ast::Operand& o) {
  const size_t before = mark();
  const uint32_t outer = around_;
  if (o.binder != nullptr) binder(*o.binder, nullptr, o.place.begin);
  use(o.head);
  exprs(o.index);
  if (o.member.given()) use_far(o.member);
  exprs(o.member_index);
  leave(before, o.binder != nullptr ? o.binder->place.end : o.place.end);
  around_ = outer;
}

}  // namespace mscclc::lsp
