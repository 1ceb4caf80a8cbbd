#include "passes/prove/prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

#include "ir/program/credits.h"
#include "ir/program/rank_parts.h"
#include "ir/support/precondition.h"
#include "passes/prove/division.h"
#include "passes/prove/loops/loop_groups.h"
#include "passes/prove/loops/rounds.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/model/representatives.h"
#include "passes/prove/model/system.h"
#include "passes/prove/report/report.h"
#include "passes/prove/run/explained.h"
#include "passes/prove/run/run.h"
#include "passes/prove/run/sum_forms.h"

namespace mscclc {
namespace {

using proof::Finding;
using proof::LoopGroups;
using proof::Representatives;
using proof::Run;
using proof::RunFacts;
using proof::RunOptions;
using proof::Symmetry;
using proof::System;

constexpr uint32_t kMaxCopies = 16;
constexpr uint64_t kMaxPeriod = 1024;  ///< calls, after which buffers use the same copies again
constexpr uint32_t kMaxRounds = 1000;  ///< of a search that proves nothing
/// What is wrong with plans of fewer ops is reported of all ranks: also of the one that a reader
/// meets first. And what the sums of larger ones are takes too long to find out unless it is asked
/// for.
constexpr uint64_t kFewOps = 20000;
constexpr uint64_t kMaxChunks = uint64_t{1} << 28;

class Prover {
 public:
  Prover(const Program& program, Diagnostics& diagnostics, const ProveOptions& options)
      : program_(program), diagnostics_(diagnostics), options_(options), no_symmetry_(program) {}

  Proof run() {
    if (!decidable()) return proof_;
    const Contract& contract = program_.contract;
    const bool apart = contract.in_place != InPlace::yes;
    const bool together = contract.in_place != InPlace::no && contract.can_alias();
    if (!apart && !together) return refuse("the contract allows neither placement"), proof_;
    // The two have nothing to do with each other, and a large plan takes seconds.
    Placement out_of_place(program_, false), in_place(program_, true);
    std::vector<Placement*> looked_at;
    if (apart) looked_at.push_back(&out_of_place);
    if (!premise(proof::Premise::in_place_too, !together)) looked_at.push_back(&in_place);
    run_threads(static_cast<uint32_t>(looked_at.size()),
                [&](uint32_t i) { run_placement(*looked_at[i]); });
    proof_.out_of_place = apart && accept(out_of_place);
    proof_.in_place = together && (proof_.out_of_place || !apart) && accept(in_place);
    proof_.proved = apart <= proof_.out_of_place && together <= proof_.in_place;
    proof_.orders = facts_.orders;
    proof_.keeps_input = proof_.out_of_place && out_of_place.facts.keeps_input;
    proof_.rounding = rounding();
    proof_.between_calls = between_calls();
    return proof_;
  }

  uint64_t ops() const {
    uint64_t ops = 0;
    for (const Rank& rank : program_.ranks) ops += rank.ops.size();
    return ops;
  }

  /// What the sums of a plan that is proved are, with all numbers of rounds and in both placements.
  SumExpressions sums(const Proof& proof) {
    proof::SumForms forms(program_.contract);
    if (const std::string all = proof::known_sum(program_.contract, proof); !all.empty()) {
      forms.add_all(all);
      return forms.expressions();
    }
    const Symmetry symmetry = is_large() ? Symmetry::find(program_) : no_symmetry_;
    for (const bool in_place : {false, true}) {
      if (!(in_place ? proof.in_place : proof.out_of_place)) continue;
      const System system(program_, symmetry, in_place);
      const LoopGroups groups(system);
      for (RunOptions& options : runs(1)) {
        options.traced = true;
        options.forms = &forms;
        Run(system, groups, symbols_, options).go();
      }
    }
    return forms.expressions();
  }

  /// Of a plan that is proved: is nothing wrong if callers touch scratch between calls, too?
  bool scratch_in_call() {
    if (has_packets()) return false;
    const Symmetry symmetry = is_large() ? Symmetry::find(program_) : no_symmetry_;
    const System system(program_, symmetry, program_.contract.in_place == InPlace::yes);
    const LoopGroups groups(system);
    return std::ranges::all_of(runs(system.period() + 1), [&](RunOptions options) {
      options.scratch_is_callers = true;
      Run run(system, groups, symbols_, options);
      run.go();
      return run.findings().empty();
    });
  }

 private:
  bool refuse(const std::string& why) {
    diagnostics_.error("undecided", {}, "not decided: " + why);
    return false;
  }

  bool has_packets() const {
    return std::ranges::any_of(program_.ranks, [](const Rank& rank) {
      return std::ranges::any_of(rank.buffers,
                                 [](const Buffer& b) { return b.packets != PacketFormat::none; });
    });
  }

  bool decidable() {
    uint64_t chunks = 0, period = 1;
    for (const Rank& rank : program_.ranks) {
      for (const Buffer& buffer : rank.buffers) {
        if (buffer.copies > kMaxCopies) {
          return refuse(fmt::format("a buffer has {} copies; up to {} are looked at", buffer.copies,
                                    kMaxCopies));
        }
        if (buffer.units > kMaxUnits) {
          return refuse(fmt::format("a buffer holds {} units of a pipeline; up to {} are looked at",
                                    buffer.units, kMaxUnits));
        }
        chunks += uint64_t{buffer.chunks} * buffer.copies;
        period = std::lcm(period, uint64_t{buffer.copies});
      }
    }
    if (period > kMaxPeriod) {
      return refuse(
          fmt::format("with these copies, buffers use the same ones again after {} calls; "
                      "up to {} are looked at",
                      period, kMaxPeriod));
    }
    if (chunks > kMaxChunks) return refuse(fmt::format("the buffers have {} chunks", chunks));
    return one_reduction();
  }

  /// Sums of sums are sums; a maximum of sums is something else.
  bool one_reduction() {
    std::optional<ReduceOp> found;
    for (const Rank& rank : program_.ranks) {
      for (const Op& op : rank.ops) {
        if (!info(op.kind).has(kReduces)) continue;
        if (!premise(proof::Premise::one_reduction, found.value_or(op.reduce) == op.reduce)) {
          return refuse(fmt::format("the plan mixes the reductions {} and {}", name(*found),
                                    name(op.reduce)));
        }
        found = op.reduce;
      }
    }
    if (found == ReduceOp::avg && program_.contract.contributions() == 0) {
      diagnostics_.error("avg-contributions", {},
                         "'avg' needs outputs that are sums of equally many inputs");
      return false;
    }
    return true;
  }

  /// One of the two ways to place the caller's buffers, and what came of it.
  struct Placement {
    Placement(const Program& program, bool in_place)
        : program(program), in_place(in_place), symmetry(program) {}
    const Program& program;  ///< all of the plan, or blocks that stand for all
    const bool in_place;
    const std::vector<std::vector<bool>>* outputs = nullptr;  ///< see RunOptions
    Symmetry symmetry;
    std::optional<System> system = {};
    std::vector<Finding> findings = {};
    RunFacts facts = {};
  };

  bool is_large() const { return ops() >= options_.symmetry_from; }

  /// What is wrong is found with all blocks and ranks, unless that takes long.
  void run_placement(Placement& placement) const {
    if (run_representatives(placement)) return;
    placement.symmetry = is_large() ? Symmetry::find(program_) : no_symmetry_;
    run_ranks(placement);
    if (placement.findings.empty() || placement.symmetry.trivial()) return;
    if (ops() >= kFewOps && !has_packets()) return;
    placement.facts = {};
    placement.symmetry = no_symmetry_;
    run_ranks(placement);
  }

  /// Of the blocks that stand for all: true if nothing is wrong.
  bool run_representatives(Placement& placement) const {
    if (!is_large()) return false;
    const auto some = Representatives::find(program_, placement.in_place);
    if (!some) return false;
    Placement of_some(some->program, placement.in_place);
    of_some.symmetry = Symmetry::find(some->program);
    of_some.outputs = &some->outputs;
    run_ranks(of_some);
    placement.facts = of_some.facts;
    return of_some.findings.empty();
  }

  /// The ranks that stand for all.
  void run_ranks(Placement& placement) const {
    System& system =
        placement.system.emplace(placement.program, placement.symmetry, placement.in_place);
    if (placement.outputs != nullptr) system.number_touched_chunks();
    const LoopGroups groups(system);
    placement.findings = groups.findings();
    if (!placement.findings.empty()) return;
    for (RunOptions& options : runs(premise(proof::Premise::one_call_more_than_copies,
                                            system.period() + 1, system.period()))) {
      options.outputs = placement.outputs;
      run(placement, groups, options);
      if (placement.findings.empty()) continue;
      if (out_of_step(placement)) look_for_more(placement, groups, options);
      return;
    }
  }

  /// Lemma R5: has no message of the plan any bytes? A barrier's has none, nor have those of which
  /// the contract gives no rank a chunk.
  bool has_no_bytes() const { return Chunking::parts_of_message(program_.contract) == 0; }

  /// What is to be run: all numbers of rounds that matter, or a message without bytes, where no
  /// other call is ever made.
  std::vector<RunOptions> runs(uint32_t calls) const {
    RunOptions options;
    options.calls = calls;
    options.divides = proof::may_divide(program_);
    if (!premise(proof::Premise::messages_without_bytes, !has_no_bytes())) {
      options.empty = true;
      options.rounds.assign(program_.loops.size(), 0);
      return {options};
    }
    std::vector<RunOptions> all;
    for (const std::vector<uint32_t>& rounds : proof::round_choices(program_)) {
      options.rounds = rounds;
      all.push_back(options);
    }
    return all;
  }

  void run(Placement& placement, const LoopGroups& groups, const RunOptions& options) const {
    std::optional<Run> run(std::in_place, *placement.system, groups, symbols_, options);
    run->go();
    placement.facts.join(run->facts());
    placement.findings = run->findings();
    if (placement.findings.empty()) return;
    const proof::Suspects suspects = run->suspects();
    run.reset();  // reports may need its memory
    placement.findings = proof::explained(std::move(placement.findings), suspects,
                                          *placement.system, groups, symbols_, options);
  }

  static bool out_of_step(const Placement& placement) {
    return placement.findings.size() == 1 &&
           placement.findings[0].kind == Finding::Kind::out_of_step;
  }

  /// Loops do not go in step, so nothing is decided; but if so many rounds that no credit is left
  /// go wrong, it is better to say how.
  void look_for_more(Placement& placement, const LoopGroups& groups, RunOptions options) const {
    const std::vector<Finding> before = placement.findings;
    options.in_step = false;
    const uint64_t rounds = std::min<uint64_t>(rounds_beyond_credits(program_), kMaxRounds);
    options.rounds.assign(program_.loops.size(), static_cast<uint32_t>(rounds));
    run(placement, groups, options);
    if (placement.findings.empty()) placement.findings = before;
  }

  bool accept(const Placement& placement) {
    facts_.join(placement.facts);
    if (!placement.findings.empty()) report_all(*placement.system, placement.findings);
    return placement.findings.empty();
  }

  void report_all(const System& system, const std::vector<Finding>& findings) {
    for (Finding& finding : proof::causes(findings)) {
      finding.copies = enough_copies(finding);
      proof::report(system, finding, diagnostics_);
      if (options_.unordered == nullptr) continue;
      if (const auto pair = proof::unordered(system, finding)) options_.unordered->push_back(*pair);
    }
  }

  /// How many copies of the buffer would keep calls apart that disturb each other there; 0 if none
  /// of a few numbers does, or if the options do not ask.
  uint32_t enough_copies(const Finding& finding) {
    constexpr uint32_t kMaxTried = 4;
    const bool at_chunk =
        finding.kind == Finding::Kind::race || finding.kind == Finding::Kind::slot_twice;
    if (!options_.try_copies || !at_chunk || finding.chunk.buffer < kFirstScratch) return 0;
    if (finding.first.call == finding.second.call || ops() >= kFewOps) return 0;
    const Buffer& buffer = program_.ranks[finding.chunk.rank].buffers[finding.chunk.buffer];
    const auto [known, added] = enough_copies_.try_emplace({buffer.name, finding.in_place}, 0);
    for (uint32_t n = buffer.copies + 1; added && n <= kMaxTried && known->second == 0; ++n) {
      if (keeps_apart(buffer.name, n, finding.in_place)) known->second = n;
    }
    return known->second;
  }

  /// Is nothing wrong at the buffers of this name if each has so many copies?
  bool keeps_apart(NameId buffer, uint32_t copies, bool in_place) const {
    Program changed = program_;
    for (Rank& rank : changed.ranks) {
      for (Buffer& b : rank.buffers) {
        if (b.name == buffer) b.copies = copies;
      }
    }
    Diagnostics unused;
    Placement placement(changed, in_place);
    try {
      Prover(changed, unused, {}).run_placement(placement);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return std::ranges::none_of(placement.findings, [&](const Finding& f) {
      return changed.ranks[f.chunk.rank].buffers[f.chunk.buffer].name == buffer;
    });
  }

  /// A sum that is a term of another is stored in between. What the plan says of its sums
  /// (Op::complete) does not count.
  Rounding rounding() const {
    if (!premise(proof::Premise::terms_are_no_sums, !facts_.adds_sums)) return Rounding::each_op;
    const bool sums = std::ranges::any_of(program_.ranks, [](const Rank& rank) {
      return std::ranges::any_of(rank.ops,
                                 [](const Op& op) { return info(op.kind).has(kReduces); });
    });
    return sums ? Rounding::once : Rounding::none;
  }

  BetweenCalls between_calls() const {
    // A call of no bytes is not made, so that no ranks meet in it. But a barrier is.
    const bool made = program_.contract.kind == CollectiveKind::barrier || !has_no_bytes();
    if (facts_.meets && premise(proof::Premise::calls_that_are_made, made))
      return BetweenCalls::meeting;
    for (const Rank& rank : program_.ranks) {
      for (const Buffer& buffer : rank.buffers) {
        if (buffer.copies > 1) return BetweenCalls::copies;
      }
    }
    return BetweenCalls::signals;
  }

  const Program& program_;
  Diagnostics& diagnostics_;
  const ProveOptions options_;
  const Symmetry no_symmetry_;
  const proof::Symbols symbols_;
  RunFacts facts_;
  std::map<std::pair<NameId, bool>, uint32_t> enough_copies_;  ///< by buffer and placement
  Proof proof_;
};

/// None where memory does not suffice to write them down: the plan is proved all the same.
SumExpressions sums_of(Prover& prover, const Proof& proof) {
  try {
    return prover.sums(proof);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace

// The one place where a plan that is too large for this machine ends: threads hand on what they
// have thrown (run_threads).
Proof prove(const Program& program, Diagnostics& diagnostics, const ProveOptions& options) {
  precondition(program.split);
  try {
    Prover prover(program, diagnostics, options);
    const Proof proof = prover.run();
    if (options.sums != nullptr && proof.proved) *options.sums = sums_of(prover, proof);
    return proof;
  } catch (const std::bad_alloc&) {
    proof::report_no_memory(program, diagnostics);
    return {};
  }
}

std::string sums_of(const Program& program, const Proof& proof) {
  if (proof.rounding == Rounding::none) return "";
  const std::string known = proof::known_sum(program.contract, proof);
  if (!known.empty()) return proof::cut_off(known);
  Diagnostics unused;
  Prover prover(program, unused, {});
  return prover.ops() < kFewOps ? sums_of(prover, proof).name() : "";
}

bool scratch_in_call(const Program& program) {
  Diagnostics unused;
  try {
    return Prover(program, unused, {}).scratch_in_call();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace mscclc
