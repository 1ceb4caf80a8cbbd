// Channels and semaphores of the IR: their names and order, from the extra key or made up, and
// which ends are two ends of one channel.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "plans/format/read/read_state.h"

namespace mscclc {
namespace {

Channel make_channel(ChannelKind kind, Label label, uint32_t peer) {
  Channel channel;
  channel.kind = kind;
  channel.label = label;
  channel.peer = peer;
  return channel;
}

Label number_label(Program& program, std::string_view name, int64_t key) {
  return {program.intern(name), program.append({&key, 1})};
}

/// Reads families, `["up","memory",7,"peer"]` or `["done",2,[0,1]]`, member by member.
class Families {
 public:
  struct Member {
    NodeId node;  ///< for messages
    ChannelKind kind;
    Label label;
    bool by_peer;  ///< the label's key is the channel's peer, not set yet
  };

  Families(ReadState& state, NodeId list, bool with_kind)
      : state_(state), json_(state.json), list_(list), with_kind_(with_kind) {}

  /// Calls `add(member)`, which returns false to stop, for all members of all families.
  template <class Add>
  bool read(Add add) {
    if (list_ == kNoNode) return true;
    if (!json_.expect(list_, JsonType::array)) return false;
    for (NodeId f = json_.first(list_); f != json_.end(list_); f = json_.next(f)) {
      if (!read_family(f)) return false;
      const size_t arity = count_ == 0 ? 0 : keys_.size() / count_;
      for (uint32_t i = 0; i < count_; ++i) {
        if (arity > 0) {
          member_.label.keys = state_.program.append({keys_.data() + i * arity, arity});
        }
        if (!add(std::as_const(member_))) return false;
      }
    }
    return true;
  }

 private:
  bool read_family(NodeId node) {
    if (!json_.expect(node, JsonType::array)) return false;
    const uint32_t fixed = with_kind_ ? 3 : 2, n = json_.count(node);
    if (n != fixed && n != fixed + 1) {
      return json_.fail(node, with_kind_ ? "expected a name, a kind, a count and keys"
                                         : "expected a name, a count and keys");
    }
    NodeId at = json_.first(node);
    std::string_view name;
    if (!json_.string(at, name)) return false;
    member_ = {node, ChannelKind::memory, {state_.program.intern(name), {}}, false};
    at = json_.next(at);
    if (with_kind_ && !read_kind(std::exchange(at, json_.next(at)))) return false;
    if (!json_.number(at, count_)) return false;
    keys_.clear();
    return n == fixed || read_keys(json_.next(at));
  }

  bool read_kind(NodeId node) {
    std::string_view name;
    if (!json_.string(node, name)) return false;
    const std::optional<ChannelKind> kind = find_channel_kind(name);
    if (!kind) return json_.fail(node, fmt::format("'{}' is not a kind of channel", name));
    member_.kind = *kind;
    return true;
  }

  bool read_keys(NodeId node) {
    Word w = 0;
    if (json_.tape()[node].kind() == JsonType::string) {
      member_.by_peer = with_kind_ && json_.word(node, w) && w == w_peer;
      return member_.by_peer || json_.fail(node, "keys are a list, or \"peer\" for channels");
    }
    if (!json_.integers(node, keys_)) return false;
    if (count_ > 0 && !keys_.empty() && keys_.size() % count_ == 0) return true;
    return json_.fail(node, fmt::format("{} keys for {} members", keys_.size(), count_));
  }

  ReadState& state_;
  const JsonReader& json_;
  NodeId list_;
  bool with_kind_;
  Member member_;
  uint32_t count_ = 0;
  std::vector<int64_t> keys_;
};

/// Declares the channels of a rank as the extra key names and orders them.
class ChannelDeclarer {
 public:
  ChannelDeclarer(ReadState& state, uint32_t rank, NodeId list)
      : state_(state),
        json_(state.json),
        wire_(state.ranks[rank]),
        rank_(state.program.ranks[rank]),
        id_(rank),
        list_(list) {}

  bool run() {
    const NodeId ids = state_.extra_node(id_, w_channel_ids);
    if (ids != kNoNode && !json_.numbers(ids, order_)) return false;
    for (size_t k = 0; k < 2; ++k) wire_.channels[k].assign(wire_.peers[k].size(), kNone);
    most_switches_ = list_size(w_switches) + list_size(w_unused_switches);
    const auto add = [&](const Families::Member& member) { return declare(member); };
    if (!Families(state_, state_.extra_node(id_, w_channels), true).read(add)) return false;
    const bool all = declared_[0] == wire_.peers[0].size() && declared_[1] == wire_.peers[1].size();
    if (!all) return json_.fail(list_, "'mscclc' does not name all channels");
    if (!order_.empty() && order_.size() != size_t{declared_[0]} + declared_[1]) {
      return json_.fail(ids, "more ids than channels");
    }
    return place_credits() && place_switches() && place_unused_switches() && check_switches();
  }

 private:
  uint32_t list_size(KnownWord key) const {
    const NodeId node = state_.extra_node(id_, key);
    const bool list = node != kNoNode && json_.tape()[node].kind() == JsonType::array;
    return list ? json_.count(node) : 0;
  }

  bool declare(const Families::Member& member) {
    Channel channel = make_channel(member.kind, member.label, kNone);
    if (member.kind == ChannelKind::switch_) {
      if (switches_.size() == most_switches_ || member.by_peer) {
        return json_.fail(member.node, "declares a switch that the rank does not have");
      }
      switches_.push_back(static_cast<uint32_t>(rank_.channels.size()));
    } else {
      uint32_t id = 0;
      if (!next_id(member, id)) return false;
      wire_.channels[static_cast<size_t>(member.kind)][id] =
          static_cast<uint32_t>(rank_.channels.size());
      channel.peer = wire_.peers[static_cast<size_t>(member.kind)][id];
    }
    if (member.by_peer) {
      const int64_t peer = channel.peer;
      channel.label.keys = state_.program.append({&peer, 1});
    }
    rank_.channels.push_back(channel);
    return true;
  }

  /// The wire id of the next memory or port channel.
  bool next_id(const Families::Member& member, uint32_t& id) {
    const size_t k = static_cast<size_t>(member.kind);
    const size_t at = size_t{declared_[0]} + declared_[1];
    id = declared_[k];
    if (!order_.empty() && at < order_.size()) id = order_[at];
    if (id >= wire_.peers[k].size() || wire_.channels[k][id] != kNone ||
        (!order_.empty() && at >= order_.size())) {
      return json_.fail(member.node, "declares a channel that the rank does not have");
    }
    ++declared_[k];
    return true;
  }

  bool place_credits() {
    const NodeId list = state_.extra_node(id_, w_credits);
    if (list == kNoNode) return true;
    std::vector<uint32_t> row;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!json_.numbers(e, row)) return false;
      const bool port = row.size() == 2 && row[0] < rank_.channels.size() &&
                        rank_.channels[row[0]].kind == ChannelKind::port;
      if (!port || row[1] == 0 || row[1] > kMaxCredits) {
        return json_.fail(e, fmt::format("expected a port channel and 1 to {}", kMaxCredits));
      }
      rank_.channels[row[0]].credits = row[1];
    }
    return true;
  }

  /// Finds which switch of the IR each switch of the wire is.
  bool place_switches() {
    std::vector<uint32_t> positions;
    const NodeId node = state_.extra_node(id_, w_switches);
    if (node != kNoNode && !json_.numbers(node, positions)) return false;
    if (positions.size() != wire_.switches.size()) {
      return json_.fail(list_, "'mscclc' does not name all switches");
    }
    for (size_t i = 0; i < positions.size(); ++i) {
      if (positions[i] >= switches_.size()) {
        return json_.fail(
            node, fmt::format("{} is not a switch (there are {})", positions[i], switches_.size()));
      }
      WireRank::Switch& entry = wire_.switches[i];
      entry.channel = switches_[positions[i]];
      rank_.channels[entry.channel].group = entry.group;
    }
    return true;
  }

  bool place_unused_switches() {
    const NodeId list = state_.extra_node(id_, w_unused_switches);
    if (list == kNoNode) return true;
    if (!json_.expect(list, JsonType::array)) return false;
    std::vector<int64_t> row;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!json_.integers(e, row)) return false;
      if (row.empty() || row[0] < 0 || row[0] >= static_cast<int64_t>(switches_.size())) {
        return json_.fail(e, "begins with no switch of the rank");
      }
      const auto exists = [&](int64_t q) {
        return q >= 0 && q < static_cast<int64_t>(state_.ranks.size());
      };
      if (!std::all_of(row.begin() + 1, row.end(), exists)) {
        return json_.fail(e, "lists a rank that does not exist");
      }
      rank_.channels[switches_[static_cast<size_t>(row[0])]].group =
          state_.program.append({row.data() + 1, row.size() - 1});
    }
    return true;
  }

  bool check_switches() {
    for (const uint32_t s : switches_) {
      if (rank_.channels[s].group.count == 0) {
        return json_.fail(list_, "'mscclc' declares a switch without ranks");
      }
    }
    return true;
  }

  ReadState& state_;
  const JsonReader& json_;
  WireRank& wire_;
  Rank& rank_;
  uint32_t id_;
  NodeId list_;                     ///< the wire's channels, for messages
  std::vector<uint32_t> order_;     ///< wire ids of memory and port channels
  uint32_t declared_[2] = {};       ///< memory and port channels so far
  std::vector<uint32_t> switches_;  ///< IR channels that are switches
  size_t most_switches_ = 0;
};

/// Declares the channels of a rank of a plan of MSCCL++, in the order in which it lists them.
void declare_listed(ReadState& state, uint32_t rank) {
  WireRank& wire = state.ranks[rank];
  Program& program = state.program;
  for (const auto& [kind, id] : wire.listed) {
    const uint32_t index = static_cast<uint32_t>(program.ranks[rank].channels.size());
    Channel channel = make_channel(kind, {}, kNone);
    if (kind == ChannelKind::switch_) {
      wire.switches[id].channel = index;
      channel.group = wire.switches[id].group;
    } else {
      const size_t k = static_cast<size_t>(kind);
      wire.channels[k].push_back(index);
      channel.peer = wire.peers[k][id];
      channel.label = number_label(program, k == 0 ? "mem" : "port", id);
    }
    program.ranks[rank].channels.push_back(channel);
  }
}

/// One end of a memory or port channel, in an order in which partners stand side by side.
struct End {
  uint32_t low, high;  ///< ranks
  bool port;
  uint32_t position;  ///< among the ends of its rank, peer and kind
  uint32_t rank, channel;
  auto key() const { return std::tie(low, high, port, position, rank); }
  bool operator<(const End& other) const { return key() < other.key(); }
};

/// The ends of `rank` whose partners are to be found by order.
bool collect_ends(ReadState& state, uint32_t rank, std::vector<End>& ends) {
  std::vector<uint32_t> alone;
  const NodeId node = state.extra_node(rank, w_alone);
  if (node != kNoNode && !state.json.numbers(node, alone)) return false;
  std::ranges::sort(alone);
  size_t left_out = 0;
  const WireRank& wire = state.ranks[rank];
  for (size_t k = 0; k < 2; ++k) {
    const size_t first = ends.size();
    for (size_t id = 0; id < wire.channels[k].size(); ++id) {
      const uint32_t peer = wire.peers[k][id], channel = wire.channels[k][id];
      ends.push_back({std::min(rank, peer), std::max(rank, peer), k == 1, static_cast<uint32_t>(id),
                      rank, channel});
    }
    // Ids become positions among the channels to one peer.
    std::sort(ends.begin() + static_cast<ptrdiff_t>(first), ends.end());
    for (size_t i = first, position = 0; i < ends.size(); ++i) {
      const bool same =
          i > first && ends[i].low == ends[i - 1].low && ends[i].high == ends[i - 1].high;
      position = same ? position + 1 : 0;
      ends[i].position = static_cast<uint32_t>(position);
    }
    const auto is_alone = [&](const End& e) {
      return std::ranges::binary_search(alone, e.channel);
    };
    if (alone.empty()) continue;
    const auto begin = ends.begin() + static_cast<ptrdiff_t>(first);
    const auto kept = std::remove_if(begin, ends.end(), is_alone);
    left_out += static_cast<size_t>(ends.end() - kept);
    ends.erase(kept, ends.end());
  }
  if (left_out != alone.size())
    return state.fail(node, "lists something that is not a channel of the rank");
  return true;
}

/// The n-th channel of A to B and the n-th of B to A are two ends of one.
bool find_partners(ReadState& state) {
  std::vector<End> ends;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    if (!collect_ends(state, r, ends)) return false;
  }
  std::sort(ends.begin(), ends.end());
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    const End &a = ends[i], &b = ends[i + 1];
    if (a.rank == b.rank || std::tie(a.low, a.high, a.port, a.position) !=
                                std::tie(b.low, b.high, b.port, b.position)) {
      continue;
    }
    state.program.ranks[a.rank].channels[a.channel].partner = b.channel;
    state.program.ranks[b.rank].channels[b.channel].partner = a.channel;
  }
  return true;
}

/// Names the switches of a plan of MSCCL++: those that are created together have one number.
void name_switches(ReadState& state) {
  std::map<std::tuple<std::vector<int64_t>, WireType, uint32_t>, int64_t> numbers;
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    std::map<std::pair<std::vector<int64_t>, WireType>, uint32_t> seen;
    for (const WireRank::Switch& s : state.ranks[r].switches) {
      Channel& channel = state.program.ranks[r].channels[s.channel];
      const std::span<const int64_t> group = state.program.values(channel.group);
      std::vector<int64_t> members(group.begin(), group.end());
      const uint32_t before = seen[{members, s.type}]++;
      const auto [it, added] =
          numbers.try_emplace({std::move(members), s.type, before}, numbers.size());
      const int64_t number = it->second;
      channel.label = {state.program.intern("sw"), state.program.append({&number, 1})};
    }
  }
}

/// How many chunks of its buffer every member of a switch has. In our plans scratch of members may
/// be laid out differently; the buffers there are checked by verify_structure.
void bound_switches(ReadState& state) {
  for (uint32_t r = 0; r < state.ranks.size(); ++r) {
    for (WireRank::Switch& s : state.ranks[r].switches) {
      s.chunks = state.ranks[r].chunks[static_cast<size_t>(s.type)];
      if (state.ours) continue;
      const Channel& channel = state.program.ranks[r].channels[s.channel];
      for (const int64_t q : state.program.values(channel.group)) {
        const WireRank& member = state.ranks[static_cast<size_t>(q)];
        s.chunks = std::min(s.chunks, member.chunks[static_cast<size_t>(s.type)]);
      }
    }
  }
}

}  // namespace

bool declare_channels(ReadState& state, uint32_t rank, NodeId list) {
  if (state.ours) return ChannelDeclarer(state, rank, list).run();
  declare_listed(state, rank);
  return true;
}

bool name_semaphores(ReadState& state, uint32_t rank, NodeId list) {
  std::vector<Semaphore>& semaphores = state.program.ranks[rank].semaphores;
  uint32_t named = 0;
  if (!state.ours) {
    for (Semaphore& s : semaphores) s.label = number_label(state.program, "sem", named++);
    return true;
  }
  const auto add = [&](const Families::Member& member) {
    if (named == semaphores.size()) return state.fail(member.node, "more names than semaphores");
    semaphores[named++].label = member.label;
    return true;
  };
  if (!Families(state, state.extra_node(rank, w_semaphores), false).read(add)) return false;
  return named == semaphores.size() || state.fail(list, "'mscclc' does not name all semaphores");
}

bool connect_channels(ReadState& state) {
  if (!find_partners(state)) return false;
  if (!state.ours) name_switches(state);
  bound_switches(state);
  return true;
}

}  // namespace mscclc
