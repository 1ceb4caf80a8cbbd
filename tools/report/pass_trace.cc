#include "tools/report/pass_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/print/print.h"

namespace mscclc {
namespace {

/// The lines of all locations of an op: "12, 14" in ascending order.
std::set<uint32_t> lines_of(const Program& program, const Op& op) {
  std::set<uint32_t> lines;
  for (uint32_t i = 0; i < op.locations.count; ++i) {
    lines.insert(program.sites[program.locations.at(op.locations.first + i)->site].line);
  }
  return lines;
}

std::string places_text(const std::set<uint32_t>& lines) {
  return lines.empty() ? "" : fmt::format("{}", fmt::join(lines, ", "));
}

/// "line 12", "lines 12, 14"
std::string line_text(const std::string& places) {
  if (places.empty()) return "";
  return (places.find(',') == std::string::npos ? "line " : "lines ") + places;
}

/// Is every line of `part` one of `whole`?
bool within(const std::string& part, const std::string& whole) {
  return !part.empty() && part != whole &&
         (", " + whole + ",").find(", " + part + ",") != std::string::npos;
}

}  // namespace

PassTrace::State PassTrace::state_of(const Program& program) {
  State state;
  for (uint32_t r = 0; r < std::min(program.ranks.size(), kMaxRanks); ++r) {
    for (const Op& op : program.ranks[r].ops) {
      const std::string places = places_text(lines_of(program, op));
      ++state.counts[{places, std::string(info(op.kind).name)}];
      if (r != 0) continue;  // the order at one rank says enough
      const std::string text = print_op(program, r, op);
      const uint64_t hash = std::hash<std::string>()(text + "@" + places);
      const std::string where = op.block == kNone ? "" : fmt::format("tb {}", op.block);
      state.order[where].push_back(hash);
      state.place[hash] = places;
    }
  }
  return state;
}

void PassTrace::follow(PassOptions& options) {
  options.context = this;
  options.before = [](const PassInfo&, const Program& program, void* context) {
    auto& trace = *static_cast<PassTrace*>(context);
    if (!trace.begun_) trace.before_ = state_of(program);
    trace.begun_ = true;
  };
  options.after = [](const PassInfo& pass, const Program& program, void* context) {
    auto& trace = *static_cast<PassTrace*>(context);
    State after = state_of(program);
    trace.compare(pass.name, trace.before_, after);
    trace.compare_order(pass.name, trace.before_, after);
    trace.before_ = std::move(after);
  };
}

void PassTrace::compare(std::string_view pass, const State& before, const State& after) {
  const auto count = [](const State& state, const Key& key) {
    const auto at = state.counts.find(key);
    return at == state.counts.end() ? uint64_t{0} : at->second;
  };
  std::set<Key> keys, joined;
  for (const auto& [key, n] : before.counts) keys.insert(key);
  for (const auto& [key, n] : after.counts) keys.insert(key);
  const auto add = [&](const Key& key, std::string did) {
    lines_.push_back({std::string(pass), line_text(key.first), std::move(did)});
  };
  // What is new and has the lines of several ops has been joined from them.
  for (const Key& key : keys) {
    if (count(after, key) <= count(before, key)) continue;
    std::vector<std::string> parts;
    for (const Key& part : keys) {
      const bool fewer = count(after, part) < count(before, part);
      if (!fewer || (!within(part.first, key.first) && part.first != key.first)) continue;
      parts.push_back(part.second);
      joined.insert(part);
    }
    if (parts.empty()) continue;
    joined.insert(key);
    add(key, fmt::format("joined {} into '{}' ({})", fmt::join(parts, " and "), key.second,
                         count(after, key) - count(before, key)));
  }
  for (const Key& key : keys) {
    const uint64_t was = count(before, key), is = count(after, key);
    if (was == is || joined.contains(key)) continue;
    if (is == 0) {
      add(key, fmt::format("dropped '{}' ({})", key.second, was));
    } else if (was == 0) {
      add(key, fmt::format("added '{}' ({})", key.second, is));
    } else if (is > was) {
      add(key, fmt::format("wrote out '{}': {} for {}", key.second, is, was));
    } else {
      add(key, fmt::format("joined '{}' with its like: {} for {}", key.second, is, was));
    }
  }
}

/// Ops that came after another one of their block, and now come before it.
void PassTrace::compare_order(std::string_view pass, const State& before, const State& after) {
  std::map<std::string, uint64_t> moved;
  for (const auto& [block, ops] : after.order) {
    const auto at = before.order.find(block);
    if (at == before.order.end()) continue;
    std::unordered_map<uint64_t, size_t> was;
    for (size_t i = 0; i < at->second.size(); ++i) was[at->second[i]] = i;
    size_t latest = 0;
    for (const uint64_t op : ops) {
      const auto place = was.find(op);
      if (place == was.end()) continue;
      if (place->second < latest) ++moved[after.place.at(op)];
      latest = std::max(latest, place->second);
    }
  }
  for (const auto& [places, n] : moved) {
    lines_.push_back(
        {std::string(pass), line_text(places), fmt::format("moved ({} at rank 0)", n)});
  }
}

}  // namespace mscclc
