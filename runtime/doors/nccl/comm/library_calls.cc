#include "runtime/doors/nccl/comm/library_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/diagnostics/first_message.h"
#include "ir/program/program.h"
#include "runtime/api/builtin_library.h"
#include "runtime/api/nearest_plan.h"
#include "runtime/api/plan_registry.h"
#include "runtime/support/process/per_process.h"
#include "runtime/support/result_kind.h"

namespace mscclc::nccl {
namespace {

struct SharedPlans {
  std::mutex mutex;
  std::shared_ptr<PlanProvider> plans;
};

/// The plans of the process, read at the first call; all communicators share them. nullptr:
/// reported, and read again at the next call.
std::shared_ptr<PlanProvider> plans_of_process(Diagnostics& diagnostics) {
  auto& [mutex, plans] = process_wide<SharedPlans>();
  const std::lock_guard lock(mutex);
  if (plans != nullptr) return plans;
  std::shared_ptr<PlanProvider> library = builtin_library({}, diagnostics);
  if (library == nullptr) return nullptr;
  plans = PlanRegistry::create({.library = std::move(library)}, diagnostics);
  return plans;
}

/// Calls that were left to the real NCCL, as no rank had a plan, and why: whatever their buffers,
/// they have none from then on. The same on all ranks, which make the same calls.
class Unserved {
 public:
  void add(const CollectiveCall& call, bool capturing, std::string why) {
    if (calls_.size() == kMost) calls_.clear();  // sizes may never come again
    calls_[key(call, capturing)] = std::move(why);
  }
  /// nullptr: it is none of them.
  const std::string* why(const CollectiveCall& call, bool capturing) const {
    const auto found = calls_.find(key(call, capturing));
    return found == calls_.end() ? nullptr : &found->second;
  }

 private:
  static constexpr size_t kMost = 1024;
  using Key = std::tuple<CollectiveKind, uint64_t, Dtype, ReduceOp, std::optional<Dtype>,
                         std::optional<SumOrder>, uint32_t, bool, uint32_t, bool>;
  static Key key(const CollectiveCall& call, bool capturing) {
    return {call.kind,  call.count, call.dtype,      call.op,          call.accumulate,
            call.order, call.root,  call.registered, call.most_blocks, capturing};
  }
  std::map<Key, std::string> calls_;
};

/// Without a choice: it failed here, maybe on this rank alone. The others may wait for it to load
/// their plan, so prepare() chooses once more, or lets them know.
class ServedByPlan final : public ServedCall {
 public:
  ServedByPlan(Collectives& collectives, Unserved& unserved, const CollectiveCall& call,
               std::optional<PlanChoice> choice, StreamHandle stream, bool capturing)
      : collectives_(collectives),
        unserved_(unserved),
        call_(call),
        choice_(std::move(choice)),
        stream_(stream),
        capturing_(capturing) {}
  std::string plan() const override {
    return choice_->picked == nullptr ? "copy" : choice_->picked->name;
  }
  bool waits_for_ranks() override {
    return !choice_ || collectives_.waits_for_ranks(call_, *choice_);
  }
  bool prepare(Diagnostics& diagnostics) override {
    if (!choice_ && !choose(diagnostics)) return false;
    ready_ = collectives_.prepare(call_, *choice_, stream_, diagnostics);
    return static_cast<bool>(ready_);
  }
  bool leave_to_real() override {
    if (no_rank_has_it_) unserved_.add(call_, capturing_, why_not_);
    return no_rank_has_it_;
  }
  bool launch(Diagnostics& diagnostics) override {
    return collectives_.launch(ready_, diagnostics);
  }

 private:
  /// False: reported, to the other ranks, too.
  bool choose(Diagnostics& diagnostics) {
    if (!collectives_.check(call_, diagnostics)) return false;
    PlanChoice choice = collectives_.choose_once(call_, capturing_, nullptr, diagnostics);
    if (choice.picked != nullptr) {
      choice_ = std::move(choice);
      return true;
    }
    why_not_ = first_message(diagnostics);
    no_rank_has_it_ = collectives_.no_rank_chooses(call_, stream_, diagnostics);
    return false;
  }

  Collectives& collectives_;
  Unserved& unserved_;
  const CollectiveCall call_;
  std::optional<PlanChoice> choice_;  ///< of nothing: the call needs no plan
  const StreamHandle stream_;
  const bool capturing_;
  bool no_rank_has_it_ = false;  ///< as prepare() has found
  std::string why_not_;
  ReadyCall ready_;
};

/// One line of reasons.
std::string why_not(const std::vector<PassedOver>& passed_over, const Diagnostics& diagnostics) {
  constexpr size_t kMax = 4;
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.all()) text += diagnostic.message + "; ";
  for (size_t i = 0; i < std::min(passed_over.size(), kMax); ++i) {
    text += fmt::format("'{}': {}; ", passed_over[i].name, passed_over[i].why);
  }
  if (passed_over.size() > kMax) text += fmt::format("{} more; ", passed_over.size() - kMax);
  if (text.empty()) return "there is no plan for it";
  return "no plan serves it: " + text.substr(0, text.size() - 2);
}

class LibraryCalls final : public PlanCalls {
 public:
  LibraryCalls(std::unique_ptr<Collectives> collectives, SumOrder order)
      : collectives_(std::move(collectives)), order_(order) {}

  std::unique_ptr<ServedCall> serve(const CollectiveCall& call, StreamHandle stream, bool capturing,
                                    std::string* what) override {
    PlanChoice choice;
    if (collectives_->needs_plan(call)) {
      if (const std::string* const why = unserved_.why(call, capturing)) {
        if (what != nullptr) *what = "no rank has its plan: " + *why;
        return nullptr;
      }
      std::vector<PassedOver> passed_over;
      Diagnostics diagnostics;
      choice = collectives_->choose_once(call, capturing, what == nullptr ? nullptr : &passed_over,
                                         diagnostics);
      if (choice.picked == nullptr && may_be_of_one_rank(diagnostics)) {
        if (what != nullptr) {
          *what = "a plan that is chosen once more: " + diagnostics.all().front().message;
        }
        return std::make_unique<ServedByPlan>(*collectives_, unserved_, call, std::nullopt, stream,
                                              capturing);
      }
      if (choice.picked == nullptr) {
        if (what != nullptr) {
          *what = why_not(passed_over, diagnostics) + nearest_plan(call, capturing);
        }
        return nullptr;
      }
      if (what != nullptr) {
        *what = fmt::format("plan '{}', {}{}", choice.picked->name, choice.picked->why,
                            contract_of(*choice.picked, call));
      }
    } else if (what != nullptr) {
      *what = "a copy";
    }
    return std::make_unique<ServedByPlan>(*collectives_, unserved_, call, std::move(choice), stream,
                                          capturing);
  }

  bool launches_wait() const override { return collectives_->launches_wait(); }

  std::optional<SharedMemory> register_memory(void* address, uint64_t bytes,
                                              Diagnostics& diagnostics) override {
    const auto number = collectives_->register_buffer(address, bytes, diagnostics);
    if (!number) return std::nullopt;
    SharedMemory memory{*number, bytes};
    for (uint32_t rank = 0; rank < collectives_->communicator().size(); ++rank) {
      const auto there = collectives_->registered(*number, rank, diagnostics);
      memory.bytes = std::min(memory.bytes, there ? there->bytes : 0);
    }
    return memory;
  }
  void deregister_memory(const SharedMemory& memory) override {
    Diagnostics ignored;  // it was registered
    (void)collectives_->deregister_buffer(memory.number, ignored);
  }

 private:
  /// As the choice of a contract sees it.
  LibraryCall asked(const CollectiveCall& call) const {
    return {.kind = call.kind,
            .ranks = collectives_->communicator().size(),
            .dtype = call.dtype,
            .accumulate = call.accumulate,
            .op = call.op,
            .order = call.order.value_or(order_)};
  }

  /// ", its sums keep 'ranks'": what it asks for, or the strongest contract in such a call.
  std::string contract_of(const PickedPlan& plan, const CollectiveCall& call) const {
    if (!plan.plan->contract.reduces()) return "";
    return fmt::format(", its sums keep '{}'", name(kept_order(plan, asked(call))));
  }

  /// "; the nearest plan is …" of a call that has none under its contract alone.
  std::string nearest_plan(const CollectiveCall& call, bool capturing) {
    const auto nearest = mscclc::nearest_plan(asked(call), [&](const LibraryCall& weaker) {
      CollectiveCall other = call;
      other.order = weaker.order;
      other.accumulate = weaker.accumulate;
      Diagnostics ignored;
      const PlanChoice choice = collectives_->choose_once(other, capturing, nullptr, ignored);
      return serving_plan(choice.picked.get(), weaker);
    });
    return nearest ? "; " + nearest_plan_text(*nearest) : "";
  }

  const std::unique_ptr<Collectives> collectives_;
  const SumOrder order_;  ///< of calls that do not say it
  Unserved unserved_;
};

}  // namespace

std::unique_ptr<PlanCalls> make_library_calls(Communicator& communicator,
                                              const CollectivesOptions& options,
                                              Diagnostics& diagnostics) {
  auto plans = plans_of_process(diagnostics);
  return plans == nullptr ? nullptr
                          : make_calls_by(std::move(plans), communicator, options, diagnostics);
}

std::unique_ptr<PlanCalls> make_calls_by(std::shared_ptr<PlanProvider> plans,
                                         Communicator& communicator,
                                         const CollectivesOptions& options,
                                         Diagnostics& diagnostics) {
  auto collectives = Collectives::create(communicator, std::move(plans), options, diagnostics);
  if (collectives == nullptr) return nullptr;
  return std::make_unique<LibraryCalls>(std::move(collectives),
                                        options.order.value_or(kDefaultOrder));
}

}  // namespace mscclc::nccl
