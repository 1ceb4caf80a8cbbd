// Reads schedules: every key is checked against the plan before anything is run.
#include <fmt/format.h>

#include <array>

#include "executor/host/schedule.h"
#include "plans/json/json_read.h"

namespace mscclc {
namespace {

constexpr uint64_t kMostCalls = 1000, kMostHolds = 1000;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;

/// The members of an object by their names, which are few.
template <size_t N>
class Fields {
 public:
  explicit Fields(const std::array<std::string_view, N>& names) : names_(names) {}
  /// The first `required` names must be there, the others may.
  bool read(const JsonReader& json, NodeId object, size_t required) {
    nodes_.fill(kNoNode);
    if (!json.expect(object, JsonType::object)) return false;
    for (NodeId m = json.first(object); m != json.end(object); m = json.next(m)) {
      const std::string_view name = json.tape().text(json.tape()[m].key);
      const size_t i = find(name);
      if (i == N) return json.fail(object, "unknown-key", fmt::format("unknown key '{}'", name));
      nodes_[i] = m;
    }
    for (size_t i = 0; i < required; ++i) {
      if (nodes_[i] != kNoNode) continue;
      return json.fail(object, "missing-key", fmt::format("key '{}' is missing", names_[i]));
    }
    return true;
  }
  NodeId operator[](std::string_view name) const { return nodes_[find(name)]; }

 private:
  size_t find(std::string_view name) const {
    size_t i = 0;
    while (i < N && names_[i] != name) ++i;
    return i;
  }
  const std::array<std::string_view, N> names_;
  std::array<NodeId, N> nodes_;
};

class ScheduleReader {
 public:
  ScheduleReader(const JsonReader& json, const Program& program) : json_(json), program_(program) {}

  bool read(Schedule& out) {
    Fields<10> f(
        {"schema", "plan", "bytes", "dtype", "op", "in_place", "calls", "lanes", "seed", "holds"});
    if (!f.read(json_, 0, 10) || !read_schema(f["schema"]) || !read_plan(f["plan"], out)) {
      return false;
    }
    Adversary& adversary = out.spec.adversary.emplace();
    bool& in_place = out.spec.in_place.emplace();
    return json_.number(f["bytes"], out.spec.bytes, kMostBytes) &&
           read_dtype(f["dtype"], out.spec.dtype) && read_reduction(f["op"], out.spec.op) &&
           json_.boolean(f["in_place"], in_place) &&
           read_count(f["calls"], out.spec.iterations, kMostCalls) &&
           read_count(f["lanes"], adversary.lanes, Adversary::kMostLanes) &&
           json_.u64(f["seed"], out.spec.schedule_seed) && read_holds(f["holds"], out.spec);
  }

 private:
  bool read_schema(NodeId node) const {
    uint64_t schema = 0;
    return json_.u64(node, schema) &&
           (schema == 1 ||
            json_.fail(node, fmt::format("schema {} is unknown; expected 1", schema)));
  }

  bool read_plan(NodeId node, Schedule& out) const {
    std::string_view said;
    if (!json_.string(node, said)) return false;
    out.plan = plan_hash(program_);
    return said == out.plan ||
           json_.fail(node, "schedule-plan",
                      fmt::format("the schedule is for another plan; this one's is {}", out.plan));
  }

  bool read_dtype(NodeId node, Dtype& out) const {
    std::string_view text;
    if (!json_.string(node, text)) return false;
    const auto found = find_dtype(text);
    if (!found) return json_.fail(node, fmt::format("'{}' is no data type", text));
    out = *found;
    return true;
  }

  bool read_reduction(NodeId node, ReduceOp& out) const {
    std::string_view text;
    if (!json_.string(node, text)) return false;
    const auto found = find_reduce_op(text);
    if (!found || *found == ReduceOp::call) {
      return json_.fail(node, fmt::format("'{}' is no reduction", text));
    }
    out = *found;
    return true;
  }

  bool read_count(NodeId node, uint32_t& out, uint64_t most) const {
    return json_.number(node, out, most) && (out > 0 || json_.fail(node, "is 0"));
  }

  /// A number below `end`, the count of what there is.
  template <class Number>
  bool read_index(NodeId node, Number& out, uint64_t end, const char* what) const {
    return json_.number(node, out, ~uint64_t{0} >> 1) &&
           (out < end || json_.fail(node, fmt::format("there are {} {}", end, what)));
  }

  bool read_holds(NodeId list, RunSpec& spec) const {
    if (!json_.expect(list, JsonType::array)) return false;
    if (json_.count(list) > kMostHolds) {
      return json_.fail(list, fmt::format("more than {} holds", kMostHolds));
    }
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!read_hold(e, spec, spec.adversary->holds.emplace_back())) return false;
    }
    return true;
  }

  bool read_hold(NodeId node, const RunSpec& spec, Hold& out) const {
    Fields<6> f({"what", "rank", "call", "note", "op", "lane"});
    std::string_view note;
    if (!f.read(json_, node, 4) || !read_what(f["what"], out.what) ||
        !read_index(f["rank"], out.rank, program_.ranks.size(), "ranks") ||
        !read_index(f["call"], out.call, spec.iterations, "calls") ||
        !json_.string(f["note"], note)) {
      return false;
    }
    out.note = note;
    const bool has_op = out.what != Hold::What::call;
    const bool has_lane = out.what == Hold::What::op || out.what == Hold::What::access;
    if (has_op != (f["op"] != kNoNode)) {
      return json_.fail(node, has_op ? "key 'op' is missing" : "a call has no 'op'");
    }
    if (has_op && !read_op(f["op"], out)) return false;
    if (f["lane"] == kNoNode) return true;
    if (!has_lane) return json_.fail(f["lane"], fmt::format("a {} has no lane", name(out.what)));
    return read_index(f["lane"], out.lane, spec.adversary->lanes, "lanes");
  }

  bool read_what(NodeId node, Hold::What& out) const {
    std::string_view text;
    if (!json_.string(node, text)) return false;
    for (size_t i = 0; i < std::size(kHoldNames); ++i) {
      if (text != kHoldNames[i]) continue;
      out = static_cast<Hold::What>(i);
      return true;
    }
    return json_.fail(node, fmt::format("'{}' cannot be held; op, access, proxy or call", text));
  }

  bool read_op(NodeId node, Hold& out) const {
    return read_index(node, out.op, program_.ranks[out.rank].ops.size(), "ops");
  }

  const JsonReader& json_;
  const Program& program_;
};

}  // namespace

std::optional<Schedule> read_schedule(std::string_view json, const std::string& name,
                                      const Program& program, Diagnostics& diagnostics) {
  JsonTape tape;
  if (!tape.parse(json, name, diagnostics)) return std::nullopt;
  const JsonReader reader(tape, name, diagnostics, "not-a-schedule");
  Schedule schedule;
  if (!ScheduleReader(reader, program).read(schedule)) return std::nullopt;
  return schedule;
}

}  // namespace mscclc
