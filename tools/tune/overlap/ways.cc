#include "tools/tune/overlap/ways.h"

#include "ir/diagnostics/first_message.h"

namespace mscclc::tune {
namespace {

using namespace overlap;

constexpr uint32_t kChunks[] = {1, 2, 4};
/// Of plans whose thread blocks carry; copies by copy engines need one.
constexpr uint32_t kBudgets[] = {8, 16, 32};

/// Those that the process has, and the device may have room for.
std::vector<GemmWay> all_ways(const OverlapConfig& shape, const ChoiceFacts& facts) {
  std::vector<GemmWay> all = {{kSerial}};
  if (facts.nccl.empty()) all.push_back({kNccl});
  for (const uint32_t chunks : kChunks) all.push_back({kCopyEngine, chunks, 1});
  const uint32_t most = most_budget(facts.multiprocessors);
  for (const uint32_t chunks : kChunks) {
    for (const uint32_t budget : kBudgets) {
      const bool room = most == 0 || budget <= most;
      if (room && least_blocks(shape.kind, kFlagged, chunks) <= budget) {
        all.push_back({kFlagged, chunks, budget});
      }
    }
  }
  return all;
}

}  // namespace

std::string text_of(const GemmWay& way) {
  return overlap::text_of(
      {.backend = std::string(way.backend), .chunks = way.chunks, .budget = way.budget, .why = ""});
}

OverlapConfig in_way(const OverlapConfig& shape, const GemmWay& way) {
  OverlapConfig config = shape;
  config.backend = way.backend;
  config.chunks = way.chunks;
  config.budget = way.budget;
  return config;
}

GemmWays ways_of(const OverlapConfig& shape, const ChoiceFacts& facts) {
  GemmWays found;
  for (const GemmWay& way : all_ways(shape, facts)) {
    Diagnostics why;
    if (choose(in_way(shape, way), facts, why)) {
      found.ways.push_back(way);
    } else {
      found.left_out.push_back(text_of(way) + ": " + first_message(why));
    }
  }
  return found;
}

}  // namespace mscclc::tune
