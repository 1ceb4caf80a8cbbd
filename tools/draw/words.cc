#include "tools/draw/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "ir/diagnostics/printable.h"
#include "ir/print/print.h"
#include "ir/print/row_names.h"
#include "ir/program/access.h"
#include "ir/program/flag_regions.h"

namespace mscclc::draw {
namespace {

constexpr size_t kMaxNamed = 3;      // operands in a row of a box
constexpr uint32_t kMaxChunks = 64;  // of one operand, for filters

std::string text_of(const Program& program, uint32_t rank, const Operand& o) {
  return run_text(program, program.buffer_of(rank, o), o.first, o.count);
}

/// Chunks on this rank: each by name, or how many of which buffer.
std::string local_words(const Program& program, uint32_t rank, std::span<const Operand> chunks,
                        std::string_view joint) {
  std::string text;
  for (size_t i = 0; i < chunks.size();) {
    const Buffer& buffer = program.buffer_of(rank, chunks[i]);
    size_t end = i;
    while (end < chunks.size() && chunks[end].buffer == chunks[i].buffer) ++end;
    if (!text.empty()) text += joint;
    std::vector<std::string> names;
    for (size_t k = i; k < end; ++k) {
      std::string name = text_of(program, rank, chunks[k]);
      if (names.empty() || names.back() != name) names.push_back(std::move(name));
    }
    text += names.size() > kMaxNamed
                ? fmt::format("{} of {}", names.size(), program.name_of(buffer.name))
                : fmt::format("{}", fmt::join(names, joint));
    i = end;
  }
  return text;
}

/// Chunks of other ranks: "inbox[0] of r + 1".
std::string far_words(const Program& program, uint32_t rank, std::span<const Operand> chunks,
                      const PeerNames& names, std::string_view joint) {
  std::vector<std::pair<std::string, std::vector<Operand>>> by_name;
  for (const Operand& o : chunks) {
    const std::string text = text_of(program, rank, o);
    const auto at = std::ranges::find(by_name, text, [](const auto& group) { return group.first; });
    if (at == by_name.end()) {
      by_name.push_back({text, {o}});
    } else {
      at->second.push_back(o);
    }
  }
  const auto peers = [&](std::span<const Operand> of) {
    std::vector<uint32_t> ranks;
    for (const Operand& o : of) {
      const Channel& c = program.ranks[rank].channels[o.channel];
      if (c.kind == ChannelKind::switch_) return std::string("the switch");
      ranks.push_back(c.peer);
    }
    return names.several(rank, ranks);
  };
  if (by_name.size() > kMaxNamed) {
    const Buffer& buffer = program.buffer_of(rank, chunks[0]);
    return fmt::format("{} of {} of {}", by_name.size(), program.name_of(buffer.name),
                       peers(chunks));
  }
  std::string text;
  for (const auto& [chunk, of] : by_name) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : joint, chunk, peers(of));
  }
  return text;
}

/// "input[0] of all ranks" if the operands are just that.
std::string everywhere(const Program& program, uint32_t rank, std::span<const Operand> near,
                       std::span<const Operand> far) {
  if (near.size() != 1 || far.size() + 1 != program.ranks.size() || far.empty()) return "";
  const std::string text = text_of(program, rank, near[0]);
  std::set<uint32_t> peers;
  for (const Operand& o : far) {
    if (text_of(program, rank, o) != text) return "";
    peers.insert(program.ranks[rank].channels[o.channel].peer);
  }
  return peers.size() == far.size() ? text + " of all ranks" : "";
}

std::string side_words(const Program& program, uint32_t rank, std::span<const Operand> operands,
                       const PeerNames& names, std::string_view joint) {
  std::vector<Operand> near, far;
  for (const Operand& o : operands) (o.channel == kNone ? near : far).push_back(o);
  if (std::string text = everywhere(program, rank, near, far); !text.empty()) return text;
  std::string text = local_words(program, rank, near, joint);
  if (far.empty()) return text;
  if (!text.empty()) text += joint;
  return text + far_words(program, rank, far, names, joint);
}

std::string label_words(const Program& program, uint32_t rank, const Op& op) {
  std::string text;
  for (const Operand& o : program.dsts(op)) {
    text +=
        (text.empty() ? "" : ", ") + program.text(program.ranks[rank].semaphores[o.first].label);
  }
  return text;
}

}  // namespace

DataWords data_words(const Program& program, uint32_t rank, const Op& op, const PeerNames& names) {
  DataWords words;
  words.name = std::string(info(op.kind).name);
  if (op.reduce != ReduceOp::call) words.name += " " + std::string(name(op.reduce));
  const char* const joint = info(op.kind).has(kReduces) ? " + " : ", ";
  words.from = printable_line(side_words(program, rank, program.srcs(op), names, joint));
  words.to = printable_line(side_words(program, rank, program.dsts(op), names, ", "));
  return words;
}

std::string control_words(const Program& program, uint32_t rank, const Op& op,
                          const PeerNames& names) {
  const OpInfo& row = info(op.kind);
  std::string text(row.name);
  if (row.has(kReleases) || row.has(kAcquires)) {
    return text + " " + printable_line(label_words(program, rank, op));
  }
  if (row.has_flags()) {
    for (const Operand& o : program.dsts(op)) {
      text += (&o == program.dsts(op).data() ? " " : ", ") + flag_text(program, o.buffer, o.first);
    }
    return text;
  }
  if (row.has(kMeets)) {
    std::vector<int64_t> blocks;
    for (const Operand& o : program.dsts(op)) blocks.push_back(o.first);
    std::sort(blocks.begin(), blocks.end());
    return text + " tb " + list_text(blocks);
  }
  std::vector<uint32_t> peers;
  for (const Operand& o : program.dsts(op)) {
    const uint32_t peer = program.ranks[rank].channels[o.channel].peer;
    if (peer != kNone) peers.push_back(peer);
  }
  return peers.empty() ? text : text + " " + names.several(rank, peers);
}

int64_t main_chunk(const Program& program, const Op& op) {
  if (!info(op.kind).moves_data()) return -1;
  for (const auto side : {program.srcs(op), program.dsts(op)}) {
    int64_t chunk = -1;
    for (const Operand& o : side) {
      if (o.buffer >= kFirstScratch) continue;
      if (chunk >= 0 && chunk != o.first) return -1;
      chunk = o.first;
    }
    if (chunk >= 0) return chunk;
  }
  return -1;
}

void add_chunks(const Program& program, uint32_t rank, const Op& op, std::set<std::string>& reads,
                std::set<std::string>& writes) {
  std::vector<Access> accesses;
  append_accesses(program, rank, op, accesses);
  for (const Access& a : accesses) {
    for (uint32_t k = 0; k < std::min(a.count, kMaxChunks); ++k) {
      const Buffer& buffer = program.ranks[a.rank].buffers[a.buffer];
      (a.write ? writes : reads)
          .insert(fmt::format("{} {}", a.rank,
                              printable_line(run_text(program, buffer, a.first + k, 1))));
    }
  }
}

size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::string shortened(const std::string& text, size_t most) {
  if (characters(text) <= most) return text;
  size_t bytes = 0;
  for (size_t seen = 0; bytes < text.size(); ++bytes) {
    if (!is_continuation(text[bytes]) && ++seen == std::max<size_t>(most, 1)) break;
  }
  return text.substr(0, bytes) + "…";
}

std::vector<std::string> wrapped(const std::string& text, size_t most, size_t lines) {
  std::vector<std::string> out(1);
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(at, end - at);
    std::string& line = out.back();
    if (!line.empty() && out.size() < lines && characters(line) + 1 + characters(word) > most) {
      out.push_back(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    at = end + 1;
  }
  for (std::string& line : out) line = shortened(line, most);
  return out;
}

std::string size_words(uint64_t bytes) {
  static constexpr std::pair<int, const char*> kUnits[] = {{30, "GiB"}, {20, "MiB"}, {10, "KiB"}};
  for (const auto& [shift, unit] : kUnits) {
    if (bytes != 0 && bytes % (uint64_t{1} << shift) == 0) {
      return fmt::format("{} {}", bytes >> shift, unit);
    }
  }
  return fmt::format("{} bytes", bytes);
}

}  // namespace mscclc::draw
