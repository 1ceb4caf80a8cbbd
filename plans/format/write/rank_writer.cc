#include "plans/format/write/rank_writer.h"

#include <algorithm>

#include "plans/format/write/extra_key.h"

namespace mscclc {
namespace {

void write_string(JsonOut& out, std::string_view key, std::string_view value) {
  out.text(key);
  out.string(value);
}
void write_number(JsonOut& out, std::string_view key, uint64_t value) {
  out.text(key);
  out.need(24);
  out.number64(value);
}

}  // namespace

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
  write_number(out_, "{\"id\":", rank);
  write_number(out_, ",\"input_chunks\":", r.buffers[kInput].chunks);
  write_number(out_, ",\"output_chunks\":", r.buffers[kOutput].chunks);
  write_number(out_, ",\"scratch_chunks\":", layout_.scratch_chunks[rank]);
  out_.text(",");
  ops_.write_blocks(rank);
  write_channels(rank);
  write_remote_buffers();
  write_semaphores(r);
  const bool last = rank + 1 == program_.ranks.size();
  out_.text(last ? "}" : "},");
  write_extra(rank, out_.written() - before);
  extra_.text(last ? "}" : "},");
}

/// Kinds stand in the order in which the rank declares them.
void RankWriter::write_channels(uint32_t rank) {
  out_.text(",\"channels\":[");
  bool written[3] = {};
  for (const Channel& c : program_.ranks[rank].channels) {
    bool& done = written[static_cast<size_t>(c.kind)];
    if (done) continue;
    done = true;
    if (c.kind == ChannelKind::switch_) {
      write_switches(rank);
    } else {
      write_connections(rank, c.kind);
    }
  }
  if (out_.last() == ',') out_.take_back();
  out_.text("]");
}

void RankWriter::write_connections(uint32_t rank, ChannelKind kind) {
  peers_.clear();
  const std::vector<Channel>& channels = program_.ranks[rank].channels;
  for (uint32_t c = 0; c < channels.size(); ++c) {
    if (channels[c].kind != kind) continue;
    const uint32_t id = layout_.channel_id(rank, c);
    if (peers_.size() <= id) peers_.resize(id + 1);
    peers_[id] = channels[c].peer;
  }
  write_string(out_, "{\"channel_type\":", name(kind));
  write_list(",\"connected_to\":[", peers_);
  out_.text("},");
}

void RankWriter::write_switches(uint32_t rank) {
  for (const WireSwitch& entry : layout_.switches[rank]) {
    const std::span<const int64_t> group =
        program_.values(program_.ranks[rank].channels[entry.channel].group);
    out_.text("{\"channel_type\":\"switch\",\"buffer_type\":\"");
    out_.need(4);
    out_.character(letter(entry.type));
    write_number(out_, "\",\"rank_groups\":[{\"size\":", group.size());
    write_list(",\"ranks\":[", group);
    out_.text("}]},");
  }
}

template <class Numbers>
void RankWriter::write_list(std::string_view opening, const Numbers& numbers) {
  out_.text(opening);
  for (const auto n : numbers) {
    out_.need(24);
    out_.integer(static_cast<int64_t>(n));
    out_.character(',');
  }
  if (!std::empty(numbers)) out_.take_back();
  out_.text("]");
}

void RankWriter::write_remote_buffers() {
  constexpr std::string_view kAccess[] = {"", "\"memory\"", "\"port\"", "\"memory\",\"port\""};
  out_.text(",\"remote_buffers\":[");
  for (const RemoteBuffer& buffer : ops_.remote_buffers()) {
    out_.need(128);
    out_.literal("{\"rank\":");
    out_.number(buffer.rank);
    out_.literal(",\"type\":\"");
    out_.character(letter(buffer.type));
    out_.literal("\",\"access_channel_types\":[");
    out_.word(kAccess[buffer.access]);
    out_.literal("]},");
  }
  if (!ops_.remote_buffers().empty()) out_.take_back();
  out_.text("]");
}

void RankWriter::write_semaphores(const Rank& rank) {
  out_.text(",\"semaphores\":[");
  for (const Semaphore& s : rank.semaphores) {
    out_.need(32);
    out_.literal("{\"init_value\":");
    out_.number(s.initial);
    out_.literal("},");
  }
  if (!rank.semaphores.empty()) out_.take_back();
  out_.text("]");
}

void RankWriter::write_extra(uint32_t rank, uint64_t rank_bytes) {
  const uint64_t before = extra_.written();
  extra_.text("{");
  write_declarations(extra_, program_, layout_, rank);
  ops_.notes().write(extra_, program_.foreign);
  write_locations(rank, rank_bytes);
  if (extra_.written() > before + 1) extra_.take_back();
}

void RankWriter::write_locations(uint32_t rank, uint64_t rank_bytes) {
  const std::vector<Op>& ops = program_.ranks[rank].ops;
  const auto located = [](const Op& op) { return op.locations.count > 0; };
  if (std::none_of(ops.begin(), ops.end(), located)) return;
  extra_.text("\"loc\":[");
  locations_.begin_rank(rank_bytes);
  for (const Op& op : ops) locations_.op(op);
  extra_.take_back();
  extra_.text("],");
}

}  // namespace mscclc
