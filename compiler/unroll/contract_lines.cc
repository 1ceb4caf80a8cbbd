#include "compiler/unroll/contract_lines.h"

#include <fmt/format.h>

#include "compiler/resolve/options.h"

namespace mscclc {

using ast::Option;
using ast::Symbol;

void ContractLines::collective(const ast::Collective& s) {
  has_collective_ = true;
  collective_place_ = ast_.place(s.collective);
  scope_.set_place(collective_place_);
  CollectiveSpec spec;
  const std::string_view name = ast_.text(s.collective);
  const auto kind = find_collective(name);
  if (!kind) {
    evaluator_.fail(
        "unknown-collective", collective_place_,
        fmt::format("unknown collective '{}'{}", name, suggestion(name, collective_names())));
    usable_ = false;
    return;
  }
  spec.kind = *kind;
  spec.flat = scope_.main.is_ir;
  if (!collective_options(s, spec) || !builder_.collective(spec)) usable_ = false;
}

bool ContractLines::collective_options(const ast::Collective& s, CollectiveSpec& spec) {
  const CollectiveInfo& row = info(spec.kind);
  const bool root = row.has_root(), shift = row.source == Source::shifted;
  const bool counts_rows = row.input.form == SideForm::counted;
  const bool declares = row.input.form == SideForm::declared;
  const bool chunks = !declares && row.input.form != SideForm::nothing;
  const std::string_view kind = ast_.text(s.collective);
  bool good = true;
  std::string missing;
  const auto check = [&](Symbol option, bool taken, bool needed) -> const Option* {
    const Option* o = find_option(s.options, option);
    if (o != nullptr && !taken) {
      evaluator_.fail("option", ast_.place(o->name),
                      fmt::format("'{}' cannot be combined with '{}'", ast_.text(option), kind));
      good = false;
    } else if (o == nullptr && needed) {
      missing += fmt::format("{}'{}: ...'", missing.empty() ? "" : " and ", ast_.text(option));
    }
    return o;
  };
  spec.marks.kind = scope_.mark_of(s.collective);
  spec.marks.ranks = scope_.mark_of(check(ast::w_ranks, true, true));
  spec.marks.chunks = scope_.mark_of(check(ast::w_chunks, chunks, false));
  spec.marks.root = scope_.mark_of(check(ast::w_root, root, root));
  spec.marks.shift = scope_.mark_of(check(ast::w_shift, shift, shift));
  spec.marks.input = scope_.mark_of(check(ast::w_input, declares, declares));
  spec.marks.output = scope_.mark_of(check(ast::w_output, declares, declares));
  const bool sums = row.source == Source::everyone && !row.output.only_at_root;
  const bool rows = find_option(s.options, ast::w_columns) != nullptr ||
                    find_option(s.options, ast::w_then) != nullptr;
  const Option* columns = check(ast::w_columns, sums, rows && sums);
  spec.marks.columns = scope_.mark_of(columns);
  const Option* then = check(ast::w_then, sums, rows && sums);
  const Option* counts = check(ast::w_counts, counts_rows, counts_rows);
  spec.marks.counts = scope_.mark_of(counts);
  if (!missing.empty()) {
    evaluator_.fail("missing-option", ast_.place(s.collective),
                    fmt::format("'{}' needs {}{}", kind, missing,
                                columns != nullptr && then == nullptr
                                    ? "; or leave out 'columns', and apply no row function"
                                    : ""));
  }
  if (!good || !missing.empty()) return false;
  good = values_.number(s.options, ast::w_ranks, spec.ranks);
  good = values_.dims(s.options, ast::w_chunks, spec.chunks) && good;
  if (root) good = values_.number(s.options, ast::w_root, spec.root) && good;
  if (shift) good = values_.number(s.options, ast::w_shift, spec.shift) && good;
  if (declares) good = values_.dims(s.options, ast::w_input, spec.input) && good;
  if (declares) good = values_.dims(s.options, ast::w_output, spec.output) && good;
  if (counts_rows) good = evaluator_.list(counts->value, spec.counts) && good;
  values_.flag(s.options, ast::w_even, spec.even_only);
  if (rows) good = values_.number(s.options, ast::w_columns, spec.columns) && good;
  spec.any_columns = rows && columns->open_end;
  if (then != nullptr && good) good = then_option(then->value, spec.then);
  if (const Option* o = find_option(s.options, ast::w_order)) {
    good = values_.order(o->value, spec.order) && good;
  }
  const Option* in_place = find_option(s.options, ast::w_inplace);
  bool always = false;
  if (in_place != nullptr && !takes_words(*in_place)) {
    good = evaluator_.boolean(in_place->value, always) && good;
    spec.in_place = always ? InPlace::yes : InPlace::no;
  }
  return good;
}

/// `then: f`: a row function of the program.
bool ContractLines::then_option(const ast::Expr& e, uint32_t& out) {
  if (e.kind != ast::ExprKind::name) return false;  // reported by the resolver; it has no symbol
  const Value& value = evaluator_.value(e.name.id);
  if (value.kind == ValueKind::row) out = value.thing;
  then_ = e.place;
  return value.kind == ValueKind::row;
}

/// What row functions and externals there are, and what the contract makes of them.
bool ContractLines::check_rows() {
  if (!has_collective_ || !usable_) return false;
  scope_.set_place(then_.end != 0 ? then_ : collective_place_);
  return builder_.rows(scope_.mark_of(scope_.place()));
}

/// A chunk that an `ensure` line names: a number, or the indexes of the contract's shape.
bool ContractLines::ensure_term(const ast::Term& t, Side side, CallerChunk& out) {
  int64_t rank = 0;
  if (!evaluator_.integer(t.rank, rank)) return false;
  const Contract& c = builder_.program().contract;
  if (rank < 0 || rank >= static_cast<int64_t>(c.ranks)) {
    evaluator_.fail("no-such-rank", t.rank, fmt::format("rank {} is not a rank", rank));
    return false;
  }
  out.rank = static_cast<uint32_t>(rank);
  const Shape shape = c.shape(side, out.rank);
  std::vector<uint32_t> dims = shape.dims;
  if (scope_.main.is_ir || t.index.size() == 1) dims = {shape.chunks()};
  if (t.index.size() != dims.size()) {
    evaluator_.fail("index-count", t.place,
                    fmt::format("'{}' has {} dimensions; {} are given", ast_.text(t.buffer),
                                dims.size(), t.index.size()));
    return false;
  }
  uint64_t chunk = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t at = 0;
    if (!evaluator_.integer(t.index[i], at)) return false;
    if (at < 0 || at >= static_cast<int64_t>(dims[i])) {
      evaluator_.fail("no-such-chunk", t.index[i],
                      fmt::format("'{}' has no chunk {}", ast_.text(t.buffer), at));
      return false;
    }
    chunk = chunk * dims[i] + static_cast<uint64_t>(at);
  }
  out.chunk = static_cast<uint32_t>(chunk);
  return true;
}

void ContractLines::ensure_inputs(const ast::Ensure& s, Promise& promise) {
  promise.reduced = s.reduced;
  promise.inputs.clear();
  const auto add_all = [&] {
    for (const ast::Term& t : s.terms) {
      CallerChunk in;
      if (!ensure_term(t, Side::input, in)) return false;
      promise.inputs.push_back(in);
    }
    return !scope_.halted();
  };
  if (evaluator_.each(s.inner, false, add_all)) builder_.ensure(promise, scope_.mark_of(s.place));
}

void ContractLines::ensure(const ast::Ensure& s) {
  if (!has_collective_ || builder_.program().contract.kind != CollectiveKind::custom) {
    evaluator_.fail("contract", s.keyword,
                    "'ensure' belongs below a 'collective custom(...)' line");
    return;
  }
  if (!usable_) return;
  uint64_t made = 0;
  Promise promise{};
  evaluator_.each(s.binders, false, [&] {
    if (++made > scope_.options.max_ops) {
      evaluator_.fail("too-many-ops", s.keyword,
                      fmt::format("more than {} promises", scope_.options.max_ops));
      usable_ = false;
      return false;
    }
    if (ensure_term(s.left, Side::output, promise.output)) ensure_inputs(s, promise);
    return !scope_.halted();
  });
}

}  // namespace mscclc
