#include "tools/bench/plans/plan_source.h"

#include <algorithm>
#include <sstream>

#include "compiler/compile.h"
#include "plans/format/plan_json.h"

namespace mscclc::bench {
namespace {

using Defines = std::vector<std::pair<std::string, std::string>>;

// "plans/x.mscl:B=4,I=2"
struct Argument {
  std::string path, parameters;
  explicit Argument(const std::string& text) {
    const size_t colon = text.find(':');
    path = text.substr(0, colon);
    if (colon != std::string::npos) parameters = text.substr(colon + 1);
  }

  /// Programs for one node call their ranks R; those for several say otherwise themselves.
  Defines defines(uint32_t ranks) const {
    Defines list;
    std::istringstream items(parameters);
    for (std::string item; std::getline(items, item, ',');) {
      const size_t equals = item.find('=');
      list.emplace_back(item.substr(0, equals),
                        equals == std::string::npos ? "" : item.substr(equals + 1));
    }
    const bool has_world = std::ranges::any_of(
        list, [](const auto& d) { return d.first == "world" || d.first == "R"; });
    if (!has_world) list.emplace_back("R", std::to_string(ranks));
    return list;
  }
};

/// Makes a plan of an argument; errors are in `diagnostics`.
class Maker {
 public:
  Maker(const Argument& argument, uint32_t ranks, uint32_t root)
      : argument_(argument), ranks_(ranks), root_(root) {}

  std::optional<BenchPlan> run() {
    const auto input = read_program(argument_.path);
    if (!input) return refuse(input.error().text());
    std::optional<Program> program =
        argument_.path.ends_with(".json") ? read(input->text) : compile_for_root(*input);
    if (!program) return std::nullopt;
    if (program->contract.ranks != ranks_) {
      return refuse("it is for " + std::to_string(program->contract.ranks) + " ranks");
    }
    if (has_root(program->contract.kind) && program->contract.root != root_) {
      return refuse("its root is " + std::to_string(program->contract.root));
    }
    if (!gate_.proof) return refuse("it is not split");
    const bool is_plan = argument_.path.ends_with(".json");
    auto as_read = is_plan ? std::make_shared<const Program>(*program) : nullptr;
    if (!argument_.parameters.empty()) program->name += ":" + argument_.parameters;
    const InPlace in_place = program->contract.in_place;
    return BenchPlan{.program = std::make_shared<const Program>(std::move(*program)),
                     .ordered_by = std::string(name(gate_.proof->between_calls)),
                     .keeps_input = gate_.proof->keeps_input,
                     .in_place = in_place,
                     .file = is_plan ? argument_.path : "",
                     .as_read = std::move(as_read)};
  }

  std::string why() const { return render_text(diagnostics_, sources_, 1); }

 private:
  std::nullopt_t refuse(const std::string& why) {
    if (!diagnostics_.has_errors()) diagnostics_.error("cannot-use", {}, why);
    return std::nullopt;
  }

  std::optional<Program> read(const std::string& text) {
    std::optional<ProofRecord> record;
    auto program = read_plan(text, argument_.path, diagnostics_, &record);
    if (!program) return std::nullopt;
    if (record) {
      gate_.proof = record->proof;
    } else if (!gate_.pass(*program, diagnostics_)) {
      return std::nullopt;
    }
    return program;
  }

  std::optional<Program> compile_with(const NamedText& input, Defines defines) {
    FrontEndOptions front;
    front.defines = std::move(defines);
    front.read_file = reader_of_imports(input);
    const FileId file = sources_.add(argument_.path, input.text);
    return compile(sources_, file, front, {}, diagnostics_, &gate_);
  }

  std::optional<Program> compile_for_root(const NamedText& input) {
    Defines defines = argument_.defines(ranks_);
    auto program = compile_with(input, defines);
    if (!program || !has_root(program->contract.kind) || program->contract.root == root_) {
      return program;
    }
    defines.emplace_back("root", std::to_string(root_));
    return compile_with(input, defines);
  }

  const Argument& argument_;
  const uint32_t ranks_, root_;
  Sources sources_;
  Diagnostics diagnostics_;
  ProofGate gate_;
};

/// True if the plan is the same, for the same calls.
bool is_same(const BenchPlan& plan, const LibraryRange& range, const std::string& text) {
  const Select& select = plan.program->select;
  return plan.argument == text && select.sizes.min == range.min && select.sizes.max == range.max &&
         select.dtypes == range.dtypes && plan.in_place == range.in_place;
}

/// A choice's parameters with their values for so many ranks and nodes: "world=4,gpus=2".
std::string params_for(const LibraryChoice& choice, uint32_t ranks, uint32_t nodes) {
  LibraryChoice valued = choice;
  const auto defines =
      choice.defines({.kind = CollectiveKind::allreduce, .ranks = ranks, .nodes = nodes});
  for (auto& [key, value] : valued.params) {
    for (const auto& [name, number] : defines) {
      if (name == key) value = number;
    }
  }
  return valued.params_text();
}

}  // namespace

void PlanSource::add(const std::string& text) {
  const Argument argument(text);
  Maker maker(argument, ranks_, root_);
  if (auto plan = maker.run()) {
    plans_.push_back(std::move(*plan));
  } else {
    left_out_.push_back({text, "", maker.why()});
  }
}

void PlanSource::add(const Library& library, const LibraryRange& range, LinkKind links) {
  std::string text = library.path_of(*range.choice);
  if (range.choice->plan.empty()) text += ":" + params_for(*range.choice, ranks_, nodes_);
  for (BenchPlan& plan : plans_) {
    if (!is_same(plan, range, text)) continue;
    if (plan.links != links) plan.links.reset();
    return;
  }
  const auto is_this = [&](const LeftOut& left) { return left.who == text; };
  if (std::ranges::any_of(left_out_, is_this)) return;
  const Argument argument(text);
  Maker maker(argument, ranks_, root_);
  auto plan = maker.run();
  if (!plan) {
    left_out_.push_back({text, "", maker.why()});
    return;
  }
  auto program = std::make_shared<Program>(*plan->program);
  program->select = {};
  program->select.sizes = {range.min, range.max};
  program->select.dtypes = range.dtypes;
  plan->program = std::move(program);
  plan->argument = text;
  plan->in_place = range.in_place;
  plan->links = links;
  plans_.push_back(std::move(*plan));
}

void PlanSource::add(const Library& library, const CallsOfRun& calls) {
  const uint64_t rounding = 8 * ranks_;  // messages are cut to whole elements on all ranks
  const auto kinds = calls.collectives.empty() ? library.table.collectives() : calls.collectives;
  for (const CollectiveKind kind : kinds) {
    for (const LinkKind links : {LinkKind::nvlink, LinkKind::pcie}) {
      const LibraryCall any{
          .kind = kind, .ranks = ranks_, .root = root_, .links = links, .nodes = nodes_};
      if (library.table.choose(any) == nullptr) continue;
      for (const LibraryRange& range : library.table.ranges(any)) {
        const bool size = std::ranges::any_of(calls.sizes, [&](uint64_t bytes) {
          return range.min <= bytes && bytes - std::min(bytes, rounding) <= range.max;
        });
        const bool dtype = std::ranges::any_of(calls.dtypes, [&](Dtype t) {
          return std::ranges::find(range.dtypes, t) != range.dtypes.end();
        });
        if (size && dtype) add(library, range, links);
      }
    }
  }
}

std::vector<BenchPlan> PlanSource::plans_for(CollectiveKind kind, uint32_t ranks,
                                             LinkKind worst) const {
  std::vector<BenchPlan> found;
  for (const BenchPlan& plan : plans_) {
    const Contract& contract = plan.program->contract;
    if (contract.kind == kind && contract.ranks == ranks && plan.is_for(worst))
      found.push_back(plan);
  }
  return found;
}

std::vector<CollectiveKind> PlanSource::collectives() const {
  std::vector<CollectiveKind> kinds;
  for (const BenchPlan& plan : plans_) {
    const CollectiveKind kind = plan.program->contract.kind;
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace mscclc::bench
