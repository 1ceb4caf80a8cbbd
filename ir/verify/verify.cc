// The program as a whole, its contract and what ranks declare. Ops are in verify_ops.cc.
#include "ir/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "ir/program/flag_regions.h"
#include "ir/report/op_error.h"
#include "ir/verify/row_faults.h"
#include "ir/verify/verify_parts.h"

namespace mscclc {
namespace {

constexpr uint64_t kMaxChunks = uint64_t{1} << 31;

/// Chunks of {S} or {a, b}, or nothing if that is not what `dims` are.
std::optional<uint64_t> chunks_of(const std::vector<uint32_t>& dims) {
  if (dims.size() > 2) return std::nullopt;
  uint64_t product = 1;
  for (const uint32_t d : dims) product *= d;
  return product;
}

/// Checks a contract's chunks; at least `least` of them.
void verify_chunks(std::string_view option, const std::vector<uint32_t>& dims, uint64_t least,
                   uint64_t times, ProgramReport& report) {
  const auto chunks = chunks_of(dims);
  if (!chunks) {
    report.error("contract-chunks", {}, fmt::format("'{}' has more than two dimensions", option));
  } else if (*chunks < least) {
    report.error("contract-chunks", {}, fmt::format("'{}' is 0", option));
  } else if (*chunks >= kMaxChunks || *chunks * times >= kMaxChunks) {
    report.error("contract-chunks", {}, fmt::format("'{}' makes too many chunks", option));
  }
}

void verify_counts(const Contract& c, ProgramReport& report) {
  if (c.counts.size() != size_t{c.ranks} * c.ranks) {
    report.error("contract-counts", {},
                 fmt::format("'counts' has {} numbers; {} ranks need {}", c.counts.size(), c.ranks,
                             size_t{c.ranks} * c.ranks));
    return;
  }
  uint64_t sum = 0;
  for (const int64_t count : c.counts) {
    if (count < 0 || static_cast<uint64_t>(count) >= kMaxChunks) {
      report.error("contract-counts", {}, fmt::format("{} in 'counts' is out of range", count));
      return;
    }
    sum += static_cast<uint64_t>(count);
  }
  // Both are below 2^32, or an error already.
  const uint64_t each = std::max<uint64_t>(c.part_chunks(), 1);
  if (sum >= kMaxChunks || sum * each >= kMaxChunks) {
    report.error("contract-counts", {}, "'counts' makes too many chunks");
  }
}

std::string text(std::string_view buffer, const CallerChunk& place) {
  return fmt::format("{}[{}] at {}", buffer, place.chunk, place.rank);
}

void verify_promises(const Contract& c, ProgramReport& report) {
  const auto within = [&](Side side, const CallerChunk& p) {
    return p.rank < c.ranks && p.chunk < c.shape(side, p.rank).chunks();
  };
  const Promise* last = nullptr;
  for (const Promise& p : c.promises) {
    const std::string output = text("output", p.output);
    if (!within(Side::output, p.output)) {
      report.error("contract-ensure", {}, fmt::format("'ensure {}' is outside the output", output));
    }
    if (p.inputs.empty() || (!p.reduced && p.inputs.size() > 1)) {
      report.error("contract-ensure", {}, fmt::format("'ensure {}' needs one input", output));
    }
    for (const CallerChunk& input : p.inputs) {
      if (within(Side::input, input)) continue;
      report.error(
          "contract-ensure", {},
          fmt::format("{} in 'ensure {}' is outside the input", text("input", input), output));
    }
    if (last != nullptr) {
      const auto key = [](const Promise& x) { return std::tie(x.output.rank, x.output.chunk); };
      if (key(*last) == key(p)) {
        report.error("contract-ensure", {}, fmt::format("two 'ensure' for {}", output));
      } else if (key(*last) > key(p)) {
        report.error("contract-order", {},
                     fmt::format("'ensure {}' is not sorted by rank", output));
      }
    }
    last = &p;
    if (report.enough()) return;
  }
}

// ---- declarations ----

/// Without names and keys in range, what a rank declares cannot even be printed.
void verify_ids(const Program& program, uint32_t id, ProgramReport& report) {
  const Rank& rank = program.ranks[id];
  const size_t names = program.names().size();
  const auto name_exists = [&](NameId name) { return name < names; };
  const auto values_exist = [&](Slice s) { return program.integers.has(s.first, s.count); };
  bool good = true;
  for (const Buffer& b : rank.buffers) {
    good &= name_exists(b.name) && values_exist(b.dims) && values_exist(b.rows);
  }
  for (const Channel& c : rank.channels) {
    good &= name_exists(c.label.name) && values_exist(c.label.keys) && values_exist(c.group);
  }
  for (const Semaphore& s : rank.semaphores) {
    good &= name_exists(s.label.name) && values_exist(s.label.keys);
  }
  if (good) return;
  report.error("declaration-ids", {},
               fmt::format("names or keys of what rank {} declares are missing", id));
}

class DeclarationCheck {
 public:
  DeclarationCheck(const Program& program, uint32_t rank, ProgramReport& report)
      : program_(program), rank_(program.ranks[rank]), id_(rank), report_(report) {}

  void run() {
    check_caller_buffers();
    for (const Buffer& b : rank_.buffers) {
      if (const auto fault = buffer_fault(program_, b)) {
        report_.error(fault->code, b.declared, fault->message);
      }
      if (b.copies == 0) error("buffer-copies", b.declared, name(b), "has 0 copies");
      const bool plain = b.packets == PacketFormat::none && b.copies == 1;
      if (b.units == 1 || (b.units != 0 && !plain)) {
        error("buffer-units", b.declared, name(b), "cannot hold units");
      } else if (b.units > kMaxUnits || b.unit > kMaxLoopUnit) {
        error("buffer-units", b.declared, name(b),
              fmt::format("holds {} units of {} bytes; at most {} of {} are possible", b.units,
                          b.unit, kMaxUnits, kMaxLoopUnit));
      }
    }
    for (uint32_t c = 0; c < rank_.channels.size(); ++c) {
      if (rank_.channels[c].kind == ChannelKind::switch_) {
        check_switch(rank_.channels[c]);
      } else {
        check_peer(c);
      }
    }
    check_names();
  }

 private:
  void check_caller_buffers() {
    if (rank_.buffers.size() < kFirstScratch) {
      report_.error("caller-buffers", {}, fmt::format("rank {} has no input and output", id_));
      return;
    }
    for (uint32_t i = 0; i < rank_.buffers.size(); ++i) {
      const Buffer& b = rank_.buffers[i];
      const BufferKind expected = i == kInput    ? BufferKind::input
                                  : i == kOutput ? BufferKind::output
                                                 : BufferKind::scratch;
      if (b.kind != expected) error("caller-buffers", b.declared, name(b), "is out of place");
    }
    for (const Side side : {Side::input, Side::output}) {
      const Buffer& b = rank_.buffers[static_cast<size_t>(side)];
      const uint32_t promised = program_.contract.shape(side, id_).chunks();
      if (program_.contract.kind != CollectiveKind::none && b.chunks != promised) {
        error("caller-chunks", b.declared, name(b),
              fmt::format("has {} chunks, the contract says {}", b.chunks, promised));
      }
      if (b.packets != PacketFormat::none) {
        error("caller-packets", b.declared, name(b), "cannot hold packets");
      }
    }
  }

  void check_peer(uint32_t index) {
    const Channel& c = rank_.channels[index];
    const std::string label = program_.text(c.label);
    if (c.peer >= program_.ranks.size()) {
      error("channel-peer", c.declared, label,
            fmt::format("leads to rank {}, which does not exist", c.peer));
      return;
    }
    if (c.peer == id_) error("channel-peer", c.declared, label, "leads to its own rank");
    if (c.partner == kNone) return;
    const std::vector<Channel>& theirs = program_.ranks[c.peer].channels;
    if (c.partner >= theirs.size()) {
      error("channel-partner", c.declared, label,
            fmt::format("has no other end on rank {}", c.peer));
      return;
    }
    const Channel& other = theirs[c.partner];
    const std::string other_label = program_.text(other.label);
    if (other.kind != c.kind) {
      error("channel-partner", c.declared, label,
            fmt::format("is a {} channel; its other end, '{}' of rank {}, is a {}",
                        mscclc::name(c.kind), other_label, c.peer, mscclc::name(other.kind)));
    } else if (other.peer != id_ || other.partner != index) {
      error("channel-partner", c.declared, label,
            fmt::format("ends at '{}' of rank {}, which ends elsewhere", other_label, c.peer));
    }
  }

  void check_switch(const Channel& c) {
    const std::string label = program_.text(c.label);
    const auto group = program_.values(c.group);
    bool here = false;
    for (size_t i = 0; i < group.size(); ++i) {
      const int64_t q = group[i];
      here |= q == id_;
      if (q < 0 || q >= static_cast<int64_t>(program_.ranks.size())) {
        error("switch-ranks", c.declared, label,
              fmt::format("lists rank {}, which does not exist", q));
        return;
      }
      if (std::find(group.begin(), group.begin() + i, q) != group.begin() + i) {
        error("switch-ranks", c.declared, label, fmt::format("lists rank {} twice", q));
      }
      const auto& theirs = program_.ranks[q].channels;
      const bool joins = std::any_of(theirs.begin(), theirs.end(), [&](const Channel& t) {
        return t.kind == ChannelKind::switch_ &&
               std::ranges::equal(program_.values(t.group), group);
      });
      if (!joins) {
        error("switch-ranks", c.declared, label,
              fmt::format("lists rank {}, which has no switch channel of the same ranks", q));
      }
    }
    if (!here) error("switch-ranks", c.declared, label, "does not list its own rank");
  }

  /// A name, and its keys, stand for one thing of the rank.
  void check_names() {
    struct Declared {
      NameId name;
      int type;  ///< things of one family are of one type
      Slice keys;
      Span span;
    };
    std::vector<Declared> all;
    for (const Buffer& b : rank_.buffers) all.push_back({b.name, 0, {}, b.declared});
    for (const Channel& c : rank_.channels)
      all.push_back({c.label.name, 1, c.label.keys, c.declared});
    for (const Semaphore& s : rank_.semaphores) {
      all.push_back({s.label.name, 2, s.label.keys, s.declared});
    }
    const auto compare = [this](const Declared& a, const Declared& b) {
      if (a.name != b.name) return a.name < b.name;
      if (a.type != b.type) return a.type < b.type;
      return std::ranges::lexicographical_compare(program_.values(a.keys), program_.values(b.keys));
    };
    std::stable_sort(all.begin(), all.end(), compare);
    for (size_t i = 1; i < all.size(); ++i) {
      const Declared &a = all[i - 1], &b = all[i];
      if (a.name == b.name && (a.type != b.type || !compare(a, b))) {
        error("declared-twice", b.span, program_.text({b.name, b.keys}), "is declared twice");
      }
    }
  }

  std::string name(const Buffer& b) const { return std::string(program_.name_of(b.name)); }

  void error(std::string code, Span span, const std::string& name, std::string_view what) {
    report_.error(std::move(code), span, fmt::format("'{}' of rank {} {}", name, id_, what));
  }

  const Program& program_;
  const Rank& rank_;
  uint32_t id_;
  ProgramReport& report_;
};

}  // namespace

void verify_contract(const Program& program, ProgramReport& report) {
  const Contract& c = program.contract;
  if (program.launch.align == 0) report.error("launch", {}, "'align' is 0");
  if (!is_block_size(program.launch.threads)) {
    report.error("launch", {},
                 fmt::format("'threads' is {}; a thread block has {} to {}, in whole warps",
                             program.launch.threads, kWarpThreads, kMaxBlockThreads));
  }
  if (program.launch.instances == 0) report.error("launch", {}, "'instances' is 0");
  for (const Loop& loop : program.loops) {
    if (program.launch.align == 0) break;
    if (loop.unit == 0 || loop.unit % program.launch.align != 0) {
      report.error("pipeline-unit", {},
                   fmt::format("'unit' {} is not a positive multiple of {}", loop.unit,
                               program.launch.align));
    } else if (loop.unit > kMaxLoopUnit) {
      report.error("pipeline-unit", {},
                   fmt::format("'unit' {} is more than {}", loop.unit, kMaxLoopUnit));
    }
  }
  for (const Slice& group : program.groups) {
    if (program.integers.has(group.first, group.count)) continue;
    report.error("declaration-ids", {}, "the blocks of a group are missing");
  }
  if (c.kind == CollectiveKind::none) return;
  if (c.ranks != program.ranks.size()) {
    report.error("contract-ranks", {},
                 fmt::format("the contract is about {} ranks, the program has {}", c.ranks,
                             program.ranks.size()));
    return;
  }
  if (c.root >= c.ranks) {
    report.error("contract-root", {}, fmt::format("root {} is not a rank", c.root));
  }
  if (c.kind == CollectiveKind::custom) {
    verify_chunks("input", c.input, 0, 1, report);
    verify_chunks("output", c.output, 0, 1, report);
  } else {
    verify_chunks("chunks", c.chunks, 1, c.ranks, report);
  }
  if (report.any()) return;
  if (c.kind == CollectiveKind::alltoallv) verify_counts(c, report);
  if (c.kind == CollectiveKind::custom) verify_promises(c, report);
}

void verify_declarations(const Program& program, uint32_t rank, ProgramReport& report) {
  DeclarationCheck(program, rank, report).run();
}

bool verify_structure(const Program& program, Diagnostics& diagnostics) {
  ProgramReport report(program, diagnostics);
  verify_contract(program, report);
  if (!report.any()) {
    if (const auto fault = rows_fault(program)) report.error(fault->code, {}, fault->message);
    if (const auto fault = flags_fault(program)) report.error("flags", {}, fault->text);
  }
  for (uint32_t r = 0; r < program.ranks.size() && !report.enough(); ++r) {
    verify_ids(program, r, report);
  }
  if (report.any()) return false;
  for (uint32_t r = 0; r < program.ranks.size() && !report.enough(); ++r) {
    verify_declarations(program, r, report);
  }
  if (report.any()) return false;
  for (uint32_t r = 0; r < program.ranks.size() && !report.enough(); ++r) {
    verify_ops(program, r, report);
  }
  for (uint32_t r = 0; r < program.ranks.size() && !report.any(); ++r) {
    const auto fault = external_writes_fault(program, r);
    if (fault) report.error(fault->code, r, *fault->op, fault->message);
  }
  return !report.any();
}

}  // namespace mscclc
