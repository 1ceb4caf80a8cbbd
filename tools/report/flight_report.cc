#include "tools/report/flight_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/diagnostics/printable.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/flight_file.h"
#include "tools/report/record_reader.h"

namespace mscclc {
namespace {

using Json = nlohmann::json;

/// A path, whole: to be found it must be known.
std::string in_quotes(const std::string& path) { return mscclc::quoted(path, path.size()); }

constexpr uint64_t kMax = ~uint64_t{0};
constexpr uint64_t kMaxExecutable = 0xffffffff;

struct Plan {
  std::string name, collective;
};

void read_calls(const Json& root, RecordReader& reader, RankFlight& flight) {
  std::map<uint64_t, Plan> plans;
  for (const Json& plan : reader.list(root, "plans")) {
    plans[reader.number(plan, "executable", kMaxExecutable)] = {reader.text(plan, "name"),
                                                                reader.text(plan, "collective")};
  }
  for (const Json& call : reader.list(root, "calls")) {
    const auto executable =
        static_cast<uint32_t>(reader.number(call, "executable", kMaxExecutable));
    const Plan& plan = plans[executable];
    RankFlight::FlightCall made{.collective = plan.collective,
                                .dtype = reader.text(call, "dtype"),
                                .op = reader.text(call, "op"),
                                .plan = plan.name,
                                .bytes = reader.number(call, "bytes", kMax)};
    made.ended = call.is_object() && call.contains("ended_us") && call["ended_us"].is_number();
    flight.executables[executable][reader.number(call, "call", kMax)] = std::move(made);
  }
}

std::string call_text(const RankFlight::FlightCall& call) {
  return fmt::format("{} of {} bytes, {}, {} ('{}')", call.collective, call.bytes, call.dtype,
                     call.op, call.plan);
}

std::string ranks_text(const std::vector<uint32_t>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

/// The last call of an executable that a rank has launched; 0: none that its file has.
uint64_t last_call(const RankFlight& flight, uint32_t executable) {
  const auto found = flight.executables.find(executable);
  return found == flight.executables.end() ? 0 : found->second.rbegin()->first;
}

const RankFlight::FlightCall* find_call(const RankFlight& flight, uint32_t executable,
                                        uint64_t number) {
  const auto calls = flight.executables.find(executable);
  if (calls == flight.executables.end()) return nullptr;
  const auto call = calls->second.find(number);
  return call == calls->second.end() ? nullptr : &call->second;
}

/// Files have a rank's latest calls; others it may have launched, too.
bool has_lost_calls(const RankFlight& flight) {
  uint64_t calls = 0;
  for (const auto& [executable, of] : flight.executables) calls += of.size();
  return calls < flight.launched;
}

/// What the ranks' files say together.
class Report {
 public:
  explicit Report(const std::vector<RankFlight>& ranks) : ranks_(ranks) {}

  std::string text() {
    heading();
    std::set<uint32_t> executables;
    for (const RankFlight& r : ranks_) {
      for (const auto& [executable, calls] : r.executables) executables.insert(executable);
    }
    for (const uint32_t executable : executables) {
      lag(executable);
      differing(executable);
    }
    if (lagging_.empty()) out_ += "lagging: no rank has launched fewer calls than another\n";
    if (!differs_) out_ += "calls: those that the files have are the same on all ranks\n";
    waits();
    verdict();
    return out_;
  }

 private:
  void heading() {
    out_ += fmt::format("files of {} of {} ranks\n", ranks_.size(), ranks_[0].size);
    std::vector<uint32_t> missing;
    for (uint32_t r = 0, i = 0; r < ranks_[0].size; ++r) {
      if (i < ranks_.size() && ranks_[i].rank == r) {
        ++i;
      } else {
        missing.push_back(r);
      }
    }
    if (!missing.empty()) out_ += fmt::format("no file: {}\n", ranks_text(missing));
    for (const RankFlight& r : ranks_) {
      out_ += fmt::format("rank {} on {}: {} calls; {}: {}\n", r.rank, r.host, r.launched, r.code,
                          r.reason);
    }
  }

  void lag(uint32_t executable) {
    const auto ahead = std::max_element(
        ranks_.begin(), ranks_.end(), [&](const RankFlight& a, const RankFlight& b) {
          return last_call(a, executable) < last_call(b, executable);
        });
    const uint64_t most = last_call(*ahead, executable);
    for (const RankFlight& r : ranks_) {
      const uint64_t last = last_call(r, executable);
      if (last == most || (last == 0 && has_lost_calls(r))) continue;
      lagging_.insert(r.rank);
      const RankFlight::FlightCall* next = find_call(*ahead, executable, last + 1);
      out_ += fmt::format(
          "lagging: rank {} has launched {} calls of executable {}, rank {} {}{}\n", r.rank, last,
          executable, ahead->rank, most,
          next == nullptr ? "" : fmt::format("; call {} is {}", last + 1, call_text(*next)));
    }
  }

  /// The first call of an executable that is another one on another rank.
  void differing(uint32_t executable) {
    std::map<uint64_t, const RankFlight*> first;
    for (const RankFlight& r : ranks_) {
      const auto calls = r.executables.find(executable);
      if (calls == r.executables.end()) continue;
      for (const auto& [number, call] : calls->second) {
        const auto [known, added] = first.emplace(number, &r);
        const RankFlight::FlightCall* other = find_call(*known->second, executable, number);
        if (added || *other == call) continue;
        out_ += fmt::format("differs: call {} of executable {} is {} on rank {}, {} on rank {}\n",
                            number, executable, call_text(*other), known->second->rank,
                            call_text(call), r.rank);
        differs_ = true;
        return;
      }
    }
  }

  void waits() {
    for (const RankFlight& r : ranks_) {
      if (!r.awaited.empty()) {
        out_ += fmt::format("waits: rank {} for {}\n", r.rank, ranks_text(r.awaited));
      }
      for (const std::string& wait : r.waits) out_ += fmt::format("  {}\n", wait);
    }
  }

  /// The ranks that are waited for and wait for none, or have no file.
  void verdict() {
    std::set<uint32_t> awaited, waiting;
    for (const RankFlight& r : ranks_) {
      awaited.insert(r.awaited.begin(), r.awaited.end());
      if (!r.awaited.empty()) waiting.insert(r.rank);
    }
    std::vector<uint32_t> roots;
    std::set_difference(awaited.begin(), awaited.end(), waiting.begin(), waiting.end(),
                        std::back_inserter(roots));
    if (!roots.empty()) {
      out_ += fmt::format("first: others wait for {}, and {} for none\n", ranks_text(roots),
                          roots.size() == 1 ? "it waits" : "they wait");
    } else if (!waiting.empty()) {
      out_ += "first: ranks wait for each other in a circle\n";
    }
  }

  const std::vector<RankFlight>& ranks_;
  std::set<uint32_t> lagging_;
  bool differs_ = false;
  std::string out_;
};

}  // namespace

std::optional<RankFlight> read_flight(std::string_view json, const std::string& name,
                                      Diagnostics& diagnostics) {
  const Json root = Json::parse(json, nullptr, false);
  RecordReader reader;
  RankFlight flight;
  flight.file = name;
  if (reader.opens(root, "mscclc_flight", kFlightVersion)) {
    flight.rank = static_cast<uint32_t>(reader.number(root, "rank", RecordReader::kMaxRank));
    flight.size = static_cast<uint32_t>(reader.number(root, "size", RecordReader::kMaxRank + 1));
    flight.host = reader.text(root, "host");
    flight.code = reader.text(root, "code");
    flight.reason = reader.text(root, "reason");
    flight.launched = reader.number(root, "launched", kMax);
    for (const Json& wait : reader.list(root, "waits")) flight.waits.push_back(reader.item(wait));
    for (const Json& r : reader.list(root, "awaited")) flight.awaited.push_back(reader.rank(r));
    read_calls(root, reader, flight);
    if (flight.rank >= flight.size) reader.fail("'rank' is not less than 'size'");
  }
  if (reader.error().empty()) return flight;
  diagnostics.error("not-a-flight", {},
                    fmt::format("{} is not a record of a rank's last calls: {}", in_quotes(name),
                                reader.error()));
  return std::nullopt;
}

std::optional<std::string> report_flights(std::vector<RankFlight> ranks, Diagnostics& diagnostics) {
  std::sort(ranks.begin(), ranks.end(),
            [](const RankFlight& a, const RankFlight& b) { return a.rank < b.rank; });
  for (size_t i = 1; i < ranks.size(); ++i) {
    const bool twice = ranks[i].rank == ranks[i - 1].rank;
    if (!twice && ranks[i].size == ranks[i - 1].size) continue;
    diagnostics.error(
        "flights-differ", {},
        twice ? fmt::format("{} and {} are both of rank {}", in_quotes(ranks[i - 1].file),
                            in_quotes(ranks[i].file), ranks[i].rank)
              : fmt::format("{} is from a job of {} ranks, {} from one of {}",
                            in_quotes(ranks[i - 1].file), ranks[i - 1].size,
                            in_quotes(ranks[i].file), ranks[i].size));
    return std::nullopt;
  }
  return ranks.empty() ? "" : Report(ranks).text();
}

}  // namespace mscclc
