#include "tools/draw/steps.h"

#include <algorithm>
#include <map>
#include <queue>

namespace mscclc::draw {
namespace {

/// What part of a step an op is.
enum class Part : uint8_t { wait, data, signal };

Part part_of(const OpInfo& row) {
  if (row.moves_data()) return Part::data;
  const bool gives = row.has(kSignals) || row.has(kReleases) || row.has(kNotifiesFlags);
  return gives ? Part::signal : Part::wait;
}

class Cutter {
 public:
  Cutter(const Program& program, Steps& out) : program_(program), out_(out) {}

  void cut(uint32_t r) {
    const Rank& rank = program_.ranks[r];
    out_.first_block.push_back(static_cast<uint32_t>(out_.blocks.size()));
    out_.of_op.emplace_back(rank.ops.size(), kNone);
    std::map<int64_t, std::vector<uint32_t>> places;
    for (uint32_t i = 0; i < rank.ops.size(); ++i) places[place_of(rank.ops[i])].push_back(i);
    for (const auto& [place, ops] : places) cut_block(r, place, ops);
  }

 private:
  void cut_block(uint32_t r, int64_t place, const std::vector<uint32_t>& ops) {
    Block block{r, place, static_cast<uint32_t>(out_.steps.size()), 0};
    Part last = Part::signal;
    for (const uint32_t i : ops) {
      const Op& op = program_.ranks[r].ops[i];
      if (op.kind == OpKind::sync || op.kind == OpKind::pipeline) continue;
      const Part part = part_of(info(op.kind));
      const bool first = out_.steps.size() == block.first;
      const bool other_loop = !first && out_.steps.back().loop != op.loop;
      if (first || other_loop || part < last || (part == Part::data && last == Part::data)) {
        begin(op.loop);
      }
      Step& step = out_.steps.back();
      step.ops.push_back(i);
      if (part == Part::data) step.data = i;
      out_.of_op[r][i] = static_cast<uint32_t>(out_.steps.size() - 1);
      last = part;
    }
    block.count = static_cast<uint32_t>(out_.steps.size()) - block.first;
    if (block.count == 0) return;
    out_.block_of.resize(out_.steps.size(), static_cast<uint32_t>(out_.blocks.size()));
    out_.blocks.push_back(block);
  }

  void begin(uint32_t loop) {
    out_.steps.emplace_back();
    out_.steps.back().loop = loop;
  }

  const Program& program_;
  Steps& out_;
};

using Edges = std::vector<std::pair<uint32_t, uint32_t>>;

void add_barrier(const Steps& steps, uint32_t a, uint32_t b, Edges& edges) {
  const auto after_what = [&](uint32_t step, uint32_t other) {
    if (step > steps.blocks[steps.block_of[step]].first) edges.emplace_back(step - 1, other);
  };
  after_what(a, b);
  after_what(b, a);
}

Edges edges_of(const Steps& steps, const std::vector<Flow>& flows) {
  Edges edges;
  for (const Block& b : steps.blocks) {
    for (uint32_t s = b.first + 1; s < b.first + b.count; ++s) edges.emplace_back(s - 1, s);
  }
  for (const Flow& flow : flows) {
    const uint32_t from = steps.at(flow.from), to = steps.at(flow.to);
    if (from == kNone || to == kNone || from == to || flow.rounds != 0) continue;
    if (flow.kind == FlowKind::barrier) {
      add_barrier(steps, from, to, edges);
    } else {
      edges.emplace_back(from, to);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

/// The longest way to each step.
void level(Steps& steps, const Edges& edges) {
  const size_t n = steps.steps.size();
  std::vector<uint32_t> first(n + 1), missing(n);
  for (const auto& [from, to] : edges) {
    ++first[from + 1];
    ++missing[to];
  }
  for (size_t i = 0; i < n; ++i) first[i + 1] += first[i];
  std::queue<uint32_t> ready;
  std::vector<bool> done(n);
  const auto take = [&](uint32_t s) {
    done[s] = true;
    ready.push(s);
  };
  for (uint32_t s = 0; s < n; ++s) {
    if (missing[s] == 0) take(s);
  }
  for (uint32_t next = 0;;) {
    while (!ready.empty()) {
      const uint32_t s = ready.front();
      ready.pop();
      for (uint32_t e = first[s]; e < first[s + 1]; ++e) {
        const uint32_t to = edges[e].second;
        if (done[to]) continue;
        steps.steps[to].level = std::max(steps.steps[to].level, steps.steps[s].level + 1);
        if (--missing[to] == 0) take(to);
      }
    }
    while (next < n && done[next]) ++next;
    if (next == n) return;
    take(next);  // a circle
  }
}

}  // namespace

Steps make_steps(const Program& program, const std::vector<Flow>& flows) {
  Steps steps;
  Cutter cutter(program, steps);
  for (uint32_t r = 0; r < program.ranks.size(); ++r) cutter.cut(r);
  steps.first_block.push_back(static_cast<uint32_t>(steps.blocks.size()));
  level(steps, edges_of(steps, flows));
  return steps;
}

}  // namespace mscclc::draw
