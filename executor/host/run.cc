#include "executor/host/run.h"

#include <fmt/format.h>

#include <chrono>

#include "executor/host/check.h"
#include "executor/host/cluster.h"
#include "executor/host/values.h"
#include "ir/verify.h"

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

}  // namespace

struct HostRunner::State {
  explicit State(const Program& program) : program(program), cluster(program) {}

  bool build(Diagnostics& diagnostics);
  bool prepare(const RunSpec& spec, RunResult& result, Diagnostics& diagnostics);
  const TestValues& values_for(const Call& call);
  void execute(const RunSpec& spec, RunResult& result, Diagnostics& diagnostics);

  const Program& program;
  Cluster cluster;
  bool built = false;
  std::unique_ptr<TestValues> values;  ///< of the last run
};

bool HostRunner::State::build(Diagnostics& diagnostics) {
  if (built) return true;
  built = verify_structure(program, diagnostics) && check_contract(program, diagnostics) &&
          cluster.build(diagnostics);
  return built;
}

bool HostRunner::State::prepare(const RunSpec& spec, RunResult& result, Diagnostics& diagnostics) {
  if (!build(diagnostics)) return false;
  const Contract& contract = program.contract;
  if (!choose_place(contract, spec, result.in_place, diagnostics)) return false;
  const DtypeInfo& type = info(spec.dtype);
  Call call;
  call.part_bytes = Chunking::part_for_message(contract, spec.bytes, type.bytes);
  call.dtype = spec.dtype;
  call.accumulate = spec.accumulate.value_or(type.accumulate);
  call.reduce = spec.op;
  if (!check_call(program, call, diagnostics)) return false;
  if (!cluster.prepare(call, result.in_place, spec.check, diagnostics)) return false;
  result.bytes = Chunking(contract, call.part_bytes, program.launch.align).message_bytes();
  result.count = result.bytes / type.bytes;
  return true;
}

const TestValues& HostRunner::State::values_for(const Call& call) {
  const ReduceOp reduce = program.contract.reduces() ? call.reduce : ReduceOp::call;
  if (values == nullptr || values->dtype() != call.dtype || values->reduction() != reduce ||
      values->accumulate() != call.accumulate) {
    values =
        std::make_unique<TestValues>(call.dtype, call.accumulate, reduce, program.contract.ranks);
  }
  return *values;
}

void HostRunner::State::execute(const RunSpec& spec, RunResult& result, Diagnostics& diagnostics) {
  NoHooks nothing;
  std::unique_ptr<CollectiveCheck> check;
  if (spec.check) check = std::make_unique<CollectiveCheck>(cluster, values_for(cluster.call()));
  CallHooks& hooks = check ? static_cast<CallHooks&>(*check) : nothing;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const Adversary* adversary = spec.adversary ? &*spec.adversary : nullptr;
  const bool ended =
      cluster.run(spec.iterations, spec.schedule_seed, hooks, diagnostics, adversary);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (spec.iterations > 0) {
    result.seconds = (seconds - (check ? check->seconds() : 0)) / spec.iterations;
  }
  if (!ended) {
    result.status = RunStatus::hung;
    return;
  }
  const bool intact = cluster.check_guards(diagnostics);
  if (check) {
    result.wrong = check->wrong();
    check->report(diagnostics);
  }
  result.status = intact && result.wrong == 0 ? RunStatus::right : RunStatus::wrong;
}

HostRunner::HostRunner(const Program& program) : state_(std::make_unique<State>(program)) {}
HostRunner::~HostRunner() = default;
HostRunner::HostRunner(HostRunner&&) noexcept = default;

RunResult HostRunner::run(const RunSpec& spec, Diagnostics& diagnostics) {
  RunResult result;
  if (state_->prepare(spec, result, diagnostics)) state_->execute(spec, result, diagnostics);
  return result;
}

void HostRunner::restart() { state_->cluster.restart(); }

RunResult run_on_host(const Program& program, const RunSpec& spec, Diagnostics& diagnostics) {
  return HostRunner(program).run(spec, diagnostics);
}

}  // namespace mscclc
