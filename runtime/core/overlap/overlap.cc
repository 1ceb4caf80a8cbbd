// The object: what is made once, and the frame of a run.
#include "runtime/api/overlap.h"

#include <fmt/format.h>

#include <mutex>
#include <tuple>

#include "runtime/api/collectives.h"
#include "runtime/core/overlap/agree.h"
#include "runtime/core/overlap/backend.h"
#include "runtime/core/overlap/call.h"
#include "runtime/core/overlap/turns.h"
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
    Diagnostics problems;
    if (owner_.device == nullptr || owner_.device->drain(problems)) return;
    leak(std::tuple(std::move(workspace_), std::move(backend_), std::move(own_provider_)), rank_,
         "memory of a GEMM", problems);
  }

  bool make(Diagnostics& diagnostics);
  bool run(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics);
  const OverlapChoice& choice() const { return choice_; }
  uint64_t workspace_bytes() const { return gemm_bytes_ + backend_->workspace_bytes(); }
  bool report_failure(Diagnostics& diagnostics);
  Device& device() const { return *owner_.device; }

 private:
  bool make_alone(Diagnostics& diagnostics);
  bool find_gemms(Diagnostics& diagnostics);
  bool make_backend(Diagnostics& diagnostics);
  bool put(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics);
  bool add_bias(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics);
  void note_failure(const Diagnostics& why);
  OneThread& one_thread() {
    return owner_.communicator != nullptr ? *owner_.communicator->one_thread() : own_thread_;
  }

  const OverlapOwner owner_;  ///< goes last
  const OverlapConfig config_;
  const OverlapOptions options_;
  uint32_t rank_ = 0, ranks_ = 1;
  OneThread own_thread_;
  OverlapChoice choice_;
  GemmStreams* streams_ = nullptr;
  std::unique_ptr<GemmProvider> own_provider_;
  GemmProvider* provider_ = nullptr;
  uint64_t gemm_bytes_ = 0;  ///< of the workspace, for GEMMs
  std::unique_ptr<Products> products_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<Backend> backend_;
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
  constexpr uint64_t kPart = 256;  // parts of the workspace begin at multiples
  gemm_bytes_ = (provider_->workspace_bytes() + kPart - 1) / kPart * kPart;
  return true;
}

bool Overlap::State::make_backend(Diagnostics& diagnostics) {
  const uint32_t all = owner_.device->multiprocessors();
  const uint32_t left = choice_.budget == 0 || all <= choice_.budget ? 0 : all - choice_.budget;
  products_ = std::make_unique<Products>(config_, *streams_, *provider_, left,
                                         [this](const Diagnostics& why) { note_failure(why); });
  job_ = std::make_unique<Job>(Job{config_, choice_, options_, owner_, *owner_.device, *streams_,
                                   *products_, rank_, ranks_});
  const bool by_plan = runs_beside(choice_.backend) && ranks_ > 1;
  backend_ = ranks_ > 1 && choice_.backend == kCublasMp ? make_other_gemms(*job_)
             : !by_plan                                 ? make_sequence(*job_)
             : choice_.backend == kCopyEngine           ? make_copy_engine(*job_)
                                                        : make_flagged(*job_);
  if (!backend_->prepare(diagnostics) || !products_->prepare(backend_->tiles(), diagnostics)) {
    return false;
  }
  if (backend_->tiles().empty()) gemm_bytes_ = 0;
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
  if (!check_config(config_, ranks_, diagnostics)) return false;
  auto chosen = choose(config_,
                       {.ranks = ranks_,
                        .multiprocessors = owner_.device->multiprocessors(),
                        .nccl = options_.nccl.missing,
                        .cublasmp = options_.cublasmp.missing,
                        .given_gemm = options_.gemm != nullptr,
                        .one_queue = owner_.device->multiprocessors() != 0 && has_one_queue()},
                       diagnostics);
  if (!chosen) return false;
  choice_ = *std::move(chosen);
  return find_gemms(diagnostics) && make_backend(diagnostics);
}

bool Overlap::State::make(Diagnostics& diagnostics) {
  const OneThread::Visit visit(one_thread(), diagnostics);
  if (!visit) return false;
  Diagnostics own;
  const bool able = make_alone(own);
  for (const Diagnostic& d : own.all()) diagnostics.add(d);
  if (ranks_ == 1) return able;
  std::string why_not;
  for (const Diagnostic& d : own.all()) {
    if (d.severity == Severity::error && why_not.empty()) why_not = d.message;
  }
  NamedValues values = values_of(config_);
  values.emplace_back("backend that is taken", choice_.backend);
  return agree(owner_.communicator->bootstrap(), values, able ? "" : why_not, diagnostics) &&
         backend_->connect(diagnostics);
}

/// In place, where the collective has left the sum; or from where the plan has.
bool Overlap::State::add_bias(const OverlapCall& call, StreamHandle stream,
                              Diagnostics& diagnostics) {
  const void* const from = backend_->sum_place();
  void* const out = call.out.front();
  if (config_.bias && job_->kind().sums) {
    const bool all = ranks_ == 1 || config_.kind == OverlapKind::gemm_allreduce;
    return streams_->add_parts({.to = out,
                                .from = from != nullptr ? from : out,
                                .bias = call.bias.front(),
                                .rows = all ? config_.m : config_.m / ranks_,
                                .columns = config_.n.front(),
                                .dtype = config_.out_dtype},
                               stream, diagnostics);
  }
  return from == nullptr ||
         owner_.device->copy(out, from, message_bytes(config_), stream, diagnostics);
}

bool Overlap::State::put(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics) {
  uint8_t* const workspace =
      workspace_ != nullptr ? workspace_->data() : static_cast<uint8_t*>(call.workspace);
  const RunPlace place{.call = call,
                       .stream = stream,
                       .gemm = {workspace, provider_->workspace_bytes()},
                       .rest = workspace + gemm_bytes_};
  const bool done = chain_->follow(stream, diagnostics) && backend_->run(place, diagnostics) &&
                    add_bias(call, stream, diagnostics) && chain_->put_last(stream, diagnostics);
  // The others, or a plan that has begun, wait for this rank.
  if (!done && owner_.communicator != nullptr) owner_.communicator->abort(diagnostics);
  return done;
}

bool Overlap::State::run(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics) {
  const OneThread::Visit visit(one_thread(), diagnostics);
  return visit && report_failure(diagnostics) &&
         check_run(config_, call,
                   {config_.own_workspace ? 0 : workspace_bytes(), backend_->gives_gathered()},
                   diagnostics) &&
         put(call, stream, diagnostics);
}

Overlap::Overlap(std::unique_ptr<State> state) : state_(std::move(state)) {}
Overlap::~Overlap() = default;

std::unique_ptr<Overlap> Overlap::create(OverlapOwner owner, const OverlapConfig& config,
                                         const OverlapOptions& options, Diagnostics& diagnostics) {
  const auto word = Environment::of_process().text(Variable::MSCCLC_ORDER, diagnostics);
  OverlapConfig wanted = config;
  if (!wanted.order) wanted.order = find_sum_order(word.value_or("")).value_or(kDefaultOrder);
  auto state = std::make_unique<State>(std::move(owner), std::move(wanted), options);
  if (!state->make(diagnostics)) return nullptr;
  return std::unique_ptr<Overlap>(new Overlap(std::move(state)));
}

const OverlapChoice& Overlap::choice() const { return state_->choice(); }
uint64_t Overlap::workspace_bytes() const { return state_->workspace_bytes(); }
bool Overlap::check(Diagnostics& diagnostics) const { return state_->report_failure(diagnostics); }
Device& Overlap::device() const { return state_->device(); }
bool Overlap::run(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics) {
  return state_->run(call, stream, diagnostics);
}

std::shared_ptr<OverlapTurns> make_overlap_turns() { return std::make_shared<OverlapTurns>(); }

}  // namespace mscclc
