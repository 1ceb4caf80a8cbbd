#include "runtime/api/plan_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "runtime/api/tuner_csv.h"
#include "runtime/choice/overlap/measured.h"
#include "runtime/choice/proofs/plan_digest.h"
#include "runtime/choice/proofs/policy.h"
#include "runtime/choice/registry/asked_selector.h"
#include "runtime/choice/registry/folder_table.h"
#include "runtime/choice/registry/read_checked.h"
#include "runtime/choice/registry/request_hash.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/log.h"

namespace mscclc {
namespace {

/// A plan that was added by itself.
struct Registered {
  std::string id;
  std::shared_ptr<const CheckedPlan> plan;
  std::shared_ptr<const PickedPlan> selected;  ///< what a selector that names it gets
};

/// A selector's choice does not end where the plan's own `select` options do.
std::shared_ptr<const PickedPlan> as_selected(const PickedPlan& plan) {
  auto made = std::make_shared<PickedPlan>(plan);
  made->max_bytes = ~uint64_t{0};
  made->why = "the selector names it";
  return made;
}

uint64_t width(const Range& range) { return range.max - range.min; }
/// How many a list covers; an empty one: all.
size_t covers(size_t listed) { return listed == 0 ? ~size_t{0} : listed; }

/// What goes first is less.
bool goes_before(const Registered& a, const Registered& b) {
  const auto key = [](const Registered& r) {
    const Program& plan = *r.plan->picked.plan;
    const Select& s = plan.select;
    // ~ turns the order round, and cannot overflow.
    const bool placed = plan.contract.can_alias() && plan.contract.in_place != InPlace::either;
    return std::tuple(~s.priority, s.tags.empty(), width(s.nodes), width(s.gpus_per_node),
                      width(s.sizes), covers(s.dtypes.size()), covers(s.ops.size()), !placed,
                      std::string_view(r.id));
  };
  return key(a) < key(b);
}

/// What a choice is made from; never changed once it is published.
struct Plans {
  std::vector<Registered> registered;
  std::vector<std::pair<std::string, std::shared_ptr<PlanProvider>>> folders;  ///< by path
  std::shared_ptr<const AskedSelector> selector;  ///< nullptr: there is none
  std::shared_ptr<PlanProvider> library;
  std::shared_ptr<const MeasuredTables> measured = std::make_shared<MeasuredTables>();
};

/// Requests whose answer is kept. Jobs make few different calls.
constexpr size_t kMaxKept = 4096;

std::string request_text(const PlanRequest& request) {
  return fmt::format("{}, {} bytes, {}{}", call_text(request.call), request.call.bytes,
                     info(request.call.dtype).name, placement_text(request.call));
}

/// Makes one choice.
class Picker {
 public:
  Picker(const Plans& plans, const PlanRequest& request, std::vector<PassedOver>& passed_over,
         Diagnostics& diagnostics)
      : plans_(plans), request_(request), passed_over_(passed_over), diagnostics_(diagnostics) {}

  std::shared_ptr<const PickedPlan> run() {
    const auto answer = plans_.selector != nullptr ? ask_selector() : std::optional(Selection{});
    if (!answer) return nullptr;
    const Selection& wanted = *answer;
    if (wanted.kind == Selection::Kind::plan) return selected(wanted.plan);
    if (wanted.kind == Selection::Kind::none) {
      passed_over_.push_back({"all plans", "the selector wants none for this call"});
      return nullptr;
    }
    if (wanted.kind != Selection::Kind::usual) {  // it may come from another language, as a number
      diagnostics_.error(
          "bad-selection", {},
          fmt::format("the selector's answer for {} names no plan", request_text(request_)));
      return nullptr;
    }
    auto picked = registered();
    for (const auto& [path, folder] : plans_.folders) {
      if (picked == nullptr && !failed_) picked = ask(*folder);
    }
    if (picked == nullptr && !failed_ && plans_.library != nullptr) picked = ask(*plans_.library);
    return picked;
  }

 private:
  /// nullopt: reported.
  std::optional<Selection> ask_selector() {
    auto answer = plans_.selector->ask(request_);
    if (!answer) {
      diagnostics_.error("bad-selection", {},
                         fmt::format("the selector was asked for {} by itself: it must not make or "
                                     "choose calls",
                                     request_text(request_)));
    }
    return answer;
  }

  static std::shared_ptr<const PickedPlan> of(const std::shared_ptr<const CheckedPlan>& plan) {
    return {plan, &plan->picked};
  }

  std::shared_ptr<const PickedPlan> ask(PlanProvider& provider) {
    Diagnostics found;
    auto picked = provider.pick(request_, &passed_over_, found);
    failed_ = found.has_errors();
    for (const Diagnostic& d : found.all()) diagnostics_.add(d);
    return picked;
  }

  std::optional<Error> why_not(const CheckedPlan& plan) const {
    const Program& program = *plan.picked.plan;
    return plan.facts.why_not(program, request_, &program.select);
  }

  std::shared_ptr<const PickedPlan> registered() {
    std::shared_ptr<const PickedPlan> picked;
    for (const Registered& r : plans_.registered) {
      if (r.plan->picked.plan->contract.kind != request_.call.kind) continue;
      const auto why = why_not(*r.plan);
      if (!why && picked == nullptr) {
        picked = of(r.plan);
        continue;
      }
      passed_over_.push_back(
          {r.plan->picked.name, why ? why->text() : fmt::format("'{}' goes first", picked->name)});
    }
    return picked;
  }

  std::shared_ptr<const PickedPlan> selected(const std::string& plan) {
    const auto is_it = [&](const Registered& r) {
      return r.id == plan || r.plan->picked.name == plan;
    };
    const auto found = std::ranges::find_if(plans_.registered, is_it);
    const auto why = found == plans_.registered.end()
                         ? Error{"no such plan is registered"}
                         : found->plan->facts.why_not(*found->plan->picked.plan, request_);
    if (!why) return found->selected;
    diagnostics_.error("bad-selection", {},
                       fmt::format("the selector wants {} for {}: {}", mscclc::quoted(plan),
                                   request_text(request_), why->text()));
    return nullptr;
  }

  const Plans& plans_;
  const PlanRequest& request_;
  std::vector<PassedOver>& passed_over_;
  Diagnostics& diagnostics_;
  bool failed_ = false;
};

void log_choice(const PlanRequest& request, const PickedPlan* picked,
                const std::vector<PassedOver>& passed_over) {
  if (!logs(LogLevel::info, LogArea::select)) return;
  const std::string call = request_text(request);
  log(LogLevel::info, LogArea::select, std::nullopt,
      picked == nullptr ? fmt::format("{}: no plan", call)
                        : fmt::format("{}: '{}', {}", call, picked->name, picked->why));
  for (const PassedOver& p : passed_over) {
    log(LogLevel::info, LogArea::select, std::nullopt,
        fmt::format("{}: not '{}': {}", call, p.name, p.why));
  }
}

void report_no_plan(const PlanRequest& request, const std::vector<PassedOver>& passed_over,
                    Diagnostics& diagnostics) {
  Diagnostic& error =
      diagnostics.error("no-plan", {},
                        fmt::format("no plan serves {}, under '{}' (MSCCLC_REQUIRE_PLAN)",
                                    request_text(request), name(request.call.order)));
  for (const PassedOver& p : passed_over) {
    error.notes.push_back({.text = fmt::format("'{}': {}", p.name, p.why)});
  }
}

/// What MSCCLC_PLAN_PATH names.
bool add_named_paths(PlanRegistry& registry, const Environment& environment,
                     Diagnostics& diagnostics) {
  if (!environment.has(Variable::MSCCLC_PLAN_PATH)) return true;
  const auto paths = environment.text(Variable::MSCCLC_PLAN_PATH, diagnostics);
  if (!paths) return false;
  for (std::string_view rest = *paths; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string path(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (path.empty()) continue;
    Diagnostics found;
    const bool added = registry.add_path(path, found);
    for (Diagnostic d : found.all()) {
      if (d.severity == Severity::error) d.notes.push_back({"MSCCLC_PLAN_PATH names it"});
      diagnostics.add(std::move(d));
    }
    if (!added) return false;
  }
  return true;
}

/// MSCCLC_TUNER_FILE.
bool follow_tuner_file(PlanRegistry& registry, const Environment& environment,
                       Diagnostics& diagnostics) {
  if (!environment.has(Variable::MSCCLC_TUNER_FILE)) return true;
  const auto file = environment.text(Variable::MSCCLC_TUNER_FILE, diagnostics);
  if (!file) return false;
  const auto text = read_named(*file, "cannot-read", "MSCCLC_TUNER_FILE names it", diagnostics);
  auto lines = text ? read_tuner_csv(*text, *file, diagnostics) : std::nullopt;
  if (lines) registry.set_selector(tuner_selector(*std::move(lines)));
  return lines.has_value();
}

/// The files of a folder that are plans, in order: none only where there is a table of what was
/// measured. nullopt: reported.
std::optional<std::vector<std::string>> plan_files(const std::string& path, bool measured,
                                                   Diagnostics& diagnostics) {
  std::vector<std::string> files;
  std::error_code failed;
  std::filesystem::directory_iterator at(path, failed);
  for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
    const bool is_plan =
        at->path().extension() == ".json" && at->path().filename() != overlap::kMeasuredFile;
    if (is_plan) files.push_back(at->path().string());
  }
  if (failed) {
    diagnostics.error("cannot-read", {},
                      fmt::format("cannot read the folder '{}': {}", path, failed.message()));
    return std::nullopt;
  }
  if (files.empty() && !measured) {
    diagnostics.error("no-registry", {}, fmt::format("'{}' has no plans (*.json)", path));
    return std::nullopt;
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

struct PlanRegistry::State {
  [[nodiscard]] std::shared_ptr<CheckedPlan> read(std::string_view json, const std::string& name,
                                                  Diagnostics& diagnostics) const;
  [[nodiscard]] bool add(std::vector<std::shared_ptr<CheckedPlan>> made, Diagnostics& diagnostics,
                         std::string* id = nullptr);
  bool add_folder(const std::string& path, Diagnostics& diagnostics);
  bool add_plans_of(const std::string& folder, bool measured, Diagnostics& diagnostics);
  /// Changes what choices are made from. `change` gets a copy, and returns false to give up.
  template <class F>
  bool change(const F& change);

  ProofPolicy policy = ProofPolicy::require;
  bool require = false;

  std::mutex changes;        ///< one change at a time
  mutable std::mutex mutex;  ///< of what follows, held for moments
  std::shared_ptr<const Plans> plans = std::make_shared<Plans>();
  std::unordered_map<PlanRequest, std::shared_ptr<const PickedPlan>, RequestHash> kept;
};

// What there was before goes last, without the mutexes: the selector is the caller's, and what it
// holds may wait for another thread when it goes, or ask the registry.
template <class F>
bool PlanRegistry::State::change(const F& change) {
  std::shared_ptr<const Plans> before;
  decltype(kept) kept_before;
  const std::lock_guard one(changes);
  auto next = std::make_shared<Plans>(*plans);
  if (!change(*next)) return false;
  std::ranges::sort(next->registered, goes_before);
  const std::lock_guard lock(mutex);
  before = std::exchange(plans, std::move(next));
  kept_before.swap(kept);
  return true;
}

std::shared_ptr<CheckedPlan> PlanRegistry::State::read(std::string_view json,
                                                       const std::string& name,
                                                       Diagnostics& diagnostics) const {
  auto made = read_checked_plan(json, name, policy, diagnostics);
  if (made == nullptr) return nullptr;
  const Select& select = made->picked.plan->select;
  made->picked.max_bytes = select.sizes.max;
  made->picked.serves_pieces = true;
  made->picked.why = select.priority == 0
                         ? "the first registered plan that serves it"
                         : fmt::format("the first registered plan that serves it, of priority {}",
                                       select.priority);
  return made;
}

bool PlanRegistry::State::add(std::vector<std::shared_ptr<CheckedPlan>> made,
                              Diagnostics& diagnostics, std::string* id) {
  return change([&](Plans& next) {
    for (auto& plan : made) {
      const auto digest = plan_digest(plan->picked.plan, diagnostics);
      if (!digest) return false;
      const std::string hash = hex(*digest);
      if (id != nullptr) *id = hash;
      const auto same = [&](const Registered& r) { return r.id == hash; };
      if (std::ranges::any_of(next.registered, same)) continue;
      const std::string& name = plan->picked.name;
      const auto taken = [&](const Registered& r) { return r.plan->picked.name == name; };
      if (std::ranges::any_of(next.registered, taken)) {
        diagnostics.error("name-taken", {},
                          fmt::format("another plan is registered as '{}'", name));
        return false;
      }
      next.registered.push_back({hash, plan, as_selected(plan->picked)});
    }
    return true;
  });
}

bool PlanRegistry::State::add_folder(const std::string& path, Diagnostics& diagnostics) {
  if (!has_measured(path)) return add_plans_of(path, false, diagnostics);
  auto measured = read_measured_of(path, diagnostics);
  if (!measured || !add_plans_of(path, true, diagnostics)) return false;
  return change([&](Plans& next) {
    auto more = std::make_shared<MeasuredTables>(*next.measured);
    more->tables.push_back(*std::move(measured));
    next.measured = std::move(more);
    return true;
  });
}

bool PlanRegistry::State::add_plans_of(const std::string& path, bool measured,
                                       Diagnostics& diagnostics) {
  if (FolderTable::is_there(path)) {
    std::shared_ptr<PlanProvider> folder = FolderTable::open(path, policy, diagnostics);
    if (folder == nullptr) return false;
    return change([&](Plans& next) {
      next.folders.emplace_back(path, std::move(folder));
      return true;
    });
  }
  const auto files = plan_files(path, measured, diagnostics);
  if (!files) return false;
  std::vector<std::shared_ptr<CheckedPlan>> made;
  for (const std::string& file : *files) {
    const auto text =
        read_named(file, "cannot-read", "all plans of a folder are read", diagnostics);
    made.push_back(text ? read(*text, file, diagnostics) : nullptr);
    if (made.back() == nullptr) return false;
    made.back()->picked.file = file;
  }
  return add(std::move(made), diagnostics);
}

PlanRegistry::PlanRegistry(std::unique_ptr<State> state) : state_(std::move(state)) {}
PlanRegistry::~PlanRegistry() = default;

std::shared_ptr<PlanRegistry> PlanRegistry::create(const RegistryOptions& options,
                                                   Diagnostics& diagnostics) {
  const Environment environment = Environment::of_process();
  const auto policy = proof_policy(options.proof, environment, diagnostics);
  const auto require = environment.number(Variable::MSCCLC_REQUIRE_PLAN, diagnostics);
  // A registry may come before any communicator, and what it skips is logged.
  if (!policy || !require || !start_log(environment, diagnostics)) return nullptr;
  auto state = std::make_unique<State>();
  state->policy = *policy;
  state->require = options.follow_environment && *require != 0;
  state->change([&](Plans& next) {
    next.library = options.library;
    return true;
  });
  std::shared_ptr<PlanRegistry> made(new PlanRegistry(std::move(state)));
  if (!options.follow_environment) return made;
  return add_named_paths(*made, environment, diagnostics) &&
                 follow_tuner_file(*made, environment, diagnostics)
             ? made
             : nullptr;
}

bool PlanRegistry::add_path(const std::string& path, Diagnostics& diagnostics) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return state_->add_folder(path, diagnostics);
  const auto text =
      read_named(path, "cannot-read", "a path is a plan's file or a folder of plans", diagnostics);
  auto made = text ? state_->read(*text, path, diagnostics) : nullptr;
  if (made == nullptr) return false;
  made->picked.file = path;
  return state_->add({std::move(made)}, diagnostics);
}

std::optional<std::string> PlanRegistry::register_plan(std::string_view json,
                                                       const std::string& name,
                                                       Diagnostics& diagnostics) {
  auto made = state_->read(json, name, diagnostics);
  std::string id;
  if (made == nullptr || !state_->add({std::move(made)}, diagnostics, &id)) return std::nullopt;
  return id;
}

bool PlanRegistry::remove(std::string_view plan) {
  return state_->change([&](Plans& next) {
    return std::erase_if(next.registered, [&](const Registered& r) {
             return r.id == plan || r.plan->picked.name == plan;
           }) > 0;
  });
}

void PlanRegistry::set_selector(PlanSelector selector) {
  const auto shared =
      selector ? std::make_shared<const AskedSelector>(std::move(selector)) : nullptr;
  state_->change([&](Plans& next) {
    next.selector = shared;
    return true;
  });
}

std::shared_ptr<const MeasuredTables> PlanRegistry::measured() const {
  const std::lock_guard lock(state_->mutex);
  return state_->plans->measured;
}

std::vector<RegisteredPlan> PlanRegistry::plans() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<RegisteredPlan> list;
  for (const Registered& r : state_->plans->registered) list.push_back({r.id, r.plan->picked});
  return list;
}

std::shared_ptr<const PickedPlan> PlanRegistry::pick(const PlanRequest& request,
                                                     std::vector<PassedOver>* passed_over,
                                                     Diagnostics& diagnostics) {
  State& state = *state_;
  std::shared_ptr<const Plans> plans;
  {
    const std::lock_guard lock(state.mutex);
    const auto kept = state.kept.find(request);
    if (kept != state.kept.end() && passed_over == nullptr) return kept->second;
    plans = state.plans;
  }
  std::vector<PassedOver> over;
  Diagnostics found;
  auto picked = Picker(*plans, request, over, found).run();
  for (const Diagnostic& d : found.all()) diagnostics.add(d);
  if (!found.has_errors()) {
    log_choice(request, picked.get(), over);
    if (picked == nullptr && state.require) report_no_plan(request, over, diagnostics);
  }
  if (passed_over != nullptr) {
    passed_over->insert(passed_over->end(), std::make_move_iterator(over.begin()),
                        std::make_move_iterator(over.end()));
  }
  if (found.has_errors() || (picked == nullptr && state.require)) return nullptr;
  const std::lock_guard lock(state.mutex);
  if (state.plans != plans) return picked;  // it was asked of plans that are no more
  if (state.kept.size() >= kMaxKept) state.kept.clear();
  return state.kept.emplace(request, picked).first->second;
}

}  // namespace mscclc
