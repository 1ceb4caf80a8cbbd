#include "runtime/nccl/comm/library_calls.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>
#include <vector>

#include "runtime/api/builtin_library.h"
#include "runtime/api/plan_registry.h"

namespace mscclc::nccl {
namespace {

/// The plans of the process, read at the first call; all communicators share them. Never destroyed.
/// nullptr: reported, and read again at the next call.
std::shared_ptr<PlanProvider> plans_of_process(Diagnostics& diagnostics) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const plans = new std::shared_ptr<PlanProvider>;
  const std::lock_guard lock(*mutex);
  if (*plans != nullptr) return *plans;
  std::shared_ptr<PlanProvider> library = builtin_library({}, diagnostics);
  if (library == nullptr) return nullptr;
  *plans = PlanRegistry::create({.library = std::move(library)}, diagnostics);
  return *plans;
}

class LaunchedByCollectives final : public PreparedCall {
 public:
  LaunchedByCollectives(Collectives& collectives, ReadyCall call)
      : collectives_(collectives), call_(std::move(call)) {}
  bool launch(StreamHandle, Diagnostics& diagnostics) override {
    return collectives_.launch(call_, diagnostics);
  }

 private:
  Collectives& collectives_;
  const ReadyCall call_;
};

/// One line of reasons.
std::string why_not(const std::vector<PassedOver>& passed_over, const Diagnostics& diagnostics) {
  constexpr size_t kMost = 4;
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.all()) text += diagnostic.message + "; ";
  for (size_t i = 0; i < std::min(passed_over.size(), kMost); ++i) {
    text += fmt::format("'{}': {}; ", passed_over[i].name, passed_over[i].why);
  }
  if (passed_over.size() > kMost) text += fmt::format("{} more; ", passed_over.size() - kMost);
  if (text.empty()) return "there is no plan for it";
  return "no plan serves it: " + text.substr(0, text.size() - 2);
}

class LibraryCalls final : public PlanCalls {
 public:
  explicit LibraryCalls(std::unique_ptr<Collectives> collectives)
      : collectives_(std::move(collectives)) {}

  bool serves(const CollectiveCall& call, bool capturing, std::string* what) override {
    if (!collectives_->needs_plan(call)) {
      if (what != nullptr) *what = "a copy";
      return true;
    }
    std::vector<PassedOver> passed_over;
    Diagnostics diagnostics;
    const auto picked = collectives_->choose(call, capturing,
                                             what == nullptr ? nullptr : &passed_over, diagnostics);
    if (what == nullptr) return picked != nullptr;
    *what = picked != nullptr ? fmt::format("plan '{}', {}", picked->name, picked->why)
                              : why_not(passed_over, diagnostics);
    return picked != nullptr;
  }

  std::string plan_of(const CollectiveCall& call, bool capturing) override {
    if (!collectives_->needs_plan(call)) return "copy";
    Diagnostics ignored;  // prepare() reports it
    const auto picked = collectives_->choose(call, capturing, nullptr, ignored);
    return picked == nullptr ? "" : picked->name;
  }

  bool waits_for_ranks(const CollectiveCall& call, StreamHandle stream) override {
    return collectives_->waits_for_ranks(call, stream);
  }

  bool launches_wait() const override { return collectives_->launches_wait(); }

  std::unique_ptr<PreparedCall> prepare(const CollectiveCall& call, StreamHandle stream,
                                        Diagnostics& diagnostics) override {
    ReadyCall ready = collectives_->prepare(call, stream, diagnostics);
    if (!ready) return nullptr;
    return std::make_unique<LaunchedByCollectives>(*collectives_, std::move(ready));
  }

 private:
  const std::unique_ptr<Collectives> collectives_;
};

}  // namespace

std::unique_ptr<PlanCalls> make_library_calls(Communicator& communicator,
                                              const CollectivesOptions& options,
                                              Diagnostics& diagnostics) {
  auto plans = plans_of_process(diagnostics);
  if (plans == nullptr) return nullptr;
  auto collectives = Collectives::create(communicator, std::move(plans), options, diagnostics);
  if (collectives == nullptr) return nullptr;
  return std::make_unique<LibraryCalls>(std::move(collectives));
}

}  // namespace mscclc::nccl
