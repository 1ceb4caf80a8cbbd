#include "plans/format/write/extra_key.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "plans/format/plan_json.h"

namespace mscclc {
namespace {

/// Opens a list; close_list() replaces the comma after its last element.
void open_list(JsonOut& out, std::string_view key) {
  out.text(key);
  out.text("[");
}

void close_list(JsonOut& out, bool empty) {
  if (!empty) out.take_back();
  out.need(4);
  out.literal("],");
}

/// A list of numbers and the comma after it.
template <class Numbers>
void write_numbers(JsonOut& out, std::string_view key, const Numbers& numbers) {
  open_list(out, key);
  for (const auto n : numbers) {
    out.need(24);
    out.integer(static_cast<int64_t>(n));
    out.character(',');
  }
  close_list(out, std::empty(numbers));
}

/// A list of strings and the comma after it.
template <class Items, class Text>
void write_strings(JsonOut& out, std::string_view key, const Items& items, Text text) {
  open_list(out, key);
  for (const auto& item : items) {
    out.string(text(item));
    out.text(",");
  }
  close_list(out, items.empty());
}

void write_string_member(JsonOut& out, std::string_view key, std::string_view value) {
  out.text(key);
  out.string(value);
  out.text(",");
}

void write_number_member(JsonOut& out, std::string_view key, int64_t value) {
  out.text(key);
  out.need(24);
  out.integer(value);
  out.character(',');
}

void write_range(JsonOut& out, std::string_view key, const Range& range) {
  out.text(key);
  out.need(48);
  out.character('[');
  out.number64(range.min);
  out.character(',');
  out.number64(range.max);
  out.literal("],");
}

void write_flag(JsonOut& out, std::string_view key, bool value) {
  out.text(key);
  out.text(value ? "true," : "false,");
}

void write_promises(JsonOut& out, const Contract& contract) {
  open_list(out, "\"promises\":");
  for (const Promise& p : contract.promises) {
    out.need(48);
    out.character('[');
    out.number(p.output.rank);
    out.character(',');
    out.number(p.output.chunk);
    out.character(',');
    out.number(p.reduced ? 1 : 0);
    for (const CallerChunk& input : p.inputs) {
      out.need(32);
      out.character(',');
      out.number(input.rank);
      out.character(',');
      out.number(input.chunk);
    }
    out.need(4);
    out.literal("],");
  }
  close_list(out, contract.promises.empty());
}

/// Ends an object whose last member has a comma after it, and puts a comma after the object.
void close_object(JsonOut& out) {
  out.take_back();
  out.need(4);
  out.literal("},");
}

void write_contract(JsonOut& out, const Contract& c) {
  constexpr std::string_view kInPlace[] = {"either", "yes", "no"};
  out.text("\"contract\":{");
  write_string_member(out, "\"kind\":", name(c.kind));
  write_number_member(out, "\"ranks\":", c.ranks);
  write_numbers(out, "\"chunks\":", c.chunks);
  write_string_member(out, "\"in_place\":", kInPlace[static_cast<size_t>(c.in_place)]);
  write_flag(out, "\"even_only\":", c.even_only);
  if (c.order != SumOrder::any) write_string_member(out, "\"order\":", name(c.order));
  if (c.root != 0) write_number_member(out, "\"root\":", c.root);
  if (c.shift != 0) write_number_member(out, "\"shift\":", c.shift);
  if (!c.counts.empty()) write_numbers(out, "\"counts\":", c.counts);
  if (!c.input.empty()) write_numbers(out, "\"input\":", c.input);
  if (!c.output.empty()) write_numbers(out, "\"output\":", c.output);
  if (!c.promises.empty()) write_promises(out, c);
  close_object(out);
}

void write_select(JsonOut& out, const Select& s) {
  out.text("\"select\":{");
  write_range(out, "\"sizes\":", s.sizes);
  write_range(out, "\"nodes\":", s.nodes);
  write_range(out, "\"gpus_per_node\":", s.gpus_per_node);
  write_strings(out, "\"dtypes\":", s.dtypes, [](Dtype t) { return info(t).name; });
  write_strings(out, "\"ops\":", s.ops, [](ReduceOp op) { return name(op); });
  write_strings(out, "\"tags\":", s.tags, [](const std::string& t) { return std::string_view(t); });
  write_number_member(out, "\"priority\":", s.priority);
  close_object(out);
}

void write_launch(JsonOut& out, const Launch& l) {
  out.text("\"launch\":{");
  write_number_member(out, "\"instances\":", l.instances);
  write_string_member(out, "\"policy\":", l.policy == Policy::blocked ? "blocked" : "interleaved");
  write_flag(out, "\"fuse\":", l.fuse);
  write_flag(out, "\"auto_sync\":", l.auto_sync);
  close_object(out);
}

/// Files, the names of loop variables, and sites with the positions of theirs among them.
void write_buffers(JsonOut& out, const Program& program, const WireLayout& layout, uint32_t rank) {
  const std::vector<Buffer>& buffers = program.ranks[rank].buffers;
  if (buffers.size() <= kFirstScratch) return;
  open_list(out, "\"buffers\":");
  for (uint32_t b = kFirstScratch; b < buffers.size(); ++b) {
    const Buffer& buffer = buffers[b];
    write_string_member(out, "{\"name\":", program.name_of(buffer.name));
    write_number_member(out, "\"at\":", layout.buffer(rank, b).offset);
    write_number_member(out, "\"chunks\":", buffer.chunks);
    if (buffer.dims.count > 1) write_numbers(out, "\"dims\":", program.values(buffer.dims));
    if (buffer.packets != PacketFormat::none) {
      write_string_member(out, "\"packets\":", name(buffer.packets));
    }
    if (buffer.copies != 1) write_number_member(out, "\"copies\":", buffer.copies);
    if (buffer.units != 0) write_number_member(out, "\"units\":", buffer.units);
    if (buffer.unit != 0) write_number_member(out, "\"unit\":", buffer.unit);
    close_object(out);
  }
  close_list(out, false);
}

/// Keys of a family, one after the other, or "peer" if each member's one key is its peer.
void write_keys(JsonOut& out, const Program& program, std::span<const Channel> family) {
  const bool by_peer = std::ranges::all_of(family, [&](const Channel& c) {
    return c.kind != ChannelKind::switch_ && c.label.keys.count == 1 &&
           program.values(c.label.keys)[0] == int64_t{c.peer};
  });
  if (by_peer) return out.text("\"peer\",");
  open_list(out, "");
  for (const Channel& c : family) {
    for (const int64_t key : program.values(c.label.keys)) {
      out.need(24);
      out.integer(key);
      out.character(',');
    }
  }
  close_list(out, false);
}

/// Calls `write(family)` for each run of things whose labels differ in their keys only.
template <class Things, class Same, class Write>
void for_each_family(const Things& things, Same same, Write write) {
  for (size_t first = 0; first < things.size();) {
    size_t last = first + 1;
    while (last < things.size() && same(things[first], things[last])) ++last;
    write(std::span(things).subspan(first, last - first));
    first = last;
  }
}

bool same_family(const Label& a, const Label& b) {
  return a.name == b.name && a.keys.count == b.keys.count;
}

void write_channels(JsonOut& out, const Program& program, uint32_t rank) {
  const std::vector<Channel>& channels = program.ranks[rank].channels;
  if (channels.empty()) return;
  open_list(out, "\"channels\":");
  const auto same = [](const Channel& a, const Channel& b) {
    return a.kind == b.kind && same_family(a.label, b.label);
  };
  for_each_family(channels, same, [&](std::span<const Channel> family) {
    write_string_member(out, "[", program.name_of(family[0].label.name));
    write_string_member(out, "", name(family[0].kind));
    write_number_member(out, "", static_cast<int64_t>(family.size()));
    if (family[0].label.keys.count > 0) write_keys(out, program, family);
    close_list(out, false);
  });
  close_list(out, false);
}

/// Where the wire's order is not that of the IR, which ends are without partner, and which switch
/// each entry belongs to.
void write_channel_order(JsonOut& out, const Program& program, const WireLayout& layout,
                         uint32_t rank) {
  std::vector<uint32_t> alone;
  uint32_t next[3] = {};
  bool natural = true;
  const std::vector<Channel>& channels = program.ranks[rank].channels;
  for (uint32_t c = 0; c < channels.size(); ++c) {
    natural &= layout.channel_id(rank, c) == next[static_cast<size_t>(channels[c].kind)]++;
    if (channels[c].kind != ChannelKind::switch_ && channels[c].partner == kNone) {
      alone.push_back(c);
    }
  }
  if (!natural) {
    std::vector<uint32_t> ids;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].kind != ChannelKind::switch_) ids.push_back(layout.channel_id(rank, c));
    }
    write_numbers(out, "\"channel_ids\":", ids);
  }
  if (!alone.empty()) write_numbers(out, "\"alone\":", alone);
}

/// Rows of those that have some.
void write_credits(JsonOut& out, const std::vector<Channel>& channels) {
  if (std::ranges::none_of(channels, [](const Channel& c) { return c.credits != 0; })) return;
  open_list(out, "\"credits\":");
  for (size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].credits == 0) continue;
    write_numbers(out, "", std::array{static_cast<uint32_t>(c), channels[c].credits});
  }
  close_list(out, false);
}

void write_switches(JsonOut& out, const Program& program, const WireLayout& layout, uint32_t rank) {
  const uint32_t count = static_cast<uint32_t>(layout.switch_matched[rank].size());
  if (count == 0) return;
  std::vector<bool> used(count);
  open_list(out, "\"switches\":");
  for (const WireSwitch& entry : layout.switches[rank]) {
    const uint32_t position = layout.channel_id(rank, entry.channel);
    used[position] = true;
    out.need(16);
    out.number(position);
    out.character(',');
  }
  close_list(out, layout.switches[rank].empty());
  if (std::ranges::find(used, false) == used.end()) return;
  open_list(out, "\"unused_switches\":");
  for (const Channel& c : program.ranks[rank].channels) {
    if (c.kind != ChannelKind::switch_) continue;
    const uint32_t position =
        layout.channel_id(rank, static_cast<uint32_t>(&c - program.ranks[rank].channels.data()));
    if (used[position]) continue;
    write_number_member(out, "[", position);
    for (const int64_t member : program.values(c.group)) write_number_member(out, "", member);
    close_list(out, false);
  }
  close_list(out, false);
}

void write_semaphores(JsonOut& out, const Program& program, uint32_t rank) {
  const std::vector<Semaphore>& semaphores = program.ranks[rank].semaphores;
  if (semaphores.empty()) return;
  open_list(out, "\"semaphores\":");
  const auto same = [](const Semaphore& a, const Semaphore& b) {
    return same_family(a.label, b.label);
  };
  for_each_family(semaphores, same, [&](std::span<const Semaphore> family) {
    write_string_member(out, "[", program.name_of(family[0].label.name));
    write_number_member(out, "", static_cast<int64_t>(family.size()));
    if (family[0].label.keys.count > 0) {
      open_list(out, "");
      for (const Semaphore& s : family) {
        for (const int64_t key : program.values(s.label.keys)) write_number_member(out, "", key);
      }
      close_list(out, false);
    }
    close_list(out, false);
  });
  close_list(out, false);
}

}  // namespace

void write_version(JsonOut& out, const std::string& target) {
  write_number_member(out, "\"schema\":", kPlanSchema);
  write_string_member(out, "\"target\":", target);
}

void write_description(JsonOut& out, const Program& program) {
  if (program.description.empty()) return;
  write_string_member(out, "\"description\":", program.description);
}

void write_terms(JsonOut& out, const Program& program) {
  if (program.foreign) write_flag(out, "\"foreign\":", true);
  write_contract(out, program.contract);
  write_select(out, program.select);
  write_launch(out, program.launch);
}

void write_sites(JsonOut& out, const Program& program) {
  write_strings(out, "\"files\":", program.files,
                [](const std::string& f) { return std::string_view(f); });
  std::vector<uint32_t> position(program.names().size(), kNone);
  std::vector<NameId> variables;
  for (const Site& site : program.sites) {
    for (const NameId v : site.variables) {
      if (position[v] != kNone) continue;
      position[v] = static_cast<uint32_t>(variables.size());
      variables.push_back(v);
    }
  }
  write_strings(out, "\"variables\":", variables, [&](NameId v) { return program.name_of(v); });
  open_list(out, "\"sites\":");
  for (const Site& site : program.sites) {
    std::vector<uint32_t> row = {site.file, site.line, site.column};
    for (const NameId v : site.variables) row.push_back(position[v]);
    write_numbers(out, "", row);
  }
  close_list(out, program.sites.empty());
}

void write_declarations(JsonOut& out, const Program& program, const WireLayout& layout,
                        uint32_t rank) {
  write_buffers(out, program, layout, rank);
  write_channels(out, program, rank);
  write_channel_order(out, program, layout, rank);
  write_credits(out, program.ranks[rank].channels);
  write_switches(out, program, layout, rank);
  write_semaphores(out, program, rank);
}

}  // namespace mscclc
