#include "tests/random_programs/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "compiler/compile.h"
#include "executor/host/run.h"
#include "ir/verify.h"
#include "passes/prove/prove.h"
#include "plans/plan_json.h"
#include "plans/target.h"
#include "tests/explore/explore.h"
#include "tests/random_programs/edges.h"
#include "tests/random_programs/families.h"

namespace mscclc::random_programs {
namespace {

/// Numbers of rounds that stand at edges: none, few, round the units, the credits, and many.
uint64_t draw_rounds(const Program& program, Dice& dice) {
  std::vector<uint64_t> edges = {0, 1, 2, 3};
  for (const Rank& rank : program.ranks) {
    for (const Buffer& b : rank.buffers) {
      if (b.units != 0) edges.insert(edges.end(), {b.units - 1, b.units, b.units + 1});
    }
    for (const Semaphore& s : rank.semaphores) {
      edges.insert(edges.end(), {s.initial, s.initial + 1});
    }
  }
  switch (dice.below(4)) {
    case 0:
      return dice.below(6);
    case 1:
      return 4 + dice.below(60);
    default:
      return edges[dice.below(static_cast<uint32_t>(edges.size()))];
  }
}

/// A message of so many bytes, some of them odd.
uint64_t draw_bytes(const Program& program, Dice& dice) {
  const uint64_t chunks = std::max<uint64_t>(1, program.contract.part_chunks());
  if (program.loops.empty()) {
    static constexpr uint64_t kSmall[] = {0, 1, 4, 16, 17, 20, 32, 52, 100, 120, 121, 260, 500};
    return kSmall[dice.below(13)] * (one_in(dice, 2) ? chunks : 1);
  }
  const Loop& loop = program.loops[dice.below(static_cast<uint32_t>(program.loops.size()))];
  uint64_t bytes = draw_rounds(program, dice) * loop.unit * chunks;
  switch (dice.below(4)) {
    case 0:
      return bytes + dice.below(17);
    case 1:
      return bytes - std::min<uint64_t>(bytes, dice.below(17));
    default:
      return bytes;
  }
}

RunSpec draw_run(const Program& program, Dice& dice) {
  RunSpec spec;
  const Contract& contract = program.contract;
  const bool may = contract.can_alias() && contract.in_place != InPlace::no;
  spec.in_place = contract.in_place == InPlace::yes || (may && one_in(dice, 2));
  spec.dtype = program.select.dtypes.empty() && one_in(dice, 3) ? Dtype::u8 : Dtype::f32;
  spec.bytes = draw_bytes(program, dice);
  spec.iterations = 2 + dice.below(3);
  spec.schedule_seed = one_in(dice, 8) ? 0 : dice.next();
  if (!one_in(dice, 6)) spec.adversary = Adversary{.lanes = 1 + dice.below(3)};
  return spec;
}

std::string describe(const RunSpec& spec) {
  return fmt::format("{} bytes of {}, {}, {} calls, schedule {}, {}", spec.bytes,
                     info(spec.dtype).name, *spec.in_place ? "in place" : "out of place",
                     spec.iterations, spec.schedule_seed,
                     spec.adversary ? fmt::format("{} lanes", spec.adversary->lanes)
                                    : std::string("no adversary"));
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
  if (program.loops.empty()) options.bytes = std::min<uint64_t>(*options.bytes, 130);
  options.dealing = one_in(dice, 2) ? 0 : dice.next();
  options.same_bits = true;
  options.reduced = true;
  return options;
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

RandomProgram random_program(uint64_t seed, uint64_t piece) {
  Dice dice((seed << 40) + piece);
  RandomProgram out{.sketch = make_sketch(dice)};
  const uint32_t edges = one_in(dice, 2) ? 0 : 1 + dice.below(2);
  for (uint32_t i = 0; i < edges; ++i) cross_edge(out.sketch, dice);
  static constexpr Form kForms[] = {Form::ir, Form::ir, Form::foreign, Form::ordered,
                                    Form::written};
  // What lacks a `sync` is no program without `auto_sync`.
  out.form = out.sketch.ir_only ? Form::ir : kForms[dice.below(edges == 0 ? 5 : 4)];
  out.by_json = one_in(dice, 4);
  return out;
}

std::string_view name(Outcome outcome) {
  constexpr std::array<std::string_view, kOutcomes> kNames = {
      "malformed", "refused", "refused_wrong", "undecided", "proved", "hole"};
  return kNames[static_cast<size_t>(outcome)];
}

std::optional<Program> load(const RandomProgram& random, std::string& error) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("random.mscl", random.text());
  auto program = compile(sources, file, {}, {}, diagnostics);
  if (program && random.by_json) {
    const auto json = write_plan(*program, builtin_targets().front(), diagnostics);
    program = json ? read_plan(*json, "random.json", diagnostics) : std::nullopt;
  }
  if (program && !verify_structure(*program, diagnostics)) program.reset();
  if (!program) error = render_text(diagnostics, sources);
  return program;
}

std::optional<std::string> fault_on_host(const Program& program, uint64_t number, uint32_t runs) {
  HostRunner runner(program);
  Dice dice(number ^ 0x9e3779b97f4a7c15);
  for (uint32_t i = 0; i < runs; ++i) {
    const RunSpec spec = draw_run(program, dice);
    Diagnostics diagnostics;
    if (one_in(dice, 3)) runner.restart();
    const RunResult result = runner.run(spec, diagnostics);
    if (result.status == RunStatus::right || result.status == RunStatus::refused) continue;
    return fmt::format("{}: {}", describe(spec),
                       diagnostics.all().empty() ? "wrong" : diagnostics.all()[0].message);
  }
  return std::nullopt;
}

Tried try_program(const Program& program, uint64_t number, const TrialOptions& options) {
  Diagnostics diagnostics;
  const bool proved = prove(program, diagnostics).proved;
  if (!proved) {
    const bool undecided = !diagnostics.all().empty() && diagnostics.all()[0].code == "undecided";
    const auto fault = fault_on_host(program, number, options.refused_runs);
    const Outcome refused = fault ? Outcome::refused_wrong : Outcome::refused;
    Tried tried{undecided ? Outcome::undecided : refused, {}};
    if (!diagnostics.all().empty()) tried.why = diagnostics.all()[0].message;
    return tried;
  }
  if (const auto fault = fault_on_host(program, number, options.runs)) {
    return {Outcome::hole, "host machine, " + *fault};
  }
  Tried tried{Outcome::proved, {}, false};
  Dice dice(number ^ 0xd1b54a32d192ed03);
  for (uint32_t i = 0; i < options.explorations && tried.outcome == Outcome::proved; ++i) {
    const ExploreOptions drawn = draw_exploration(program, dice, options.most_states);
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
