// What a plan costs, counted in its JSON, the same way for both.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/compile.h"
#include "ir/support/read_file.h"
#include "plans/format/plan_json.h"
#include "tests/ported_plans/ported_plans.h"

namespace mscclc {
namespace {

using Json = nlohmann::json;

/// Ops that only synchronise have neither sources nor destinations.
void count_ops(const Json& ops, int& all, int& syncs) {
  for (const Json& op : ops) {
    ++all;
    if (op.contains("ops")) {
      count_ops(op["ops"], all, syncs);
    } else if (!op.contains("src_buff") && !op.contains("dst_buff")) {
      ++syncs;
    }
  }
}

PlanCost count_blocks(const Json& plan) {
  PlanCost cost;
  for (const Json& rank : plan["gpus"]) {
    int blocks = 0;
    for (const Json& block : rank["threadblocks"]) {
      int all = 0, syncs = 0;
      count_ops(block["ops"], all, syncs);
      blocks += all > 0 ? 1 : 0;
      cost.ops = std::max(cost.ops, all);
      cost.syncs = std::max(cost.syncs, syncs);
    }
    cost.blocks = std::max(cost.blocks, blocks);
  }
  return cost;
}

/// Scratch of one rank, in messages.
double scratch_of(const Program& program, uint32_t rank) {
  const std::vector<Buffer>& buffers = program.ranks[rank].buffers;
  double chunks = 0;
  for (uint32_t b = kFirstScratch; b < buffers.size(); ++b) {
    const PacketFormatInfo& unit = info(buffers[b].packets);
    chunks += 1.0 * buffers[b].chunks * buffers[b].copies * unit.wire / unit.data;
  }
  return chunks / std::max(buffers[kInput].chunks, buffers[kOutput].chunks);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> split_defines(const PortedPlan& port) {
  std::vector<std::pair<std::string, std::string>> defines;
  std::istringstream words{std::string(port.defines)};
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    defines.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return defines;
}

PlanCost mscclpp_cost(const PortedPlan& port) {
  const Json plan =
      Json::parse(read_file(fmt::format("tests/mscclpp_plans/{}.json", port.plan)).value());
  PlanCost cost = count_blocks(plan);
  const double packets = plan["protocol"] == "LL" ? 2 : 1;
  const double copies = plan["use_double_scratch_buffer"].get<bool>() ? 2 : 1;
  for (const Json& rank : plan["gpus"]) {
    const double message =
        std::max(rank["input_chunks"].get<int>(), rank["output_chunks"].get<int>());
    const double chunks = rank["scratch_chunks"].get<int>();
    cost.scratch = std::max(cost.scratch, chunks * packets * copies / message);
  }
  return cost;
}

Result<PlanCost> our_cost(const PortedPlan& port) {
  Sources sources;
  Diagnostics diagnostics;
  const std::string path = fmt::format("plans/{}.mscl", port.program);
  const FileId file = sources.add(path, read_file(path).value());
  FrontEndOptions options;
  options.defines = split_defines(port);
  const auto program = compile(sources, file, options, {}, diagnostics);
  const auto plan =
      program ? write_plan(*program, builtin_targets().front(), diagnostics) : std::nullopt;
  if (!plan) return Error{render_text(diagnostics, sources)};
  PlanCost cost = count_blocks(Json::parse(*plan));
  for (uint32_t r = 0; r < program->ranks.size(); ++r) {
    cost.scratch = std::max(cost.scratch, scratch_of(*program, r));
  }
  return cost;
}

}  // namespace mscclc
