#include "ir/ops/ops_doc.h"

#include <fmt/format.h>

#include <vector>

#include "ir/ops/summations.h"

namespace mscclc {
namespace {

constexpr std::string_view kPageHead = R"(# Ops

<!-- Made from the tables ir/ops/*.def by: mscclc ops --format=markdown > docs/ops.md -->

What each op takes and does. [language.md](language.md) says how programs write them.

**Operands.** `L` a chunk of this rank, `R` a chunk at the far end of a channel, `S` a chunk at a
switch, `C` a channel, `M` a semaphore, `B` a thread block, `F` a flag. Suffixes: `p`: in a packet
buffer; `*`: one or more; `=`: as many as destinations, pairwise; `/`: plain on memory channels; a packet
buffer, sent as is, on ports. The prefix `~`: anywhere among its neighbours.
All chunk operands of an op have equally many chunks; its channels are of one kind.

**Wire name.** What the op is called in plan JSON where MSCCL++'s executor runs it; ops and forms
that it does not know have their own name there.
)";

constexpr std::string_view kFlags = R"(
## Options

| option | on | meaning |
|---|---|---|
| `op: sum` | ops that add up | the reduction, instead of the one that the call asks for: )";

constexpr std::string_view kFlagsTail = R"( |
| `part: [i, n]` | ops that move data | the i-th of n parts of what a group does |
| `relaxed` | `signal`, `wait` | orders no data: only says "I am in this call" |
)";

constexpr std::string_view kFlagsEnd =
    R"(| `complete` | ops that add up | IR only: the result is the whole sum, so `avg` divides here |
)";

struct Heading {
  CostClass cost;
  std::string_view title;
};
constexpr Heading kHeadings[] = {
    {CostClass::kMove, "Moving data"},
    {CostClass::kReduce, "Adding up"},
    {CostClass::kPacket, "Packets: data that itself shows when it has arrived"},
    {CostClass::kControl, "Order"},
};

struct EffectName {
  Effects effect;
  std::string_view name;
};
constexpr EffectName kEffects[] = {
    {kSignals, "signals"},
    {kWaits, "waits"},
    {kFlushes, "flushes"},
    {kReleases, "releases"},
    {kAcquires, "acquires"},
    {kMeets, "blocks meet"},
    {kSyncs, "syncs"},
    {kReduces, "adds up"},
    {kPolls, "waits for packets"},
    {kAwaitsFlags, "waits for flags"},
    {kNotifiesFlags, "raises flags"},
};

void append(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

std::string operands_of(const OpInfo& op) {
  std::string out(op.dst_text);
  if (op.srcs.count > 0) out += " <- " + std::string(op.src_text);
  return out;
}

std::string channels_of(const OpInfo& op) {
  std::string out;
  for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port, ChannelKind::switch_}) {
    if ((op.channels & bit(kind)) != 0) append(out, name(kind));
  }
  return out;
}

std::string effects_of(const OpInfo& op) {
  std::string out;
  for (const EffectName& e : kEffects) {
    if (op.has(e.effect)) append(out, e.name);
  }
  return out;
}

std::string wire_of(const OpInfo& op) {
  std::string out(op.wire);
  if (!op.relaxed.empty()) append(out, op.relaxed);
  return out;
}

/// "put + signal" of the made_of column.
std::string parts_of(const OpInfo& op) {
  std::string out;
  for (const char c : op.made_of) out += c == ' ' ? std::string(" + ") : std::string(1, c);
  return out;
}

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

void append_ops(std::string& out) {
  for (const Heading& heading : kHeadings) {
    out += fmt::format("\n## {}\n\n", heading.title);
    out +=
        "| op | operands | channels | also | meaning | made of | wire name |\n"
        "|---|---|---|---|---|---|---|\n";
    for (const OpInfo& op : op_table()) {
      if (op.cost != heading.cost) continue;
      out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", op.name, code(operands_of(op)),
                         channels_of(op), effects_of(op), op.summary, code(parts_of(op)),
                         code(wire_of(op)));
    }
  }
}

void append_dtypes(std::string& out) {
  out +=
      "\n## Data types\n\n"
      "A sum is added up in the second type and rounded once, when it is stored. A call may ask\n"
      "for another type: a wider one, or of floats the data type itself, or f16 for fp8; in f16,\n"
      "bf16 and fp8 a sum is rounded after every step, too. What an op that adds up gives is "
      "never\n"
      "-0.0: a zero is +0.0, whatever was added and however it travels. Ops that only move keep "
      "-0.0,\n"
      "unless they use sentinel packets.\n\n"
      "| type | bytes | adds up in | other names |\n|---|--:|---|---|\n";
  for (const DtypeInfo& t : dtype_table()) {
    std::string aliases;
    for (const char c : t.aliases) aliases += c == ' ' ? std::string(", ") : std::string(1, c);
    out += fmt::format("| `{}` | {} | `{}` | {} |\n", t.name, t.bytes, info(t.accumulate).name,
                       aliases);
  }
}

void append_formats(std::string& out) {
  out +=
      "\n## Packet formats\n\n"
      "| format | data | on the wire | how a reader knows |\n|---|--:|--:|---|\n";
  for (const PacketFormatInfo& f : packet_formats()) {
    out += fmt::format("| `{}` | {} bytes | {} bytes | {} |\n", f.name, f.data, f.wire, f.summary);
  }
}

void append_summations(std::string& out) {
  for (const SummationInfo& row : summations()) {
    out += fmt::format(
        "| `{}` | ops that add up, but not at switches; {} sources at most | {} "
        "([language.md](language.md#ops)) |\n",
        row.name, row.most_sources, row.summary);
  }
}

}  // namespace

std::string ops_reference() {
  std::string out(kPageHead);
  append_ops(out);
  out += kFlags;
  std::string reductions;
  for (int i = 1; i <= static_cast<int>(ReduceOp::avg); ++i) {
    append(reductions, name(static_cast<ReduceOp>(i)));
  }
  out += reductions;
  out += kFlagsTail;
  append_summations(out);
  out += kFlagsEnd;
  append_dtypes(out);
  append_formats(out);
  return out;
}

std::string ops_table_text() {
  constexpr const char* kRow = "{:<26}{:<18}{:<15}{}\n";
  std::string out = fmt::format(kRow, "op", "operands", "wire name", "meaning");
  for (const OpInfo& op : op_table()) {
    out += fmt::format(kRow, op.name, operands_of(op), op.wire, op.summary);
  }
  return out;
}

std::string ops_text(std::span<const OpKind> only) {
  std::vector<OpKind> kinds(only.begin(), only.end());
  if (only.empty()) {
    for (const OpInfo& op : op_table()) kinds.push_back(op.kind);
  }
  std::string out;
  for (const OpKind kind : kinds) {
    const OpInfo& op = info(kind);
    const std::string shape = operands_of(op);
    out += fmt::format("{}{}{}\n    {}\n", op.name, shape.empty() ? "" : " ", shape, op.summary);
    const auto line = [&out](std::string_view label, const std::string& text) {
      if (!text.empty()) out += fmt::format("    {}: {}\n", label, text);
    };
    line("channels", channels_of(op));
    line("also", effects_of(op));
    line("made of", parts_of(op));
    line("wire name", wire_of(op));
  }
  if (only.empty()) {
    out +=
        "\nL chunk of this rank, R chunk at the far end of a channel, S chunk at a switch,\n"
        "C channel, M semaphore, B thread block, F flag. Suffix: p in a packet buffer, * one or "
        "more,\n"
        "= as many as destinations, / in packets if the channels are ports.\n"
        "In front: ~ anywhere among its neighbours.\n";
  }
  return out;
}

}  // namespace mscclc
