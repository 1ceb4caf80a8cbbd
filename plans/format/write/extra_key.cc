#include "plans/format/write/extra_key.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "ir/program/applied.h"
#include "plans/format/plan_json.h"
#include "plans/format/write/row_keys.h"

namespace mscclc {
namespace {

void write_promise(JsonWriter& json, const Promise& p) {
  json.open('[');
  json.elements(p.output.rank, p.output.chunk, uint32_t{p.reduced});
  for (const CallerChunk& input : p.inputs) json.elements(input.rank, input.chunk);
  json.close(']');
}

void write_contract(JsonWriter& json, const Program& program) {
  const Contract& c = program.contract;
  constexpr std::string_view kInPlace[] = {"either", "yes", "no"};
  const auto list = [&](const auto& numbers) { return [&] { json.list(numbers); }; };
  json.open('{');
  json.members("kind", name(c.kind), "ranks", c.ranks, "chunks", list(c.chunks), "in_place",
               kInPlace[static_cast<size_t>(c.in_place)], "even_only", c.even_only);
  if (c.order != SumOrder::any) json.members("order", name(c.order));
  if (c.columns != 0) json.members("columns", c.columns);
  if (c.any_columns) json.members("any_columns", true);
  if (c.then != Contract::kNoFunction) json.members("then", program.functions[c.then].name);
  if (c.root != 0) json.members("root", c.root);
  if (c.shift != 0) json.members("shift", c.shift);
  if (!c.counts.empty()) json.members("counts", list(c.counts));
  if (!c.input.empty()) json.members("input", list(c.input));
  if (!c.output.empty()) json.members("output", list(c.output));
  if (!c.promises.empty()) {
    json.members("promises",
                 [&] { json.list(c.promises, [&](const Promise& p) { write_promise(json, p); }); });
  }
  json.close('}');
}

void write_select(JsonWriter& json, const Select& s) {
  const auto range = [&](const Range& r) { return [&] { json.list(std::array{r.min, r.max}); }; };
  const auto dtypes = [&] { json.list(s.dtypes, [](Dtype t) { return info(t).name; }); };
  const auto ops = [&] { json.list(s.ops, [](ReduceOp op) { return name(op); }); };
  json.object(
      "sizes", range(s.sizes), "nodes", range(s.nodes), "gpus_per_node", range(s.gpus_per_node),
      "dtypes", dtypes, "ops", ops, "tags", [&] { json.list(s.tags); }, "priority", s.priority);
}

void write_buffers(JsonWriter& json, const Program& program, const WireLayout& layout,
                   uint32_t rank) {
  const std::vector<Buffer>& buffers = program.ranks[rank].buffers;
  if (buffers.size() <= kFirstScratch) return;
  uint32_t b = kFirstScratch;
  const auto write = [&](const Buffer& buffer) {
    json.open('{');
    json.members("name", program.name_of(buffer.name), "at", layout.buffer(rank, b++).offset,
                 "chunks", buffer.chunks);
    if (buffer.dims.count > 1) {
      json.members("dims", [&] { json.list(program.values(buffer.dims)); });
    }
    if (buffer.packets != PacketFormat::none) json.members("packets", name(buffer.packets));
    if (buffer.copies != 1) json.members("copies", buffer.copies);
    if (buffer.units != 0) json.members("units", buffer.units);
    if (buffer.unit != 0) json.members("unit", buffer.unit);
    if (buffer.form != rows::Form{}) json.members("type", form_name(program, buffer.form));
    json.close('}');
  };
  json.members("buffers", [&] { json.list(std::span(buffers).subspan(kFirstScratch), write); });
}

bool same_family(const Label& a, const Label& b) {
  return a.name == b.name && a.keys.count == b.keys.count;
}
bool same_family(const Semaphore& a, const Semaphore& b) { return same_family(a.label, b.label); }
bool same_family(const Channel& a, const Channel& b) {
  return a.kind == b.kind && same_family(a.label, b.label);
}

/// True if each has one key, its peer.
bool by_peer(const Program& program, std::span<const Channel> family) {
  return std::ranges::all_of(family, [&](const Channel& c) {
    return c.kind != ChannelKind::switch_ && c.label.keys.count == 1 &&
           program.values(c.label.keys)[0] == int64_t{c.peer};
  });
}
bool by_peer(const Program&, std::span<const Semaphore>) { return false; }

/// A row for each run of things whose labels differ in their keys only: the name, what `write_kind`
/// writes, how many they are, and their keys, one after the other, or "peer".
template <class Thing, class Write>
void write_families(JsonWriter& json, const Program& program, const std::vector<Thing>& things,
                    Write write_kind) {
  json.open('[');
  for (size_t first = 0, last = 0; first < things.size(); first = last) {
    while (last < things.size() && same_family(things[first], things[last])) ++last;
    const std::span family = std::span(things).subspan(first, last - first);
    json.elements([&] {
      json.open('[');
      json.elements(program.name_of(family[0].label.name));
      write_kind(family[0]);
      json.elements(family.size());
      if (by_peer(program, family)) {
        json.elements("peer");
      } else if (family[0].label.keys.count > 0) {
        json.elements([&] {
          json.open('[');
          for (const Thing& one : family) {
            for (const int64_t key : program.values(one.label.keys)) json.elements(key);
          }
          json.close(']');
        });
      }
      json.close(']');
    });
  }
  json.close(']');
}

/// Where the wire's order is not that of the IR, which ends are without partner, and which switch
/// each entry belongs to.
void write_channel_order(JsonWriter& json, const Program& program, const WireLayout& layout,
                         uint32_t rank) {
  std::vector<uint32_t> alone, ids;
  uint32_t next[3] = {};
  bool natural = true;
  const std::vector<Channel>& channels = program.ranks[rank].channels;
  for (uint32_t c = 0; c < channels.size(); ++c) {
    const uint32_t id = layout.channel_id(rank, c);
    natural &= id == next[static_cast<size_t>(channels[c].kind)]++;
    if (channels[c].kind == ChannelKind::switch_) continue;
    ids.push_back(id);
    if (channels[c].partner == kNone) alone.push_back(c);
  }
  if (!natural) json.members("channel_ids", [&] { json.list(ids); });
  if (!alone.empty()) json.members("alone", [&] { json.list(alone); });
}

/// Rows of those that have some.
void write_credits(JsonWriter& json, const std::vector<Channel>& channels) {
  if (std::ranges::none_of(channels, [](const Channel& c) { return c.credits != 0; })) return;
  json.members("credits", [&] {
    json.open('[');
    for (size_t c = 0; c < channels.size(); ++c) {
      if (channels[c].credits == 0) continue;
      json.elements([&] { json.list(std::array<size_t, 2>{c, channels[c].credits}); });
    }
    json.close(']');
  });
}

void write_switches(JsonWriter& json, const Program& program, const WireLayout& layout,
                    uint32_t rank) {
  std::vector<bool> used(layout.switch_matched[rank].size());
  if (used.empty()) return;
  const auto position_of = [&](const WireSwitch& entry) {
    const uint32_t position = layout.channel_id(rank, entry.channel);
    used[position] = true;
    return position;
  };
  json.members("switches", [&] { json.list(layout.switches[rank], position_of); });
  if (std::ranges::find(used, false) == used.end()) return;
  json.members("unused_switches", [&] {
    const std::vector<Channel>& channels = program.ranks[rank].channels;
    json.open('[');
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].kind != ChannelKind::switch_) continue;
      const uint32_t position = layout.channel_id(rank, c);
      if (used[position]) continue;
      json.elements([&] {
        json.open('[');
        json.elements(position);
        for (const int64_t member : program.values(channels[c].group)) json.elements(member);
        json.close(']');
      });
    }
    json.close(']');
  });
}

}  // namespace

void write_version(JsonWriter& json, const std::string& target) {
  json.members("schema", kPlanSchema, "target", target);
}

void write_description(JsonWriter& json, const Program& program) {
  if (!program.description.empty()) json.members("description", program.description);
}

void write_terms(JsonWriter& json, const Program& program) {
  if (program.foreign) json.members("foreign", true);
  const Launch& l = program.launch;
  const auto launch = [&] {
    json.object("instances", l.instances, "policy",
                l.policy == Policy::blocked ? "blocked" : "interleaved", "fuse", l.fuse,
                "auto_sync", l.auto_sync);
  };
  json.members(
      "contract", [&] { write_contract(json, program); }, "select",
      [&] { write_select(json, program.select); }, "launch", launch);
  write_rows(json, program);
}

/// Files, the names of loop variables, and sites with the positions of theirs among them.
void write_sites(JsonWriter& json, const Program& program) {
  std::vector<uint32_t> position(program.names().size(), kNone);
  std::vector<NameId> variables;
  for (const Site& site : program.sites) {
    for (const NameId v : site.variables) {
      if (position[v] != kNone) continue;
      position[v] = static_cast<uint32_t>(variables.size());
      variables.push_back(v);
    }
  }
  const auto write_site = [&](const Site& site) {
    json.open('[');
    json.elements(site.file, site.line, site.column);
    for (const NameId v : site.variables) json.elements(position[v]);
    json.close(']');
  };
  const auto names = [&] { json.list(variables, [&](NameId v) { return program.name_of(v); }); };
  json.members(
      "files", [&] { json.list(program.files); }, "variables", names, "sites",
      [&] { json.list(program.sites, write_site); });
}

void write_declarations(JsonWriter& json, const Program& program, const WireLayout& layout,
                        uint32_t rank) {
  const Rank& r = program.ranks[rank];
  write_buffers(json, program, layout, rank);
  if (!r.channels.empty()) {
    json.members("channels", [&] {
      write_families(json, program, r.channels,
                     [&](const Channel& c) { json.elements(name(c.kind)); });
    });
  }
  write_channel_order(json, program, layout, rank);
  write_credits(json, r.channels);
  write_switches(json, program, layout, rank);
  if (!r.semaphores.empty()) {
    json.members("semaphores",
                 [&] { write_families(json, program, r.semaphores, [](const Semaphore&) {}); });
  }
}

}  // namespace mscclc
