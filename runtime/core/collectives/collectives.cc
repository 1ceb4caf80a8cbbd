#include "runtime/api/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/api/bootstrap.h"
#include "runtime/core/collectives/arguments.h"
#include "runtime/core/collectives/state.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/leak.h"

namespace mscclc {
namespace {

/// Of thread blocks, where very many share a GPU: with fewer there may be no plan.
constexpr uint64_t kLeastShare = 4;
/// Bytes of a call: no plan is loaded for twice as many.
constexpr uint64_t kMaxReady = uint64_t{1} << 47;

/// CollectivesOptions::most_blocks and beside. 0: any number.
uint32_t most_blocks_of(const CollectivesOptions& options, uint32_t multiprocessors) {
  if (options.beside <= 1 || multiprocessors == 0) return options.most_blocks;
  const uint64_t share = std::max(kLeastShare, multiprocessors / options.beside);
  return static_cast<uint32_t>(
      options.most_blocks == 0 ? share : std::min<uint64_t>(share, options.most_blocks));
}

bool refuse(Diagnostics& diagnostics, const std::string& text) {
  diagnostics.error("bad-call", {}, text);
  return false;
}

}  // namespace

// What plans use, the communicator keeps until their calls have ended.
Collectives::State::~State() {
  Diagnostics problems;
  if (own_.bytes() == 0 || communicator_.device().drain(problems)) return;
  leak(std::move(own_), communicator_.rank(), "memory of collectives", problems);
}

// Sizes double: no plan that the table gives for a stretch of them is missed for long.
bool Collectives::State::make_ready(uint64_t most, Diagnostics& diagnostics) {
  if (communicator_.size() == 1) return true;
  most = std::min(most, kMaxReady);
  for (uint64_t bytes = sizeof(float); bytes <= most; bytes *= 2) {
    const PlannedCall call{{.kind = CollectiveKind::allreduce, .count = bytes / sizeof(float)},
                           CallPlace::either};
    Diagnostics problems;
    CollectiveCall at_once = call;
    const PlanChoice choice = chooser_.choose(call, false, nullptr, problems);
    for (const Diagnostic& d : problems.all()) diagnostics.add(d);
    if (problems.has_errors()) return false;
    at_once.count = choice.count;
    const LoadedPlans::Need need = chooser_.need(at_once);
    if (choice.picked == nullptr || loaded_.find(*choice.picked, need) != nullptr) continue;
    if (loaded_.load(*choice.picked, need, text_of(call, communicator_.rank(), false), 0,
                     diagnostics) == nullptr) {
      return false;
    }
  }
  return true;
}

bool Collectives::State::start(const CollectivesOptions& options, Diagnostics& diagnostics) {
  const auto check = Environment::of_process().number(Variable::MSCCLC_CHECK_CALLS, diagnostics);
  compares_calls_ = check.value_or(0) == 1;
  const auto of_job = Environment::of_process().order(diagnostics);
  chain_ = options.chain;
  if (chain_ == nullptr) {
    chain_ = communicator_.device().chain_streams(options.replays, diagnostics);
  }
  const SumOrder order = options.order.value_or(of_job.value_or(kDefaultOrder));
  const auto found = find_where_ranks_run(communicator_, order, diagnostics);
  const WhereRanksRun where = found.value_or(WhereRanksRun());
  chooser_.set_job({.where = where,
                    .order = order,
                    .most_blocks = most_blocks_of(options, where.multiprocessors)});
  any_order_ = options.beside > 1;
  if (check && of_job && chain_ != nullptr && found &&
      make_ready(options.ready_bytes, diagnostics)) {
    return true;
  }
  communicator_.abort(diagnostics);  // the others may wait in the next step
  return false;
}

std::optional<PlannedCall> Collectives::State::planned(const CollectiveCall& call) const {
  return planned_call(call, communicator_.rank(), communicator_.size());
}

bool Collectives::State::waits_for_ranks(const CollectiveCall& planned, const PlanChoice& choice) {
  Diagnostics ignored;  // prepare() reports it
  CollectiveCall at_once = planned;
  at_once.count = choice.count;
  Executable* const executable = loaded_.find(*choice.picked, chooser_.need(at_once));
  if (executable == nullptr) return true;
  if (!executable->binds_together()) return false;
  const std::vector<CallRange> ranges = ranges_of(planned, choice.count);
  return std::any_of(ranges.begin(), ranges.end(), [&](const CallRange& range) {
    const CollectiveCall piece = piece_of(planned, range);
    const auto key = key_of(piece, *executable, ignored);
    return !key || (!registered_.call(*key) && executable->bind_waits(piece));
  });
}

bool Collectives::State::enqueue(const ReadyPiece& piece, const ReadyCall::State& ready,
                                 Diagnostics& diagnostics) {
  Device& device = communicator_.device();
  const auto copy = [&](const CallCopy& c) {
    return device.copy(c.to, c.from, c.bytes, ready.stream, diagnostics);
  };
  return std::all_of(piece.before.begin(), piece.before.end(), copy) &&
         (!piece.bound || ready.executable->launch(piece.bound, ready.stream, diagnostics)) &&
         std::all_of(piece.after.begin(), piece.after.end(), copy);
}

// Launches of plans are compared. Where this rank needs none, another may have one, for another
// count, say: it learns that from the step at which the ranks meet.
bool Collectives::State::meet_without_plan(Diagnostics& diagnostics) {
  return !compares_calls_ || communicator_.size() == 1 ||
         communicator_.bootstrap().barrier("make a call that needs no plan", diagnostics);
}

bool Collectives::State::launch(const ReadyCall::State& ready, Diagnostics& diagnostics) {
  if (ready.executable == nullptr && !meet_without_plan(diagnostics)) {
    communicator_.abort(diagnostics);
    return false;
  }
  if (ready.pieces.empty()) return true;
  ready.unlaunched.launched();
  const auto add = [&](const ReadyPiece& piece) { return enqueue(piece, ready, diagnostics); };
  if (chain_->follow(ready.stream, diagnostics) &&
      std::all_of(ready.pieces.begin(), ready.pieces.end(), add) &&
      chain_->put_last(ready.stream, diagnostics)) {
    return true;
  }
  communicator_.abort(diagnostics);  // the others wait for this call
  return false;
}

bool Collectives::State::call(const CollectiveCall& call, StreamHandle stream,
                              Diagnostics& diagnostics) {
  const OneThread::Visit visit(*one_thread_, diagnostics);
  ReadyCall::State ready(unlaunched_);
  return visit && prepare(call, nullptr, stream, ready, diagnostics) && launch(ready, diagnostics);
}

Collectives::Collectives(std::unique_ptr<State> state) : state_(std::move(state)) {}
Collectives::~Collectives() = default;

std::unique_ptr<Collectives> Collectives::create(Communicator& communicator,
                                                 std::shared_ptr<PlanProvider> provider,
                                                 const CollectivesOptions& options,
                                                 Diagnostics& diagnostics) {
  if (provider == nullptr) {
    diagnostics.error("no-plan", {}, "collectives need a provider of plans; it is nullptr");
    communicator.abort(diagnostics);
    return nullptr;
  }
  if (!std::has_single_bit(options.piece_bytes)) {
    diagnostics.error("bad-call", {}, "CollectivesOptions::piece_bytes must be a power of two");
    communicator.abort(diagnostics);
    return nullptr;
  }
  auto state = std::make_unique<State>(communicator, std::move(provider), options);
  if (!state->start(options, diagnostics)) return nullptr;
  return std::unique_ptr<Collectives>(new Collectives(std::move(state)));
}

bool Collectives::check(const CollectiveCall& call, Diagnostics& diagnostics,
                        BuffersOf buffers) const {
  const Communicator& c = state_->communicator();
  return check_arguments(call, c.rank(), c.size(), buffers, diagnostics);
}

bool Collectives::needs_plan(const CollectiveCall& call) const {
  return state_->planned(call).has_value();
}

std::shared_ptr<const PickedPlan> Collectives::choose(const CollectiveCall& call, bool capturing,
                                                      std::vector<PassedOver>* passed_over,
                                                      Diagnostics& diagnostics) {
  return choose_once(call, capturing, passed_over, diagnostics).picked;
}

PlanChoice Collectives::choose_once(const CollectiveCall& call, bool capturing,
                                    std::vector<PassedOver>* passed_over,
                                    Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->one_thread(), diagnostics);
  const auto planned = state_->planned(call);
  return visit && planned ? state_->chooser().choose(*planned, capturing, passed_over, diagnostics)
                          : PlanChoice();
}

bool Collectives::no_rank_chooses(const CollectiveCall& call, StreamHandle stream,
                                  Diagnostics& why) {
  const OneThread::Visit visit(state_->one_thread(), why);
  return visit && state_->no_rank_picks(call, stream, why);
}

bool Collectives::waits_for_ranks(const CollectiveCall& call, StreamHandle stream) {
  Diagnostics problems;  // prepare() reports them
  State& s = *state_;
  const OneThread::Visit visit(s.one_thread(), problems);
  if (!visit) return true;
  const auto planned = s.planned(call);
  if (!planned) return false;
  const PlanChoice choice = s.chooser().pick(*planned, stream, problems);
  return choice.picked != nullptr ? s.waits_for_ranks(*planned, choice)
                                  : may_be_of_one_rank(problems);
}

bool Collectives::waits_for_ranks(const CollectiveCall& call, const PlanChoice& choice) {
  Diagnostics ignored;  // prepare() reports it
  const OneThread::Visit visit(state_->one_thread(), ignored);
  if (!visit) return true;
  const auto planned = state_->planned(call);
  return planned && choice.picked != nullptr && state_->waits_for_ranks(*planned, choice);
}

bool Collectives::call(const CollectiveCall& call, StreamHandle stream, Diagnostics& diagnostics) {
  return state_->call(call, stream, diagnostics);
}

ReadyCall Collectives::prepare(const CollectiveCall& call, StreamHandle stream,
                               Diagnostics& diagnostics) {
  return state_->prepare(call, nullptr, stream, diagnostics);
}

ReadyCall Collectives::prepare(const CollectiveCall& call, const PlanChoice& choice,
                               StreamHandle stream, Diagnostics& diagnostics) {
  return state_->prepare(call, &choice, stream, diagnostics);
}

bool Collectives::launch(const ReadyCall& call, Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->one_thread(), diagnostics);
  if (!visit) return false;
  if (!call || call.state().owner != state_.get()) {
    return refuse(diagnostics, "the call was not prepared by these collectives");
  }
  return state_->launch(call.state(), diagnostics);
}

std::optional<uint64_t> Collectives::register_buffer(void* address, uint64_t bytes,
                                                     Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->one_thread(), diagnostics);
  if (!visit) return std::nullopt;
  auto buffer = state_->communicator().register_buffer(address, bytes, diagnostics);
  if (buffer == nullptr) return std::nullopt;
  return state_->registered().add(address, bytes, std::move(buffer));
}

std::optional<RankMemory> Collectives::registered(uint64_t number, uint32_t rank,
                                                  Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->one_thread(), diagnostics);
  if (!visit) return std::nullopt;
  const RegisteredBuffer* buffer = state_->registered().buffer(number);
  if (buffer != nullptr && rank < communicator().size()) return buffer->of_rank(rank);
  refuse(diagnostics, buffer == nullptr ? "there is no such registration"
                                        : fmt::format("there is no rank {} among {}", rank,
                                                      communicator().size()));
  return std::nullopt;
}

bool Collectives::deregister_buffer(uint64_t number, Diagnostics& diagnostics) {
  const OneThread::Visit visit(state_->one_thread(), diagnostics);
  if (!visit) return false;
  return state_->registered().remove(number) ||
         refuse(diagnostics, "there is no such registration");
}

Communicator& Collectives::communicator() const { return state_->communicator(); }

CollectivesUse Collectives::use() const { return state_->use(); }

bool Collectives::launches_wait() const { return state_->compares_calls(); }

}  // namespace mscclc
