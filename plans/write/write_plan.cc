// The plan as a whole: header, ranks, bounds, then the extra key. What the extra key says about the
// ops of a rank is gathered while they are written and kept as text until its turn comes.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "plans/json/content_hash.h"
#include "plans/json/json_out.h"
#include "plans/plan_json.h"
#include "plans/wire/location_codec.h"
#include "plans/wire/message_bounds.h"
#include "plans/write/extra_key.h"
#include "plans/write/op_writer.h"

namespace mscclc {
namespace {

class PlanWriter {
 public:
  PlanWriter(const Program& program, const Target& target, const TextSink& sink,
             Diagnostics& diagnostics, const Proof* proof)
      : program_(program),
        target_(target),
        proof_(proof),
        sink_(sink),
        report_(program, diagnostics),
        layout_(lay_out(program)),
        out_([this](std::string_view text) {
          hash_.update(text);
          return sink_(text);
        }),
        extra_([this](std::string_view text) {
          extra_text_ += text;
          return true;
        }),
        ops_(program, layout_, target, report_, out_),
        locations_(program, extra_) {}

  bool write() {
    if (!check_scratch() || report_.any()) return false;
    write_header();
    for (uint32_t r = 0; r < program_.ranks.size() && !report_.enough(); ++r) write_rank(r);
    if (!program_.ranks.empty()) out_.take_back();
    write_bounds();
    if (report_.any()) return false;
    write_extra();
    if (out_.bad_text() || extra_.bad_text()) {
      report_.error("not-utf8", "a name or the description is not UTF-8; a plan cannot hold it");
    }
    return !report_.any() && !out_.stopped() && !stopped_;
  }

 private:
  bool check_scratch() {
    for (const uint64_t chunks : layout_.scratch_chunks) {
      if (chunks < kNone) continue;
      report_.error("too-much-scratch", "a rank has 2^32 scratch chunks or more");
      return false;
    }
    return true;
  }

  void write_string(std::string_view key, std::string_view value) {
    out_.text(key);
    out_.string(value);
  }
  void write_number(std::string_view key, uint64_t value) {
    out_.text(key);
    out_.need(24);
    out_.number64(value);
  }
  void write_flag(std::string_view key, bool value) {
    out_.text(key);
    out_.text(value ? "true" : "false");
  }

  void write_header() {
    write_string("{\"name\":", program_.name);
    write_string(",\"collective\":", name(program_.contract.kind));
    write_string(",\"protocol\":", layout_.packets ? "LL" : "Simple");
    write_flag(",\"inplace\":", program_.contract.in_place == InPlace::yes);
    write_flag(",\"reuse_resources\":", program_.launch.reuse_scratch);
    out_.text(",\"gpus\":[");
  }

  void write_rank(uint32_t rank) {
    const Rank& r = program_.ranks[rank];
    write_number("{\"id\":", rank);
    write_number(",\"input_chunks\":", r.buffers[kInput].chunks);
    write_number(",\"output_chunks\":", r.buffers[kOutput].chunks);
    write_number(",\"scratch_chunks\":", layout_.scratch_chunks[rank]);
    out_.text(",");
    ops_.write_blocks(rank);
    write_channels(rank);
    write_remote_buffers();
    write_semaphores(r);
    out_.text("},");
    write_extra_rank(rank);
  }

  /// Kinds stand in the order in which the rank declares them.
  void write_channels(uint32_t rank) {
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

  void write_connections(uint32_t rank, ChannelKind kind) {
    peers_.clear();
    const std::vector<Channel>& channels = program_.ranks[rank].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].kind != kind) continue;
      const uint32_t id = layout_.channel_id(rank, c);
      if (peers_.size() <= id) peers_.resize(id + 1);
      peers_[id] = channels[c].peer;
    }
    write_string("{\"channel_type\":", name(kind));
    write_list(",\"connected_to\":[", peers_);
    out_.text("},");
  }

  void write_switches(uint32_t rank) {
    for (const WireSwitch& entry : layout_.switches[rank]) {
      const std::span<const int64_t> group =
          program_.values(program_.ranks[rank].channels[entry.channel].group);
      out_.text("{\"channel_type\":\"switch\",\"buffer_type\":\"");
      out_.need(4);
      out_.character(letter(entry.type));
      write_number("\",\"rank_groups\":[{\"size\":", group.size());
      write_list(",\"ranks\":[", group);
      out_.text("}]},");
    }
  }

  template <class Numbers>
  void write_list(std::string_view opening, const Numbers& numbers) {
    out_.text(opening);
    for (const auto n : numbers) {
      out_.need(24);
      out_.integer(static_cast<int64_t>(n));
      out_.character(',');
    }
    if (!std::empty(numbers)) out_.take_back();
    out_.text("]");
  }

  void write_remote_buffers() {
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

  void write_semaphores(const Rank& rank) {
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

  void write_bounds() {
    const Range sizes = wire_sizes(program_, layout_);
    write_number("],\"num_threads_per_block\":", program_.launch.threads);
    write_flag(",\"use_double_scratch_buffer\":", layout_.double_scratch);
    write_number(",\"buffer_alignment\":", program_.launch.align);
    write_number(",\"min_message_size\":", sizes.min);
    write_number(",\"max_message_size\":", sizes.max);
  }

  void write_extra_rank(uint32_t rank) {
    const uint64_t before = extra_.written();
    extra_.text("{");
    write_declarations(extra_, program_, layout_, rank);
    ops_.notes().write(extra_, program_.foreign);
    write_locations(rank);
    if (extra_.written() > before + 1) extra_.take_back();
    extra_.text("},");
  }

  void write_locations(uint32_t rank) {
    const std::vector<Op>& ops = program_.ranks[rank].ops;
    const auto located = [](const Op& op) { return op.locations.count > 0; };
    if (std::none_of(ops.begin(), ops.end(), located)) return;
    extra_.text("\"loc\":[");
    locations_.begin_rank();
    for (const Op& op : ops) locations_.op(op, out_.written());
    extra_.take_back();
    extra_.text("],");
  }

  void write_extra() {
    out_.text(",\"mscclc\":{");
    write_extra_header(out_, program_, target_.name);
    out_.text("\"ranks\":[");
    if (!program_.ranks.empty()) extra_.take_back();
    extra_.flush();
    out_.text(extra_text_);
    out_.text("]");
    write_hash();
  }

  /// The hash is of the text without it and the proof; both stand before the last two braces.
  void write_hash() {
    out_.flush();
    hash_.update("}}");
    const std::string digits = hash_.digits();
    std::string end;
    if (proof_ != nullptr) end = ",\"proof\":" + proof_text(record(), digits);
    end += ",\"hash\":\"" + digits + "\"}}";
    if (!out_.stopped()) stopped_ = !sink_(end);
  }

  /// Our executor counts calls on the device. The peer's host does, and a captured launch keeps the
  /// number that it had: packets and doubled scratch are then wrong from the second replay on.
  ProofRecord record() const {
    const bool by_host = target_.peer_wire_only && (layout_.packets || layout_.double_scratch);
    return {kProverVersion, target_.name, !by_host, *proof_};
  }

  const Program& program_;
  const Target& target_;
  const Proof* proof_;
  const TextSink& sink_;
  OpReport report_;
  const WireLayout layout_;
  ContentHash hash_;
  std::string extra_text_;
  JsonOut out_, extra_;
  OpWriter ops_;
  LocationWriter locations_;
  std::vector<uint32_t> peers_;
  bool stopped_ = false;
};

/// About as many bytes as the plan will have, rather too many: pages not used cost nothing.
size_t estimate(const Program& program) {
  size_t bytes = 4096 + program.operands.size() * 50 + program.locations.size() * 12;
  for (const Rank& rank : program.ranks) {
    bytes += 1024 + rank.ops.size() * 70 + rank.channels.size() * 24;
    bytes += rank.blocks * size_t{128};
  }
  return bytes;
}

}  // namespace

bool write_plan(const Program& program, const Target& target,
                const std::function<bool(std::string_view)>& sink, Diagnostics& diagnostics,
                const Proof* proof) {
  return PlanWriter(program, target, sink, diagnostics, proof).write();
}

std::optional<std::string> write_plan(const Program& program, const Target& target,
                                      Diagnostics& diagnostics, const Proof* proof) {
  std::string text;
  text.reserve(estimate(program));
  const auto append = [&](std::string_view block) {
    text += block;
    return true;
  };
  if (!write_plan(program, target, append, diagnostics, proof)) return std::nullopt;
  return text;
}

std::optional<std::string> plan_hash(const Program& program, Diagnostics& diagnostics) {
  std::string end;
  const auto keep_last = [&](std::string_view block) {
    end = block;
    return true;
  };
  if (!write_plan(program, Target{}, keep_last, diagnostics)) return std::nullopt;
  // The last block is what write_hash() writes.
  constexpr std::string_view kBefore = R"(,"hash":")", kAfter = R"("}})";
  return end.substr(kBefore.size(), end.size() - kBefore.size() - kAfter.size());
}

}  // namespace mscclc
