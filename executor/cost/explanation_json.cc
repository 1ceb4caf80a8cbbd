// An explanation as JSON for programs.
#include <cmath>
#include <nlohmann/json.hpp>

#include "executor/cost/explanation.h"

namespace mscclc::cost {
namespace {

using Json = nlohmann::ordered_json;

/// Nanoseconds are enough.
double rounded(double us) { return std::round(us * 1e3) / 1e3; }

Json path_json(const Explanation& e) {
  Json out = Json::array();
  for (const PathLine& line : e.path) {
    Json part = {{"cause", kCauseNames[static_cast<size_t>(line.cause)]},
                 {"begin_us", rounded(line.begin_us)},
                 {"us", rounded(line.end_us - line.begin_us)}};
    if (!line.op.empty()) {
      part["rank"] = line.rank;
      part["block"] = line.block;
      part["op"] = line.op;
      part["place"] = line.place;
      part["times"] = line.times;
    }
    out.push_back(std::move(part));
  }
  return out;
}

Json traffic_json(const Explanation& e) {
  Json out = Json::array();
  for (const TrafficLine& line : e.traffic) {
    Json row = {{"link", line.link}, {"bytes", line.bytes}};
    if (line.least) row["least"] = *line.least;
    out.push_back(std::move(row));
  }
  return out;
}

Json causes_json(const Explanation& e) {
  Json out = Json::object();
  for (size_t c = 0; c < kCauses; ++c) out[std::string(kCauseNames[c])] = rounded(e.causes_us[c]);
  return out;
}

}  // namespace

std::string explanation_json(const Explanation& e) {
  Json out = {{"name", e.name},
              {"description", e.description},
              {"collective", e.collective},
              {"ranks", e.ranks},
              {"bytes", e.bytes},
              {"dtype", e.dtype},
              {"machine", e.machine},
              {"origin", e.measured ? "measured" : "published"},
              {"us", rounded(e.us)},
              {"alone_us", rounded(e.alone_us)},
              {"bound_us", rounded(e.bound.ns / 1e3)},
              {"hops", e.hops},
              {"least_hops", e.bound.hops},
              {"limit", kCauseNames[static_cast<size_t>(e.limit())]},
              {"causes_us", causes_json(e)},
              {"blocks", e.blocks},
              {"threads", e.threads},
              {"scratch_bytes", e.scratch_bytes},
              {"traffic", traffic_json(e)},
              {"path", path_json(e)}};
  if (e.columns != 0) {
    out["rows"] = e.rows;
    out["columns"] = e.columns;
  }
  if (!e.from_table.empty()) out["from_table"] = e.from_table;
  if (e.asked_bytes) out["asked_bytes"] = *e.asked_bytes;
  if (!e.why_nothing.empty()) out["nothing_launched"] = e.why_nothing;
  if (e.not_proved) {
    out["proved"] = e.not_proved->empty();
    if (!e.not_proved->empty()) out["not_proved"] = *e.not_proved;
  }
  Json syncs = Json::array(), passes = Json::array(), choices = Json::array();
  for (const SyncLine& s : e.syncs) {
    syncs.push_back({{"op", s.op}, {"place", s.place}, {"count", s.count}, {"why", s.why}});
  }
  for (const PassLine& p : e.passes) {
    passes.push_back({{"pass", p.pass}, {"place", p.place}, {"did", p.did}});
  }
  for (const ChoiceLine& c : e.choices) {
    choices.push_back({{"plan", c.plan}, {"us", rounded(c.us)}, {"picked", c.picked}});
  }
  out["syncs"] = std::move(syncs);
  out["passes"] = std::move(passes);
  if (!e.why_picked.empty()) out["why_picked"] = e.why_picked;
  out["choices"] = std::move(choices);
  return out.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace mscclc::cost
