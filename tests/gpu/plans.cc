// Plans on GPUs against the collective's definition.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "plans/plan_json.h"
#include "tests/gpu/stage.h"
#include "tests/library/library.h"

namespace mscclc::testing {
namespace {

constexpr uint64_t kMostBytes = 1 << 20;
constexpr uint32_t kIterations = 3;

/// A plan with what may be asked of it.
struct Case {
  std::string name;
  std::shared_ptr<const Program> plan;
  std::vector<Dtype> dtypes;
  std::vector<ReduceOp> ops;
  std::vector<bool> in_place;
};

struct Counts {
  uint64_t runs = 0, calls = 0;
};

bool holds_sentinels(const Program& plan) {
  for (const Rank& rank : plan.ranks) {
    for (const Buffer& buffer : rank.buffers) {
      if (buffer.packets == PacketFormat::sentinel) return true;
    }
  }
  return false;
}

void add_library(const StageOptions& options, std::vector<Case>& cases) {
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : entry.worlds) {
      const bool fits = std::ranges::any_of(defines, [&](const auto& d) {
        return (d.first == "R" || d.first == "world") && d.second == std::to_string(options.ranks);
      });
      const std::string name = fmt::format("{} {}", entry.name, mscclc::text(defines));
      if (!fits || name.find(options.filter) == std::string::npos) continue;
      const CompiledWorld world(entry.name, defines);
      if (!world.errors().empty() || world.program().ranks.size() != options.ranks) continue;
      cases.push_back({name, std::make_shared<const Program>(world.program()), world.dtypes(),
                       world.reductions(), world.in_place()});
    }
  }
}

void add_peers(const StageOptions& options, std::vector<Case>& cases) {
  for (const auto& file : std::filesystem::directory_iterator("tests/peer_plans")) {
    const std::string name = file.path().filename();
    if (file.path().extension() != ".json" || name.find(options.filter) == std::string::npos) {
      continue;
    }
    std::ostringstream json;
    json << std::ifstream(file.path()).rdbuf();
    Diagnostics diagnostics;
    auto plan = read_plan(json.str(), name, diagnostics);
    if (!plan || plan->ranks.size() != options.ranks) continue;
    std::vector<bool> in_place{plan->contract.in_place == InPlace::yes};
    cases.push_back({name,
                     std::make_shared<const Program>(std::move(*plan)),
                     {Dtype::f32, Dtype::f16, Dtype::i32},
                     {ReduceOp::sum},
                     std::move(in_place)});
  }
}

std::string run_case(Communicator& communicator, const Case& c, bool zero_copy, uint32_t element,
                     Counts& counts) {
  Diagnostics diagnostics;
  const auto usable = std::ranges::find_if(
      c.dtypes, [&](Dtype t) { return element == 0 || info(t).bytes == element; });
  if (usable == c.dtypes.end()) return "";
  const uint64_t shift = 16 * (communicator.rank() + 1);
  RankRunner runner(communicator, c.plan,
                    {.load = {.max_bytes = kMostBytes, .dtype = *usable, .zero_copy = zero_copy},
                     .input_offset = zero_copy ? shift + 4 : 0,
                     .output_offset = zero_copy ? 2 * shift + 8 : 0});
  if (!runner.load(diagnostics)) return text(diagnostics);
  size_t op = 0;
  for (const Dtype dtype : c.dtypes) {
    if (element != 0 && info(dtype).bytes != element) continue;
    for (const bool in_place : c.in_place) {
      for (const RunSize& size : run_sizes()) {
        const Contract& contract = c.plan->contract;
        const uint64_t bytes =
            size.elements == 0
                ? size.bytes
                : Chunking(contract, size.elements * info(dtype).bytes, c.plan->launch.align)
                      .message_bytes();
        const uint64_t part = Chunking::part_for_message(contract, bytes, info(dtype).bytes);
        if (bytes > kMostBytes ||
            (contract.even_only && !Chunking(contract, part, c.plan->launch.align).even())) {
          continue;
        }
        const RunSpec spec{.bytes = bytes,
                           .dtype = dtype,
                           .op = c.ops[op++ % c.ops.size()],
                           .in_place = in_place,
                           .iterations = kIterations};
        const RankResult result = runner.run(spec, diagnostics);
        ++counts.runs;
        counts.calls += kIterations;
        if (result.run.status != RunStatus::right) {
          return fmt::format("{}{}: {} wrong\n{}", mscclc::text(spec),
                             zero_copy ? ", zero copy" : "", result.run.wrong, text(diagnostics));
        }
      }
    }
  }
  return "";
}

/// A case that fails leaves a communicator that nobody can use, so each has its own ranks.
bool run_alone(const StageOptions& options, const Case& c) {
  const bool sentinels = holds_sentinels(*c.plan);
  const std::string fault = run_ranks(options, [&](Communicator& communicator) -> std::string {
    Counts counts;
    for (const bool zero_copy : {false, true}) {
      for (const uint32_t element :
           sentinels ? std::vector<uint32_t>{1, 2, 4, 8} : std::vector<uint32_t>{0}) {
        std::string fault = run_case(communicator, c, zero_copy, element, counts);
        if (!fault.empty()) return fault;
      }
    }
    if (communicator.rank() == 0) {
      fmt::print("{}: {} runs, {} calls, right\n", c.name, counts.runs, counts.calls);
      std::fflush(stdout);
    }
    return "";
  });
  if (!fault.empty()) fmt::print("{}: FAILED\n{}\n", c.name, fault);
  std::fflush(stdout);
  return fault.empty();
}

}  // namespace

bool check_plans(const StageOptions& options) {
  std::vector<Case> cases;
  add_library(options, cases);
  add_peers(options, cases);
  const auto right =
      std::ranges::count_if(cases, [&](const Case& c) { return run_alone(options, c); });
  fmt::print("plans at {} ranks: {} right, {} wrong\n", options.ranks, right,
             static_cast<int64_t>(cases.size()) - right);
  return right == static_cast<int64_t>(cases.size());
}

}  // namespace mscclc::testing
