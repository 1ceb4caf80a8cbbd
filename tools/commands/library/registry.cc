// mscclc registry: looks at a folder of plans as a job would, and says which calls it serves.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include "ir/program/program.h"
#include "passes/prove/prove.h"
#include "runtime/api/collectives.h"
#include "runtime/api/pick_for_job.h"
#include "runtime/api/plan.h"
#include "runtime/api/plan_registry.h"
#include "runtime/choice/overlap/measured.h"
#include "tools/commands/library/registry_orders.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/library.h"
#include "tools/report/registry_coverage.h"
#include "tools/report/registry_tuner.h"

namespace mscclc {
namespace {

constexpr const char* kRegistryExamples = R"(  mscclc registry check /opt/plans
  mscclc registry check /opt/plans --svg coverage.svg
  mscclc registry check /opt/plans --order ranks
  mscclc registry tuner /opt/own_plans > tuner.csv)";

struct RegistryCommand {
  std::string action, folder, drawing, order;
  const CommandLine* line = nullptr;
};

/// A folder's plans, and what they say that they are for.
struct Surveyed {
  std::shared_ptr<PlanRegistry> registry;
  std::vector<CoveredPlan> plans;
  std::map<std::string, std::shared_ptr<const Program>> programs;  ///< by file
  std::vector<std::string> by_hand;                                ///< that no call by name can get
  std::map<std::string, std::vector<SumOrder>> orders;  ///< by file, what rows of a table say
  SumOrder order = kDefaultOrder;                       ///< of calls
};

/// A call by name says neither what a custom collective promises, nor the counts of a plan.
bool is_called_by_name(CollectiveKind kind) {
  return kind != CollectiveKind::custom && kind != CollectiveKind::alltoallv;
}

/// Nodes of the calls that a plan is for, of those that it allows.
uint32_t nodes_of(const Program& plan) {
  const Select& select = plan.select;
  if (select.nodes.min <= 1) return 1;
  const uint64_t gpus = select.gpus_per_node.min;
  const uint64_t nodes = gpus == 0 ? select.nodes.min : plan.contract.ranks / gpus;
  return static_cast<uint32_t>(std::min<uint64_t>(nodes, plan.contract.ranks));
}

void add_registered(Surveyed& all) {
  for (const RegisteredPlan& r : all.registry->plans()) {
    const Program& plan = *r.plan.plan;
    const Contract& c = plan.contract;
    const Range& sizes = plan.select.sizes;
    all.programs[r.plan.name] = r.plan.plan;
    if (!is_called_by_name(c.kind)) {
      all.by_hand.push_back(fmt::format(
          "{}: {} cannot be picked by name: a program loads it by hand (mscclc_plan_load)",
          r.plan.name,
          c.kind == CollectiveKind::custom ? "a custom collective"
                                           : "an alltoallv of fixed counts"));
      continue;
    }
    CoveredPlan covered{r.plan.name, {.kind = c.kind, .ranks = c.ranks, .root = c.root}, {}};
    covered.call.nodes = nodes_of(plan);
    covered.call.shift = c.kind == CollectiveKind::sendrecv ? c.shift : 1;
    covered.begins.push_back(sizes.min);
    if (sizes.max != ~uint64_t{0}) covered.begins.push_back(sizes.max + 1);
    all.plans.push_back(std::move(covered));
  }
}

bool add_table(Surveyed& all, const Library& library, Diagnostics& diagnostics) {
  for (const LibraryRow& row : library.table.rows()) {
    const std::string path = library.path_of(row.choice);
    CoveredPlan covered{path, {.kind = row.kind, .ranks = row.min_ranks}, {}};
    covered.call.root = row.root.value_or(0);
    covered.call.shift = row.shift.value_or(1);
    covered.call.nodes = row.min_nodes;
    if (row.bytes != ~uint64_t{0}) covered.begins.push_back(row.bytes + 1);
    all.plans.push_back(std::move(covered));
    all.orders[path].push_back(row.order);
    if (all.programs.contains(path)) continue;
    const auto text = read_input(path);
    if (!text) {
      diagnostics.error("cannot-read", {}, text.error().text());
      return false;
    }
    auto plan = load_plan(*text, path, diagnostics);
    if (plan == nullptr) return false;
    all.programs[path] = std::move(plan);
  }
  return true;
}

/// False: reported.
bool add_plans(Surveyed& all, const std::string& folder, Diagnostics& diagnostics) {
  if (all.registry == nullptr || !all.registry->add_path(folder, diagnostics)) return false;
  add_registered(all);
  std::error_code none;
  if (!std::filesystem::exists(folder + "/library.json", none)) return true;
  const auto library = open_library(folder, diagnostics);
  return library && add_table(all, *library, diagnostics);
}

/// For calls under the order that --order names, or else a job's.
std::optional<Surveyed> survey(const RegistryCommand& options, Diagnostics& diagnostics) {
  const auto order = order_of_calls(options.order, diagnostics);
  if (!order) return std::nullopt;
  Surveyed all;
  all.registry = PlanRegistry::create({.follow_environment = false}, diagnostics);
  all.order = *order;
  if (!add_plans(all, options.folder, diagnostics)) return std::nullopt;
  for (CoveredPlan& plan : all.plans) plan.call.order = all.order;
  return all;
}

/// Answers as a job that makes large calls of pieces.
class OfJob final : public PlanProvider {
 public:
  explicit OfJob(std::shared_ptr<PlanRegistry> registry) : registry_(std::move(registry)) {}
  std::shared_ptr<const PickedPlan> pick(const PlanRequest& request,
                                         std::vector<PassedOver>* passed_over,
                                         Diagnostics& diagnostics) override {
    return pick_for_job(*registry_, request, passed_over, diagnostics).picked;
  }

 private:
  const std::shared_ptr<PlanRegistry> registry_;
};

/// What jobs pick from a folder for the calls of `plans`.
Coverage coverage_in_jobs(const Surveyed& all, std::vector<CoveredPlan> plans,
                          Diagnostics& diagnostics) {
  // Larger calls may be made of pieces, for which others are picked.
  for (CoveredPlan& plan : plans) plan.begins.push_back(CollectivesOptions().piece_bytes + 1);
  OfJob job(all.registry);
  return coverage_of(job, plans, diagnostics);
}

/// Of a folder that could not be surveyed.
int why_not_surveyed(const Diagnostics& diagnostics) {
  const auto is_usage = [](const Diagnostic& d) {
    return d.code == "cannot-read" || d.code == "bad-variable";
  };
  return std::ranges::any_of(diagnostics.all(), is_usage) ? kUsage : kWrongProgram;
}

constexpr std::string_view kNotDecided =
    "  each is proved by itself, and communicators of mscclc need no more: their plans share "
    "nothing\n"
    "  where plans share channels, as in MSCCL++'s executor, prove those that a job calls: 'mscclc "
    "verify --together'\n";

bool is_undecided(const Diagnostics& found) {
  return !found.all().empty() && std::ranges::all_of(found.all(), [](const Diagnostic& d) {
    return d.code == "undecided";
  });
}

/// Of a set on which nothing is decided: says so, and whether each of its plans is right by itself.
bool prove_apart(std::span<const SharedPlan> plans, const Diagnostic& undecided,
                 Diagnostics& diagnostics) {
  put(fmt::format("{} plans over {} ranks, together: {}\n", plans.size(), plans[0].ranks.size(),
                  undecided.message));
  for (const Note& note : undecided.notes) put(fmt::format("  {}\n", note.text));
  const bool proved = std::ranges::all_of(
      plans, [&](const SharedPlan& plan) { return prove(*plan.program, diagnostics).proved; });
  if (proved) put(kNotDecided);
  return proved;
}

/// Whether calls of all plans for the same number of ranks may follow one another in any order,
/// even where they share channels. What is not decided is said, and is no error, as the plans of a
/// communicator share none.
bool prove_sets(const Surveyed& all, Diagnostics& diagnostics) {
  std::map<uint32_t, std::vector<SharedPlan>> sets;
  for (const auto& [name, plan] : all.programs) {
    SharedPlan shared{plan.get(), name, {}};
    for (uint32_t r = 0; r < plan->ranks.size(); ++r) shared.ranks.push_back(r);
    sets[plan->contract.ranks].push_back(std::move(shared));
  }
  bool proved = true;
  for (const auto& [ranks, plans] : sets) {
    Diagnostics found;
    const bool right = prove_together(plans, CallOrder::own, found);
    if (!right && is_undecided(found)) {
      proved &= prove_apart(plans, found.all()[0], diagnostics);
      continue;
    }
    put(fmt::format("{} plans over {} ranks, together: {}\n", plans.size(), ranks,
                    right ? "proved" : "refused"));
    for (const Diagnostic& d : found.all()) diagnostics.add(d);
    proved &= right;
  }
  return proved;
}

/// How all plans add up. REQUIRES: each was proved when it was read, or is skipped.
std::vector<SummingPlan> summing_plans(const Surveyed& all) {
  std::vector<SummingPlan> plans;
  for (const auto& [file, plan] : all.programs) {
    const Contract& c = plan->contract;
    Diagnostics ignored;
    SummingPlan made{file, {.kind = c.kind, .ranks = c.ranks, .root = c.root}, {}, {}};
    made.proof = prove(*plan, ignored, {.sums = &made.sums});
    if (!made.proof.proved || made.proof.rounding == Rounding::none) continue;
    made.by_name = is_called_by_name(c.kind) && c.then == Contract::kNoFunction;
    if (const auto rows = all.orders.find(file); rows != all.orders.end()) made.rows = rows->second;
    plans.push_back(std::move(made));
  }
  return plans;
}

/// Says how each plan adds up, and whether calls that have a plan have one under the contract.
bool show_orders(const Surveyed& all, SumOrder order, const Coverage& under,
                 Diagnostics& diagnostics) {
  std::vector<CoveredPlan> plans = all.plans;
  for (CoveredPlan& plan : plans) plan.call.order = SumOrder::any;
  const std::vector<SummingPlan> sums = summing_plans(all);
  const std::string unserved =
      unserved_text(coverage_in_jobs(all, plans, diagnostics), under, sums, order);
  put(sums_table(sums, order) + expressions_table(sums) + unserved);
  if (!unserved.empty()) return false;
  put(fmt::format("all calls that have a plan have one under '{}'\n", name(order)));
  return true;
}

int run_check(const RegistryCommand& options) {
  Diagnostics diagnostics;
  auto all = survey(options, diagnostics);
  if (!all) {
    put_error(render_text(diagnostics, Sources()));
    return why_not_surveyed(diagnostics);
  }
  std::vector<std::string> read = {options.folder + "/library.json"};
  for (const auto& [file, plan] : all->programs) read.push_back(file);
  if (const auto error = options.line->overwrites(read)) {
    put_error(fmt::format("mscclc registry: {}\n", error->text()));
    return kUsage;
  }
  const SumOrder order = all->order;
  const Coverage coverage = coverage_in_jobs(*all, all->plans, diagnostics);
  put(coverage_table(coverage));
  for (const std::string& plan : all->by_hand) put(plan + "\n");
  for (const MeasuredTable& table : all->registry->measured()->tables) {
    put(fmt::format("{}: {} rows for GEMMs that overlap\n", table.file, table.rows.size()));
  }
  const bool kept = options.order.empty() || show_orders(*all, order, coverage, diagnostics);
  const bool proved = prove_sets(*all, diagnostics) && kept;
  put_error(render_text(diagnostics, Sources()));
  Result<void> drawn;
  if (!options.drawing.empty()) {
    drawn = write_file(options.drawing, coverage_drawing(coverage, options.folder));
  }
  if (!drawn) {
    put_error(drawn.error().text() + "\n");
    return kUsage;
  }
  return proved && !diagnostics.has_errors() ? kFine : kWrongProgram;
}

/// A tuner file on standard output.
int run_tuner(const RegistryCommand& options) {
  Diagnostics diagnostics;
  const auto all = survey(options, diagnostics);
  std::optional<std::string> text;
  TunerChoices made;
  if (all) {
    made = tuner_choices(coverage_in_jobs(*all, all->plans, diagnostics));
    text = write_tuner_csv(made.lines, diagnostics);
  }
  put_error(render_text(diagnostics, Sources()));
  if (!text || diagnostics.has_errors()) return why_not_surveyed(diagnostics);
  put(*text);
  for (const std::string& calls : made.left_out) put(fmt::format("# no line: {}\n", calls));
  return kFine;
}

int run_registry(const RegistryCommand& options) {
  if (const auto fine = needs_file("a drawing", options.drawing); !fine) {
    return Input::usage(fine.error());
  }
  if (options.action == "check") return run_check(options);
  if (!options.order.empty()) {
    put_error("mscclc registry: --order is for check\n");
    return kUsage;
  }
  std::error_code none;
  if (std::filesystem::exists(options.folder + "/library.json", none)) {
    put_error(
        fmt::format("mscclc registry: {}: plans of a table have no names that a tuner file could "
                    "give; in a folder of the same plans without library.json they have\n",
                    options.folder));
    return kUsage;
  }
  if (options.drawing.empty()) return run_tuner(options);
  put_error("mscclc registry: --svg is for check\n");
  return kUsage;
}

void registry_options(CommandLine& line, CLI::App& app, RegistryCommand& options) {
  options.line = &line;
  const std::vector<std::string> actions = {"check", "tuner"};
  line.takes(
      app.add_option("ACTION", options.action,
                     "check: sizes that no plan serves (gaps) or several do (overlaps), plans that "
                     "are never picked; and whether the plans may be called in any order. tuner: "
                     "write what is picked as an NCCL tuner file, for MSCCLC_TUNER_FILE")
          ->type_name("ACTION")
          ->required()
          ->check(CLI::IsMember(actions)),
      actions);
  app.add_option("FOLDER", options.folder, "plans, with the table of 'mscclc library' or without")
      ->type_name("FOLDER")
      ->required();
  add_order_option(line, app, options.order,
                   "check: for calls whose sums keep to this (MSCCLC_ORDER, or replicated); show "
                   "how each plan adds up, what its sums are, and which calls that have a plan "
                   "have none that keeps it");
  line.writes(app.add_option("--svg", options.drawing, "also draw it")->type_name("FILE"));
}

}  // namespace

void add_registry(CommandLine& line) {
  line.add("registry", "show which calls a folder of plans serves", kRegistryExamples,
           registry_options, run_registry);
}

}  // namespace mscclc
