#include "compiler/unroll/declarer.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/resolve/options.h"
#include "ir/program/applied.h"
#include "ir/rows/row_wire.h"

namespace mscclc {

void Declarer::declare(const ast::Stmt& s) {
  scope_.set_place(s.keyword);
  switch (s.kind) {
    case ast::StmtKind::let:
      scope_.let(s.as<ast::Let>());
      break;
    case ast::StmtKind::buffer:
      scope_.bind_names(s);
      buffer(s.as<ast::BufferDecl>());
      break;
    case ast::StmtKind::channel:
      scope_.bind_names(s);
      channel(s.as<ast::ChannelDecl>());
      break;
    case ast::StmtKind::semaphore:
      scope_.bind_names(s);
      for (const ast::SemaphoreDecl& d : s.as<ast::Semaphores>().semaphores) semaphore(d);
      break;
    default:
      break;
  }
}

/// A dimension that is a number or a list.
bool Declarer::dimension(const ast::Expr& e, Dim& out) {
  Value v;
  if (!evaluator_.eval(e, v)) return false;
  if (v.kind == ValueKind::list) {
    out = Dim(*v.list);
    return true;
  }
  if (v.kind != ValueKind::integer) {
    return evaluator_.expected("a number or a list", v.kind, e);
  }
  out = Dim(v.integer);
  if (v.integer >= 0) return true;
  evaluator_.fail("buffer-size", e, fmt::format("a dimension of {}", v.integer));
  return false;
}

bool Declarer::buffer_dims(const ast::BufferDecl& s, std::vector<Dim>& dims) {
  bool good = true;
  for (const ast::Binder& b : s.dims) {
    Dim dim(0);
    good = dimension(b.list, dim) && good;
    dims.push_back(dim);
  }
  return good;
}

/// The indices of dimension `at` and, for each, of those after it.
bool Declarer::buffer_rows(ast::Array<const ast::Binder> dims, uint32_t at, Rows& out) {
  const ast::Binder& b = dims[at];
  const auto add = [&](int64_t index) {
    out.index.push_back(index);
    return at + 1 == dims.size() || buffer_rows(dims, at + 1, out.below.emplace_back());
  };
  if (b.name.given()) {
    return evaluator_.each_value(b, false,
                                 [&] { return add(evaluator_.context().bindings.back().value); });
  }
  const ListArena::Mark lists = evaluator_.lists().mark();
  Dim dim(0);
  if (!dimension(b.list, dim) || !evaluator_.steps().rounds(dim.list.count, b.place)) return false;
  for (int64_t i = 0; i < dim.list.count; ++i) {
    if (!evaluator_.steps().take(b.place) || !add(dim.list[i])) return false;
  }
  evaluator_.lists().release(lists);
  return true;
}

/// Rows may differ in length if a dimension has a name for its index.
bool Declarer::declare_buffer(const ast::BufferDecl& s, const BufferOptions& options) {
  const NameId name = scope_.name_id(s.name.id);
  const Mark dims_mark = scope_.mark_of(s.dims_place);
  const auto named = [](const ast::Binder& b) { return b.name.given(); };
  if (std::ranges::none_of(s.dims, named)) {
    std::vector<Dim> dims;
    return buffer_dims(s, dims) &&
           builder_.buffer(name, dims, options, scope_.mark_of(s.name), dims_mark);
  }
  Rows rows;
  return buffer_rows(s.dims, 0, rows) && builder_.ragged_buffer(name, rows, s.dims.size(), options,
                                                                scope_.mark_of(s.name), dims_mark);
}

/// F of `packets: F`: a word, or a parameter that is one. Sentinel packets make a program one for
/// float types, if it does not say which.
bool Declarer::packets(const ast::Expr& e, PacketFormat& out) {
  const auto word = packet_format_word(ast_, e);
  const bool name = e.kind == ast::ExprKind::name;
  const Value v = name ? evaluator_.value(e.name.id) : Value{};
  if (word) {
    out = *word;
  } else if (v.kind == ValueKind::format) {
    out = v.format;
  } else if (v.kind != ValueKind::unbound) {
    return evaluator_.expected("a packet format", v.kind, e);
  } else if (name && header_.is_param(ast_.text(e.name.id))) {
    return false;  // its mistake has been reported
  } else {
    const std::string_view text = ast_.text(e.place);
    std::vector<std::string_view> known;
    for (const PacketFormatInfo& row : packet_formats()) known.push_back(row.name);
    evaluator_.fail("unknown-packets", e.place,
                    fmt::format("unknown packets '{}'{}", text, suggestion(text, known)));
    return false;
  }
  std::vector<Dtype>& dtypes = builder_.program().select.dtypes;
  if (!is_sentinel(out) || !dtypes.empty() || scope_.main.is_ir) return true;
  for (const DtypeInfo& t : dtype_table()) {
    if (t.kind == DtypeKind::kFloat) dtypes.push_back(t.dtype);
  }
  return true;
}

/// Q of `type: Q`: a type, or an external whose values it holds.
bool Declarer::row_form(const ast::Expr& e, rows::Form& out) {
  const std::string_view text = ast_.text(e.place);
  const auto form = find_form(builder_.program(), text);
  if (form) out = *form;
  if (form) return true;
  evaluator_.fail("option-value", e.place,
                  fmt::format("unknown type '{}'{}", text, suggestion(text, rows::type_names())));
  return false;
}

void Declarer::buffer(const ast::BufferDecl& s) {
  BufferOptions options;
  bool good = true;
  if (const ast::Option* o = find_option(s.options, ast::w_packets)) {
    good = packets(o->value, options.packets) && good;
  }
  if (const ast::Option* o = find_option(s.options, ast::w_type)) {
    good = row_form(o->value, options.form) && good;
  }
  if (find_option(s.options, ast::w_copies) != nullptr) {
    good = values_.small(s.options, ast::w_copies, options.copies) && good;
  }
  if (find_option(s.options, ast::w_units) != nullptr) {
    good = values_.small(s.options, ast::w_units, options.units) && good;
    options.has_units = true;
  }
  if (!good || !declare_buffer(s, options)) builder_.poison(scope_.name_id(s.name.id));
}

// ---- channels and semaphores -----------------------------------------------------------------

/// Calls `body` with the keys of each member in key_values_: those of the binders, or the literal
/// ones. False after a mistake.
template <class F>
bool Declarer::each_key(ast::Array<const ast::Binder> keys, F body) {
  key_values_.clear();
  if (keys.empty() || !keys[0].name.given()) {
    for (const ast::Binder& b : keys) {
      int64_t v = 0;
      if (!evaluator_.integer(b.list, v)) return false;
      key_values_.push_back(v);
    }
    return body();
  }
  const size_t outer = evaluator_.context().bindings.size();
  return evaluator_.each(keys, false, [&] {
    key_values_.clear();
    for (size_t i = outer; i < evaluator_.context().bindings.size(); ++i) {
      key_values_.push_back(evaluator_.context().bindings[i].value);
    }
    return body();
  });
}

void Declarer::channel(const ast::ChannelDecl& s) {
  const auto kind = find_channel_kind(ast_.text(s.channel));
  const auto declare_one = [&] {
    bool there = true;
    if (s.where != nullptr && !evaluator_.boolean(*s.where, there)) return false;
    if (!there) return true;
    if (!one_channel(s, *kind)) builder_.poison(scope_.name_id(s.name.id));
    return !scope_.halted();
  };
  if (!kind || !each_key(s.keys, declare_one)) builder_.poison(scope_.name_id(s.name.id));
}

bool Declarer::one_channel(const ast::ChannelDecl& s, ChannelKind kind) {
  const NameId name = scope_.name_id(s.name.id);
  uint32_t credits = 0;
  if (find_option(s.options, ast::w_credits) != nullptr &&
      !values_.small(s.options, ast::w_credits, credits)) {
    return false;
  }
  if (kind == ChannelKind::switch_) {
    List ranks;
    return evaluator_.list(s.peer, ranks) &&
           builder_.switch_channel(name, key_values_, ranks, scope_.mark_of(s.name),
                                   scope_.mark_of(s.peer.place)) &&
           builder_.credits(credits, scope_.mark_of(s.name));
  }
  int64_t peer = 0;
  if (!evaluator_.integer(s.peer, peer) ||
      !builder_.channel(kind, name, key_values_, peer, scope_.mark_of(s.name),
                        scope_.mark_of(s.peer.place)) ||
      !builder_.credits(credits, scope_.mark_of(s.name))) {
    return false;
  }
  if (!s.other.given()) return true;
  far_keys_.clear();
  for (const ast::Expr& e : s.other_keys) {
    int64_t v = 0;
    if (!evaluator_.integer(e, v)) return false;
    far_keys_.push_back(v);
  }
  builder_.connect(scope_.name_id(s.other.id), far_keys_, scope_.mark_of(s.other_place));
  return true;
}

void Declarer::semaphore(const ast::SemaphoreDecl& s) {
  const NameId name = scope_.name_id(s.name.id);
  const auto declare_one = [&] {
    int64_t initial = 0;
    if ((s.initial.given() && !evaluator_.integer(s.initial, initial)) ||
        !builder_.semaphore(name, key_values_, initial, scope_.mark_of(s.name))) {
      builder_.poison(name);
    }
    return !scope_.halted();
  };
  if (!each_key(s.keys, declare_one)) builder_.poison(name);
}

}  // namespace mscclc
