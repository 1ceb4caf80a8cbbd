#include "compiler/builder/declare/members.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/draft/texts.h"

namespace mscclc {
namespace {

/// A box of keys gets a table if it is not much larger than the family.
constexpr uint64_t kSpread = 4, kSmallBox = 64;

}  // namespace

/// The family that a new member joins: members of one name have keys, equally many, and one kind.
Family* KeyedMembers::family_for(NameId id, DeclKind kind, size_t keys, Mark mark) {
  const Decl known = names_.decl(draft_.rank, id);
  if (known.kind == DeclKind::none) {
    const auto index = static_cast<uint32_t>(ranks_[draft_.rank].families.size());
    if (!names_.declare(id, kind, index, mark)) return nullptr;
    Family& f = ranks_[draft_.rank].families.emplace_back();
    f.name = id;
    f.keys = static_cast<uint32_t>(keys);
    f.box = static_cast<uint32_t>(boxes_.size());
    f.mark = mark;
    boxes_.resize(boxes_.size() + 2 * keys);
    return &f;
  }
  if (known.kind != kind) {
    reports_.fail(
        "redeclared", mark,
        fmt::format("'{}' is already declared as a {}", draft_.name(id), kind_name(known.kind)));
    return nullptr;
  }
  Family& f = ranks_[draft_.rank].families[known.index];
  if (f.keys != keys || keys == 0) {
    Diagnostic& d =
        reports_.fail("redeclared", mark, fmt::format("'{}' is already declared", draft_.name(id)));
    reports_.note(d, f.mark, fmt::format("'{}' is declared here", draft_.name(id)));
    return nullptr;
  }
  return &f;
}

void KeyedMembers::begin_rank() {
  if (draft_.rank == 0) return;
  const OfRank& like = ranks_[draft_.rank - 1];  // ranks are much alike
  OfRank& here = ranks_[draft_.rank];
  here.families.reserve(like.families.size());
  here.channels.reserve(like.channels.size());
  here.semaphores.reserve(like.semaphores.size());
}

bool KeyedMembers::add(NameId name, DeclKind kind, std::span<const int64_t> keys, uint32_t index,
                       Mark mark) {
  Family* const f = family_for(name, kind, keys.size(), mark);
  if (f == nullptr) return false;
  if (keys.empty()) f->single = index;
  for (size_t i = 0; i < keys.size(); ++i) {  // the box that all keys lie in
    int64_t& low = boxes_[f->box + 2 * i];
    int64_t& high = boxes_[f->box + 2 * i + 1];
    low = f->count == 0 ? keys[i] : std::min(low, keys[i]);
    high = f->count == 0 ? keys[i] : std::max(high, keys[i]);
  }
  ++f->count;
  OfRank& here = ranks_[draft_.rank];
  std::vector<Mark>& marks = kind == DeclKind::channel ? here.channels : here.semaphores;
  precondition(index == marks.size());
  marks.push_back(mark);
  return true;
}

/// Turns (low, high) of the keys into (low, extent) and makes room for a dense family's table.
void KeyedMembers::close_box(Family& f) {
  uint64_t volume = 1;
  const uint64_t limit = kSpread * f.count + kSmallBox;
  for (uint32_t i = 0; i < f.keys; ++i) {
    int64_t* box = boxes_.data() + f.box + 2 * i;
    const uint64_t extent = static_cast<uint64_t>(box[1]) - static_cast<uint64_t>(box[0]) + 1;
    box[1] = static_cast<int64_t>(extent);
    volume = extent == 0 || extent > limit ? limit + 1 : std::min(volume * extent, limit + 1);
  }
  if (f.keys == 0 || volume > limit) return;
  f.table = static_cast<uint32_t>(tables_.size());
  tables_.resize(tables_.size() + volume, kNone);
}

void KeyedMembers::build_tables(uint32_t of_rank) {
  OfRank& r = ranks_[of_rank];
  for (Family& f : r.families) close_box(f);
  const auto enter = [&](DeclKind kind, const Label& label, uint32_t index) {
    Family& f = r.families[names_.decl(of_rank, label.name).index];
    if (f.keys == 0) return;
    if (f.table == kNone) {
      f.sorted.push_back(index);
      return;
    }
    uint32_t& entry = tables_[f.table + box_index(f, draft_.program.values(label.keys))];
    if (entry != kNone) report_twice(of_rank, kind, index);
    entry = index;
  };
  const Rank& out_rank = draft_.program.ranks[of_rank];
  for (uint32_t i = 0; i < out_rank.channels.size(); ++i) {
    enter(DeclKind::channel, out_rank.channels[i].label, i);
  }
  for (uint32_t i = 0; i < out_rank.semaphores.size(); ++i) {
    enter(DeclKind::semaphore, out_rank.semaphores[i].label, i);
  }
  for (Family& f : r.families) {
    if (!f.sorted.empty()) sort_sparse(of_rank, f);
  }
}

void KeyedMembers::sort_sparse(uint32_t of_rank, Family& f) {
  const DeclKind kind = names_.decl(of_rank, f.name).kind;
  const auto keys = [&](uint32_t member) { return member_keys(of_rank, kind, member); };
  std::ranges::sort(f.sorted, [&](uint32_t a, uint32_t b) {
    return std::ranges::lexicographical_compare(keys(a), keys(b));
  });
  const auto twice = std::ranges::adjacent_find(
      f.sorted, [&](uint32_t a, uint32_t b) { return std::ranges::equal(keys(a), keys(b)); });
  if (twice != f.sorted.end()) report_twice(of_rank, kind, std::max(twice[0], twice[1]));
}

std::span<const int64_t> KeyedMembers::member_keys(uint32_t of_rank, DeclKind kind,
                                                   uint32_t index) const {
  const Rank& r = draft_.program.ranks[of_rank];
  return draft_.program.values(kind == DeclKind::channel ? r.channels[index].label.keys
                                                         : r.semaphores[index].label.keys);
}

void KeyedMembers::report_twice(uint32_t of_rank, DeclKind kind, uint32_t index) {
  const Rank& r = draft_.program.ranks[of_rank];
  const Label& label =
      kind == DeclKind::channel ? r.channels[index].label : r.semaphores[index].label;
  reports_.fail(
      "redeclared", mark(of_rank, kind, index),
      fmt::format("'{}' is declared twice on rank {}", draft_.program.text(label), of_rank));
  names_.poison(label.name);
}

uint32_t KeyedMembers::find_sparse(uint32_t of_rank, DeclKind kind, const Family& f,
                                   std::span<const int64_t> keys) const {
  const auto found = std::lower_bound(
      f.sorted.begin(), f.sorted.end(), keys, [&](uint32_t member, std::span<const int64_t> k) {
        return std::ranges::lexicographical_compare(member_keys(of_rank, kind, member), k);
      });
  if (found == f.sorted.end()) return kNone;
  return std::ranges::equal(member_keys(of_rank, kind, *found), keys) ? *found : kNone;
}

/// Finds a member of a family of this rank.
uint32_t KeyedMembers::member(DeclKind kind, NameId id, std::span<const int64_t> keys, Mark mark) {
  const Decl d = names_.decl(draft_.rank, id);
  if (d.kind != kind) return no_member(kind, id, keys, mark);
  const Family& f = ranks_[draft_.rank].families[d.index];
  if (f.keys != keys.size()) return no_member(kind, id, keys, mark);
  const uint32_t found = find(draft_.rank, kind, f, keys);
  return found != kNone ? found : no_member(kind, id, keys, mark);
}

/// Reports why there is no such member. Always kNone.
uint32_t KeyedMembers::no_member(DeclKind kind, NameId id, std::span<const int64_t> keys,
                                 Mark mark) {
  const Decl d = names_.decl(draft_.rank, id);
  if (names_.is_poisoned(id)) return kNone;
  if (d.kind != kind) {
    wrong_kind(draft_.rank, id, kind, mark);
    return kNone;
  }
  const Family& f = ranks_[draft_.rank].families[d.index];
  if (f.keys != keys.size()) {
    wrong_keys(f, keys.size(), mark);
    return kNone;
  }
  Diagnostic& error = reports_.fail("no-such-key", mark,
                                    fmt::format("rank {} has no '{}{}'", draft_.rank,
                                                draft_.name(id), list_text(List::stored(keys))));
  reports_.note(error, f.mark, fmt::format("'{}' is declared here", draft_.name(id)));
  return kNone;
}

/// Reports that `id` is not what is needed on `of_rank`. Always false.
bool KeyedMembers::wrong_kind(uint32_t of_rank, NameId id, DeclKind wanted, Mark mark) {
  if (names_.is_poisoned(id)) return false;
  const Decl found = names_.decl(of_rank, id);
  const std::string_view want = kind_name(wanted);
  if (found.kind == DeclKind::none) {
    reports_.fail("unknown-name", mark,
                  fmt::format("rank {} has no {} '{}'", of_rank, want, draft_.name(id)));
    return false;
  }
  Diagnostic& d = reports_.fail(
      "wrong-kind", mark,
      fmt::format("'{}' is a {}; expected a {}", draft_.name(id), kind_name(found.kind), want));
  if (found.kind != DeclKind::buffer) {
    reports_.note(d, ranks_[of_rank].families[found.index].mark,
                  fmt::format("'{}' is declared here", draft_.name(id)));
  } else if (found.index >= kFirstScratch) {
    d.notes.push_back({fmt::format("'{}' is declared here", draft_.name(id)),
                       draft_.program.ranks[of_rank].buffers[found.index].declared});
  }
  return false;
}

Diagnostic& KeyedMembers::wrong_keys(const Family& f, size_t given, Mark mark) {
  Diagnostic& error = reports_.fail(
      "key-count", mark,
      fmt::format("'{}' has {}; {} given", draft_.name(f.name), counted(f.keys, "key"),
                  given == 1 ? "1 is" : fmt::format("{} are", given)));
  reports_.note(error, f.mark, fmt::format("'{}' is declared here", draft_.name(f.name)));
  return error;
}

}  // namespace mscclc
