// Reads schedules: every key is checked against the plan before anything is run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "executor/simulator/schedules/schedule.h"
#include "plans/format/json/json_read.h"

namespace mscclc {
namespace {

constexpr uint64_t kMaxCalls = 1000, kMaxHolds = 1000;
constexpr uint64_t kMaxBytes = uint64_t{1} << 40;

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

/// Plans over the same ranks: by the sorted list of these.
using PlansByRanks = std::map<std::vector<uint32_t>, std::vector<uint32_t>>;

PlansByRanks by_ranks(std::span<const PlacedPlan> plans) {
  PlansByRanks groups;
  for (uint32_t p = 0; p < plans.size(); ++p) {
    std::vector<uint32_t> ranks = plans[p].ranks;
    std::ranges::sort(ranks);
    groups[ranks].push_back(p);
  }
  return groups;
}

class ScheduleReader {
 public:
  ScheduleReader(const JsonReader& json, std::span<const PlacedPlan> plans)
      : json_(json), plans_(plans) {}

  bool read(Schedule& out) {
    const bool set = says_set();
    if (set != (plans_.size() > 1)) {
      return json_.fail(
          0, "schedule-plan",
          set ? "the schedule is for several plans; all of them must be given"
              : fmt::format("the schedule is for one plan; {} are given", plans_.size()));
    }
    return set ? read_set(out) : read_one(out);
  }

 private:
  /// Is it a schedule of several plans? Anything else wrong is reported later.
  bool says_set() const {
    constexpr NodeId kRoot = 0;
    if (json_.tape()[kRoot].kind() != JsonType::object) return false;
    for (NodeId m = json_.first(kRoot); m != json_.end(kRoot); m = json_.next(m)) {
      const JsonNode& node = json_.tape()[m];
      if (json_.tape().text(node.key) != "schema") continue;
      return node.kind() == JsonType::number && node.value == 2;
    }
    return false;
  }

  bool read_one(Schedule& out) {
    Fields<10> f({"schema", "plan", "bytes", "dtype", "op", "in_place", "calls", "strands", "seed",
                  "holds"});
    return f.read(json_, 0, 10) && read_schema(f["schema"]) &&
           read_plan(f["plan"], plans_[0], out.plan) &&
           json_.number(f["bytes"], out.spec.bytes, kMaxBytes) &&
           read_run(f["dtype"], f["op"], f["in_place"], out.spec) &&
           read_count(f["calls"], out.spec.iterations, kMaxCalls) &&
           read_place(f["strands"], f["seed"], out.spec) && read_holds(f["holds"], out.spec);
  }

  bool read_set(Schedule& out) {
    Fields<9> f(
        {"schema", "plans", "dtype", "op", "in_place", "strands", "seed", "calls", "holds"});
    return f.read(json_, 0, 9) && read_plans(f["plans"], out) &&
           read_run(f["dtype"], f["op"], f["in_place"], out.spec) &&
           read_place(f["strands"], f["seed"], out.spec) &&
           read_calls(f["calls"], out.spec.order) && read_holds(f["holds"], out.spec);
  }

  bool read_schema(NodeId node) const {
    uint64_t schema = 0;
    return json_.u64(node, schema) &&
           (schema == 1 ||
            json_.fail(node, fmt::format("schema {} is unknown; expected 1 or 2", schema)));
  }

  bool read_run(NodeId dtype, NodeId op, NodeId in_place, RunSpec& spec) const {
    return read_dtype(dtype, spec.dtype) && read_reduction(op, spec.op) &&
           json_.boolean(in_place, spec.in_place.emplace());
  }

  bool read_place(NodeId strands, NodeId seed, RunSpec& spec) const {
    return read_count(strands, spec.adversary.emplace().strands, Adversary::kMaxStrands) &&
           json_.u64(seed, spec.schedule_seed);
  }

  bool read_plan(NodeId node, const PlacedPlan& plan, std::string& out) const {
    std::string_view said;
    if (!json_.string(node, said)) return false;
    out = program_hash(*plan.program);
    if (said == out) return true;
    const std::string which =
        plans_.size() == 1 ? "this one's" : fmt::format("that of '{}'", plan.name);
    return json_.fail(
        node, "schedule-plan",
        fmt::format("the schedule is for another plan; {} is {} (FILE, -D and --target "
                    "must be those of when it was written)",
                    which, out));
  }

  bool read_plans(NodeId list, Schedule& out) const {
    if (!json_.expect(list, JsonType::array)) return false;
    if (json_.count(list) != plans_.size()) {
      return json_.fail(list, "schedule-plan",
                        fmt::format("the schedule is for {} plans; {} are given", json_.count(list),
                                    plans_.size()));
    }
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      const PlacedPlan& plan = plans_[out.plans.size()];
      Schedule::Placed& placed = out.plans.emplace_back();
      Fields<3> f({"plan", "ranks", "bytes"});
      if (!f.read(json_, e, 3) || !read_plan(f["plan"], plan, placed.plan) ||
          !read_ranks(f["ranks"], plan, placed.ranks) ||
          !json_.number(f["bytes"], out.spec.plan_bytes.emplace_back(), kMaxBytes)) {
        return false;
      }
    }
    return true;
  }

  bool read_ranks(NodeId node, const PlacedPlan& plan, std::vector<uint32_t>& out) const {
    if (!json_.numbers(node, out)) return false;
    return out == plan.ranks ||
           json_.fail(node, "schedule-plan",
                      fmt::format("the schedule has the plan on other ranks; '{}' is on {}",
                                  plan.name, fmt::join(plan.ranks, ", ")));
  }

  bool read_calls(NodeId list, CallsByRank& order) const {
    if (!json_.expect(list, JsonType::array)) return false;
    const uint32_t ranks = world_ranks(plans_);
    if (json_.count(list) != ranks)
      return json_.fail(list, fmt::format("there are {} ranks", ranks));
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      const auto rank = static_cast<uint32_t>(order.size());
      if (!read_calls_of(e, rank, order.emplace_back())) return false;
    }
    return check_counts(list, order) && check_orders(list, order);
  }

  bool read_calls_of(NodeId list, uint32_t rank, std::vector<uint32_t>& out) const {
    if (!json_.expect(list, JsonType::array)) return false;
    if (json_.count(list) > kMaxCalls) {
      return json_.fail(list, fmt::format("more than {} calls", kMaxCalls));
    }
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!read_index(e, out.emplace_back(), plans_.size(), "plans")) return false;
      const PlacedPlan& plan = plans_[out.back()];
      if (plan.has(rank)) continue;
      return json_.fail(e, fmt::format("'{}' does not run on rank {}", plan.name, rank));
    }
    return true;
  }

  /// A plan that some ranks call and others do not would hang, whatever it is.
  bool check_counts(NodeId node, const CallsByRank& order) const {
    const CallSequence sequence(order);
    uint64_t calls = 0;
    for (uint32_t p = 0; p < plans_.size(); ++p) {
      const std::vector<uint32_t>& ranks = plans_[p].ranks;
      const uint64_t first = sequence.calls_of(p, ranks[0]);
      calls += first;
      for (const uint32_t r : ranks) {
        const uint64_t own = sequence.calls_of(p, r);
        if (own == first) continue;
        return json_.fail(node, fmt::format("'{}' is called {} times on rank {}, and {} on rank {}",
                                            plans_[p].name, first, ranks[0], own, r));
      }
    }
    return calls > 0 || json_.fail(node, "there are no calls");
  }

  /// So would plans over the same ranks that these call in different orders.
  bool check_orders(NodeId node, const CallsByRank& order) const {
    for (const auto& [ranks, plans] : by_ranks(plans_)) {
      const auto calls_of = [&](uint32_t rank) {
        std::vector<uint32_t> calls;
        std::ranges::copy_if(order[rank], std::back_inserter(calls), [&](uint32_t plan) {
          return std::ranges::find(plans, plan) != plans.end();
        });
        return calls;
      };
      const std::vector<uint32_t> first = calls_of(ranks[0]);
      for (const uint32_t r : ranks) {
        if (calls_of(r) == first) continue;
        return json_.fail(node, fmt::format("ranks {} and {} call plans of the same ranks in "
                                            "different orders",
                                            ranks[0], r));
      }
    }
    return true;
  }

  bool read_dtype(NodeId node, Dtype& out) const {
    std::string_view text;
    if (!json_.string(node, text)) return false;
    const auto found = find_dtype(text);
    if (!found) return json_.fail(node, fmt::format("'{}' is not a data type", text));
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
    if (json_.count(list) > kMaxHolds) {
      return json_.fail(list, fmt::format("more than {} holds", kMaxHolds));
    }
    for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
      if (!read_hold(e, spec, spec.adversary->holds.emplace_back())) return false;
    }
    return true;
  }

  bool read_hold(NodeId node, const RunSpec& spec, Hold& out) const {
    Fields<6> f({"what", "rank", "call", "note", "op", "strand"});
    std::string_view note;
    if (!f.read(json_, node, 4) || !read_what(f["what"], out.what) ||
        !read_index(f["rank"], out.rank, world_ranks(plans_), "ranks") ||
        !read_index(f["call"], out.call, calls_of(out.rank, spec), "calls") ||
        !json_.string(f["note"], note)) {
      return false;
    }
    out.note = note;
    const bool has_op = out.what != Hold::What::call;
    const bool has_strand = out.what == Hold::What::op || out.what == Hold::What::access;
    if (has_op != (f["op"] != kNoNode)) {
      return json_.fail(node, has_op ? "key 'op' is missing" : "a call has no 'op'");
    }
    if (has_op && !read_index(f["op"], out.op, ops_of(out, spec), "ops")) return false;
    if (f["strand"] == kNoNode) return true;
    if (!has_strand)
      return json_.fail(f["strand"], fmt::format("a {} has no strand", name(out.what)));
    return read_index(f["strand"], out.strand, spec.adversary->strands, "strands");
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

  uint64_t calls_of(uint32_t rank, const RunSpec& spec) const {
    return spec.order.empty() ? spec.iterations : spec.order[rank].size();
  }
  /// Of the plan that is called where a hold is.
  size_t ops_of(const Hold& hold, const RunSpec& spec) const {
    const PlacedPlan& plan = plans_[spec.order.empty() ? 0 : spec.order[hold.rank][hold.call]];
    return plan.program->ranks[plan.rank_at(hold.rank)].ops.size();
  }

  const JsonReader& json_;
  const std::span<const PlacedPlan> plans_;
};

}  // namespace

std::optional<Schedule> read_schedule(std::string_view json, const std::string& name,
                                      std::span<const PlacedPlan> plans, Diagnostics& diagnostics) {
  JsonTape tape;
  if (!tape.parse(json, name, diagnostics)) return std::nullopt;
  const JsonReader reader(tape, name, diagnostics, "not-a-schedule");
  Schedule schedule;
  if (!ScheduleReader(reader, plans).read(schedule)) return std::nullopt;
  return schedule;
}

std::optional<Schedule> read_schedule(std::string_view json, const std::string& name,
                                      const Program& program, Diagnostics& diagnostics) {
  const PlacedPlan plan = placed_alone(program);
  return read_schedule(json, name, std::span(&plan, 1), diagnostics);
}

}  // namespace mscclc
