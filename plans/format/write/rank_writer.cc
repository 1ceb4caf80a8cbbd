#include "plans/format/write/rank_writer.h"

#include <algorithm>
#include <span>

#include "plans/format/write/extra_key.h"

namespace mscclc {

RankWriter::RankWriter(const Program& program, const WireLayout& layout, const Target& target,
                       ProgramReport& report, JsonOut& out, JsonOut& extra)
    : program_(program),
      layout_(layout),
      out_(out),
      extra_(extra),
      ops_(program, layout, target, report, out),
      locations_(program, extra) {}

void RankWriter::write(uint32_t rank) {
  const uint64_t before = out_.written();
  const Rank& r = program_.ranks[rank];
  JsonWriter json(out_);
  const auto semaphores = [&] {
    json.list(r.semaphores, [&](const Semaphore& s) { json.object("init_value", s.initial); });
  };
  json.object(
      "id", rank, "input_chunks", r.buffers[kInput].chunks, "output_chunks",
      r.buffers[kOutput].chunks, "scratch_chunks", layout_.scratch_chunks[rank], "threadblocks",
      [&] { ops_.write_blocks(rank); }, "channels", [&] { write_channels(json, rank); },
      "remote_buffers", [&] { write_remote_buffers(json); }, "semaphores", semaphores);
  const bool last = rank + 1 == program_.ranks.size();
  if (!last) out_.text(",");
  write_extra(rank, out_.written() - before);
  if (!last) extra_.text(",");
}

/// Kinds stand in the order in which the rank declares them.
void RankWriter::write_channels(JsonWriter& json, uint32_t rank) {
  json.open('[');
  bool written[3] = {};
  for (const Channel& c : program_.ranks[rank].channels) {
    bool& done = written[static_cast<size_t>(c.kind)];
    if (done) continue;
    done = true;
    if (c.kind == ChannelKind::switch_) {
      write_switches(json, rank);
    } else {
      write_connections(json, rank, c.kind);
    }
  }
  json.close(']');
}

void RankWriter::write_connections(JsonWriter& json, uint32_t rank, ChannelKind kind) {
  peers_.clear();
  const std::vector<Channel>& channels = program_.ranks[rank].channels;
  for (uint32_t c = 0; c < channels.size(); ++c) {
    if (channels[c].kind != kind) continue;
    const uint32_t id = layout_.channel_id(rank, c);
    if (peers_.size() <= id) peers_.resize(id + 1);
    peers_[id] = channels[c].peer;
  }
  json.elements(
      [&] { json.object("channel_type", name(kind), "connected_to", [&] { json.list(peers_); }); });
}

void RankWriter::write_switches(JsonWriter& json, uint32_t rank) {
  for (const WireSwitch& entry : layout_.switches[rank]) {
    const std::span<const int64_t> group =
        program_.values(program_.ranks[rank].channels[entry.channel].group);
    const auto write_group = [&] {
      json.open('[');
      json.elements([&] { json.object("size", group.size(), "ranks", [&] { json.list(group); }); });
      json.close(']');
    };
    json.elements([&] {
      json.object("channel_type", "switch", "buffer_type", letter(entry.type), "rank_groups",
                  write_group);
    });
  }
}

void RankWriter::write_remote_buffers(JsonWriter& json) {
  constexpr ChannelKind kAccess[] = {ChannelKind::memory, ChannelKind::port};
  json.list(ops_.remote_buffers(), [&](const RemoteBuffer& buffer) {
    const auto access = [&] {
      json.open('[');
      for (const ChannelKind kind : kAccess) {
        if ((buffer.access & bit(kind)) != 0) json.elements(name(kind));
      }
      json.close(']');
    };
    json.object("rank", buffer.rank, "type", letter(buffer.type), "access_channel_types", access);
  });
}

void RankWriter::write_extra(uint32_t rank, uint64_t rank_bytes) {
  JsonWriter json(extra_);
  json.open('{');
  write_declarations(json, program_, layout_, rank);
  ops_.notes().write(json, program_.foreign);
  const auto located = [](const Op& op) { return op.locations.count > 0; };
  if (std::ranges::any_of(program_.ranks[rank].ops, located)) {
    json.members("loc", [&] { write_locations(rank, rank_bytes); });
  }
  json.close('}');
}

void RankWriter::write_locations(uint32_t rank, uint64_t rank_bytes) {
  extra_.text("[");
  locations_.begin_rank(rank_bytes);
  for (const Op& op : program_.ranks[rank].ops) locations_.op(op);
  extra_.take_back();
  extra_.text("]");
}

}  // namespace mscclc
