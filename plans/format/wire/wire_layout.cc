#include "plans/format/wire/wire_layout.h"

#include <algorithm>
#include <compare>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>

namespace mscclc {
namespace {

bool is_ll(PacketFormat format) { return info(format).protocol == "LL"; }

WireType type_of(const Buffer& buffer) {
  switch (buffer.kind) {
    case BufferKind::input:
      return WireType::input;
    case BufferKind::output:
      return WireType::output;
    case BufferKind::scratch:
      break;
  }
  return WireType::scratch;
}

/// Scratch is doubled if some buffer wants two copies and none more: among packet buffers, if there
/// are any, because plain buffers at far ends never alternate.
bool wants_double(const Program& program, bool packets) {
  uint32_t most = 0;
  for (const Rank& rank : program.ranks) {
    for (const Buffer& buffer : rank.buffers) {
      const bool counts = packets ? is_ll(buffer.packets) : buffer.packets == PacketFormat::none;
      if (buffer.kind == BufferKind::scratch && counts) most = std::max(most, buffer.copies);
    }
  }
  return most == 2;
}

void place_scratch(const Rank& rank, WireBuffer* buffers, uint64_t& chunks) {
  for (const bool packets : {false, true}) {
    for (size_t b = 0; b < rank.buffers.size(); ++b) {
      const Buffer& buffer = rank.buffers[b];
      if (buffer.kind != BufferKind::scratch) continue;
      if ((buffer.packets != PacketFormat::none) != packets) continue;
      buffers[b].offset = static_cast<uint32_t>(chunks);
      chunks += buffer.chunks;
    }
  }
}

/// Gives all ranks the same chunks of doubled scratch, see wire_layout.h. A half has
/// ceil(allocation / input chunks) bytes for each chunk, twice as many with packets.
void even_out_halves(const Program& program, WireLayout& layout) {
  if (!layout.double_scratch || program.launch.reuse_scratch || program.foreign) return;
  const uint64_t granule = layout.packets ? 8 : 16;
  const uint64_t most = *std::ranges::max_element(layout.scratch_chunks);
  std::ranges::fill(layout.scratch_chunks, (most + granule - 1) / granule * granule);
}

/// Orders the channels of one rank so that those to a peer meet their partners.
class ChannelOrder {
 public:
  explicit ChannelOrder(const Program& program)
      : program_(program), begin_(2 * program.ranks.size() + 1) {}

  /// Fills `ids`, one per channel of `rank`.
  void run(uint32_t rank, uint32_t* ids) {
    const std::vector<Channel>& channels = program_.ranks[rank].channels;
    uint32_t count[3] = {};
    for (size_t c = 0; c < channels.size(); ++c) {
      ids[c] = count[static_cast<size_t>(channels[c].kind)]++;
    }
    sort_by_end(channels);
    for (size_t first = 0; first < sorted_.size();) {
      size_t last = first + 1;
      while (last < sorted_.size() &&
             slot(channels[sorted_[last]]) == slot(channels[sorted_[first]])) {
        ++last;
      }
      if (last - first > 1) pair_up(rank, {&sorted_[first], last - first}, ids);
      first = last;
    }
  }

 private:
  static size_t slot(const Channel& c) {
    return 2 * size_t{c.peer} + (c.kind == ChannelKind::port ? 1 : 0);
  }

  /// Fills sorted_ with the memory and port channels by peer and kind, otherwise in their order.
  void sort_by_end(const std::vector<Channel>& channels) {
    std::fill(begin_.begin(), begin_.end(), 0);
    for (const Channel& c : channels) {
      if (c.kind != ChannelKind::switch_) ++begin_[slot(c) + 1];
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    sorted_.resize(begin_.back());
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].kind != ChannelKind::switch_) sorted_[begin_[slot(channels[c])]++] = c;
    }
  }

  /// Gives the ids of `ends`, which have one kind and peer, to them in the order that pairs them:
  /// the lower rank keeps its own, the higher follows its partners.
  void pair_up(uint32_t rank, std::span<const uint32_t> ends, uint32_t* ids) {
    const auto key = [&](uint32_t index) {
      const Channel& c = program_.ranks[rank].channels[index];
      const bool alone = c.partner == kNone;
      return std::tuple(alone, !alone && c.peer < rank ? c.partner : 0, index);
    };
    const auto before = [&](uint32_t a, uint32_t b) { return key(a) < key(b); };
    if (std::is_sorted(ends.begin(), ends.end(), before)) return;
    wanted_.assign(ends.begin(), ends.end());
    std::sort(wanted_.begin(), wanted_.end(), before);
    free_ids_.clear();
    for (const uint32_t end : ends) free_ids_.push_back(ids[end]);
    for (size_t i = 0; i < ends.size(); ++i) ids[wanted_[i]] = free_ids_[i];
  }

  const Program& program_;
  std::vector<uint32_t> begin_, sorted_, wanted_, free_ids_;
};

/// What makes two ends of a switch one: its label, and its ranks.
std::strong_ordering order_of(const Program& program, const Channel& a, const Channel& b) {
  const auto by_values = [&](Slice x, Slice y) {
    const auto one = program.values(x), other = program.values(y);
    return std::lexicographical_compare_three_way(one.begin(), one.end(), other.begin(),
                                                  other.end());
  };
  if (const auto names = a.label.name <=> b.label.name; names != 0) return names;
  if (const auto keys = by_values(a.label.keys, b.label.keys); keys != 0) return keys;
  return by_values(a.group, b.group);
}

/// Lays out the switches of a program: which types each is used on, and their order.
class SwitchOrder {
 public:
  SwitchOrder(const Program& program, WireLayout& layout) : program_(program), layout_(layout) {}

  void run() {
    const size_t ranks = program_.ranks.size();
    switches_.resize(ranks);
    types_.resize(ranks);
    leads_.resize(ranks);
    sorted_.resize(ranks);
    layout_.switches.resize(ranks);
    layout_.switch_ids.resize(ranks);
    layout_.switch_matched.resize(ranks);
    bool any = false;
    for (uint32_t r = 0; r < ranks; ++r) any |= find_switches(r);
    if (!any) return;
    for (uint32_t r = 0; r < ranks; ++r) find_leads(r);
    for (uint32_t r = 0; r < ranks; ++r) collect_types(r);
    for (uint32_t r = 0; r < ranks; ++r) number(r);
  }

 private:
  /// A switch as its lowest member declares it: that rank, and which of its switches.
  struct Lead {
    uint32_t rank, position;
    auto operator<=>(const Lead&) const = default;
  };

  bool find_switches(uint32_t rank) {
    const std::vector<Channel>& channels = program_.ranks[rank].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].kind == ChannelKind::switch_) switches_[rank].push_back(c);
    }
    types_[rank].assign(switches_[rank].size(), 0);
    std::vector<uint32_t>& sorted = sorted_[rank];
    sorted.resize(switches_[rank].size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::ranges::stable_sort(sorted, [&](uint32_t a, uint32_t b) {
      return order_of(program_, channels[switches_[rank][a]], channels[switches_[rank][b]]) < 0;
    });
    return !switches_[rank].empty();
  }

  void find_leads(uint32_t rank) {
    for (uint32_t s = 0; s < switches_[rank].size(); ++s) {
      const std::optional<Lead> lead = lead_of(program_.ranks[rank].channels[switches_[rank][s]]);
      layout_.switch_matched[rank].push_back(lead.has_value());
      leads_[rank].push_back(lead.value_or(Lead{rank, s}));
    }
  }

  std::optional<Lead> lead_of(const Channel& channel) const {
    const std::span<const int64_t> group = program_.values(channel.group);
    const uint32_t rank = static_cast<uint32_t>(*std::ranges::min_element(group));
    const auto order = [&](uint32_t s) {
      return order_of(program_, program_.ranks[rank].channels[switches_[rank][s]], channel);
    };
    const auto found =
        std::ranges::partition_point(sorted_[rank], [&](uint32_t s) { return order(s) < 0; });
    if (found == sorted_[rank].end() || order(*found) != 0) return std::nullopt;
    return Lead{rank, *found};
  }

  /// Notes at the lead on which types of buffer the ops of `rank` use each switch.
  void collect_types(uint32_t rank) {
    for (const Op& op : program_.ranks[rank].ops) {
      if ((info(op.kind).channels & kSwitch) == 0) continue;
      for (uint32_t i = 0; i < uint32_t{op.dsts} + op.srcs; ++i) {
        const Operand& o = program_.operands[op.operands + i];
        if (o.channel == kNone) continue;
        const Lead lead = leads_[rank][layout_.channel_id(rank, o.channel)];
        const WireType type = layout_.buffer(rank, o.buffer).type;
        types_[lead.rank][lead.position] |= 1u << static_cast<uint32_t>(type);
      }
    }
  }

  void number(uint32_t rank) {
    const size_t count = switches_[rank].size();
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](uint32_t s) { return leads_[rank][s]; });
    layout_.switch_ids[rank].assign(3 * count, kNone);
    for (const uint32_t s : order) {
      const Lead lead = leads_[rank][s];
      for (uint32_t t = 0; t < 3; ++t) {
        if ((types_[lead.rank][lead.position] >> t & 1) == 0) continue;
        layout_.switch_ids[rank][3 * s + t] = static_cast<uint32_t>(layout_.switches[rank].size());
        layout_.switches[rank].push_back({switches_[rank][s], static_cast<WireType>(t)});
      }
    }
  }

  const Program& program_;
  WireLayout& layout_;
  std::vector<std::vector<uint32_t>> switches_;  ///< per rank: its switch channels
  std::vector<std::vector<uint32_t>> sorted_;    ///< per rank: positions in those, by order_of
  std::vector<std::vector<Lead>> leads_;
  std::vector<std::vector<uint32_t>> types_;  ///< bits of WireType, at leads
};

}  // namespace

void lay_out_buffers(const Program& program, WireLayout& layout) {
  layout.first_buffer = {0};
  for (const Rank& rank : program.ranks) {
    const size_t first = layout.buffers.size();
    for (const Buffer& buffer : rank.buffers) {
      layout.buffers.push_back({0, type_of(buffer), buffer.packets, buffer.copies, buffer.units});
      layout.packets |= is_ll(buffer.packets);
    }
    uint64_t chunks = 0;
    place_scratch(rank, layout.buffers.data() + first, chunks);
    layout.scratch_chunks.push_back(chunks);
    layout.first_buffer.push_back(static_cast<uint32_t>(layout.buffers.size()));
  }
  layout.double_scratch = wants_double(program, layout.packets);
  even_out_halves(program, layout);
}

WireLayout lay_out(const Program& program) {
  WireLayout layout;
  lay_out_buffers(program, layout);
  layout.first_channel = {0};
  for (const Rank& rank : program.ranks) {
    layout.first_channel.push_back(layout.first_channel.back() +
                                   static_cast<uint32_t>(rank.channels.size()));
  }
  layout.channel_ids.resize(layout.first_channel.back());
  ChannelOrder order(program);
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    order.run(r, layout.channel_ids.data() + layout.first_channel[r]);
  }
  SwitchOrder(program, layout).run();
  return layout;
}

}  // namespace mscclc
