// Keys of channels and semaphores, and which end of a channel meets which: done once, when all
// ranks have declared what they own.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/builder_state.h"

namespace mscclc {
namespace {

/// A box of keys gets a table if it is not much larger than the family.
constexpr uint64_t kSpread = 4, kSmallBox = 64;

}  // namespace

std::span<const int64_t> BuilderState::member_keys(uint32_t of_rank, DeclKind kind,
                                                   uint32_t index) const {
  const Rank& r = program.ranks[of_rank];
  return program.values(kind == DeclKind::channel ? r.channels[index].label.keys
                                                  : r.semaphores[index].label.keys);
}

/// Turns (low, high) of the keys into (low, extent) and makes room for a dense family's table.
void BuilderState::close_box(Family& f) {
  uint64_t volume = 1;
  const uint64_t limit = kSpread * f.count + kSmallBox;
  for (uint32_t i = 0; i < f.keys; ++i) {
    int64_t* box = boxes.data() + f.box + 2 * i;
    const uint64_t extent = static_cast<uint64_t>(box[1]) - static_cast<uint64_t>(box[0]) + 1;
    box[1] = static_cast<int64_t>(extent);
    volume = extent == 0 || extent > limit ? limit + 1 : std::min(volume * extent, limit + 1);
  }
  if (f.keys == 0 || volume > limit) return;
  f.table = static_cast<uint32_t>(tables.size());
  tables.resize(tables.size() + volume, kNone);
}

uint32_t BuilderState::find_sparse(uint32_t of_rank, DeclKind kind, const Family& f,
                                   std::span<const int64_t> keys) const {
  const auto found = std::lower_bound(
      f.sorted.begin(), f.sorted.end(), keys, [&](uint32_t member, std::span<const int64_t> k) {
        return std::ranges::lexicographical_compare(member_keys(of_rank, kind, member), k);
      });
  if (found == f.sorted.end()) return kNone;
  return std::ranges::equal(member_keys(of_rank, kind, *found), keys) ? *found : kNone;
}

void BuilderState::report_twice(uint32_t of_rank, DeclKind kind, uint32_t index) {
  const Rank& r = program.ranks[of_rank];
  const Label& label =
      kind == DeclKind::channel ? r.channels[index].label : r.semaphores[index].label;
  const Mark mark = kind == DeclKind::channel ? ranks[of_rank].ends[index].mark
                                              : ranks[of_rank].semaphores[index].mark;
  fail("redeclared", mark,
       fmt::format("'{}' is declared twice on rank {}", program.text(label), of_rank));
  poison(label.name);
}

void BuilderState::build_tables(uint32_t of_rank) {
  RankState& r = ranks[of_rank];
  for (Family& f : r.families) close_box(f);
  const auto enter = [&](DeclKind kind, const Label& label, uint32_t index) {
    Family& f = r.families[r.decls[label.name].index];
    if (f.keys == 0) return;
    if (f.table == kNone) {
      f.sorted.push_back(index);
      return;
    }
    uint32_t& entry = tables[f.table + box_index(f, program.values(label.keys))];
    if (entry != kNone) report_twice(of_rank, kind, index);
    entry = index;
  };
  const Rank& out_rank = program.ranks[of_rank];
  for (uint32_t i = 0; i < out_rank.channels.size(); ++i) {
    enter(DeclKind::channel, out_rank.channels[i].label, i);
  }
  for (uint32_t i = 0; i < out_rank.semaphores.size(); ++i) {
    enter(DeclKind::semaphore, out_rank.semaphores[i].label, i);
  }
  for (Family& f : r.families) {
    if (f.sorted.empty()) continue;
    const DeclKind kind = r.decls[f.name].kind;
    const auto keys = [&](uint32_t member) { return member_keys(of_rank, kind, member); };
    std::ranges::sort(f.sorted, [&](uint32_t a, uint32_t b) {
      return std::ranges::lexicographical_compare(keys(a), keys(b));
    });
    const auto twice = std::ranges::adjacent_find(
        f.sorted, [&](uint32_t a, uint32_t b) { return std::ranges::equal(keys(a), keys(b)); });
    if (twice != f.sorted.end()) report_twice(of_rank, kind, std::max(twice[0], twice[1]));
  }
}

// ---- pairing ---------------------------------------------------------------------------------

/// Reports that `to` names an end with another number of keys, and shows one that leads back.
void BuilderState::wrong_far_keys(uint32_t peer, uint32_t of_rank, const Family& f,
                                  const NamedLink& link) {
  Diagnostic& d = wrong_keys(f, link.keys.count, link.mark);
  const std::vector<Channel>& channels = program.ranks[peer].channels;
  const auto back = std::ranges::find_if(
      channels, [&](const Channel& c) { return c.label.name == link.name && c.peer == of_rank; });
  if (back == channels.end() || f.keys == 0) return;
  note(
      d, link.mark,
      fmt::format("'to' takes the keys of the end that leads back: rank {} has '{}' to rank {}, so "
                  "here it is 'to {}'",
                  peer, program.text(back->label), of_rank, program.text(back->label)));
}

/// The end that `to` names, or kNone after reporting.
uint32_t BuilderState::linked_end(uint32_t of_rank, const Channel& c, const NamedLink& link) {
  const std::span<const int64_t> keys(link_keys.data() + link.keys.first, link.keys.count);
  if (is_poisoned(link.name)) return kNone;
  const Decl d = decl(c.peer, link.name);
  if (d.kind == DeclKind::channel) {
    const Family& f = ranks[c.peer].families[d.index];
    if (f.keys != keys.size()) {
      wrong_far_keys(c.peer, of_rank, f, link);
      return kNone;
    }
    const uint32_t end = find_member(c.peer, d.kind, f, keys);
    if (end != kNone) return end;
  }
  std::string text(name(link.name));
  if (!keys.empty()) text += list_text(List::stored(keys));
  fail("no-such-channel", link.mark,
       fmt::format("'{}' of rank {} ends at '{}', which rank {} does not have",
                   program.text(c.label), of_rank, text, c.peer));
  return kNone;
}

/// Gives ends of one name without `to` their peer's only end of that name back to them. Ranks are
/// visited in order, so a cursor per peer into its ends sorted by rank finds them all in one walk.
void BuilderState::default_ends(NameId id) {
  const uint32_t n = static_cast<uint32_t>(program.ranks.size());
  std::vector<uint32_t> sorted, begin, cursor;  // ends of all ranks, by peer; by rank: the first
  const auto peer_of = [&](uint32_t r, uint32_t c) { return program.ranks[r].channels[c].peer; };
  for (uint32_t r = 0; r < n; ++r) {
    begin.push_back(static_cast<uint32_t>(sorted.size()));
    const std::vector<Channel>& channels = program.ranks[r].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].label.name == id && channels[c].kind != ChannelKind::switch_) {
        sorted.push_back(c);
      }
    }
    const std::span<uint32_t> own(sorted.begin() + begin[r], sorted.end());
    const auto less = [&](uint32_t a, uint32_t b) { return channels[a].peer < channels[b].peer; };
    if (!std::ranges::is_sorted(own, less)) std::ranges::stable_sort(own, less);
  }
  begin.push_back(static_cast<uint32_t>(sorted.size()));
  cursor = begin;
  for (uint32_t r = 0; r < n; ++r) {
    for (uint32_t i = begin[r]; i < begin[r + 1]; ++i) {
      const uint32_t c = sorted[i], peer = peer_of(r, c), past = begin[peer + 1];
      ChannelEnd& end = ranks[r].ends[c];
      if (end.to != kNone) continue;
      uint32_t& at = cursor[peer];
      while (at < past && peer_of(peer, sorted[at]) < r) ++at;
      if (at == past || peer_of(peer, sorted[at]) != r) continue;
      if (at + 1 < past && peer_of(peer, sorted[at + 1]) == r) {
        end.ambiguous = true;
      } else {
        program.ranks[r].channels[c].partner = sorted[at];
      }
    }
  }
}

/// Checks that the end of `c` names `c` back; reports if `to` says otherwise.
bool BuilderState::named_back(uint32_t of_rank, uint32_t index) {
  const Channel& c = program.ranks[of_rank].channels[index];
  const Channel& other = program.ranks[c.peer].channels[c.partner];
  ChannelEnd& end = ranks[of_rank].ends[index];
  if (other.peer == of_rank && other.partner == index) {
    if (c.kind == other.kind) return true;
    fail("channel-kinds", end.to == kNone ? end.mark : links[end.to].mark,
         fmt::format("'{}' of rank {} is a {} channel, its other end '{}' of rank {} a {} channel",
                     program.text(c.label), of_rank, mscclc::name(c.kind),
                     program.text(other.label), c.peer, mscclc::name(other.kind)));
    return false;
  }
  ChannelEnd& other_end = ranks[c.peer].ends[c.partner];
  if (end.to == kNone) {
    end.ambiguous = other_end.ambiguous;
    return false;
  }
  failed = end.broken = other_end.broken = true;
  std::string where = fmt::format("names no end of rank {} with 'to'", of_rank);
  if (other.partner != kNone) {
    where = fmt::format("ends at '{}' of rank {}", label(other.peer, other.partner), other.peer);
  } else if (other.peer != of_rank) {
    where = fmt::format("goes to rank {}", other.peer);
  } else if (other_end.ambiguous) {
    where = "could meet several; say which with 'to'";
  } else if (other_end.to != kNone) {
    return false;  // its mistake has been reported
  }
  Diagnostic& d =
      fail("channel-crossed", links[end.to].mark,
           fmt::format("'{}' of rank {} ends at '{}' of rank {}, which {}", program.text(c.label),
                       of_rank, program.text(other.label), c.peer, where));
  note(d, other_end.mark, fmt::format("'{}' is declared here", program.text(other.label)));
  return false;
}

/// All members of a switch must have it, with the same ranks.
void BuilderState::check_switch(uint32_t of_rank, uint32_t index) {
  const Channel& c = program.ranks[of_rank].channels[index];
  const auto members = program.values(c.group);
  const auto keys = program.values(c.label.keys);
  for (const int64_t m : members) {
    const auto member = static_cast<uint32_t>(m);
    const Decl d = decl(member, c.label.name);
    const uint32_t theirs =
        d.kind == DeclKind::channel && ranks[member].families[d.index].keys == keys.size()
            ? find_member(member, d.kind, ranks[member].families[d.index], keys)
            : kNone;
    const Mark mark = ranks[of_rank].ends[index].mark;
    if (theirs == kNone) {
      fail("switch-ranks", mark,
           fmt::format("rank {} has no switch '{}', of which rank {} is one", member,
                       program.text(c.label), of_rank));
      return;
    }
    const Channel& other = program.ranks[member].channels[theirs];
    if (!std::ranges::equal(program.values(other.group), members)) {
      fail("switch-ranks", ranks[member].ends[theirs].mark,
           fmt::format("the switch of rank {} lists other ranks than that of rank {}", member,
                       of_rank));
      return;
    }
    if (of_rank != members.front()) return;  // the first of them looks at all
  }
}

void BuilderState::pair_channels() {
  std::vector<bool> defaulted(program.names().size(), false);
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    std::vector<Channel>& channels = program.ranks[r].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      const uint32_t to = ranks[r].ends[c].to;
      if (to != kNone) {
        channels[c].partner = linked_end(r, channels[c], links[to]);
      } else if (channels[c].kind == ChannelKind::switch_) {
        check_switch(r, c);
      } else if (!flat && !defaulted[channels[c].label.name]) {
        defaulted[channels[c].label.name] = true;
        default_ends(channels[c].label.name);
      }
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> loose;
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    const std::vector<Channel>& channels = program.ranks[r].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].partner != kNone && !named_back(r, c)) loose.emplace_back(r, c);
    }
  }
  for (const auto& [r, c] : loose) program.ranks[r].channels[c].partner = kNone;
}

void Builder::seal() {
  BuilderState& s = *state_;
  if (s.sealed) return;
  s.sealed = true;
  s.input_writable = s.program.contract.in_place == InPlace::yes || s.program.foreign;
  for (uint32_t r = 0; r < s.ranks.size(); ++r) s.build_tables(r);
  s.pair_channels();
}

}  // namespace mscclc
