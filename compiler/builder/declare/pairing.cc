#include "compiler/builder/declare/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/builder/draft/texts.h"

namespace mscclc {

void Pairing::begin_rank() {
  if (draft_.rank > 0) joints_[draft_.rank].reserve(joints_[draft_.rank - 1].size());
}

void Pairing::connect(NameId name, std::span<const int64_t> keys, Mark mark) {
  const NamedLink link{
      name, {static_cast<uint32_t>(link_keys_.size()), static_cast<uint32_t>(keys.size())}, mark};
  link_keys_.insert(link_keys_.end(), keys.begin(), keys.end());
  joints_[draft_.rank].back().to = static_cast<uint32_t>(links_.size());
  links_.push_back(link);
}

/// Reports that `to` names an end with another number of keys, and shows one that leads back.
void Pairing::wrong_far_keys(uint32_t peer, uint32_t of_rank, const Family& f,
                             const NamedLink& link) {
  Diagnostic& d = members_.wrong_keys(f, link.keys.count, link.mark);
  const std::vector<Channel>& channels = draft_.program.ranks[peer].channels;
  const auto back = std::ranges::find_if(
      channels, [&](const Channel& c) { return c.label.name == link.name && c.peer == of_rank; });
  if (back == channels.end() || f.keys == 0) return;
  reports_.note(
      d, link.mark,
      fmt::format("'to' takes the keys of the end that leads back: rank {} has '{}' to rank {}, so "
                  "here it is 'to {}'",
                  peer, draft_.program.text(back->label), of_rank,
                  draft_.program.text(back->label)));
}

/// The end that `to` names, or kNone after reporting.
uint32_t Pairing::linked_end(uint32_t of_rank, const Channel& c, const NamedLink& link) {
  const std::span<const int64_t> keys(link_keys_.data() + link.keys.first, link.keys.count);
  if (names_.is_poisoned(link.name)) return kNone;
  const Decl d = names_.decl(c.peer, link.name);
  if (d.kind == DeclKind::channel) {
    const Family& f = members_.family(c.peer, d.index);
    if (f.keys != keys.size()) {
      wrong_far_keys(c.peer, of_rank, f, link);
      return kNone;
    }
    const uint32_t end = members_.find(c.peer, d.kind, f, keys);
    if (end != kNone) return end;
  }
  std::string text(draft_.name(link.name));
  if (!keys.empty()) text += list_text(List::stored(keys));
  reports_.fail("no-such-channel", link.mark,
                fmt::format("'{}' of rank {} ends at '{}', which rank {} does not have",
                            draft_.program.text(c.label), of_rank, text, c.peer));
  return kNone;
}

/// Gives ends of one name without `to` their peer's only end of that name back to them. Ranks are
/// visited in order, so a cursor per peer into its ends sorted by rank finds them all in one walk.
void Pairing::default_ends(NameId id) {
  const uint32_t n = static_cast<uint32_t>(draft_.ranks());
  std::vector<uint32_t> sorted, begin, cursor;  // ends of all ranks, by peer; by rank: the first
  const auto peer_of = [&](uint32_t r, uint32_t c) {
    return draft_.program.ranks[r].channels[c].peer;
  };
  for (uint32_t r = 0; r < n; ++r) {
    begin.push_back(static_cast<uint32_t>(sorted.size()));
    const std::vector<Channel>& channels = draft_.program.ranks[r].channels;
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
      Joint& end = joints_[r][c];
      if (end.to != kNone) continue;
      uint32_t& at = cursor[peer];
      while (at < past && peer_of(peer, sorted[at]) < r) ++at;
      if (at == past || peer_of(peer, sorted[at]) != r) continue;
      if (at + 1 < past && peer_of(peer, sorted[at + 1]) == r) {
        end.ambiguous = true;
      } else {
        draft_.program.ranks[r].channels[c].partner = sorted[at];
      }
    }
  }
}

/// Checks that the end of `c` names `c` back; reports if `to` says otherwise.
bool Pairing::named_back(uint32_t of_rank, uint32_t index) {
  const Channel& c = draft_.program.ranks[of_rank].channels[index];
  const Channel& other = draft_.program.ranks[c.peer].channels[c.partner];
  Joint& end = joints_[of_rank][index];
  if (other.peer == of_rank && other.partner == index) {
    if (c.kind == other.kind) return true;
    reports_.fail(
        "channel-kinds",
        end.to == kNone ? members_.mark(of_rank, DeclKind::channel, index) : links_[end.to].mark,
        fmt::format("'{}' of rank {} is a {} channel, its other end '{}' of rank {} a {} channel",
                    draft_.program.text(c.label), of_rank, mscclc::name(c.kind),
                    draft_.program.text(other.label), c.peer, mscclc::name(other.kind)));
    return false;
  }
  Joint& other_end = joints_[c.peer][c.partner];
  if (end.to == kNone) {
    end.ambiguous = other_end.ambiguous;
    return false;
  }
  reports_.set_failed();
  end.broken = other_end.broken = true;
  std::string where = fmt::format("names no end of rank {} with 'to'", of_rank);
  if (other.partner != kNone) {
    where =
        fmt::format("ends at '{}' of rank {}", draft_.label(other.peer, other.partner), other.peer);
  } else if (other.peer != of_rank) {
    where = fmt::format("goes to rank {}", other.peer);
  } else if (other_end.ambiguous) {
    where = "could meet several; say which with 'to'";
  } else if (other_end.to != kNone) {
    return false;  // its mistake has been reported
  }
  Diagnostic& d = reports_.fail(
      "channel-crossed", links_[end.to].mark,
      fmt::format("'{}' of rank {} ends at '{}' of rank {}, which {}", draft_.program.text(c.label),
                  of_rank, draft_.program.text(other.label), c.peer, where));
  reports_.note(d, members_.mark(c.peer, DeclKind::channel, c.partner),
                fmt::format("'{}' is declared here", draft_.program.text(other.label)));
  return false;
}

/// All members of a switch must have it, with the same ranks.
void Pairing::check_switch(uint32_t of_rank, uint32_t index) {
  const Channel& c = draft_.program.ranks[of_rank].channels[index];
  const auto members = draft_.program.values(c.group);
  const auto keys = draft_.program.values(c.label.keys);
  for (const int64_t m : members) {
    const auto member = static_cast<uint32_t>(m);
    const Decl d = names_.decl(member, c.label.name);
    const uint32_t theirs =
        d.kind == DeclKind::channel && members_.family(member, d.index).keys == keys.size()
            ? members_.find(member, d.kind, members_.family(member, d.index), keys)
            : kNone;
    const Mark mark = members_.mark(of_rank, DeclKind::channel, index);
    if (theirs == kNone) {
      reports_.fail("switch-ranks", mark,
                    fmt::format("rank {} has no switch '{}', of which rank {} is one", member,
                                draft_.program.text(c.label), of_rank));
      return;
    }
    const Channel& other = draft_.program.ranks[member].channels[theirs];
    if (!std::ranges::equal(draft_.program.values(other.group), members)) {
      reports_.fail("switch-ranks", members_.mark(member, DeclKind::channel, theirs),
                    fmt::format("the switch of rank {} lists other ranks than that of rank {}",
                                member, of_rank));
      return;
    }
    if (of_rank != members.front()) return;  // the first of them looks at all
  }
}

void Pairing::pair_channels() {
  std::vector<bool> defaulted(draft_.program.names().size(), false);
  for (uint32_t r = 0; r < draft_.ranks(); ++r) {
    std::vector<Channel>& channels = draft_.program.ranks[r].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      const uint32_t to = joints_[r][c].to;
      if (to != kNone) {
        channels[c].partner = linked_end(r, channels[c], links_[to]);
      } else if (channels[c].kind == ChannelKind::switch_) {
        check_switch(r, c);
      } else if (!draft_.flat && !defaulted[channels[c].label.name]) {
        defaulted[channels[c].label.name] = true;
        default_ends(channels[c].label.name);
      }
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> loose;
  for (uint32_t r = 0; r < draft_.ranks(); ++r) {
    const std::vector<Channel>& channels = draft_.program.ranks[r].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].partner != kNone && !named_back(r, c)) loose.emplace_back(r, c);
    }
  }
  for (const auto& [r, c] : loose) draft_.program.ranks[r].channels[c].partner = kNone;
}

}  // namespace mscclc
