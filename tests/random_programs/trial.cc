#include "tests/random_programs/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/compile.h"
#include "executor/simulator/run.h"
#include "ir/diagnostics/first_message.h"
#include "ir/verify/verify.h"
#include "passes/prove/prove.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "tests/explore/explore.h"
#include "tests/random_programs/draws.h"
#include "tests/random_programs/families/edges.h"
#include "tests/random_programs/repeated.h"
#include "tests/random_programs/sets.h"

namespace mscclc::random_programs {
namespace {

std::string describe(const RunSpec& spec) {
  return fmt::format("{} bytes of {}, {} calls", spec.bytes, describe_schedule(spec),
                     spec.iterations);
}

/// A small message (larger ones are not looked at), and how copies are dealt; in place at some
/// ranks, if that is allowed.
ExploreOptions draw_exploration(const Program& program, Dice& dice, uint64_t most_states) {
  ExploreOptions options{
      .calls = 2 + dice.below(2), .most_states = most_states, .most_events = 200};
  const Contract& contract = program.contract;
  options.in_place = contract.in_place == InPlace::yes;
  if (contract.in_place == InPlace::either && contract.can_alias()) {
    for (size_t r = 0; r < program.ranks.size(); ++r) options.placed.push_back(one_in(dice, 2));
  }
  options.bytes = draw_bytes(program, dice);
  if (Chunking::parts_of_message(contract) != 0) {
    options.bytes = std::max<uint64_t>(*options.bytes, 1);  // lemma R5: no bytes, no call
  }
  if (program.loops.empty()) options.bytes = std::min<uint64_t>(*options.bytes, 130);
  options.dealing = one_in(dice, 2) ? 0 : dice.next();
  options.same_bits = true;
  options.reduced = true;
  return options;
}

/// The next message of which every chunk is as long as the others.
uint64_t whole_granules(const Program& program, uint64_t bytes) {
  const uint64_t row =
      uint64_t{program.launch.align} * std::max<uint64_t>(1, program.contract.part_chunks());
  return (bytes / row + 1) * row;
}

std::string describe(const ExploreOptions& options) {
  std::string placed = options.in_place ? "in place" : "out of place";
  for (size_t r = 0; r < options.placed.size(); ++r) {
    placed += fmt::format("{}rank {} {} place", r == 0 ? ": " : ", ", r,
                          options.placed[r] ? "in" : "out of");
  }
  return fmt::format("{} bytes, {} calls, {}, dealing {}", *options.bytes, options.calls, placed,
                     options.dealing);
}

}  // namespace

RandomProgram random_program(uint64_t seed, uint64_t piece, const Family* family) {
  Dice dice((seed << 40) + piece);
  RandomProgram out{.sketch = (family != nullptr ? *family : draw_family(dice)).make(dice)};
  const uint32_t edges = one_in(dice, 2) ? 0 : 1 + dice.below(2);
  for (uint32_t i = 0; i < edges; ++i) cross_edge(out.sketch, dice);
  static constexpr Form kForms[] = {Form::ir, Form::ir, Form::foreign, Form::ordered,
                                    Form::written};
  // What lacks a `sync` is no program without `auto_sync`.
  out.form = out.sketch.ir_only ? Form::ir : kForms[dice.below(edges == 0 ? 5 : 4)];
  if (!out.sketch.rows.empty() && out.form == Form::foreign)
    out.form = Form::ir;  // no peer has them
  if (out.sketch.compiled && one_in(dice, 2)) out.form = Form::ordered;
  out.by_json = one_in(dice, 4);
  return out;
}

std::string_view name(Outcome outcome) {
  constexpr std::array<std::string_view, kOutcomes> kNames = {
      "malformed", "refused", "refused_wrong", "undecided", "proved", "hole"};
  return kNames[static_cast<size_t>(outcome)];
}

Result<Program> load(const RandomProgram& random) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("random.mscl", random.text());
  auto program = compile(sources, file, {}, {}, diagnostics);
  if (program && random.by_json) {
    const auto json = write_plan(*program, builtin_targets().front(), diagnostics);
    program = json ? read_plan(*json, "random.json", diagnostics) : std::nullopt;
  }
  if (program && verify_structure(*program, diagnostics)) return *std::move(program);
  return Error{render_text(diagnostics, sources)};
}

std::optional<std::string> fault_on_host(const Program& program, uint64_t number, uint32_t runs) {
  Simulator runner(program);
  Dice dice(number ^ 0x9e3779b97f4a7c15);
  for (uint32_t i = 0; i < runs; ++i) {
    const RunSpec spec = draw_run(program, dice);
    Diagnostics diagnostics;
    if (one_in(dice, 3)) runner.restart();
    const RunResult result = runner.run(spec, diagnostics);
    if (result.status == RunStatus::right || result.status == RunStatus::refused) continue;
    return fmt::format("{}: {}", describe(spec), first_message(diagnostics, "wrong"));
  }
  return std::nullopt;
}

namespace {

/// Lemmas S1 and S2: what ranks and blocks that stand for others show of all of them is so of all;
/// else what is not.
std::optional<std::string> shown_too_much(const Program& program, const Proof& all) {
  Diagnostics ignored;
  const Proof some = prove(program, ignored, {.symmetry_from = 0});
  const char* const shown = some.proved > all.proved                         ? "proved"
                            : some.orders.replicated > all.orders.replicated ? "replicated"
                            : some.orders.ranks > all.orders.ranks           ? "in rank order"
                            : some.orders.tree > all.orders.tree             ? "along the tree"
                            : some.orders.exact > all.orders.exact           ? "exact"
                            : some.keeps_input > all.keeps_input             ? "input kept"
                                                                             : nullptr;
  if (shown == nullptr) return std::nullopt;
  return fmt::format("'{}' by what stands for all, and not by all ranks and blocks", shown);
}

/// The same of some copies of the program.
std::optional<std::string> copies_show_too_much(const Program& program, uint64_t number) {
  Dice dice(number ^ 0x94d049bb133111eb);
  const auto copies = repeated(program, 2 + dice.below(3), dice);
  Diagnostics ignored;
  if (!copies || !verify_structure(*copies, ignored)) return std::nullopt;
  return shown_too_much(*copies, prove(*copies, ignored, {.symmetry_from = ~uint64_t{0}}));
}

}  // namespace

Tried try_program(const Program& program, uint64_t number, const TrialOptions& options) {
  Diagnostics diagnostics;
  const Proof proof = prove(program, diagnostics);
  if (const auto shown = shown_too_much(program, proof)) return {Outcome::hole, *shown};
  if (const auto shown = copies_show_too_much(program, number)) return {Outcome::hole, *shown};
  if (!proof.proved) {
    const bool undecided = !diagnostics.all().empty() && diagnostics.all()[0].code == "undecided";
    auto fault = fault_on_host(program, number, options.refused_runs);
    if (!fault) fault = fault_of_sizes(program, number, options.refused_runs);
    const Outcome refused = fault ? Outcome::refused_wrong : Outcome::refused;
    Tried tried{undecided ? Outcome::undecided : refused, {}};
    if (!diagnostics.all().empty()) tried.why = first_message(diagnostics);
    return tried;
  }
  if (const auto fault = fault_on_host(program, number, options.runs)) {
    return {Outcome::hole, "simulator, " + *fault};
  }
  if (const auto fault = fault_of_sizes(program, number, options.runs / 2)) {
    return {Outcome::hole, "simulator, " + *fault};
  }
  if (options.also) {
    if (const auto fault = options.also(program, number)) return {Outcome::hole, *fault};
  }
  Tried tried{Outcome::proved, {}, false};
  Dice dice(number ^ 0xd1b54a32d192ed03);
  for (uint32_t i = 0; i < options.explorations && tried.outcome == Outcome::proved; ++i) {
    ExploreOptions drawn = draw_exploration(program, dice, options.most_states);
    if (options.whole_granules) drawn.bytes = whole_granules(program, *drawn.bytes);
    drawn.rows_apart = !program.functions.empty() && i % 2 != 0;
    const Exploration found = explore(program, drawn);
    if (found.verdict == Verdict::unsupported || found.verdict == Verdict::too_large) {
      tried.why = found.reason;
      continue;
    }
    tried.explored = true;
    if (found.verdict == Verdict::right) continue;
    tried.outcome = Outcome::hole;
    tried.why = fmt::format("explorer, {}: {}: {}", describe(drawn), mscclc::name(found.verdict),
                            found.reason);
  }
  return tried;
}

}  // namespace mscclc::random_programs
