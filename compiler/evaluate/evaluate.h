// Evaluates expressions of the language: 64-bit integers, booleans, lists of integers.
//
// Values of names live in an array indexed by symbol. The resolver (resolve.h) has checked that
// every name is declared before it is used, so a name is one load; a call saves and restores what
// its body declares. Lists live in a stack-like arena and are shared, never copied.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/builder/base/list.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc {

enum class ValueKind : uint8_t {
  unbound,  ///< also: its mistake has been reported
  integer,
  boolean,
  list,
  format,  ///< of packets; only `packets:` takes it
  function,
  def,
  buffer,
  channel,
  semaphore,
};

/// What a name stands for.
struct Value {
  ValueKind kind = ValueKind::unbound;
  union {
    int64_t integer = 0;  ///< boolean: 0 or 1
    PacketFormat format;
    const List* list;
    const ast::Definition* function;
    const ast::Def* def;
    NameId thing;  ///< buffer, channel, semaphore
  };
  static Value of(int64_t v) {
    Value out;
    out.kind = ValueKind::integer;
    out.integer = v;
    return out;
  }
  static Value of_bool(bool v) {
    Value out;
    out.kind = ValueKind::boolean;
    out.integer = v ? 1 : 0;
    return out;
  }
};
/// "a number", "a list" …
std::string_view kind_text(ValueKind kind);

/// Memory for lists, freed in reverse order of allocation.
class ListArena {
 public:
  struct Mark {
    size_t block = 0, used = 0;
  };
  Mark mark() const { return at_; }
  void release(Mark mark) { at_ = mark; }
  /// nullptr when more than kMaxElements are alive.
  int64_t* allocate(size_t n);
  List* make(const List& list);

  static constexpr size_t kMaxElements = size_t{1} << 26;

 private:
  struct Block {
    std::unique_ptr<int64_t[]> data;
    size_t size;
  };
  std::vector<Block> blocks_;
  Mark at_;
};

/// A variable that distinguishes one execution of a statement from another.
struct Binding {
  ast::Symbol name;
  int64_t value;
};

/// Symbols that the body of a function or def declares, to be saved while it runs.
using Locals = std::vector<ast::Symbol>;

class Evaluator {
 public:
  Evaluator(const ast::Ast& ast, Diagnostics& diagnostics)
      : ast_(ast), diagnostics_(diagnostics), values_(ast.names().size()) {}

  // ---- expressions; false after reporting a mistake ----
  bool eval(const ast::Expr& e, Value& out);
  bool integer(const ast::Expr& e, int64_t& out) {
    return known_integer(e, out) || integer_slow(e, out);
  }
  /// True for a number that is written or named; nothing is evaluated or reported.
  bool known_integer(const ast::Expr& e, int64_t& out) const {
    if (e.kind == ast::ExprKind::name) {
      const Value& v = values_[e.name.id];
      if (v.kind != ValueKind::integer) return false;
      out = v.integer;
      return true;
    }
    if (e.kind != ast::ExprKind::integer) return false;
    out = e.value;
    return true;
  }
  bool boolean(const ast::Expr& e, bool& out);
  bool list(const ast::Expr& e, List& out);

  /// Calls `body` for each combination of values of the binders that their `where` accepts.
  /// `body` returns false to stop; so does this after a mistake. `track`: the binders are part of
  /// the locations of ops inside.
  template <class F>
  bool each(ast::Array<const ast::Binder> binders, bool track, const F& body, uint32_t at = 0) {
    if (at == binders.size()) return body();
    const ast::Binder& b = binders[at];
    return each_value(b, track, [&] { return each(binders, track, body, at + 1); });
  }
  template <class F>
  bool each_value(const ast::Binder& b, bool track, const F& body);

  // ---- names ----
  Value& value(ast::Symbol s) { return values_[s]; }
  void grow() { values_.resize(ast_.names().size()); }
  void set_locals(ast::Symbol function, const Locals* locals);
  const Locals& locals(ast::Symbol function) const { return *locals_[function]; }
  std::vector<Value>& saved() { return saved_; }
  /// Saves the values of `locals`, and brings them back.
  size_t save(const Locals& locals);
  void restore(const Locals& locals, size_t mark);
  ListArena& lists() { return lists_; }

  // ---- context ----
  /// Bindings in force: of statements, and of operands and comprehensions being evaluated.
  std::vector<Binding> bindings;
  /// Set when a tracked binding changes; its user clears it.
  bool bindings_changed = true;
  /// Places of the calls of defs that led here, with the def's name.
  struct Expansion {
    ast::Place place;
    ast::Symbol def;
  };
  std::vector<Expansion> expansions;

  /// Counts work; false (and an error, once) when a program does not come to an end.
  bool step(const ast::Place& place, uint64_t n = 1) {
    return (steps_ += n) <= max_steps_ || too_long(place);
  }
  /// False (and an error, once) if a loop of n rounds, a step each, must end like that: at once.
  /// `may_do_ops`: its rounds may earn further steps.
  bool rounds(int64_t n, const ast::Place& place, bool may_do_ops = false) {
    const uint64_t left = may_do_ops ? most_steps_left() : steps_left();
    return static_cast<uint64_t>(n) <= left || too_many(static_cast<uint64_t>(n), place);
  }
  bool too_many(uint64_t rounds, const ast::Place& place);
  /// Counts n steps if there are as many left; reports nothing.
  bool steps(int64_t n) {
    if (static_cast<uint64_t>(n) > steps_left()) return false;
    steps_ += static_cast<uint64_t>(n);
    return true;
  }
  uint64_t steps() const { return steps_; }
  uint64_t steps_left() const { return max_steps_ - std::min(steps_, max_steps_); }
  /// Steps left if all ops that are allowed are made.
  uint64_t most_steps_left() const { return most_steps_ - std::min(steps_, most_steps_); }
  /// A program may take `n` steps, and, as it makes ops, up to `most`.
  void set_max_steps(uint64_t n, uint64_t most) {
    most_steps_ = most;
    max_steps_ = std::min(n, most);
  }
  /// Work is done that allows for more steps.
  void earn_steps(uint64_t n) { max_steps_ = std::min(max_steps_ + n, most_steps_); }
  bool stopped() const { return stopped_; }

  // ---- reporting ----
  Diagnostic& fail(std::string code, ast::Place place, std::string message);
  /// The same with the values of the variables in `e`.
  Diagnostic& fail(std::string code, const ast::Expr& e, std::string message);
  void add_context(Diagnostic& d, const ast::Expr* e = nullptr);
  void add_expansions(Diagnostic& d) const;
  /// Mistakes so far, repetitions included.
  size_t mistakes() const { return mistakes_; }
  bool expected(std::string_view what, ValueKind found, const ast::Expr& e);
  std::string value_text(const Value& v) const;
  const ast::Ast& ast() const { return ast_; }
  Diagnostics& diagnostics() { return diagnostics_; }
  /// "world = 17, gpus = 8": the variables of `e`.
  std::string variables_text(const ast::Expr& e) const;

 private:
  bool too_long(ast::Place place);
  bool integer_slow(const ast::Expr& e, int64_t& out);
  bool binary(const ast::Expr& e, Value& out);
  bool arithmetic(const ast::Expr& e, int64_t a, int64_t b, int64_t& out);
  bool overflow(const ast::Expr& e);
  bool ceil_div(const ast::Expr& e, int64_t a, int64_t b, Value& out);
  bool equal(const ast::Expr& e, bool& out);
  bool index(const ast::Expr& e, Value& out);
  bool call(const ast::Expr& e, Value& out);
  bool call_function(const ast::Expr& e, Value& out);
  bool call_builtin(const ast::Expr& e, Value& out);
  bool fold(const ast::Expr& e, Value& out);
  bool fold_one(const ast::Expr& e, int64_t v, bool first, int64_t& out);
  bool elements(const ast::Expr& e, Value& out);
  bool comprehension(const ast::Expr& e, Value& out);
  bool range(const ast::Expr& e, Value& out);
  bool except(const ast::Expr& e, Value& out);
  bool add(const ast::Expr& e, Value& out);
  bool join(const ast::Expr& e, const List& a, const List& b, Value& out);
  bool contains(const ast::Expr& e, bool& out);
  bool make_list(const ast::Expr& e, const List& list, Value& out);
  bool store_list(const ast::Expr& e, std::span<const int64_t> elements, Value& out);
  bool too_many_elements(const ast::Expr& e);
  void collect_names(const ast::Expr& e, std::vector<ast::Symbol>& out) const;

  const ast::Ast& ast_;
  Diagnostics& diagnostics_;
  std::vector<Value> values_;          ///< by symbol
  std::vector<const Locals*> locals_;  ///< by symbol of a function or def
  std::vector<Value> saved_;
  std::vector<std::vector<int64_t>> pool_;  ///< buffers of comprehensions being evaluated
  size_t pool_used_ = 0;
  ListArena lists_;
  uint64_t steps_ = 0, max_steps_ = uint64_t{1} << 30, most_steps_ = max_steps_;
  size_t mistakes_ = 0;
  bool stopped_ = false;
  int depth_ = 0;
};

/// Steps that a call of a function counts for, and an element of a list that is made.
inline constexpr uint64_t kStepsOfCall = 8, kStepsOfElement = 2;
/// Calls of functions, or of defs, inside one another.
inline constexpr int kMaxExpansion = 64;

template <class F>
bool Evaluator::each_value(const ast::Binder& b, bool track, const F& body) {
  const ListArena::Mark outer = lists_.mark();
  List values;
  if (!list(b.list, values) || !rounds(values.count, b.place, track)) return false;
  const ListArena::Mark inner = lists_.mark();
  Value& v = values_[b.name.id];
  bindings.push_back({b.name.id, 0});
  bool good = true;
  for (int64_t i = 0; good && i < values.count; ++i) {
    const int64_t element = values[i];
    v = Value::of(element);
    bindings.back().value = element;
    bindings_changed = bindings_changed || track;
    bool accepted = true;
    good = step(b.place) && (b.where == nullptr || boolean(*b.where, accepted));
    if (good && accepted) good = body();
    lists_.release(inner);
  }
  bindings.pop_back();
  bindings_changed = bindings_changed || track;
  lists_.release(outer);
  return good;
}

}  // namespace mscclc
