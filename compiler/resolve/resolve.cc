#include "compiler/resolve/resolve.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/resolve/options.h"
#include "compiler/resolve/scopes.h"
#include "ir/program/applied.h"

namespace mscclc {
namespace {

using ast::Array;
using ast::Expr;
using ast::ExprKind;
using ast::Name;
using ast::Stmt;
using ast::StmtKind;
using ast::Symbol;

/// What encloses a statement.
struct Around {
  bool rank_body = false;  ///< directly
  std::string_view innermost;
  std::string_view place;  ///< tb or group
  bool pipeline = false;
};

/// Walks over items, statements and expressions.
class Resolver {
 public:
  Resolver(const ast::Ast& ast, const std::vector<Define>& defines, bool is_ir,
           Resolution& resolution, Diagnostics& diagnostics)
      : ast_(ast),
        defines_(defines),
        is_ir_(is_ir),
        resolution_(resolution),
        diagnostics_(diagnostics),
        names_(ast, resolution, diagnostics) {
    resolution_.by_symbol.assign(ast.names().size(), nullptr);
  }

  bool run(const std::vector<Item>& items) {
    for (const Item& item : items) {
      warn_ = !item.imported && !is_ir_;
      this->item(*item.stmt);
    }
    for (const Item& item : items) {
      if (item.stmt->kind != StmtKind::row) continue;
      const Symbol name = item.stmt->as<ast::RowItem>().name.id;
      if (name != ast::kNoSymbol && names_.used(name)) resolution_.used_rows.push_back(name);
    }
    names_.finish();
    return names_.good();
  }

 private:
  // ---- expressions ----

  void expr(const Expr& e) {
    switch (e.kind) {
      case ExprKind::name:
        names_.use_value({e.name.id, e.place.begin});
        break;
      case ExprKind::call:
        callee({e.kids[0].name.id, e.kids[0].place.begin});
        for (uint32_t i = 1; i < e.count; ++i) expr(e.kids[i]);
        break;
      case ExprKind::comprehension: {
        const size_t mark = names_.mark();
        binders(e.loop->binders);
        expr(e.loop->element);
        names_.leave(mark);
        break;
      }
      default:
        if (e.count > 0) {
          for (const Expr& kid : e.children()) expr(kid);
        }
    }
  }

  void exprs(Array<const Expr> list) {
    for (const Expr& e : list) expr(e);
  }

  void callee(const Name& name) {
    if (!ast::is_function(name.id)) names_.use_callee(name, NameKind::function);
  }

  void binder(const ast::Binder& b) {
    expr(b.list);
    if (b.name.given()) names_.declare(b.name, NameKind::value, false);
    if (b.where != nullptr) expr(*b.where);
  }

  void binders(Array<const ast::Binder> list) {
    for (const ast::Binder& b : list) binder(b);
  }

  /// `packets: F` uses a parameter; a format's word, or what is not known, stands for itself.
  void packets_option(const Expr& e) {
    if (e.kind != ExprKind::name || packet_format_word(ast_, e)) return;
    if (names_.kind(e.name.id) == NameKind::value) names_.use(e.name.id);
  }

  /// `order: if tree then tree else ranks`: the words stand for themselves.
  void order_option(const Expr& e) {
    if (e.kind != ExprKind::conditional) return;
    expr(e.kids[0]);
    order_option(e.kids[1]);
    order_option(e.kids[2]);
  }

  /// `then: f`: a row function.
  void then_option(const Expr& e) {
    if (e.kind == ExprKind::name) return row_function({e.name.id, e.place.begin});
    names_.error("wrong-kind", e.place,
                 fmt::format("'{}' is a value; expected a row function: write its bare name, "
                             "'then: f' for a 'row f(...)' of the program",
                             ast_.text(e.place)));
  }

  void row_function(const Name& name) {
    names_.use_thing(name, "a row function", [](NameKind k) { return k == NameKind::row; });
  }

  /// Options whose values are expressions; words stand for themselves.
  void options(Array<const ast::Option> list, OptionsOf of, std::string_view what) {
    check_options(ast_, list, of, what, diagnostics_) ? void() : names_.refuse();
    for (const ast::Option& o : list) {
      if (is_option(of, ast_.text(o.name)) && !takes_words(o)) expr(o.value);
      if (o.name.id == ast::w_packets) packets_option(o.value);
      if (o.name.id == ast::w_order) order_option(o.value);
      if (o.name.id == ast::w_then) then_option(o.value);
    }
  }

  // ---- items ----

  void item(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::require:
        expr(s.as<ast::Require>().condition);
        break;
      case StmtKind::param:
      case StmtKind::let:
        let(s.as<ast::Let>());
        break;
      case StmtKind::collective:
        options(s.as<ast::Collective>().options, OptionsOf::collective, "collective");
        break;
      case StmtKind::ensure:
        ensure(s.as<ast::Ensure>());
        break;
      case StmtKind::select:
        options(s.as<ast::Options>().options, OptionsOf::select, "select");
        break;
      case StmtKind::launch:
        options(s.as<ast::Options>().options, is_ir_ ? OptionsOf::ir_launch : OptionsOf::launch,
                "launch");
        break;
      case StmtKind::def:
        def(s.as<ast::Def>());
        break;
      case StmtKind::row:
        names_.declare(s.as<ast::RowItem>().name, NameKind::row, warn_);
        break;
      case StmtKind::external:
        for (const ast::ExternalDecl& e : s.as<ast::Externals>().externals) {
          names_.declare(e.name, NameKind::external, warn_);
        }
        break;
      case StmtKind::flags:
        flags(s.as<ast::FlagsDecl>());
        break;
      case StmtKind::rank:
        rank(s.as<ast::Placed>());
        break;
      default:
        break;
    }
  }

  /// `external flags name[n] of: input, after: other`
  void flags(const ast::FlagsDecl& s) {
    exprs(s.count);
    options(s.options, OptionsOf::flags, "flags");
    for (const ast::Option& o : s.options) {
      if (o.name.id != ast::w_after || o.value.kind != ExprKind::name) continue;
      names_.use_thing({o.value.name.id, o.value.place.begin}, "an array of flags",
                       [](NameKind k) { return k == NameKind::flags; });
    }
    names_.declare(s.name, NameKind::flags, warn_);
  }

  void let(const ast::Let& s) {
    for (const ast::Definition& d : s.definitions) {
      if (!d.function) {
        const bool format = s.kind == StmtKind::param && packet_format_word(ast_, d.value);
        if (!format) expr(d.value);
        if (s.kind == StmtKind::param && !format) define(d.name);
        names_.declare(d.name, NameKind::value, warn_);
        continue;
      }
      function_body(d.name, NameKind::function, [&] {
        for (const Name& p : d.parameters) names_.declare(p, NameKind::value, false);
        for (const ast::Definition& local : d.locals) {
          expr(local.value);
          names_.declare(local.name, NameKind::value, warn_);
        }
        expr(d.value);
      });
    }
  }

  /// What -D says of a parameter sees what the parameter's default sees.
  void define(const Name& parameter) {
    for (const Define& d : defines_) {
      if (d.symbol != parameter.id || !d.value.given()) continue;
      // A name that is not known is no value: the unroller says what the parameter takes.
      const bool bare = d.value.kind == ExprKind::name;
      if (!bare || names_.kind(d.value.name.id) == NameKind::value) expr(d.value);
    }
  }

  /// A body that sees its arguments and file-level names, and not itself.
  template <class F>
  void function_body(const Name& name, NameKind kind, F body) {
    Locals& locals = resolution_.locals.emplace_back();
    const size_t mark = names_.mark();
    names_.begin_body(name.id, &locals);
    body();
    names_.leave(mark);
    names_.end_body();
    std::ranges::sort(locals);
    locals.erase(std::unique(locals.begin(), locals.end()), locals.end());
    if (names_.declare(name, kind, warn_)) resolution_.by_symbol[name.id] = &locals;
  }

  void def(const ast::Def& s) {
    function_body(s.name, NameKind::def, [&] {
      for (const Name& p : s.parameters) names_.declare(p, NameKind::argument, false);
      Around inside;
      inside.innermost = "def";
      block(s.body, inside);
    });
  }

  void rank(const ast::Placed& s) {
    const size_t mark = names_.mark();
    binder(s.at);
    Around inside;
    inside.rank_body = true;
    inside.innermost = "rank";
    block(s.body, inside);
    names_.leave(mark);
  }

  void ensure(const ast::Ensure& s) {
    const auto term = [&](const ast::Term& t, Symbol wanted) {
      if (t.buffer.id != wanted) {
        names_.error("contract", ast_.place(t.buffer),
                     fmt::format("expected '{}[...]'", ast_.text(wanted)));
      }
      exprs(t.index);
      expr(t.rank);
    };
    const size_t mark = names_.mark();
    binders(s.binders);
    term(s.left, ast::w_output);
    binders(s.inner);
    for (const ast::Term& t : s.terms) term(t, ast::w_input);
    names_.leave(mark);
  }

  // ---- statements ----

  void block(const ast::Block& b, const Around& around) {
    const size_t mark = names_.mark();
    for (const Stmt* s : b.statements) statement(*s, around);
    names_.leave(mark);
  }

  void nested(const ast::Block& b, const Around& around, std::string_view keyword) {
    Around inside = around;
    inside.rank_body = false;
    inside.innermost = keyword;
    block(b, inside);
  }

  void misplaced(const Stmt& s, std::string_view what, std::string_view inside) {
    names_.error("nesting", s.keyword, fmt::format("'{}' inside '{}'", what, inside));
  }

  void only_in_rank(const Stmt& s, std::string_view what, const Around& around) {
    if (!around.rank_body) misplaced(s, what, around.innermost);
  }

  void statement(const Stmt& s, const Around& around) {
    switch (s.kind) {
      case StmtKind::let:
        let(s.as<ast::Let>());
        break;
      case StmtKind::buffer:
        only_in_rank(s, "buffer", around);
        buffer(s.as<ast::BufferDecl>());
        break;
      case StmtKind::channel:
        only_in_rank(s, "channel", around);
        channel(s.as<ast::ChannelDecl>());
        break;
      case StmtKind::semaphore:
        only_in_rank(s, "semaphore", around);
        semaphores(s.as<ast::Semaphores>());
        break;
      case StmtKind::tb:
      case StmtKind::group:
        placed(s, around);
        break;
      case StmtKind::for_: {
        const size_t mark = names_.mark();
        binders(s.as<ast::For>().binders);
        nested(s.as<ast::For>().body, around, "for");
        names_.leave(mark);
        break;
      }
      case StmtKind::pipeline:
        pipeline(s, around);
        break;
      case StmtKind::if_:
        for (const ast::If::Arm& arm : s.as<ast::If>().arms) {
          if (arm.condition.given()) expr(arm.condition);
          nested(arm.body, around, "if");
        }
        break;
      case StmtKind::call:
        call(s.as<ast::DefCall>());
        break;
      case StmtKind::barrier:
        if (around.place == "group") misplaced(s, "barrier", "group");
        expr(s.as<ast::Barrier>().blocks);
        break;
      case StmtKind::op:
        op(s.as<ast::OpStmt>());
        break;
      default:
        break;
    }
  }

  void placed(const Stmt& s, const Around& around) {
    const bool is_tb = s.kind == StmtKind::tb;
    const std::string_view word = is_tb ? "tb" : "group";
    if (!around.place.empty()) misplaced(s, word, around.place);
    Around inside = around;
    inside.place = word;
    const size_t mark = names_.mark();
    if (is_tb) {
      binder(s.as<ast::Placed>().at);
      nested(s.as<ast::Placed>().body, inside, word);
    } else {
      expr(s.as<ast::Group>().blocks);
      nested(s.as<ast::Group>().body, inside, word);
    }
    names_.leave(mark);
  }

  void pipeline(const Stmt& s, const Around& around) {
    const ast::Pipeline& p = s.as<ast::Pipeline>();
    if (around.pipeline) names_.error("nesting", s.keyword, "a pipeline inside a pipeline");
    options(p.options, is_ir_ ? OptionsOf::ir_pipeline : OptionsOf::pipeline, "pipeline");
    Around inside = around;
    inside.pipeline = true;
    nested(p.body, inside, "pipeline");
  }

  void call(const ast::DefCall& s) {
    names_.use_callee(s.def, NameKind::def);
    for (const Expr& e : s.arguments) {
      const bool bare = e.kind == ExprKind::name;
      const NameKind kind = bare ? names_.kind(e.name.id) : NameKind::none;
      if (bare && (is_thing(kind) || kind == NameKind::argument)) {
        names_.use(e.name.id);
      } else {
        expr(e);
      }
    }
  }

  // ---- declarations ----

  bool keys(Array<const ast::Binder> list) {
    binders(list);
    return !list.empty() && !list[0].name.given();
  }

  void buffer(const ast::BufferDecl& s) {
    const size_t mark = names_.mark();
    binders(s.dims);
    names_.leave(mark);
    options(s.options, OptionsOf::buffer, "buffer");
    names_.declare_thing(s.name, NameKind::buffer, false, warn_);
  }

  void channel(const ast::ChannelDecl& s) {
    const size_t mark = names_.mark();
    const bool literal = keys(s.keys);
    if (!find_channel_kind(ast_.text(s.channel))) {
      const std::string near = nearest(ast_.text(s.channel), {"memory", "port", "switch"});
      names_.error("channel-kind", ast_.place(s.channel),
                   fmt::format("'{}' is not a kind of channel{}", ast_.text(s.channel),
                               near.empty() ? "; there are memory, port and switch"
                                            : fmt::format("; did you mean '{}'?", near)));
    }
    expr(s.peer);
    if (s.other.given()) {
      exprs(s.other_keys);
      names_.use_far_channel(s.other);
      if (s.channel.id == ast::w_switch) {
        names_.error("channel-kind", s.other_place, "a switch has no other end");
      }
    }
    if (s.where != nullptr) expr(*s.where);
    options(s.options, OptionsOf::channel, "channel");
    names_.leave(mark);
    names_.declare_thing(s.name, NameKind::channel, literal, warn_);
  }

  void semaphores(const ast::Semaphores& s) {
    for (const ast::SemaphoreDecl& d : s.semaphores) {
      const size_t mark = names_.mark();
      const bool literal = keys(d.keys);
      expr(d.initial);
      names_.leave(mark);
      names_.declare_thing(d.name, NameKind::semaphore, literal, warn_);
    }
  }

  // ---- ops ----

  void op(const ast::OpStmt& s) {
    const OpInfo& info = mscclc::info(s.op);
    if (s.dst_count == 0 && info.dsts.count > 0) {
      names_.error("operands", s.place,
                   fmt::format("'{}' needs a{}", info.name,
                               info.moves_data() ? " destination" : "n operand"));
    } else if (!s.has_arrow && info.srcs.count > 0) {
      names_.error("operands", s.place, fmt::format("'{}' needs a source: '<- ...'", info.name));
    }
    if (info.has(kApplies) || s.has_then) row_function(s.function);
    if (s.has_then && !may_apply(info)) {
      names_.error(
          "operands", ast_.place(s.function),
          fmt::format("'{}' adds up nothing that a row function can take; use 'apply'", info.name));
    }
    const ast::Operand* const externals = s.operands.begin() + s.dst_count + s.src_count;
    for (const ast::Operand& o : s.operands) {
      if (names_others_variable(s, o)) continue;
      const size_t mark = names_.mark();
      if (o.binder != nullptr) binder(*o.binder);
      if (&o >= externals) {
        external(s, o);
      } else {
        operand(s, o, &o < s.operands.begin() + s.dst_count);
      }
      names_.leave(mark);
    }
    options(s.options, is_ir_ ? OptionsOf::ir_op : OptionsOf::op, info.name);
  }

  /// A `for` binds the operand before it alone. Reports an operand that uses the variable of
  /// another's, once an op.
  bool names_others_variable(const ast::OpStmt& s, const ast::Operand& o) {
    for (const ast::Operand& other : s.operands) {
      const ast::Binder* b = other.binder;
      if (b == nullptr || &other == &o || names_.kind(b->name.id) != NameKind::none) continue;
      if (o.binder != nullptr && o.binder->name.id == b->name.id) continue;
      const auto mentions = [&](const Expr& e) { return ast::mentions(e, b->name.id); };
      if (std::ranges::none_of(o.index, mentions) &&
          std::ranges::none_of(o.member_index, mentions)) {
        continue;
      }
      if (reported_for_ != b) {
        names_
            .error("unknown-name", o.place,
                   fmt::format(
                       "'{}' belongs to the 'for' after '{}', which applies to that operand only",
                       ast_.text(b->name), ast_.text(other.place)))
            .notes.push_back({fmt::format("write 'for {0}' after each operand that uses '{1}', or "
                                          "'for {0} {{ ... }}' around the op",
                                          ast_.text(b->place), ast_.text(b->name)),
                              ast_.span(b->place)});
      }
      reported_for_ = b;
      resolution_.usable = false;  // the name means nothing there
      return true;
    }
    return false;
  }

  /// The line that declares an external that a parameter or result of the op's row function is
  /// named after: "; write 'external gate: row T'", or "". The first parameter is the sum.
  std::string declared_as(const ast::OpStmt& s, const Name& name) const {
    const std::string_view text = ast_.text(name);
    for (const rows::Function& f : ast_.functions()) {
      if (f.name != ast_.text(s.function)) continue;
      const auto param = std::ranges::find(f.params, text, &rows::Stored::name);
      const auto result = std::ranges::find(f.outputs, text, &rows::Stored::name);
      const bool is_param = param != f.params.end() && param != f.params.begin();
      if (!is_param && result == f.outputs.end()) return "";
      return fmt::format("; write 'external {}: {}{}'", text,
                         rows::declared_text(rows::form_of(is_param ? *param : *result)),
                         is_param ? "" : " out");
    }
    return "";
  }

  /// After `then`.
  void external(const ast::OpStmt& s, const ast::Operand& o) {
    names_.use_thing(
        o.head, "an external", [](NameKind k) { return k == NameKind::external; },
        declared_as(s, o.head));
    exprs(o.index);
    exprs(o.member_index);
  }

  void operand(const ast::OpStmt& s, const ast::Operand& o, bool is_dst) {
    const OpInfo& info = mscclc::info(s.op);
    const SlotKind slot = is_dst && info.dsts.count > 0 ? info.dsts.slot[0].kind : SlotKind::local;
    if (o.member.given()) {
      names_.use_thing(o.head, "a channel", [](NameKind k) { return k == NameKind::channel; });
      if (names_.kind(o.member.id) == NameKind::argument) {
        names_.use(o.member.id);
      } else {
        names_.use_far_buffer(o.member);
      }
    } else if (slot == SlotKind::channel) {
      names_.use_thing(o.head, "a channel", [](NameKind k) { return k == NameKind::channel; });
    } else if (slot == SlotKind::semaphore) {
      names_.use_thing(o.head, "a semaphore", [](NameKind k) { return k == NameKind::semaphore; });
    } else if (slot == SlotKind::flag) {
      names_.use_thing(o.head, "an array of flags",
                       [](NameKind k) { return k == NameKind::flags; });
    } else if (info.has(kApplies)) {
      names_.use_thing(
          o.head, "a buffer or an external",
          [](NameKind k) {
            return k == NameKind::buffer || k == NameKind::channel || k == NameKind::external;
          },
          declared_as(s, o.head));
    } else {
      // A bare channel is reported later, with what could have been meant.
      names_.use_thing(o.head, "a buffer",
                       [](NameKind k) { return k == NameKind::buffer || k == NameKind::channel; });
    }
    exprs(o.index);
    exprs(o.member_index);
  }

  const ast::Ast& ast_;
  const std::vector<Define>& defines_;
  const bool is_ir_;
  Resolution& resolution_;
  Diagnostics& diagnostics_;
  Scopes names_;
  bool warn_ = false;  ///< warn of what is never used
  const ast::Binder* reported_for_ = nullptr;
};

}  // namespace

void warn_unused(const ast::Ast& ast, const Resolution& resolution, Diagnostics& diagnostics) {
  std::vector<Name> values = resolution.unused;
  std::ranges::sort(values, {}, &Name::begin);
  for (const Name& name : values) {
    diagnostics.warning("unused", ast.span(name),
                        fmt::format("'{}' is never used", ast.text(name)));
  }
  for (const Name& name : resolution.unused_things) {
    diagnostics.warning("unused", ast.span(name),
                        fmt::format("'{}' is never used on any rank", ast.text(name)));
  }
}

bool resolve(const ast::Ast& ast, const std::vector<Item>& items,
             const std::vector<Define>& defines, bool is_ir, Resolution& resolution,
             Diagnostics& diagnostics) {
  return Resolver(ast, defines, is_ir, resolution, diagnostics).run(items);
}

}  // namespace mscclc
