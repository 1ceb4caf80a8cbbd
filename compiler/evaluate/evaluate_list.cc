// Lists: ranges, exceptions, elements, comprehensions.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/evaluate/evaluate.h"

namespace mscclc {

using ast::Expr;
using ast::ExprKind;

bool Evaluator::make_list(const Expr& e, const List& list, Value& out) {
  const List* made = lists_.make(list);
  if (made == nullptr) return too_many_elements(e);
  out.kind = ValueKind::list;
  out.list = made;
  return true;
}

bool Evaluator::store_list(const Expr& e, std::span<const int64_t> elements, Value& out) {
  int64_t* data = lists_.allocate(std::max<size_t>(elements.size(), 1));
  if (data != nullptr) {
    std::ranges::copy(elements, data);
    return make_list(e, List::stored({data, elements.size()}), out);
  }
  return too_many_elements(e);
}

// ---- lists -----------------------------------------------------------------------------------

bool Evaluator::list(const Expr& e, List& out) {
  Value v;
  if (!eval(e, v)) return false;
  if (v.kind != ValueKind::list) return expected("a list", v.kind, e);
  out = *v.list;
  return true;
}

bool Evaluator::range_ends(const Expr& e, int64_t& from, int64_t& to) {
  int64_t length = 0;
  if (!integer(e.kids[0], from) || !integer(e.kids[1], to)) return false;
  return to <= from || !__builtin_sub_overflow(to, from, &length) || overflow(e);
}

bool Evaluator::range(const Expr& e, Value& out) {
  int64_t from = 0, to = 0;
  return range_ends(e, from, to) && make_list(e, List::range(from, to), out);
}

/// L except x. A range without one of its elements stays a range.
bool Evaluator::except(const Expr& e, Value& out) {
  Value left, right;
  if (!eval(e.kids[0], left)) return false;
  if (left.kind != ValueKind::list) return expected("a list", left.kind, e.kids[0]);
  if (!eval(e.kids[1], right)) return false;
  List gone;
  if (right.kind == ValueKind::integer) {
    gone = List::range(right.integer, right.integer);
    gone.count = 1;
  } else if (right.kind == ValueKind::list) {
    gone = *right.list;
  } else {
    return expected("a number or a list", right.kind, e.kids[1]);
  }
  const List& from = *left.list;
  const bool plain = from.data == nullptr && from.hole >= from.count;
  if (plain && gone.count == 1) {
    // Numbers of both signs may be further apart than 63 bits say.
    const uint64_t position = static_cast<uint64_t>(gone[0]) - static_cast<uint64_t>(from.first);
    List rest = from;
    if (gone[0] >= from.first && position < static_cast<uint64_t>(from.count)) {
      --rest.count;
      rest.hole = static_cast<int64_t>(position);
      if (position == 0) rest = List{nullptr, from.first + 1, rest.count, List::kNoHole};
    }
    return make_list(e, rest, out);
  }
  if (std::max(from.count, gone.count) > static_cast<int64_t>(ListArena::kMaxElements)) {
    return too_many_elements(e);
  }
  std::vector<int64_t> sorted, kept;
  for (int64_t i = 0; i < gone.count && steps_.take(e.place); ++i) sorted.push_back(gone[i]);
  std::ranges::sort(sorted);
  for (int64_t i = 0; i < from.count && steps_.take(e.place); ++i) {
    if (!std::ranges::binary_search(sorted, from[i])) kept.push_back(from[i]);
  }
  return !steps_.stopped() && store_list(e, kept, out);
}

/// L + M: the elements of L, then those of M.
bool Evaluator::join(const Expr& e, const List& a, const List& b, Value& out) {
  if (b.count == 0) return make_list(e, a, out);
  if (a.count == 0) return make_list(e, b, out);
  const uint64_t all = static_cast<uint64_t>(a.count) + static_cast<uint64_t>(b.count);
  const uint64_t cost = std::min(all, uint64_t{1} << 62) * kStepsOfElement;
  if (cost > steps_.left()) {
    fail("too-many-elements", e.place, fmt::format("a list of {} elements is too long", all));
    return false;
  }
  steps_.add(cost);
  int64_t* data = lists_.allocate(all);
  if (data == nullptr) return too_many_elements(e);
  for (int64_t i = 0; i < a.count; ++i) data[i] = a[i];
  for (int64_t i = 0; i < b.count; ++i) data[a.count + i] = b[i];
  return make_list(e, List::stored({data, static_cast<size_t>(all)}), out);
}

/// x in L.
bool Evaluator::contains(const Expr& e, bool& out) {
  int64_t x = 0;
  Value of;
  if (!integer(e.kids[0], x) || !eval(e.kids[1], of)) return false;
  if (of.kind != ValueKind::list) return expected("a list", of.kind, e.kids[1]);
  const List& list = *of.list;
  out = false;
  if (list.data == nullptr && list.count > 0) {  // a range, perhaps without one of its numbers
    out = x >= list[0] && x <= list[list.count - 1] &&
          (list.hole >= list.count || x != list.first + list.hole);
    return true;
  }
  for (int64_t i = 0; !out && i < list.count && steps_.take(e.place); ++i) out = list[i] == x;
  return !steps_.stopped();
}

bool Evaluator::too_many_elements(const Expr& e) {
  fail("too-many-elements", e.place,
       fmt::format("more than {} list elements", ListArena::kMaxElements));
  return false;
}

bool Evaluator::elements(const Expr& e, Value& out) {
  if (!steps_.take(e.place, e.count)) return false;
  int64_t* data = lists_.allocate(std::max<size_t>(e.count, 1));
  if (data == nullptr) return store_list(e, {}, out);
  for (uint32_t i = 0; i < e.count; ++i) {
    if (!integer(e.kids[i], data[i])) return false;
  }
  return make_list(e, List::stored({data, e.count}), out);
}

/// Elements gather in a buffer of their own, as what their evaluation allocates is freed at once.
bool Evaluator::comprehension(const Expr& e, Value& out) {
  if (pool_used_ == pool_.size()) pool_.emplace_back();
  const size_t mine = pool_used_++;
  pool_[mine].clear();
  bool good = each(e.loop->binders, false, [&] {
    int64_t v = 0;
    if (!integer(e.loop->element, v) || !steps_.take(e.place)) return false;
    if (pool_[mine].size() >= ListArena::kMaxElements) return too_many_elements(e);
    pool_[mine].push_back(v);
    return true;
  });
  good = good && store_list(e, pool_[mine], out);
  --pool_used_;
  return good;
}

}  // namespace mscclc
