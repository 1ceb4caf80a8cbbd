// Values of options, and the lines that are nothing but options: `select`, `launch`.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/unroll/unroll_state.h"

namespace mscclc {

using ast::Array;
using ast::ExprKind;
using ast::Option;
using ast::Symbol;

bool Unroller::number_option(Array<const Option> options, Symbol name, int64_t& out) {
  const Option* o = find_option(options, name);
  return o != nullptr && evaluator_.integer(o->value, out);
}

bool Unroller::small_option(Array<const Option> options, Symbol name, uint32_t& out) {
  const Option* o = find_option(options, name);
  int64_t v = 0;
  if (o == nullptr || !evaluator_.integer(o->value, v)) return false;
  if (v < 0 || v > std::numeric_limits<uint32_t>::max()) {
    evaluator_.fail("option-value", o->value, fmt::format("'{}' is {}", ast_.text(name), v));
    return false;
  }
  out = static_cast<uint32_t>(v);
  return true;
}

bool Unroller::flag_option(Array<const Option> options, Symbol name, bool& out) {
  const Option* o = find_option(options, name);
  return o != nullptr && evaluator_.boolean(o->value, out);
}

/// S of `chunks: S`: a number or a list.
bool Unroller::dims_option(Array<const Option> options, Symbol name, std::vector<int64_t>& out) {
  const Option* o = find_option(options, name);
  if (o == nullptr) return true;
  Value v;
  if (!evaluator_.eval(o->value, v)) return false;
  out.clear();
  if (v.kind == ValueKind::integer) {
    out.push_back(v.integer);
  } else if (v.kind == ValueKind::list) {
    for (int64_t i = 0; i < std::min<int64_t>(v.list->count, 3); ++i) out.push_back((*v.list)[i]);
  } else {
    return evaluator_.expected("a number or a list", v.kind, o->value);
  }
  return true;
}

void Unroller::range_option(Array<const Option> options, Symbol name, Range& out) {
  const Option* o = find_option(options, name);
  if (o == nullptr) return;
  Value v;
  if (!evaluator_.eval(o->value, v)) return;
  int64_t first = v.integer, last = v.integer;
  if (v.kind == ValueKind::list && !o->open_end) {
    if (v.list->count == 0) {
      evaluator_.fail("empty-range", o->value, "an empty range");
      return;
    }
    if (v.list->data != nullptr || !v.list->consecutive()) {
      evaluator_.fail("wrong-type", o->value, "expected a number or a range, found a list");
      return;
    }
    first = (*v.list)[0];
    last = (*v.list)[v.list->count - 1];
  } else if (v.kind != ValueKind::integer) {
    evaluator_.expected(o->open_end ? "a number" : "a number or a range", v.kind, o->value);
    return;
  }
  if (first < 0) {
    evaluator_.fail("option-value", o->value,
                    fmt::format("'{}' begins at {}", ast_.text(name), first));
    return;
  }
  out.min = static_cast<uint64_t>(first);
  out.max = o->open_end ? ~uint64_t{0} : static_cast<uint64_t>(last);
}

template <class F>
void Unroller::words_option(Array<const Option> options, Symbol name, F use) {
  const Option* o = find_option(options, name);
  if (o == nullptr) return;
  if (o->value.kind != ExprKind::list) {
    evaluator_.fail(
        "option-value", o->value.place,
        fmt::format("'{}' takes a list of words: '{}: [...]'", ast_.text(name), ast_.text(name)));
    return;
  }
  for (const ast::Expr& e : o->value.children()) {
    if (e.kind == ExprKind::name) {
      use(ast_.text(e.name.id), e.place);
    } else if (e.kind == ExprKind::string) {
      use(*e.string, e.place);
    } else {
      evaluator_.fail("option-value", e.place, "expected a word");
    }
  }
}

void Unroller::select(const ast::Options& s) {
  Select& out = builder_.program().select;
  range_option(s.options, ast::w_sizes, out.sizes);
  range_option(s.options, ast::w_nodes, out.nodes);
  range_option(s.options, ast::w_gpus_per_node, out.gpus_per_node);
  number_option(s.options, ast::w_priority, out.priority);
  words_option(s.options, ast::w_dtypes, [&](std::string_view word, ast::Place place) {
    if (const auto dtype = find_dtype(word)) {
      out.dtypes.push_back(*dtype);
      return;
    }
    std::vector<std::string_view> known;
    for (const DtypeInfo& t : dtype_table()) known.push_back(t.name);
    evaluator_.fail("unknown-dtype", place,
                    fmt::format("unknown data type '{}'{}", word, suggestion(word, known)));
  });
  words_option(s.options, ast::w_ops, [&](std::string_view word, ast::Place place) {
    if (const auto op = find_reduce_op(word)) {
      out.ops.push_back(*op);
      return;
    }
    evaluator_.fail(
        "unknown-reduction", place,
        fmt::format("unknown reduction '{}'{}", word, suggestion(word, reduce_names())));
  });
  words_option(s.options, ast::w_tags,
               [&](std::string_view word, ast::Place) { out.tags.emplace_back(word); });
}

void Unroller::launch(const ast::Options& s) {
  Launch launch;
  small_option(s.options, ast::w_threads, launch.threads);
  small_option(s.options, ast::w_instances, launch.instances);
  small_option(s.options, ast::w_align, launch.align);
  flag_option(s.options, ast::w_fuse, launch.fuse);
  flag_option(s.options, ast::w_auto_sync, launch.auto_sync);
  flag_option(s.options, ast::w_reuse_scratch, launch.reuse_scratch);
  flag_option(s.options, ast::w_split, builder_.program().split);
  flag_option(s.options, ast::w_foreign, builder_.program().foreign);
  if (const Option* o = find_option(s.options, ast::w_policy)) {
    const bool word = o->value.kind == ExprKind::name;
    if (word && o->value.name.id == ast::w_blocked) {
      launch.policy = Policy::blocked;
    } else if (!word || o->value.name.id != ast::w_interleaved) {
      const std::string_view given = ast_.text(o->value.place);
      evaluator_.fail("option-value", o->value.place,
                      fmt::format("unknown policy '{}'{}", given,
                                  suggestion(given, {"interleaved", "blocked"})));
    }
  }
  builder_.launch(launch, {.threads = mark_of(find_option(s.options, ast::w_threads)),
                           .instances = mark_of(find_option(s.options, ast::w_instances)),
                           .align = mark_of(find_option(s.options, ast::w_align))});
}

}  // namespace mscclc
