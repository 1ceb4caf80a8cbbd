#include "executor/cost/explanation.h"

#include <algorithm>

#include "executor/cost/place.h"
#include "executor/cost/syncs.h"
#include "executor/cost/work.h"
#include "ir/print/print.h"

namespace mscclc::cost {
namespace {

std::vector<PathLine> lines_of(const Program& program, const Timeline& timeline,
                               const std::vector<PathPart>& path) {
  std::vector<PathLine> lines;
  for (const PathPart& part : path) {
    PathLine line;
    line.cause = part.cause;
    line.begin_us = part.begin / 1e3;
    line.end_us = part.end / 1e3;
    if (part.record != kNoRecord) {
      const StepRecord& r = timeline.records[part.record];
      const Op& op = program.ranks[r.rank].ops[r.source];
      line.rank = r.rank;
      line.block = r.block;
      line.op = print_op(program, r.rank, op);
      line.place = place_of(program, op);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

/// Rounds of a pipeline, and slices that a program writes out: what comes again and again at one
/// rank becomes one line for each cause.
std::vector<PathLine> shortened(std::vector<PathLine> lines) {
  constexpr size_t kMaxLines = 24;
  if (lines.size() <= kMaxLines) return lines;
  std::vector<PathLine> kept;
  for (PathLine& line : lines) {
    const auto same = std::ranges::find_if(kept, [&](const PathLine& k) {
      const bool at_one_op = line.place.empty() ? k.op == line.op : k.place == line.place;
      return k.cause == line.cause && k.rank == line.rank && at_one_op && !line.op.empty();
    });
    if (same == kept.end()) {
      kept.push_back(std::move(line));
    } else {
      // The sum of its parts, from the first one's beginning.
      same->end_us += line.end_us - line.begin_us;
      ++same->times;
    }
  }
  return kept;
}

uint64_t most(const Timeline& timeline, uint32_t ranks, Shared kind) {
  uint64_t bytes = 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    bytes = std::max(bytes, timeline.loads[shared_index(r, kind)]);
  }
  return bytes;
}

uint64_t most_of_nodes(const Timeline& timeline, uint32_t ranks, uint32_t gpus, Shared kind) {
  uint64_t bytes = 0;
  for (uint32_t first = 0; first < ranks; first += gpus) {
    uint64_t sum = 0;
    for (uint32_t r = first; r < std::min(ranks, first + gpus); ++r) {
      sum += timeline.loads[shared_index(r, kind)];
    }
    bytes = std::max(bytes, sum);
  }
  return bytes;
}

std::vector<TrafficLine> traffic_of(const Timeline& timeline, uint32_t ranks,
                                    const Machine& machine, const Bound& bound) {
  const std::string link(name(machine.links));
  const bool several = ranks > machine.gpus;
  std::vector<TrafficLine> lines;
  // Between nodes a GPU's share may go over the network.
  const auto least = [&](uint64_t bytes) { return several ? std::nullopt : std::optional(bytes); };
  if (machine.gpus > 1) {
    lines.push_back(
        {link + " out of a GPU", most(timeline, ranks, Shared::egress), least(bound.link.out)});
    lines.push_back(
        {link + " into a GPU", most(timeline, ranks, Shared::ingress), least(bound.link.in)});
  }
  if (several) {
    lines.push_back({"network out of a node",
                     most_of_nodes(timeline, ranks, machine.gpus, Shared::nic_out),
                     bound.node.out});
    lines.push_back({"network into a node",
                     most_of_nodes(timeline, ranks, machine.gpus, Shared::nic_in), bound.node.in});
  }
  lines.push_back({"a GPU's own memory", most(timeline, ranks, Shared::memory), std::nullopt});
  return lines;
}

uint64_t scratch_of(const DeviceProgram& device) {
  uint64_t bytes = 0;
  for (const RankProgram& rank : device.ranks) {
    uint64_t sum = 0;
    for (size_t b = kFirstScratch; b < rank.buffers.size(); ++b) {
      sum += rank.buffers[b].stride * rank.buffers[b].copies;
    }
    bytes = std::max(bytes, sum);
  }
  return bytes;
}

/// As the runtime binds calls.
std::string why_nothing(const Program& program, uint64_t bytes) {
  const auto has_blocks = [](const Rank& rank) { return rank.blocks > 0; };
  if (std::ranges::none_of(program.ranks, has_blocks)) return "the plan has no ops";
  if (bytes > 0 || program.contract.kind == CollectiveKind::barrier) return "";
  return "the call moves nothing";
}

}  // namespace

Cause Explanation::limit() const {
  return static_cast<Cause>(std::ranges::max_element(causes_us) - causes_us.begin());
}

std::optional<Explanation> explain(const Program& program, const Call& call, const Machine& machine,
                                   Diagnostics& diagnostics, std::optional<uint64_t> asked_bytes) {
  Model model(program);
  const std::optional<Timeline> timeline = model.predict(call, machine, diagnostics);
  if (!timeline) return std::nullopt;
  const auto ranks = static_cast<uint32_t>(program.ranks.size());
  const Chunking chunking(program.contract, call.part_bytes, program.launch.align);
  Explanation e;
  e.name = program.name;
  e.description = program.description;
  e.collective = mscclc::name(program.contract.kind);
  e.dtype = info(call.dtype).name;
  e.ranks = ranks;
  for (const Rank& rank : program.ranks) e.blocks = std::max(e.blocks, rank.blocks);
  e.threads = program.launch.threads;
  e.bytes = chunking.message_bytes();
  e.columns = program.contract.columns;
  if (e.columns != 0) e.rows = e.bytes / (uint64_t{e.columns} * info(call.dtype).bytes);
  if (asked_bytes != e.bytes) e.asked_bytes = asked_bytes;
  e.machine = machine.name;
  e.measured = machine.measured;
  e.scratch_bytes = scratch_of(model.device());
  e.why_nothing = why_nothing(program, e.bytes);
  if (!e.why_nothing.empty()) return e;
  e.us = timeline->back_to_back_ns / 1e3;
  e.alone_us = timeline->alone_ns / 1e3;
  e.hops = timeline->hops;
  e.bound = least(program, call, machine);
  const std::vector<PathPart> path = critical_path(*timeline);
  e.causes_us = shares(path);
  for (double& cause : e.causes_us) cause /= 1e3;
  e.path = shortened(lines_of(program, *timeline, path));
  e.traffic = traffic_of(*timeline, ranks, machine, e.bound);
  e.syncs = syncs_of(program);
  return e;
}

}  // namespace mscclc::cost
