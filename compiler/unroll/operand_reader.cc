#include "compiler/unroll/operand_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/precondition.h"

namespace mscclc {

// ---- any operand -----------------------------------------------------------------------------

/// A range, or a list that is one.
bool OperandReader::range_index(const ast::Expr& e, Index& out) {
  if (e.kind == ast::ExprKind::binary && e.op == ast::BinaryOp::range) {
    int64_t from = 0, to = 0;
    if (!evaluator_.range_ends(e, from, to)) return false;
    out = Index::range(from, to);
    out.mark = scope_.mark_of(e.place);
    return true;
  }
  Value v;
  if (!evaluator_.eval(e, v)) return false;
  if (v.kind == ValueKind::integer) {
    out.first = v.integer;
    return true;
  }
  if (v.kind != ValueKind::list || !v.list->consecutive()) {
    return evaluator_.expected("a number or a range", v.kind, e);
  }
  out.first = v.list->count > 0 ? (*v.list)[0] : 0;
  out.count = v.list->count;
  return true;
}

bool OperandReader::indexes(ast::Array<const ast::Expr> list) {
  if (index_scratch_.size() < list.size()) index_scratch_.resize(list.size());
  Index* out = index_scratch_.data();
  for (const ast::Expr& e : list) {
    out->count = 1;
    out->mark = scope_.mark_of(e.place);
    if (!evaluator_.known_integer(e, out->first) && !range_index(e, *out)) return false;
    ++out;
  }
  return true;
}

bool OperandReader::keys(ast::Array<const ast::Expr> list) {
  if (key_scratch_.size() < list.size()) key_scratch_.resize(list.size());
  int64_t* out = key_scratch_.data();
  for (const ast::Expr& e : list) {
    if (!evaluator_.integer(e, *out++)) return false;
  }
  return true;
}

void OperandReader::own_operand(const ast::Operand& o, ValueKind kind, NameId thing, Ref& out) {
  const Mark place = scope_.mark_of(o.place);
  if (kind == ValueKind::semaphore) {
    if (keys(o.index)) {
      builder_.semaphore_ref(thing, {key_scratch_.data(), o.index.size()}, place, out);
    }
    return;
  }
  if (!indexes(o.index)) return;
  if (kind == ValueKind::buffer) {
    builder_.chunk(thing, scope_.mark_of(o.head), {index_scratch_.data(), o.index.size()}, place,
                   out);
  } else {
    builder_.external_rows(thing, {index_scratch_.data(), o.index.size()}, place, out);
  }
}

void OperandReader::channel_operand(const ast::Operand& o, NameId channel, Ref& out) {
  if (!keys(o.index)) return;
  const Mark end_mark{o.place.begin, o.head_end};
  const std::span<const int64_t> keys(key_scratch_.data(), o.index.size());
  if (!o.member.given()) {
    builder_.channel_end(channel, keys, end_mark, out);
    return;
  }
  // The name is one of the far rank's, or an argument that stands for one.
  const Value& member = evaluator_.value(o.member.id);
  const bool is_buffer = member.kind == ValueKind::buffer;
  if (!is_buffer && !evaluator_.context().expansions.empty() && member.kind != ValueKind::unbound) {
    evaluator_.fail(
        "wrong-kind", ast_.place(o.member),
        fmt::format("'{}' is {}; expected a buffer", ast_.text(o.member), kind_text(member.kind)));
  } else if (indexes(o.member_index)) {
    builder_.far_chunk(channel, keys, end_mark,
                       is_buffer ? member.thing : scope_.name_id(o.member.id),
                       scope_.mark_of(o.member), {index_scratch_.data(), o.member_index.size()},
                       scope_.mark_of(o.place), out);
  }
}

void OperandReader::flag_operand(const ast::Operand& o, uint32_t array, Ref& out) {
  if (o.index.size() != 1) {
    evaluator_.fail("index-count", o.place,
                    fmt::format("'{0}' needs the number of one flag: '{0}[c]'", ast_.text(o.head)));
  } else if (keys(o.index)) {
    builder_.flag(array, key_scratch_[0], scope_.mark_of(o.place), out);
  }
}

void OperandReader::not_a_channel(const ast::Operand& o, ValueKind kind) {
  evaluator_.fail(
      "wrong-kind", ast_.place(o.head),
      fmt::format("'{}' is {}; expected a channel", ast_.text(o.head), kind_text(kind)));
}

void OperandReader::operand(const ast::Operand& o, Ref& out) {
  out.traits = kInvalidTrait;
  const Value& head = evaluator_.value(o.head.id);
  switch (head.kind) {
    case ValueKind::channel:
      return channel_operand(o, head.thing, out);
    case ValueKind::buffer:
    case ValueKind::semaphore:
    case ValueKind::external:
      if (!o.member.given()) return own_operand(o, head.kind, head.thing, out);
      return not_a_channel(o, head.kind);
    case ValueKind::flags:
      return o.member.given() ? not_a_channel(o, head.kind) : flag_operand(o, head.thing, out);
    case ValueKind::unbound:
      return;
    default:
      evaluator_.fail("wrong-kind", ast_.place(o.head),
                      fmt::format("'{}' is {}; expected a buffer, channel or semaphore",
                                  ast_.text(o.head), kind_text(head.kind)));
  }
}

// ---- the fast way ----------------------------------------------------------------------------

/// Looks up what does not change while the present rank's body runs.
void OperandReader::renew(OperandPlan& plan) {
  const uint32_t rank = draft_.rank;
  const ast::Operand& o = *plan.written;
  plan.rank = rank;
  plan.form = OperandPlan::Form::general;
  plan.mark = scope_.mark_of(o.place);
  const Value& head = evaluator_.value(o.head.id);
  if (std::max(o.index.size(), o.member_index.size()) > OperandValues::kMax) return;
  if (head.kind == ValueKind::buffer && !o.member.given()) {
    const Decl d = owned_.names().decl(rank, head.thing);
    if (d.kind != DeclKind::buffer) return;
    plan.layout = &owned_.layouts().of(rank, d.index);
    plan.buffer = d.index;
    plan.traits = 1u << static_cast<int>(SlotKind::local) | plan.layout->traits;
    if (Layouts::fast(*plan.layout, o.index.size())) plan.form = OperandPlan::Form::chunk;
    return;
  }
  if (head.kind != ValueKind::channel) return;
  const Decl d = owned_.names().decl(rank, head.thing);
  if (d.kind != DeclKind::channel || owned_.members().family(rank, d.index).keys != o.index.size())
    return;
  plan.family = &owned_.members().family(rank, d.index);
  if (!o.member.given()) {
    plan.mark.end = o.head_end;
    plan.form = OperandPlan::Form::end;
    return;
  }
  // The name is one of the far rank's, or an argument that stands for one.
  const Value& member = evaluator_.value(o.member.id);
  const bool is_buffer = member.kind == ValueKind::buffer;
  if (!is_buffer && !evaluator_.context().expansions.empty()) return;
  plan.far = is_buffer ? member.thing : scope_.name_id(o.member.id);
  plan.form = OperandPlan::Form::far_chunk;
}

namespace {

bool is_name(const ast::Expr& e, ast::Symbol name) {
  return e.kind == ast::ExprKind::name && e.name.id == name;
}

}  // namespace

bool OperandPlan::steady_except(ast::Symbol name) const {
  const auto steady = [&](const ast::Expr& e) {
    return is_name(e, name) || !ast::mentions(e, name);
  };
  return std::ranges::all_of(written->index, steady) &&
         std::ranges::all_of(written->member_index, steady);
}

/// The value of an index or key that is a number.
inline bool OperandReader::number(const ast::Expr& e, int64_t& out) {
  if (evaluator_.known_integer(e, out)) return true;
  if (e.kind == ast::ExprKind::binary && e.op == ast::BinaryOp::range) return false;
  Value v;
  if (!evaluator_.eval(e, v) || v.kind != ValueKind::integer) return false;
  out = v.integer;
  return true;
}

/// Evaluates keys and indexes but those that are the name of `binder`.
inline bool OperandReader::numbers(const OperandPlan& plan, OperandValues& v, ast::Symbol binder) {
  v.keys = v.index = v.places = 0;
  const bool is_chunk = plan.form == OperandPlan::Form::chunk;
  const auto take = [&](const ast::Expr& e, int64_t& out) {
    if (!is_name(e, binder)) return number(e, out);
    v.place[v.places++] = &out;
    return true;
  };
  if (!is_chunk) {
    for (const ast::Expr& e : plan.written->index) {
      if (!take(e, v.key[v.keys++])) return false;
    }
  }
  for (const ast::Expr& e : is_chunk ? plan.written->index : plan.written->member_index) {
    if (!take(e, v.at[v.index++])) return false;
  }
  return true;
}

/// The run of chunks that the indexes name. REQUIRES: Layouts::fast.
inline bool OperandReader::find_chunks(const OperandValues& v, const Layout& layout, Operand& out) {
  precondition(Layouts::fast(layout, v.index));
  const Axis* axis = owned_.layouts().axes(layout);
  uint32_t first = 0, count = layout.chunks;
  for (uint32_t i = 0; i < v.index; ++i, ++axis) {
    const uint32_t position = axis->find(v.at[i]);
    if (position == kNone) return false;
    count = axis->stride;
    first += position * count;
  }
  out.first = first;
  out.count = count;
  return count != 0;
}

/// True if it worked out; nothing is reported otherwise.
inline bool OperandReader::fill(const OperandPlan& plan, const OperandValues& v, Ref& out) {
  out.mark = plan.mark;
  if (plan.form == OperandPlan::Form::chunk) {
    out.operand.channel = kNone;
    out.operand.buffer = plan.buffer;
    out.traits = plan.traits;
    return find_chunks(v, *plan.layout, out.operand);
  }
  const uint32_t found =
      owned_.members().find(draft_.rank, DeclKind::channel, *plan.family, {v.key, v.keys});
  if (found == kNone) return false;
  const Channel& c = draft_.out->channels[found];
  out.operand.channel = found;
  if (plan.form == OperandPlan::Form::end) {
    out.operand.buffer = kNone;
    out.operand.first = out.operand.count = 0;
    out.traits = 1u << static_cast<int>(SlotKind::channel) | channel_trait(c.kind);
    return true;
  }
  if (c.kind == ChannelKind::switch_) return false;
  const Decl far = owned_.names().decl(c.peer, plan.far);
  if (far.kind != DeclKind::buffer) return false;
  out.operand.buffer = far.index;
  const Layout& layout = owned_.layouts().of(c.peer, far.index);
  out.traits = 1u << static_cast<int>(SlotKind::remote) | channel_trait(c.kind) | layout.traits;
  return Layouts::fast(layout, v.index) && find_chunks(v, layout, out.operand);
}

/// `X for p in L` where p stands alone in keys and indexes: the others are evaluated once. False
/// (and nothing added) if that does not do for some element.
bool OperandReader::fill_all(const OperandPlan& plan, const ast::Binder& binder, RefList& out) {
  List list;
  OperandValues v;
  if (!evaluator_.list(binder.list, list) || !numbers(plan, v, binder.name.id)) return false;
  if (list.count > int64_t{kMaxOperands} || !evaluator_.steps().take_if_left(list.count))
    return false;
  const size_t before = out.size();
  for (int64_t i = 0; i < list.count; ++i) {
    const int64_t element = list[i];
    for (uint32_t k = 0; k < v.places; ++k) *v.place[k] = element;
    if (fill(plan, v, out.add())) continue;
    out.cut(before);
    return false;
  }
  return true;
}

/// False, and an error: no op has so many.
bool OperandReader::add_operand(const ast::Operand& o, RefList& out) {
  if (out.size() > kMaxOperands) {
    evaluator_.fail("too-many-operands", o.place,
                    fmt::format("more than {} operands", kMaxOperands));
    return false;
  }
  operand(o, out.add());
  return true;
}

void OperandReader::read(std::span<OperandPlan> plans, RefList& out) {
  out.clear();
  for (OperandPlan& plan : plans) {
    if (plan.rank != draft_.rank) renew(plan);
    const bool planned = plan.form != OperandPlan::Form::general;
    const ast::Operand& o = *plan.written;
    if (o.binder == nullptr) {
      Ref& ref = out.add();
      OperandValues v;
      if (!planned || !numbers(plan, v, ast::kNoSymbol) || !fill(plan, v, ref)) operand(o, ref);
      continue;
    }
    const ListArena::Mark lists = evaluator_.lists().mark();
    if (planned && plan.steady && fill_all(plan, *o.binder, out)) {
      evaluator_.lists().release(lists);
      continue;
    }
    const auto one = [&] { return add_operand(o, out); };
    if (!evaluator_.each_value(*o.binder, false, one)) out.add().traits = kInvalidTrait;
  }
}

void OperandReader::read(ast::Array<const ast::Operand> list, RefList& out) {
  out.clear();
  for (const ast::Operand& o : list) {
    const auto one = [&] { return add_operand(o, out); };
    if (o.binder == nullptr) {
      one();
    } else if (!evaluator_.each_value(*o.binder, false, one)) {
      out.add().traits = kInvalidTrait;
    }
  }
}

}  // namespace mscclc
