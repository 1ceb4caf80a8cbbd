#include "runtime/doors/nccl/comm/make.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <utility>

#include "ir/diagnostics/printable.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/kernel_maker.h"
#include "runtime/doors/nccl/backends/device.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/comm/library_calls.h"
#include "runtime/doors/nccl/variables/variables.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/file_name.h"
#include "runtime/support/observe/nvtx.h"
#include "runtime/support/process/per_process.h"

namespace mscclc::nccl {
namespace {

/// What a rank says of itself.
struct Fact {
  int version = 0;  ///< of its NCCL; 0: it has none
  uint8_t wants_real = 0;
  std::array<uint8_t, 16> secret{};
  std::array<uint8_t, 64> gpu{};  ///< Device::room(): the same for ranks on one GPU
  uint8_t lazy = 0;
  uint32_t most_blocks = 0;  ///< 0: any number
  uint8_t no_blocks = 0;
  uint8_t orders_replays = 1;
  uint32_t multiprocessors = 0;
};
static_assert(std::is_trivially_copyable_v<Fact>);

/// The variable by which this rank leaves all calls to NCCL; empty: none does.
std::string variable_for_real(const Environment& environment) {
  for (const Variable variable : {Variable::NCCL_ALGO, Variable::NCCL_PROTO}) {
    if (environment.has(variable)) return std::string(info(variable).name);
  }
  if (!forbids_peers(environment)) return "";
  return environment.raw(Variable::NCCL_P2P_DISABLE) == "1" ? "NCCL_P2P_DISABLE" : "NCCL_P2P_LEVEL";
}

bool lazy_real(const Environment& environment) {
  Diagnostics ignored;
  return environment.text(Variable::MSCCLC_NCCL_COMM, ignored).value_or("") == "lazy";
}

/// NCCL_MAX_CTAS comes before the configuration. 0: any number.
uint32_t most_blocks(const Config& config, const Environment& environment) {
  Diagnostics ignored;  // warn_of_settings() has said it
  const auto set = environment.number(Variable::NCCL_MAX_CTAS, ignored);
  if (set) return static_cast<uint32_t>(*set);
  return config.max_ctas() == kNcclUndefinedInt ? 0 : static_cast<uint32_t>(config.max_ctas());
}

/// NCCL_CTA_POLICY comes before the configuration.
bool wants_no_blocks(const Config& config, const Environment& environment) {
  const auto set = cta_policy(environment);
  if (set) return is_zero_cta(*set);
  return config.cta_policy() != kNcclUndefinedInt && is_zero_cta(config.cta_policy());
}

/// NCCL_GRAPH_MIXING_SUPPORT comes before the configuration, where 2 lets graphs and calls beside
/// them run at any time, which is what we assume of callers that do not say.
bool orders_replays(const Config& config, const Environment& environment) {
  Diagnostics ignored;  // warn_of_settings() has said it
  const auto set = environment.number(Variable::NCCL_GRAPH_MIXING_SUPPORT, ignored);
  if (set) return *set != 0;
  return config.graph_usage_mode() == kNcclUndefinedInt || config.graph_usage_mode() == 2;
}

Fact own_fact(const Comm& comm, const Environment& environment) {
  Fact fact;
  if (const RealNccl* real = real_nccl()) fact.version = real->version;
  fact.wants_real = !variable_for_real(environment).empty();
  fact.lazy = lazy_real(environment);
  fact.most_blocks = most_blocks(comm.config, environment);
  fact.no_blocks = wants_no_blocks(comm.config, environment);
  fact.orders_replays = orders_replays(comm.config, environment);
  std::random_device random;
  for (uint8_t& byte : fact.secret) byte = static_cast<uint8_t>(random());
  fact.multiprocessors = comm.device->multiprocessors();
  const std::vector<uint8_t> room = comm.device->room();
  std::copy_n(room.begin(), std::min(room.size(), fact.gpu.size()), fact.gpu.begin());
  return fact;
}

/// Takes together what the ranks have said.
void agree(Comm& comm, const std::vector<Fact>& facts) {
  const auto all = [&](auto is) { return std::all_of(facts.begin(), facts.end(), is); };
  const Fact& first = facts[0];
  JobFacts& job = comm.facts;
  job.has_real =
      first.version > 0 && all([&](const Fact& f) { return f.version == first.version; });
  job.wants_real = !all([](const Fact& f) { return f.wants_real == 0; });
  job.lazy = !all([](const Fact& f) { return f.lazy == 0; });
  job.no_blocks = !all([](const Fact& f) { return f.no_blocks == 0; });
  job.orders_replays = !all([](const Fact& f) { return f.orders_replays == 0; });
  job.secret = first.secret;
  job.multiprocessors = first.multiprocessors;
  for (const Fact& fact : facts) {
    job.multiprocessors = std::min(job.multiprocessors, fact.multiprocessors);
    const bool less = job.most_blocks == 0 || fact.most_blocks < job.most_blocks;
    if (fact.most_blocks != 0 && less) job.most_blocks = fact.most_blocks;
  }
  if (job.has_real) return;
  comm.why_no_real = real_nccl() == nullptr ? why_no_real()
                                            : "the ranks have NCCLs of different versions, or some "
                                              "have none";
}

/// NCCL refuses two ranks of a communicator on one GPU, as do we where they would share its room.
ncclResult_t check_gpus(const std::vector<Fact>& facts) {
  for (size_t a = 0; a < facts.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const bool none = facts[a].gpu == std::array<uint8_t, 64>{};
      if (none || facts[a].gpu != facts[b].gpu) continue;
      const Environment environment = Environment::of_process();
      if (environment.raw(Variable::NCCL_MULTI_RANK_GPU_ENABLE) == "1") continue;
      return fail(ncclInvalidUsage, fmt::format("ranks {} and {} are on one GPU", b, a));
    }
  }
  return ncclSuccess;
}

ncclResult_t exchange_facts(Comm& comm, Bootstrap& bootstrap, const Environment& environment) {
  const Fact own = own_fact(comm, environment);
  const auto* first = reinterpret_cast<const uint8_t*>(&own);
  std::vector<std::vector<uint8_t>> all;
  Diagnostics diagnostics;
  if (!bootstrap.all_gather({first, sizeof own}, "what ranks have", all, diagnostics)) {
    return fail(ncclRemoteError, "cannot make a communicator", diagnostics);
  }
  std::vector<Fact> facts(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != sizeof(Fact)) {
      return fail(ncclInvalidUsage, fmt::format("rank {} has another version of mscclc", rank));
    }
    std::memcpy(&facts[rank], all[rank].data(), sizeof(Fact));
  }
  agree(comm, facts);
  if (comm.facts.wants_real) {
    const std::string name = variable_for_real(environment);
    comm.why_real =
        name.empty() ? "NCCL_ALGO or its like is set on another rank" : name + " is set";
  }
  return check_gpus(facts);
}

/// What makes the calls of plans; tests set another.
struct Maker {
  std::mutex mutex;
  MakePlanCalls make = make_library_calls;
};

/// What this library reads of it before there is a communicator of ours.
ncclResult_t check_environment(const Environment& environment) {
  Diagnostics diagnostics;
  for (const Variable word : {Variable::MSCCLC_DEVICE, Variable::MSCCLC_NCCL_COMM}) {
    (void)environment.text(word, diagnostics);
  }
  if (!diagnostics.has_errors()) return ncclSuccess;
  return fail(ncclInvalidUsage, "cannot make a communicator", diagnostics);
}

ProfiledComm profiled(const Comm& comm) {
  ProfiledComm made;
  std::memcpy(&made.id, comm.facts.secret.data(), sizeof made.id);
  made.name = comm.config.name();
  made.nodes = comm.facts.nodes;
  made.ranks = static_cast<int>(comm.ranks);
  made.rank = static_cast<int>(comm.rank);
  made.ordinal = comm.ordinal;
  return made;
}

/// What a rank needs of its own.
ncclResult_t open_own(Comm& comm, const Environment& environment) {
  warn_of_settings();
  for (const std::string& text : comm.config.without_effect(environment)) warn_of_setting(text);
  const ncclResult_t checked = check_environment(environment);
  if (checked != ncclSuccess) return checked;
  Diagnostics diagnostics;
  comm.device = open_device(comm.ordinal, diagnostics);
  if (comm.device != nullptr && comm.device->bind_thread(diagnostics)) return ncclSuccess;
  return fail(ncclUnhandledCudaError, "cannot open the device", diagnostics);
}

ncclResult_t make_parts(Comm& comm, const Meet& meet) {
  const Environment environment = Environment::of_process();
  Diagnostics diagnostics;
  // First, so that the others hear of what fails afterwards.
  std::unique_ptr<Bootstrap> bootstrap = meet(diagnostics);
  if (bootstrap == nullptr) return fail(ncclSystemError, "the ranks do not meet", diagnostics);
  const ncclResult_t opened = open_own(comm, environment);
  if (opened != ncclSuccess) {
    bootstrap->fail(last_error());
    return opened;
  }
  const ncclResult_t agreed = exchange_facts(comm, *bootstrap, environment);
  if (agreed != ncclSuccess) return agreed;
  comm.communicator = Communicator::create(std::move(bootstrap), comm.device, {}, diagnostics);
  if (comm.communicator == nullptr) {
    return fail(ncclSystemError, "cannot make a communicator", diagnostics);
  }
  const std::vector<uint32_t>& nodes = comm.communicator->nodes();
  comm.facts.nodes = static_cast<int>(std::set(nodes.begin(), nodes.end()).size());
  comm.facts.one_machine = comm.communicator->in_one_place();
  comm.on_host = comm.device->name() == "host";
  comm.requires_plans =
      environment.number(Variable::MSCCLC_REQUIRE_PLAN, diagnostics).value_or(0) == 1;
  comm.compares_calls =
      environment.number(Variable::MSCCLC_CHECK_CALLS, diagnostics).value_or(0) == 1;
  comm.order_of_sums = environment.order(diagnostics).value_or(kDefaultOrder);
  if (comm.on_host) {
    comm.null_stream = comm.device->create_stream(diagnostics);
    if (comm.null_stream == nullptr)
      return fail(ncclSystemError, "cannot make a stream", diagnostics);
  }
  const bool ordered = comm.facts.orders_replays && !comm.facts.wants_real;
  comm.order =
      comm.device->chain_streams(ordered ? Replays::ordered : Replays::ignored, diagnostics);
  if (comm.order == nullptr) return fail(ncclSystemError, "cannot order streams", diagnostics);
  if (!comm.facts.wants_real) {
    const CollectivesOptions options{
        .order = comm.order_of_sums, .most_blocks = comm.facts.most_blocks, .chain = comm.order};
    comm.plans = make_plan_calls(*comm.communicator, options, diagnostics);
  }
  if (diagnostics.has_errors()) return fail(ncclSystemError, "cannot read the plans", diagnostics);
  // NVIDIA's messages are faster (docs/nccl.md), so plans have them only where its communicator
  // need not be there. Two ranks of one machine meet without the others.
  const bool by_plans = !comm.facts.has_real || comm.facts.lazy;
  if (by_plans && comm.plans != nullptr && comm.facts.one_machine && comm.ranks > 1) {
    comm.messages = std::make_unique<Messages>(comm);
  }
  if (comm.plans != nullptr) comm.profiler = Profiler::create(profiled(comm));
  return comm.facts.has_real && !comm.facts.lazy ? make_real(comm) : ncclSuccess;
}

/// Callers who have it from the parent may have asked for more since, which says itself how it
/// goes.
void say_made(Comm& comm, ncclResult_t result) {
  const std::lock_guard lock(comm.tables);
  ncclResult_t making = ncclInProgress;
  if (comm.unwaited > 0 || comm.stage == Stage::finalized) return;
  (void)comm.async_error.compare_exchange_strong(making, result);
}

/// What becomes of compiled kernels: one line a process.
void inform_of_kernels(const Comm& comm) {
  KernelMaker* const maker = comm.device->kernel_maker();
  if (comm.plans == nullptr || maker == nullptr || !informs(Subsystem::init)) return;
  Diagnostics ignored;  // the communicator has reported it
  const std::string mode =
      Environment::of_process().text(Variable::MSCCLC_KERNELS, ignored).value_or("");
  inform_once(Subsystem::init, comm.ordinal,
              mode == "off" ? "kernels of plans: MSCCLC_KERNELS is off: the interpreter runs all"
              : mode == "now"
                  ? fmt::format("kernels of plans, before their first calls: {}", maker->about())
                  : fmt::format("kernels of plans, in the background: {}", maker->about()));
}

}  // namespace

void set_plan_calls(MakePlanCalls make) {
  auto& maker = kept_over_forks<Maker>();
  const std::lock_guard lock(maker.mutex);
  maker.make.swap(make);  // what was there before goes without the mutex
}

std::unique_ptr<PlanCalls> make_plan_calls(Communicator& communicator,
                                           const CollectivesOptions& options,
                                           Diagnostics& diagnostics) {
  MakePlanCalls make;
  {
    auto& maker = kept_over_forks<Maker>();
    const std::lock_guard lock(maker.mutex);
    make = maker.make;
  }
  return make ? make(communicator, options, diagnostics) : nullptr;
}

void use_library_plans() { set_plan_calls(make_library_calls); }

ncclResult_t make_comm(Comm& comm, const Meet& meet,
                       const std::function<void(ncclResult_t)>& made) {
  const std::lock_guard lock(comm.mutex);
  ncclResult_t result = make_parts(comm, meet);
  Stage expected = Stage::making;
  const Stage next = result == ncclSuccess ? Stage::ready : Stage::failed;
  if (!comm.stage.compare_exchange_strong(expected, next)) {
    (void)close_comm(comm, true);
    result = fail(ncclInvalidUsage, "the communicator was aborted while it was made");
  }
  // After the stage: a caller that learns that it is made calls at once.
  if (made) made(result);
  say_made(comm, result);
  if (result != ncclSuccess) return result;
  if (const RealNccl* real = real_nccl()) announce_version(real->version);
  if (const auto problem = nvtx_problem()) {
    inform(Subsystem::init, comm.ordinal, problem->text());
  }
  inform(Subsystem::init, comm.ordinal,
         fmt::format("communicator '{}' of {} ranks, rank {} on {}: {}", comm.config.name(),
                     comm.ranks, comm.rank, comm.device->name(),
                     comm.plans == nullptr ? "no plans" : "plans of mscclc"));
  inform_of_kernels(comm);
  return ncclSuccess;
}

}  // namespace mscclc::nccl
