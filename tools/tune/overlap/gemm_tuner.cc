#include "tools/tune/overlap/gemm_tuner.h"

#include <algorithm>

#include "ir/diagnostics/first_message.h"
#include "tools/measure/turns.h"

namespace mscclc::tune {
namespace {

/// What takes up to so many times the fastest is timed in turn with it.
constexpr double kClose = 1.1;

/// Ways take several turns.
void add_once(std::vector<std::string>& list, const std::string& what) {
  if (std::ranges::find(list, what) == list.end()) list.push_back(what);
}

}  // namespace

/// A way that is timed again and again.
struct GemmTuner::WayTurn {
  GemmTime& of;
  std::vector<double> ns = {};  ///< of those passes that were good
};

double GemmResult::serial_ns() const {
  const bool timed = !times.empty() && times.front().way.backend == overlap::kSerial;
  return timed ? times.front().ns : 0;
}

/// Nanoseconds; 0: it was not right, or could not be timed, which the result says. nullopt: it
/// hangs, and nothing more can be timed.
std::optional<double> GemmTuner::try_out(GemmResult& result, const GemmWay& way) {
  Diagnostics why;
  const auto taken = timer_.time(in_way(result.shape, way), result.mode, why);
  if (timer_.broken()) {
    hung_.emplace_back(way, first_message(why, "a rank was lost"));
    return std::nullopt;
  }
  if (!taken) {
    add_once(result.left_out, text_of(way) + ": " + first_message(why, "it could not be timed"));
    return 0;
  }
  if (taken->wrong > 0) add_once(result.wrong, text_of(way));
  return taken->wrong > 0 ? 0 : taken->ns;
}

bool GemmTuner::try_all(GemmResult& result) {
  overlap::ChoiceFacts facts = facts_;
  facts.mode = result.mode;
  GemmWays found = ways_of(result.shape, facts);
  result.left_out = std::move(found.left_out);
  for (const GemmWay& way : found.ways) {
    if (const auto hung = std::ranges::find(hung_, way, &HungWays::value_type::first);
        hung != hung_.end()) {
      result.left_out.push_back(text_of(way) + ": it hung or lost a rank: " + hung->second);
      continue;
    }
    const auto ns = try_out(result, way);
    if (!ns) return false;
    if (*ns > 0) result.times.push_back({way, *ns});
  }
  return true;
}

/// So that what disturbs the machine disturbs all of them alike.
bool GemmTuner::take_turns(GemmResult& result, std::vector<WayTurn>& turns) {
  for (WayTurn& turn : turns) turn.ns.clear();
  for (uint32_t pass = 0; pass < kComparisons; ++pass) {
    for (WayTurn& turn : turns) {
      const auto ns = try_out(result, turn.of.way);
      if (!ns) return false;
      if (*ns > 0) turn.ns.push_back(*ns);
    }
  }
  for (WayTurn& turn : turns) {
    if (!turn.ns.empty()) turn.of.ns = median(turn.ns);
  }
  return true;
}

/// Adds those that are about as fast as the fastest, and have not been timed in turn. False: there
/// are none.
bool GemmTuner::add_close(GemmResult& result, std::vector<WayTurn>& turns) {
  const double least = std::ranges::min(result.times, {}, &GemmTime::ns).ns;
  const size_t before = turns.size();
  for (GemmTime& time : result.times) {
    const bool there = std::ranges::any_of(turns, [&](const WayTurn& t) { return &t.of == &time; });
    if (!there && time.ns <= kClose * least) turns.push_back({time});
  }
  return turns.size() > before;
}

/// Of many, the fastest was also lucky: where it was no more than that, others are as fast.
bool GemmTuner::compare(GemmResult& result) {
  if (result.serial_ns() == 0) return true;
  std::vector<WayTurn> turns = {{result.times.front()}};
  while (add_close(result, turns)) {
    if (!take_turns(result, turns)) return false;
  }
  result.best = result.times.front();
  for (const WayTurn& turn : turns) {
    const bool relied_on = turn.ns.size() == kComparisons;
    const bool faster = turn.of.ns <= result.serial_ns() * (1 - kGain);
    if (relied_on && faster && turn.of.ns < result.best.ns) result.best = turn.of;
  }
  return true;
}

std::optional<GemmResult> GemmTuner::tune(const OverlapConfig& shape, overlap::RunMode mode) {
  GemmResult result{.shape = shape, .ranks = facts_.ranks, .mode = mode};
  if (!try_all(result) || !compare(result)) return std::nullopt;
  return result;
}

}  // namespace mscclc::tune
