// Declarations of a rank body: evaluated in the first sweep, and only bound to their names in the
// second.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/unroll/unroll_state.h"

namespace mscclc {

void Unroller::declare(const ast::Stmt& s) {
  op_place_ = s.keyword;
  switch (s.kind) {
    case ast::StmtKind::let:
      let(s.as<ast::Let>());
      break;
    case ast::StmtKind::buffer:
      bind_names(s);
      buffer(s.as<ast::BufferDecl>());
      break;
    case ast::StmtKind::channel:
      bind_names(s);
      channel(s.as<ast::ChannelDecl>());
      break;
    case ast::StmtKind::semaphore:
      bind_names(s);
      for (const ast::SemaphoreDecl& d : s.as<ast::Semaphores>().semaphores) semaphore(d);
      break;
    default:
      break;
  }
}

/// From here on the declared names stand for things.
void Unroller::bind_names(const ast::Stmt& s) {
  const auto bind = [&](const ast::Name& name, ValueKind kind) {
    Value& v = evaluator_.value(name.id);
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

// ---- buffers ---------------------------------------------------------------------------------

bool Unroller::buffer_dims(const ast::BufferDecl& s, std::vector<Dim>& dims) {
  bool good = true;
  for (const ast::Expr& e : s.dims) {
    Value v;
    if (!evaluator_.eval(e, v)) {
      good = false;
    } else if (v.kind == ValueKind::integer && v.integer >= 0) {
      dims.emplace_back(v.integer);
    } else if (v.kind == ValueKind::integer) {
      evaluator_.fail("buffer-size", e, fmt::format("a dimension of {}", v.integer));
      good = false;
    } else if (v.kind == ValueKind::list) {
      dims.emplace_back(*v.list);
    } else {
      good = evaluator_.expected("a number or a list", v.kind, e);
    }
  }
  return good;
}

/// F of `packets: F`: a word, or a parameter that is one. Sentinel packets make a program one for
/// float types, if it does not say which.
bool Unroller::packets(const ast::Expr& e, PacketFormat& out) {
  const auto word = packet_format_word(ast_, e);
  const bool name = e.kind == ast::ExprKind::name;
  const Value v = name ? evaluator_.value(e.name.id) : Value{};
  if (word) {
    out = *word;
  } else if (v.kind == ValueKind::format) {
    out = v.format;
  } else if (v.kind != ValueKind::unbound) {
    return evaluator_.expected("a packet format", v.kind, e);
  } else if (name && std::ranges::find(params_, ast_.text(e.name.id)) != params_.end()) {
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
  if (!is_sentinel(out) || !dtypes.empty() || main_.is_ir) return true;
  for (const DtypeInfo& t : dtype_table()) {
    if (t.kind == DtypeKind::kFloat) dtypes.push_back(t.dtype);
  }
  return true;
}

void Unroller::buffer(const ast::BufferDecl& s) {
  const NameId name = name_id(s.name.id);
  BufferOptions options;
  std::vector<Dim> dims;
  bool good = buffer_dims(s, dims);
  if (const ast::Option* o = find_option(s.options, ast::w_packets)) {
    good = packets(o->value, options.packets) && good;
  }
  if (find_option(s.options, ast::w_copies) != nullptr) {
    good = small_option(s.options, ast::w_copies, options.copies) && good;
  }
  if (find_option(s.options, ast::w_units) != nullptr) {
    good = small_option(s.options, ast::w_units, options.units) && good;
    options.has_units = true;
  }
  // From '[' to ']': the brackets stand around the first and the last dimension.
  const Mark dims_mark{s.dims[0].place.begin - 1, s.dims[s.dims.size() - 1].place.end + 1};
  if (!good || !builder_.buffer(name, dims, options, mark_of(s.name), dims_mark)) {
    builder_.poison(name);
  }
}

// ---- channels and semaphores -----------------------------------------------------------------

/// Calls `body` with the keys of each member in key_values_: those of the binders, or the literal
/// ones. False after a mistake.
template <class F>
bool Unroller::each_key(ast::Array<const ast::Binder> keys, F body) {
  key_values_.clear();
  if (keys.empty() || !keys[0].name.given()) {
    for (const ast::Binder& b : keys) {
      int64_t v = 0;
      if (!evaluator_.integer(b.list, v)) return false;
      key_values_.push_back(v);
    }
    return body();
  }
  const size_t outer = evaluator_.bindings.size();
  return evaluator_.each(keys, false, [&] {
    key_values_.clear();
    for (size_t i = outer; i < evaluator_.bindings.size(); ++i) {
      key_values_.push_back(evaluator_.bindings[i].value);
    }
    return body();
  });
}

void Unroller::channel(const ast::ChannelDecl& s) {
  const auto kind = find_channel_kind(ast_.text(s.channel));
  const auto declare_one = [&] {
    if (!one_channel(s, *kind)) builder_.poison(name_id(s.name.id));
    return !halted();
  };
  if (!kind || !each_key(s.keys, declare_one)) builder_.poison(name_id(s.name.id));
}

bool Unroller::one_channel(const ast::ChannelDecl& s, ChannelKind kind) {
  const NameId name = name_id(s.name.id);
  uint32_t credits = 0;
  if (find_option(s.options, ast::w_credits) != nullptr &&
      !small_option(s.options, ast::w_credits, credits)) {
    return false;
  }
  if (kind == ChannelKind::switch_) {
    List ranks;
    return evaluator_.list(s.peer, ranks) &&
           builder_.switch_channel(name, key_values_, ranks, mark_of(s.name),
                                   mark_of(s.peer.place)) &&
           builder_.credits(credits, mark_of(s.name));
  }
  int64_t peer = 0;
  if (!evaluator_.integer(s.peer, peer) ||
      !builder_.channel(kind, name, key_values_, peer, mark_of(s.name), mark_of(s.peer.place)) ||
      !builder_.credits(credits, mark_of(s.name))) {
    return false;
  }
  if (!s.other.given()) return true;
  key_scratch_.clear();
  for (const ast::Expr& e : s.other_keys) {
    int64_t v = 0;
    if (!evaluator_.integer(e, v)) return false;
    key_scratch_.push_back(v);
  }
  builder_.connect(name_id(s.other.id), key_scratch_, mark_of(s.other_place));
  return true;
}

void Unroller::semaphore(const ast::SemaphoreDecl& s) {
  const NameId name = name_id(s.name.id);
  const auto declare_one = [&] {
    int64_t initial = 0;
    if ((s.initial.given() && !evaluator_.integer(s.initial, initial)) ||
        !builder_.semaphore(name, key_values_, initial, mark_of(s.name))) {
      builder_.poison(name);
    }
    return !halted();
  };
  if (!each_key(s.keys, declare_one)) builder_.poison(name);
}

}  // namespace mscclc
