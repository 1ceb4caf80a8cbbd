// The object: what is made once, and the frame of a run.
#include "runtime/api/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <tuple>

#include "runtime/api/collectives.h"
#include "runtime/core/overlap/agree.h"
#include "runtime/core/overlap/call.h"
#include "runtime/core/overlap/turns.h"
#include "runtime/core/overlap/way.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/leak.h"
#include "runtime/support/observe/one_thread.h"

namespace mscclc {

using namespace overlap;

struct Overlap::State {
  State(OverlapOwner of, OverlapConfig wanted, const OverlapOptions& with)
      : owner_(std::move(of)), config_(std::move(wanted)), options_(with) {
    if (owner_.communicator != nullptr) {
      rank_ = owner_.communicator->rank();
      ranks_ = owner_.communicator->size();
    }
  }
  /// Waits for runs: they use what goes now.
  ~State() {
    Diagnostics problems, ignored;
    (void)may_run(ignored);
    if (owner_.device == nullptr || owner_.device->drain(problems)) return;
    leak(std::tuple(std::move(workspace_), std::move(ways_), std::move(own_provider_)), rank_,
         "memory of a GEMM", problems);
  }

  bool make(Diagnostics& diagnostics);
  bool run(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics);
  const OverlapChoice& choice() const { return choices_.front(); }
  const OverlapChoice* choice_in_graphs() const {
    return ways_.size() > 1 ? &choices_.back() : nullptr;
  }
  uint64_t workspace_bytes() const;
  uint64_t held_bytes() const;
  bool report_failure(Diagnostics& diagnostics);
  Device& device() const { return *owner_.device; }

 private:
  bool make_alone(Diagnostics& diagnostics);
  bool find_gemms(Diagnostics& diagnostics);
  bool make_ways(Diagnostics& diagnostics);
  bool connect(Diagnostics& diagnostics);
  std::span<const MeasuredTable> own_tables() const {
    if (options_.measured == nullptr) return {};
    return options_.measured->tables;
  }
  std::string taken(const OverlapChoice& choice) const;
  Way& way_on(StreamHandle stream) const;
  bool put(Way& way, const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics);
  bool may_run(Diagnostics& diagnostics);
  void abort_others();
  bool finish_sum(const void* from, const OverlapCall& call, StreamHandle stream,
                  Diagnostics& diagnostics);
  void note_failure(const Diagnostics& why);
  OneThread& one_thread() {
    return owner_.communicator != nullptr ? *owner_.communicator->one_thread() : own_thread_;
  }

  const OverlapOwner owner_;  ///< goes last
  const OverlapConfig config_;
  const OverlapOptions options_;
  uint32_t rank_ = 0, ranks_ = 1;
  OneThread own_thread_;
  std::array<OverlapChoice, 2> choices_;  ///< by RunMode
  GemmStreams* streams_ = nullptr;
  std::unique_ptr<GemmProvider> own_provider_;
  GemmProvider* provider_ = nullptr;
  uint64_t gemm_bytes_ = 0;                 ///< of the workspace, for GEMMs
  std::vector<std::unique_ptr<Way>> ways_;  ///< of eager runs, of captured ones; or of all
  std::unique_ptr<Memory> workspace_;
  std::shared_ptr<StreamChain> chain_;
  std::mutex failing_;
  Diagnostics failure_;  ///< of GEMMs, from streams' threads
};

void Overlap::State::note_failure(const Diagnostics& why) {
  {
    const std::lock_guard lock(failing_);
    for (const Diagnostic& d : why.all()) failure_.add(d);
  }
  if (owner_.communicator != nullptr) owner_.communicator->abort(why);
}

bool Overlap::State::report_failure(Diagnostics& diagnostics) {
  const std::lock_guard lock(failing_);
  for (const Diagnostic& d : failure_.all()) diagnostics.add(d);
  return !failure_.has_errors();
}

/// What waits in other libraries, which do not watch ranks.
void Overlap::State::abort_others() {
  for (const auto& way : ways_) way->backend().abort();
}

/// Where a rank has failed nothing more runs, and what waits for it ends. False: reported.
bool Overlap::State::may_run(Diagnostics& diagnostics) {
  const bool well = report_failure(diagnostics) && (owner_.communicator == nullptr ||
                                                    !owner_.communicator->has_failed(diagnostics));
  if (!well) abort_others();
  return well;
}

bool Overlap::State::find_gemms(Diagnostics& diagnostics) {
  streams_ = owner_.device->gemms();
  if (streams_ == nullptr) {
    diagnostics.error("bad-call", {},
                      fmt::format("the device {} multiplies no matrices", owner_.device->name()));
    return false;
  }
  provider_ = options_.gemm;
  if (provider_ == nullptr) {
    own_provider_ = streams_->make_provider(diagnostics);
    provider_ = own_provider_.get();
  }
  if (provider_ == nullptr) return false;
  const uint64_t bytes = provider_->workspace_bytes();
  if (bytes > kMaxBytes) {
    return refuse_overlap(
        config_,
        fmt::format("a GEMM's workspace must have at most {} bytes; gemm_workspace_bytes = {}",
                    kMaxBytes, bytes),
        diagnostics);
  }
  gemm_bytes_ = (bytes + kPart - 1) / kPart * kPart;
  return true;
}

uint64_t Overlap::State::workspace_bytes() const {
  uint64_t most = 0;
  for (const auto& way : ways_) most = std::max(most, way->backend().workspace_bytes());
  const uint64_t all = gemm_bytes_ + most;
  return config_.own_workspace || all == 0 ? all : all + kPart - kAlignment;
}

uint64_t Overlap::State::held_bytes() const {
  uint64_t all = workspace_ != nullptr ? workspace_->bytes() : 0;
  for (const auto& way : ways_) all += way->backend().held_bytes();
  return all;
}

bool Overlap::State::make_ways(Diagnostics& diagnostics) {
  const WayOf of{.config = config_,
                 .options = options_,
                 .owner = owner_,
                 .streams = *streams_,
                 .provider = *provider_,
                 .rank = rank_,
                 .ranks = ranks_,
                 .failed = [this](const Diagnostics& why) { note_failure(why); }};
  bool multiplies = false, by_plan = false;
  for (const OverlapChoice& choice : choices_) {
    if (&choice != &choices_.front() && serves_the_same(choice, choices_.front())) continue;
    const Way& way = *ways_.emplace_back(std::make_unique<Way>(of, choice));
    if (!ways_.back()->prepare(diagnostics)) return false;
    multiplies |= !way.backend().tiles().empty();
    by_plan |= way.by_plan();
  }
  if (!multiplies) gemm_bytes_ = 0;
  chain_ = by_plan && owner_.turns != nullptr
               ? owner_.turns->take(*owner_.device, diagnostics)
               : owner_.device->chain_streams(Replays::ordered, diagnostics);
  if (chain_ == nullptr) return false;
  if (!config_.own_workspace || workspace_bytes() == 0) return true;
  workspace_ = owner_.device->allocate(workspace_bytes(), "a GEMM's workspace", diagnostics);
  return workspace_ != nullptr;
}

/// All that needs no other rank.
bool Overlap::State::make_alone(Diagnostics& diagnostics) {
  if (!options_.why_not.empty()) {
    diagnostics.error("bad-call", {}, options_.why_not);
    return false;
  }
  if (!check_config(config_, ranks_, diagnostics)) return false;
  for (const RunMode mode : {RunMode::eager, RunMode::captured}) {
    auto chosen = choose(config_,
                         {.ranks = ranks_,
                          .mode = mode,
                          .multiprocessors = owner_.device->multiprocessors(),
                          .nccl = options_.nccl.missing,
                          .cublasmp = options_.cublasmp.missing,
                          .given_gemm = options_.gemm != nullptr,
                          .one_queue = owner_.device->multiprocessors() != 0 && has_one_queue(),
                          .own = own_tables()},
                         diagnostics);
    if (!chosen) return false;
    choices_[static_cast<size_t>(mode)] = *std::move(chosen);
  }
  return find_gemms(diagnostics) && make_ways(diagnostics);
}

bool Overlap::State::connect(Diagnostics& diagnostics) {
  return std::ranges::all_of(ways_,
                             [&](const auto& way) { return way->backend().connect(diagnostics); });
}

/// Of a choice what ranks must have in common: a budget that no row gives is what this GPU has room
/// for.
std::string Overlap::State::taken(const OverlapChoice& choice) const {
  OverlapChoice alike = choice;
  if (config_.backend != kAuto || !runs_beside(choice.backend)) alike.budget = 0;
  return text_of(alike);
}

bool Overlap::State::make(Diagnostics& diagnostics) {
  const OneThread::Visit visit(one_thread(), diagnostics);
  if (!visit) return false;
  if (ranks_ == 1) return make_alone(diagnostics);
  Diagnostics own;
  (void)make_alone(own);
  NamedValues values = values_of(config_);
  values.emplace_back(kTaken, taken(choices_.front()));
  values.emplace_back(fmt::format("{} in graphs", kTaken), taken(choices_.back()));
  if (!options_.why_not.empty()) {
    for (auto& [name, value] : values) value.clear();
  }
  return agree(owner_.communicator->bootstrap(), values, own, diagnostics) && connect(diagnostics);
}

Way& Overlap::State::way_on(StreamHandle stream) const {
  const bool own_way = ways_.size() > 1 && owner_.device->is_capturing(stream);
  return own_way ? *ways_.back() : *ways_.front();
}

/// In place, where the collective has left the sum; or from where the plan has.
bool Overlap::State::finish_sum(const void* from, const OverlapCall& call, StreamHandle stream,
                                Diagnostics& diagnostics) {
  void* const out = call.out.front();
  const bool more = config_.bias || config_.activation != Activation::none;
  if (more && info(config_.kind).sums) {
    const bool all = ranks_ == 1 || config_.kind == OverlapKind::gemm_allreduce;
    return streams_->add_parts(
        {.to = out,
         .from = from != nullptr ? from : out,
         .bias = config_.bias ? call.bias.front() : nullptr,
         .rows = all ? config_.m : config_.m / ranks_,
         .columns = config_.n.front(),
         .dtype = config_.out_dtype,
         .activation = config_.activation,
         .before = call.pre_activation.empty() ? nullptr : call.pre_activation.front()},
        stream, diagnostics);
  }
  return from == nullptr ||
         owner_.device->copy(out, from, message_bytes(config_), stream, diagnostics);
}

bool Overlap::State::put(Way& way, const OverlapCall& call, StreamHandle stream,
                         Diagnostics& diagnostics) {
  const auto given =
      reinterpret_cast<uintptr_t>(workspace_ != nullptr ? workspace_->data() : call.workspace);
  auto* const workspace = reinterpret_cast<uint8_t*>((given + kPart - 1) / kPart * kPart);
  const RunPlace place{.call = call,
                       .stream = stream,
                       .gemm = {workspace, provider_->workspace_bytes()},
                       .rest = workspace + gemm_bytes_};
  Backend& backend = way.backend();
  const bool done = chain_->follow(stream, diagnostics) && backend.run(place, diagnostics) &&
                    finish_sum(backend.sum_place(), call, stream, diagnostics) &&
                    chain_->put_last(stream, diagnostics);
  if (done) return true;
  // The others, or a plan that has begun, wait for this rank.
  if (owner_.communicator != nullptr) owner_.communicator->abort(diagnostics);
  abort_others();
  backend.join(stream);  // the caller may free what the plan still uses
  return false;
}

bool Overlap::State::run(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics) {
  const OneThread::Visit visit(one_thread(), diagnostics);
  if (!visit || !may_run(diagnostics)) return false;
  Way& way = way_on(stream);
  return check_run(config_, call,
                   {config_.own_workspace ? 0 : workspace_bytes(), way.backend().gives_gathered(),
                    ranks_},
                   diagnostics) &&
         way.backend().may_run(stream, diagnostics) && put(way, call, stream, diagnostics);
}

Overlap::Overlap(std::unique_ptr<State> state) : state_(std::move(state)) {}
Overlap::~Overlap() = default;

std::unique_ptr<Overlap> Overlap::create(OverlapOwner owner, const OverlapConfig& config,
                                         const OverlapOptions& options, Diagnostics& diagnostics) {
  const auto of_job = Environment::of_process().order(diagnostics);
  OverlapConfig wanted = config;
  if (!wanted.order) wanted.order = of_job.value_or(kDefaultOrder);
  auto state = std::make_unique<State>(std::move(owner), std::move(wanted), options);
  if (!state->make(diagnostics)) return nullptr;
  return std::unique_ptr<Overlap>(new Overlap(std::move(state)));
}

const OverlapChoice& Overlap::choice() const { return state_->choice(); }
const OverlapChoice* Overlap::choice_in_graphs() const { return state_->choice_in_graphs(); }
uint64_t Overlap::workspace_bytes() const { return state_->workspace_bytes(); }
uint64_t Overlap::held_bytes() const { return state_->held_bytes(); }
bool Overlap::check(Diagnostics& diagnostics) const { return state_->report_failure(diagnostics); }
Device& Overlap::device() const { return state_->device(); }
bool Overlap::run(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics) {
  return state_->run(call, stream, diagnostics);
}

std::shared_ptr<OverlapTurns> make_overlap_turns() { return std::make_shared<OverlapTurns>(); }

}  // namespace mscclc
