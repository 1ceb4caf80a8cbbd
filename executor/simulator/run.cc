#include "executor/simulator/run.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "executor/oracle/values.h"
#include "executor/simulator/check.h"
#include "ir/support/precondition.h"
#include "ir/verify/verify.h"

namespace mscclc {
namespace {

/// Runs calls on whatever memory holds.
class NoHooks : public CallHooks {
 public:
  void before(uint32_t, uint64_t) override {}
  void after(uint32_t, uint64_t) override {}
};

bool refuse(Diagnostics& diagnostics, const char* code, const std::string& text) {
  diagnostics.error(code, {}, text);
  return false;
}

/// Checks that there is something to check runs against.
bool check_contract(const Program& program, Diagnostics& diagnostics) {
  if (program.contract.kind != CollectiveKind::none) return true;
  return refuse(diagnostics, "no-contract", "the plan does not say which collective it is");
}

bool choose_place(const Contract& contract, const RunSpec& spec, bool& in_place,
                  Diagnostics& diagnostics) {
  in_place = spec.in_place.value_or(contract.in_place == InPlace::yes);
  if (in_place && (!contract.can_alias() || contract.in_place == InPlace::no)) {
    return refuse(diagnostics, "in-place", "the plan is not right in place");
  }
  if (!in_place && contract.in_place == InPlace::yes && contract.can_alias()) {
    return refuse(diagnostics, "out-of-place", "the plan is right in place only");
  }
  return true;
}

/// Of a plan among several: what it must, else what it may.
bool place_in_set(const Contract& contract, const RunSpec& spec) {
  if (!contract.can_alias() || contract.in_place == InPlace::no) return false;
  return contract.in_place == InPlace::yes || spec.in_place.value_or(false);
}

RowSteps row_steps_of(const RunSpec& spec) {
  const bool drawn = spec.schedule_seed * 0x9e3779b97f4a7c15u >> 63 != 0;
  return spec.rows_apart.value_or(drawn) ? RowSteps::apart : RowSteps::together;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

/// A plan that is alone is a set of one, but keeps its memory from run to run.
struct Simulator::State {
  explicit State(std::span<const PlacedPlan> plans) : set(plans), values(plans.size()) {}

  bool alone() const { return set.size() == 1; }
  bool build(Diagnostics& diagnostics);
  bool fit(size_t plan, uint64_t bytes, const RunSpec& spec, RunResult& result,
           Diagnostics& diagnostics);
  bool prepare(const RunSpec& spec, RunResult& result, Diagnostics& diagnostics);
  bool prepare_set(const RunSpec& spec, RunResult& result, Diagnostics& diagnostics);
  const TestValues& values_for(size_t plan);
  bool run_all(const RunSpec& spec, std::span<CallHooks* const> hooks, Diagnostics& diagnostics);
  void execute(const RunSpec& spec, RunResult& result, Diagnostics& diagnostics);
  void judge(const std::deque<CollectiveCheck>& checks, RunResult& result,
             Diagnostics& diagnostics);

  ClusterSet set;
  bool built = false;
  std::vector<std::unique_ptr<TestValues>> values;  ///< by plan, of the last run
};

bool Simulator::State::build(Diagnostics& diagnostics) {
  if (built) return true;
  for (size_t p = 0; p < set.size(); ++p) {
    const Program& program = set[p].program();
    if (!verify_structure(program, diagnostics) || !check_contract(program, diagnostics)) {
      return false;
    }
  }
  built = set.build(diagnostics);
  return built;
}

/// Makes a plan fit a call of some size.
bool Simulator::State::fit(size_t plan, uint64_t bytes, const RunSpec& spec, RunResult& result,
                           Diagnostics& diagnostics) {
  const Program& program = set[plan].program();
  const DtypeInfo& type = info(spec.dtype);
  const uint32_t unit = unit_of_part(program, spec.dtype);
  Call call;
  call.part_bytes = Chunking::part_for_message(program.contract, bytes, unit);
  call.dtype = spec.dtype;
  call.accumulate = spec.accumulate.value_or(type.accumulate);
  call.reduce = spec.op;
  const uint64_t capacity =
      Chunking::part_for_message(program.contract, std::max(bytes, spec.capacity), unit);
  if (!check_call(program, call, diagnostics) || !set[plan].fit(call, capacity, diagnostics)) {
    return false;
  }
  const Chunking chunking(program.contract, call.part_bytes, program.granule(call.dtype));
  result.bytes = chunking.message_bytes();
  result.count = result.bytes / type.bytes;
  return true;
}

bool Simulator::State::prepare(const RunSpec& spec, RunResult& result, Diagnostics& diagnostics) {
  if (!build(diagnostics)) return false;
  for (size_t p = 0; p < set.size(); ++p) {
    if (!set[p].choose_rows(row_steps_of(spec), diagnostics)) return false;
  }
  if (!alone()) return prepare_set(spec, result, diagnostics);
  return choose_place(set[0].program().contract, spec, result.in_place, diagnostics) &&
         fit(0, spec.bytes, spec, result, diagnostics) &&
         set[0].place_all(result.in_place, spec.check, diagnostics);
}

bool Simulator::State::prepare_set(const RunSpec& spec, RunResult& result,
                                   Diagnostics& diagnostics) {
  std::vector<bool> in_place;
  for (size_t p = 0; p < set.size(); ++p) {
    RunResult& own = result.plans.emplace_back();
    if (!fit(p, spec.plan_bytes[p], spec, own, diagnostics)) return false;
    own.in_place = place_in_set(set[p].program().contract, spec);
    in_place.push_back(own.in_place);
  }
  return set.prepare(in_place, spec.check, spec.order, diagnostics);
}

const TestValues& Simulator::State::values_for(size_t plan) {
  const Call& call = set[plan].call();
  const Contract& contract = set[plan].program().contract;
  const ReduceOp reduce = contract.reduces() ? call.reduce : ReduceOp::call;
  std::unique_ptr<TestValues>& own = values[plan];
  if (own == nullptr || own->dtype() != call.dtype || own->reduction() != reduce ||
      own->accumulate() != call.accumulate) {
    own = std::make_unique<TestValues>(call.dtype, call.accumulate, reduce, contract.ranks);
  }
  return *own;
}

bool Simulator::State::run_all(const RunSpec& spec, std::span<CallHooks* const> hooks,
                               Diagnostics& diagnostics) {
  const Adversary* adversary = spec.adversary ? &*spec.adversary : nullptr;
  if (!alone()) return set.run(spec.order, spec.schedule_seed, hooks, diagnostics, adversary);
  return set[0].run(spec.iterations, spec.schedule_seed, *hooks[0], diagnostics, adversary);
}

void Simulator::State::execute(const RunSpec& spec, RunResult& result, Diagnostics& diagnostics) {
  NoHooks nothing;
  std::deque<CollectiveCheck> checks;
  std::vector<CallHooks*> hooks(set.size(), &nothing);
  for (size_t p = 0; spec.check && p < set.size(); ++p) {
    hooks[p] = &checks.emplace_back(set[p], values_for(p), CollectiveCheck::Inputs{p, set.size()});
  }
  const auto start = std::chrono::steady_clock::now();
  const bool ended = run_all(spec, hooks, diagnostics);
  result.seconds = seconds_since(start);
  for (const CollectiveCheck& check : checks) result.seconds -= check.seconds();
  if (alone() && spec.iterations > 0) result.seconds /= spec.iterations;
  if (ended) {
    judge(checks, result, diagnostics);
  } else {
    result.status = RunStatus::hung;
  }
}

/// What has come of a run that has ended.
void Simulator::State::judge(const std::deque<CollectiveCheck>& checks, RunResult& result,
                             Diagnostics& diagnostics) {
  const bool intact = alone() ? set[0].check_guards(diagnostics) : set.check_guards(diagnostics);
  for (size_t p = 0; p < checks.size(); ++p) {
    result.wrong += checks[p].wrong();
    if (!alone()) result.plans[p].wrong = checks[p].wrong();
    checks[p].report(diagnostics);
  }
  result.status = intact && result.wrong == 0 ? RunStatus::right : RunStatus::wrong;
}

Simulator::Simulator(std::span<const PlacedPlan> plans) : state_(std::make_unique<State>(plans)) {
  precondition([&] {
    return std::ranges::all_of(plans, [](const PlacedPlan& plan) {
      return plan.ranks.size() == plan.program->ranks.size();
    });
  });
}
Simulator::Simulator(const Program& program) {
  const PlacedPlan plan = placed_alone(program);
  state_ = std::make_unique<State>(std::span(&plan, 1));
}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;

RunResult Simulator::run(const RunSpec& spec, Diagnostics& diagnostics) {
  RunResult result;
  if (state_->prepare(spec, result, diagnostics)) state_->execute(spec, result, diagnostics);
  return result;
}

void Simulator::use_stacks(FiberPool& stacks) {
  precondition(state_->set.size() == 1);
  state_->set[0].use_stacks(stacks);
}

void Simulator::restart() {
  for (size_t p = 0; p < state_->set.size(); ++p) state_->set[p].restart();
}

RunResult simulate(const Program& program, const RunSpec& spec, Diagnostics& diagnostics,
                   FiberPool* stacks) {
  Simulator runner(program);
  if (stacks != nullptr) runner.use_stacks(*stacks);
  return runner.run(spec, diagnostics);
}

}  // namespace mscclc
