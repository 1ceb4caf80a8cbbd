#include "tools/bench/results/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

namespace mscclc::bench {
namespace {

using Json = nlohmann::ordered_json;

// What a file may say: beyond these, tables and plots would be of no use.
constexpr double kLeastTime = 1e-6, kMostTime = 1e12;  // microseconds

// Three decimals of a microsecond are a nanosecond.
double rounded(double value) { return std::round(value * 1000) / 1000; }

Json times_json(const Result& r, const std::optional<Times>& t) {
  if (!t) return nullptr;
  const double bandwidth = gigabytes_per_second(r.bytes, t->time);
  Json json = {{"time", rounded(t->time)},
               {"p50", rounded(t->p50)},
               {"p99", rounded(t->p99)},
               {"algbw", rounded(bandwidth)},
               {"busbw", rounded(bandwidth * r.bus_factor)}};
  if (t->between != 0) json["between"] = rounded(t->between);
  if (t->between_early != 0) json["between_early"] = rounded(t->between_early);
  json["wrong"] = t->checked ? Json(t->wrong) : Json(nullptr);
  return json;
}

void require(bool good, const std::string& why) {
  if (!good) throw std::invalid_argument(why);
}

/// A word that names of files are made of.
std::string read_word(const Json& json, const char* key) {
  auto word = json.at(key).get<std::string>();
  const bool plain = std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  require(plain, fmt::format("'{}' is no word", key));
  return word;
}

uint64_t read_number(const Json& json, const char* key, uint64_t most) {
  const auto number = json.at(key).get<uint64_t>();
  require(number <= most, fmt::format("'{}' is beyond {}", key, most));
  return number;
}

std::optional<Times> read_times(const Json& json) {
  if (json.is_null()) return std::nullopt;
  Times t;
  t.time = json.at("time").get<double>();
  require(t.time == 0 || (t.time >= kLeastTime && t.time <= kMostTime),
          "'time' is no time of a call");
  t.p50 = json.value("p50", 0.0);
  t.p99 = json.value("p99", 0.0);
  t.between = json.value("between", 0.0);
  t.between_early = json.value("between_early", 0.0);
  t.checked = json.contains("wrong") && !json.at("wrong").is_null();
  if (t.checked) t.wrong = json.at("wrong").get<uint64_t>();
  return t;
}

Result read_result(const Json& json) {
  Result r;
  r.collective = read_word(json, "collective");
  r.dtype = read_word(json, "type");
  r.op = read_word(json, "redop");
  r.root = json.value("root", int64_t{-1});
  r.mode = read_word(json, "mode");
  r.bytes = read_number(json, "size", kMostBytes);
  r.count = json.at("count").get<uint64_t>();
  r.offset = json.value("offset", uint64_t{0});
  r.ranks = static_cast<uint32_t>(read_number(json, "ranks", 0xffffffff));
  r.who = json.at("who").get<std::string>();
  r.ordered_by = json.value("ordered_by", std::string());
  r.between = json.value("between", std::string());
  r.bus_factor = json.at("bus_factor").get<double>();
  r.out_of_place = read_times(json.value("out_of_place", Json(nullptr)));
  r.in_place = read_times(json.value("in_place", Json(nullptr)));
  const auto role = find_role(json.at("role").get<std::string>());
  require(role.has_value(), "unknown role");
  r.role = *role;
  return r;
}

void read_line(const Json& json, Record& record) {
  if (json.contains("machine")) {
    record.machine = json.at("machine").get<std::string>();
  } else if (json.contains("left_out")) {
    record.left_out.push_back({json.at("left_out").get<std::string>(),
                               json.value("collective", std::string()),
                               json.at("why").get<std::string>()});
  } else if (json.contains("start_up")) {
    record.start_up.push_back({json.at("start_up").get<std::string>(), json.value("ms", 0.0),
                               json.value("bytes", uint64_t{0})});
  } else {
    record.results.push_back(read_result(json));
  }
}

std::string line(const Json& json) {
  // Text of libraries need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string machine_line(const std::string& machine) { return line({{"machine", machine}}); }

std::string result_line(const Result& r) {
  Json json = {{"collective", r.collective},
               {"type", r.dtype},
               {"redop", r.op},
               {"root", r.root},
               {"mode", r.mode},
               {"size", r.bytes},
               {"count", r.count},
               {"offset", r.offset},
               {"ranks", r.ranks},
               {"who", r.who},
               {"role", name(r.role)},
               {"ordered_by", r.ordered_by},
               {"bus_factor", r.bus_factor}};
  if (!r.between.empty()) json["between"] = r.between;
  json["out_of_place"] = times_json(r, r.out_of_place);
  json["in_place"] = times_json(r, r.in_place);
  return line(json);
}

std::string left_out_line(const LeftOut& l) {
  return line({{"left_out", l.who}, {"collective", l.collective}, {"why", l.why}});
}

std::string start_up_line(const StartUp& s) {
  return line({{"start_up", s.what}, {"ms", rounded(s.milliseconds)}, {"bytes", s.bytes}});
}

bool read_record(std::string_view text, const std::string& name, Record& record,
                 Diagnostics& diagnostics) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      read_line(Json::parse(one), record);
    } catch (const std::exception& e) {
      diagnostics.error("bad-record", {}, fmt::format("{}:{}: {}", name, number, e.what()));
      return false;
    }
  }
  return true;
}

}  // namespace mscclc::bench
