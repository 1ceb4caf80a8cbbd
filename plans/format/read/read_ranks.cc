// Ranks without their ops, as the wire has them: chunk counts, channels, remote buffers and
// semaphores.
#include <fmt/format.h>

#include <algorithm>

#include "plans/format/read/read_state.h"

namespace mscclc {
namespace {

class RankReader {
 public:
  RankReader(ReadState& state, uint32_t rank)
      : state_(state),
        json_(state.json),
        wire_(state.ranks[rank]),
        rank_(state.program.ranks[rank]),
        id_(rank) {}

  bool read() {
    Members m;
    const KeySet required = {w_id,           w_input_chunks, w_output_chunks, w_scratch_chunks,
                             w_threadblocks, w_channels,     w_remote_buffers};
    if (!m.read(json_, wire_.node, required, {w_semaphores})) return false;
    uint32_t id = 0;
    if (!json_.number(m[w_id], id)) return false;
    if (id != id_) return json_.fail(m[w_id], fmt::format("is {}; ids are positions", id));
    wire_.blocks = m[w_threadblocks];
    return read_chunks(m) && read_channels(m[w_channels]) && read_remotes(m[w_remote_buffers]) &&
           read_semaphores(m.has(w_semaphores) ? m[w_semaphores] : wire_.node);
  }

 private:
  bool read_chunks(const Members& m) {
    constexpr KnownWord kKeys[] = {w_input_chunks, w_output_chunks, w_scratch_chunks};
    constexpr std::string_view kNames[] = {"input", "output"};
    for (size_t t = 0; t < 3; ++t) {
      wire_.chunk_nodes[t] = m[kKeys[t]];
      if (!json_.number(m[kKeys[t]], wire_.chunks[t])) return false;
      if (t == 2) break;
      if (wire_.chunks[t] == 0 && !state_.ours) {
        return json_.fail(m[kKeys[t]], "zero-chunks", "is 0; MSCCL++'s executor divides by it");
      }
      Buffer buffer;
      buffer.name = state_.program.intern(kNames[t]);
      buffer.kind = t == 0 ? BufferKind::input : BufferKind::output;
      buffer.chunks = wire_.chunks[t];
      rank_.buffers.push_back(buffer);
    }
    return true;
  }

  bool read_channels(NodeId list) {
    if (!json_.expect(list, JsonType::array)) return false;
    for (NodeId c = json_.first(list); c != json_.end(list); c = json_.next(c)) {
      if (!read_entry(c)) return false;
    }
    return declare_channels(state_, id_, list);
  }

  bool read_entry(NodeId node) {
    Members m;
    if (!m.read(json_, node, {w_channel_type}, {w_connected_to, w_buffer_type, w_rank_groups})) {
      return false;
    }
    ChannelKind kind{};
    if (!read_kind(json_, m[w_channel_type], kind)) return false;
    const bool at_switch = kind == ChannelKind::switch_;
    const KeySet keys = at_switch ? KeySet{w_channel_type, w_buffer_type, w_rank_groups}
                                  : KeySet{w_channel_type, w_connected_to};
    if (!m.read(json_, node, keys)) return false;
    return at_switch ? read_switch(m) : read_connections(kind, m[w_connected_to]);
  }

  bool read_connections(ChannelKind kind, NodeId list) {
    if (!json_.expect(list, JsonType::array)) return false;
    std::vector<uint32_t>& peers = wire_.peers[static_cast<size_t>(kind)];
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      uint32_t peer = 0;
      if (!read_rank(e, peer)) return false;
      if (peer == id_) return json_.fail(e, "a channel to its own rank");
      wire_.listed.push_back({kind, static_cast<uint32_t>(peers.size())});
      peers.push_back(peer);
    }
    return true;
  }

  bool read_rank(NodeId node, uint32_t& rank) {
    if (!json_.number(node, rank)) return false;
    if (rank < state_.ranks.size()) return true;
    return json_.fail(node,
                      fmt::format("{} is not a rank (there are {})", rank, state_.ranks.size()));
  }

  bool read_switch(const Members& m) {
    WireType type{};
    const NodeId groups = m[w_rank_groups];
    if (!read_type(json_, m[w_buffer_type], type) || !json_.expect(groups, JsonType::array)) {
      return false;
    }
    for (NodeId g = json_.first(groups); g != json_.end(groups); g = json_.next(g)) {
      Members members;
      uint32_t size = 0;
      if (!members.read(json_, g, {w_size, w_ranks})) return false;
      if (!json_.number(members[w_size], size) || !read_group(members[w_ranks])) return false;
      if (size != group_.size()) {
        return json_.fail(members[w_size],
                          fmt::format("is {}, but there are {} ranks", size, group_.size()));
      }
      wire_.listed.push_back({ChannelKind::switch_, static_cast<uint32_t>(wire_.switches.size())});
      wire_.switches.push_back({kNone, type, 0, state_.program.append(group_)});
    }
    return true;
  }

  bool read_group(NodeId list) {
    if (!json_.expect(list, JsonType::array)) return false;
    group_.clear();
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      uint32_t rank = 0;
      if (!read_rank(e, rank)) return false;
      group_.push_back(rank);
    }
    return std::ranges::find(group_, int64_t{id_}) != group_.end() ||
           json_.fail(list, fmt::format("rank {} is not one of them", id_));
  }

  bool read_remotes(NodeId list) {
    if (!json_.expect(list, JsonType::array)) return false;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      Members m;
      WireRank::Remote remote{};
      if (!m.read(json_, e, {w_rank, w_type, w_access_channel_types})) return false;
      if (!read_rank(m[w_rank], remote.rank) || !read_type(json_, m[w_type], remote.type) ||
          !read_access(m[w_access_channel_types], remote.access)) {
        return false;
      }
      wire_.remotes.push_back(remote);
    }
    return true;
  }

  bool read_access(NodeId list, uint8_t& access) {
    if (!json_.expect(list, JsonType::array)) return false;
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      ChannelKind kind{};
      if (!read_kind(json_, e, kind)) return false;
      if (kind == ChannelKind::switch_) {
        return json_.fail(e, "a remote buffer is reached by 'memory' or 'port'");
      }
      access |= bit(kind);
    }
    return true;
  }

  /// `list` may be the rank itself, which then has no semaphores.
  bool read_semaphores(NodeId list) {
    if (list != wire_.node) {
      if (!json_.expect(list, JsonType::array)) return false;
      for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
        Members m;
        Semaphore semaphore;
        if (!m.read(json_, e, {w_init_value})) return false;
        if (!json_.number(m[w_init_value], semaphore.initial)) return false;
        rank_.semaphores.push_back(semaphore);
      }
    }
    return name_semaphores(state_, id_, list);
  }

  ReadState& state_;
  const JsonReader& json_;
  WireRank& wire_;
  Rank& rank_;
  uint32_t id_;
  std::vector<int64_t> group_;
};

}  // namespace

bool read_type(const JsonReader& json, NodeId node, WireType& out) {
  Word w = 0;
  if (!json.word(node, w)) return false;
  switch (w) {
    case w_i:
      out = WireType::input;
      return true;
    case w_o:
      out = WireType::output;
      return true;
    case w_s:
      out = WireType::scratch;
      return true;
    default:
      break;
  }
  return json.fail(
      node, fmt::format("'{}' is not a buffer; expected 'i', 'o' or 's'", json.tape().text(w)));
}

bool read_kind(const JsonReader& json, NodeId node, ChannelKind& out) {
  Word w = 0;
  if (!json.word(node, w)) return false;
  switch (w) {
    case w_memory:
      out = ChannelKind::memory;
      return true;
    case w_port:
      out = ChannelKind::port;
      return true;
    case w_switch:
      out = ChannelKind::switch_;
      return true;
    default:
      break;
  }
  return json.fail(node, fmt::format("'{}' is not a kind of channel; 'memory', 'port' or 'switch'",
                                     json.tape().text(w)));
}

/// MSCCL++ before 0.7 wrote plans of another format, with keys like 'inputChunks'.
static bool is_of_old_mscclpp(const JsonReader& json, NodeId gpus) {
  if (json.count(gpus) == 0) return false;
  const NodeId first = json.first(gpus);
  if (json.tape()[first].kind() != JsonType::object) return false;
  for (NodeId m = first + 1; m != json.tape()[first].next; m = json.tape()[m].next) {
    if (json.tape().text(json.tape()[m].key) == "inputChunks") return true;
  }
  return false;
}

bool read_ranks(ReadState& state, NodeId gpus) {
  const JsonReader& json = state.json;
  if (!json.expect(gpus, JsonType::array)) return false;
  if (is_of_old_mscclpp(json, gpus)) {
    return json.fail(
        gpus, "old-plan",
        "the plan is of MSCCL++ before 0.7, whose format is another: write its program "
        "in the language of 0.7, for 'python3 -m mscclc mscclpp'");
  }
  const uint32_t count = json.count(gpus);
  if (state.ours && count != state.extra.size()) {
    return json.fail(gpus,
                     fmt::format("{} ranks; 'mscclc' speaks of {}", count, state.extra.size()));
  }
  state.ranks.resize(count);
  state.program.ranks.resize(count);
  uint32_t r = 0;
  for (NodeId g = json.first(gpus); g != json.end(gpus); g = json.next(g)) {
    state.ranks[r++].node = g;
  }
  for (r = 0; r < count; ++r) {
    if (!RankReader(state, r).read()) return false;
  }
  return connect_channels(state);
}

}  // namespace mscclc
