#include "passes/prove/run/results.h"

#include <algorithm>

#include "passes/prove/model/premise.h"
#include "passes/prove/run/difference.h"
#include "passes/prove/run/sum_forms.h"

namespace mscclc::proof {

Results::Results(const System& system, const Symbols& symbols, const RunOptions& options,
                 const CallOrder& calls, const History& history, const ChunkContents& contents,
                 const ExternalRows& externals, FindingList& findings)
    : system_(system),
      symbols_(symbols),
      options_(options),
      calls_(calls),
      history_(history),
      contents_(contents),
      externals_(externals),
      findings_(findings),
      sums_(system, symbols, calls, history, contents, findings),
      then_(bind_then(system.program())) {}

void Results::check(uint32_t rank, uint32_t call) {
  check_outputs(rank, call);
  if (then_) check_externals(rank, call);
  check_inputs(rank, call);
}

/// Is this one input of several ranks', which those who get it should have with the same bits? Sums
/// have no -0.0 anyway.
bool Results::moves_alike(const Contract& contract, const Promised& promised) {
  return contract.ranks > 1 && promised.added == nullptr;
}

/// What an output chunk must hold. Ranks that share their promises ask for the same again and
/// again.
const Results::Promised& Results::promised(uint32_t rank, uint32_t chunk, uint32_t call) {
  const bool shared = calls_.part(rank, call).contract().uniform() && !system_.joint() && !then_;
  if (!shared) return unshared_ = promise(rank, chunk, call);
  const uint64_t key = uint64_t{call} << 32 | chunk;
  const auto known = promised_.find(key);
  if (known != promised_.end()) return known->second;
  return promised_.emplace(key, promise(rank, chunk, call)).first->second;
}

Results::Promised Results::promise(uint32_t rank, uint32_t chunk, uint32_t call) {
  const Part& part = calls_.part(rank, call);
  Promised promised;
  Promise promise;
  if (!part.contract().promise(part.local[rank], chunk, promise)) return promised;
  promised.made = true;
  promised.symbol.terms = 0;
  const bool sum = promise.inputs.size() > 1;
  const uint64_t number = calls_.instance(rank, call);
  std::vector<uint32_t> added;
  for (const CallerChunk& p : promise.inputs) {
    const Symbol term = symbols_.contribution(part.world[p.rank], p.chunk, number);
    promised.symbol.low += term.low;
    promised.symbol.high += term.high + (promised.symbol.low < term.low ? 1 : 0);
    promised.symbol.terms = added_terms(promised.symbol.terms, term.terms);
    if (sum) added.push_back(part.world[p.rank]);
  }
  if (sum) {
    std::ranges::sort(added);
    promised.added = &sums_.summands(added);
  }
  if (promise.reduced && sum && calls_.divides(rank, call)) {
    promised.symbol = symbols_.rounded(promised.symbol, true);
  }
  if (then_) apply_then(rank, chunk, promised);
  return promised;
}

/// Of a collective of rows the output is a result of a row function: `arguments` are the promised
/// sum, and what the caller gave.
void Results::apply_then(uint32_t rank, uint32_t chunk, Promised& promised) const {
  for (const uint32_t e : then_->params) {
    promised.arguments.push_back(e == kNone ? promised.symbol : externals_.given(e, rank, chunk));
  }
  if (premise(Premise::results_are_of_the_function, false)) return;
  promised.symbol = symbols_.applied(then_->function, then_->output, promised.arguments);
}

/// Externals that are written hold the other results.
void Results::check_externals(uint32_t rank, uint32_t call) {
  const Contract& contract = calls_.part(rank, call).contract();
  const uint32_t chunks = contract.chunk_count(Side::output, rank);
  for (uint32_t k = 0; k < then_->results.size(); ++k) {
    const uint32_t e = then_->results[k];
    if (e == kNone) continue;
    const bool shards = system_.program().externals[e].holding == rows::Holding::sharded;
    for (uint32_t c = 0; c < chunks; ++c) {
      if (!shards || owner_of_shard(contract, c) == rank) check_external(rank, call, k, c);
    }
  }
}

void Results::check_external(uint32_t rank, uint32_t call, uint32_t result, uint32_t chunk) {
  const uint32_t e = then_->results[result];
  const Promised wanted = promise(rank, chunk, call);
  const Symbol symbol = symbols_.applied(then_->function, result, wanted.arguments);
  const ExternalRows::Written* const written = externals_.written(e, rank, chunk);
  const bool right = written != nullptr && written->symbols.size() == written->parts &&
                     std::ranges::all_of(written->symbols, [&](const Symbol& s) {
                       return s.same_contributions(symbol);
                     });
  if (premise(Premise::externals_hold_what_is_promised, right)) {
    if (right) check_order({rank, e, chunk}, call, result, wanted, *written);
    return;
  }
  const auto raced = [&](const Symbol& s) { return contents_.raced(s); };
  if (written != nullptr && std::ranges::any_of(written->symbols, raced)) return;
  add_external({rank, e, chunk}, result, call, wanted);
}

/// What is written of externals is made of the promised sum, as the output is, in each of its
/// parts.
void Results::check_order(const ChunkName& name, uint32_t call, uint32_t result,
                          const Promised& wanted, const ExternalRows::Written& written) {
  if (call != 0 || wanted.added == nullptr) return;
  if (premise(Premise::externals_keep_the_order, false)) return;
  for (const Symbol& found : written.symbols) {
    sums_.check(
        name, *wanted.added, found,
        [&](uint64_t shape) { return shape_after(shape, wanted, result); }, &written.writer);
  }
}

/// One finding for all chunks of an external at a rank; `name.buffer` is the external.
void Results::add_external(const ChunkName& name, uint32_t result, uint32_t call,
                           const Promised& promised) {
  const uint64_t key = uint64_t{1} << 63 | uint64_t{name.buffer} << 32 | name.rank;
  if (findings_.reported(key) || !findings_.may_report(key)) return;
  const ExternalRows::Written* const written =
      externals_.written(name.buffer, name.rank, name.chunk);
  Finding& finding = findings_.add(Finding::Kind::wrong_external);
  finding.in_place = system_.in_place();
  finding.chunk = name;
  if (written == nullptr) {
    finding.notes.push_back("no op writes it");
    return;
  }
  finding.first = written->writer;
  finding.first.call = call;
  if (written->symbols.size() != written->parts) {
    finding.notes.push_back("some parts of it are not written");
  }
  const ValueTrace* const trace = contents_.trace();
  if (trace == nullptr) return;
  const Applying wanted{then_->function, result, promised.arguments};
  const ChunkName output{name.rank, kOutput, name.chunk};
  for (const Symbol& symbol : written->symbols) {
    const auto found = applied_difference(system_, calls_, output, call, *trace, symbol, wanted);
    if (found.kinds == 0) continue;
    finding.notes = found.texts;
    return;
  }
}

/// What becomes of the shape of a sum when the promised function is applied to it, in a result.
uint64_t Results::shape_after(uint64_t shape, const Promised& promised, uint32_t result) const {
  std::vector<Symbol> arguments = promised.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (then_->params[i] == kNone) arguments[i].shape = shape;
  }
  return symbols_.applied(then_->function, result, arguments).shape;
}

void Results::check_outputs(uint32_t rank, uint32_t call) {
  const uint32_t output = calls_.part(rank, call).input + kOutput;
  const uint32_t chunks = system_.program().ranks[rank].buffers[output].chunks;
  for (uint32_t c = 0; c < chunks; ++c) {
    if (options_.outputs != nullptr && !(*options_.outputs)[rank][c]) continue;
    const Promised& wanted = promised(rank, c, call);
    if (!wanted.made) continue;
    const Symbol found = contents_.read(system_.chunk(rank, output, c, call), {});
    const Contract& contract = calls_.part(rank, call).contract();
    const bool exact = then_ || moves_alike(contract, wanted);
    const bool kept = !exact || premise(Premise::results_keep_minus_zero, !found.plus_zero);
    const bool must_keep = then_ || contract.order != SumOrder::any;
    if (!premise(Premise::results_are_promised,
                 (kept || !must_keep) && found.same_contributions(wanted.symbol))) {
      report_wrong({rank, output, c}, call, wanted, exact && must_keep);
      continue;
    }
    if (!kept) sums_.note_other_bits();
    if (call != 0 || wanted.added == nullptr) continue;
    sums_.check({rank, output, c}, *wanted.added, found, [&](uint64_t shape) {
      return then_ ? shape_after(shape, wanted, then_->output) : shape;
    });
    if (options_.forms != nullptr) {
      options_.forms->add(system_, contents_, {rank, output, c}, found);
    }
  }
}

/// The caller may use its input while a call runs: what an op stores there, and puts back, is seen.
void Results::check_inputs(uint32_t rank, uint32_t call) {
  if (system_.in_place()) return;  // not needed where input and output are in one place
  const uint32_t input = calls_.part(rank, call).input + kInput;
  const uint32_t chunks = system_.program().ranks[rank].buffers[input].chunks;
  for (uint32_t c = 0; c < chunks; ++c) {
    const uint64_t chunk = system_.chunk(rank, input, c, call);
    if (chunk == kNoChunk) continue;  // kept
    const uint32_t newest = history_.stores(chunk);
    const bool kept = newest == kNone || history_.record(newest).event.op == kNone;
    if (!premise(Premise::inputs_are_kept, kept)) keep_input_ = false;
  }
}

/// Of results that are wrong in one way one is a finding; the others are named with it.
void Results::report_wrong(const ChunkName& name, uint32_t call, const Promised& wanted,
                           bool exact) {
  const uint64_t key = uint64_t{name.rank} << 32 | name.chunk;
  if (findings_.reported(key)) return;  // in an earlier call
  // What a call leaves shows as such in the next one; in the first it is memory as it was.
  const bool traced = contents_.trace() != nullptr;
  if (traced && !system_.joint() && call + 1 < calls_.count(name.rank)) return;
  const uint64_t chunk = system_.chunk(name.rank, name.buffer, name.chunk, call);
  // Pieces that hold the contributions, but in chunks of different lengths, say, are not a result.
  if (options_.suspects != nullptr && contents_.any_raced(chunk)) return;
  add_alike(key, wrong(name, call, chunk, wanted, exact));
}

Finding Results::wrong(const ChunkName& name, uint32_t call, uint64_t chunk, const Promised& wanted,
                       bool exact) const {
  const ChunkValue::Piece piece = contents_.piece_without(chunk, wanted.symbol, exact);
  const Event writer = last_store(history_, chunk, piece.extent);
  Difference found;
  if (const ValueTrace* const trace = contents_.trace()) {
    const bool other_zero =
        piece.symbol.plus_zero && piece.symbol.same_contributions(wanted.symbol);
    if (then_) {
      const Applying made{then_->function, then_->output, wanted.arguments};
      found = applied_difference(system_, calls_, name, call, *trace, piece.symbol, made);
    } else if (other_zero) {
      found.add(Difference::kOther,
                "it went through sentinel packets, which have no -0.0, so ranks may have other "
                "bits: take another format, or promise 'order: any'");
    } else {
      found =
          difference(system_, calls_, name, call, trace->content(piece.symbol), writer.op != kNone);
    }
  }
  Finding finding{};
  finding.kind = Finding::Kind::wrong_value;
  finding.in_place = system_.in_place();
  finding.chunk = name;
  finding.first = writer;
  finding.first.call = call;
  finding.notes = std::move(found.texts);
  finding.only_often = found.kinds == Difference::kOften;
  finding.differences = found.kinds;
  if (found.read) {
    finding.unwritten = found.read->chunk;
    finding.reader = found.read->reader;
    finding.reader_pair = found.read->pair;
    finding.added = found.kinds != Difference::kUnwritten;
  }
  return finding;
}

/// `key`: of the result.
void Results::add_alike(uint64_t key, Finding finding) {
  const std::pair way(place_in_text(finding.first), finding.differences);
  const auto alike = wrong_ways_.find(way);
  if (alike == wrong_ways_.end()) {
    if (!findings_.may_report(key)) return;
    wrong_ways_.emplace(way, findings_.size());
    findings_.add(finding.kind) = std::move(finding);
    return;
  }
  findings_.note_reported(key);
  Finding& first = findings_[alike->second];  // of the first rank, whichever has ended first
  const ChunkName &name = finding.chunk, &known = first.chunk;
  if (std::pair(name.rank, name.chunk) < std::pair(known.rank, known.chunk)) {
    finding.alike = std::move(first.alike);
    std::swap(first, finding);
  }
  first.alike.push_back(finding.chunk);
}

/// A number for the place in the program's text that an op comes from: ops of one loop have one.
uint64_t Results::place_in_text(const Event& event) const {
  if (event.op == kNone) return 0;
  const uint32_t rank = system_.processes()[event.process].rank;
  const Part& part = system_.part_of_op(rank, event.op);
  const Op& op = part.rank(rank).ops[event.op - part.first_op[rank]];
  return op.locations.count == 0 ? uint64_t{rank} << 32 | event.op
                                 : ~uint64_t{part.program->locations[op.locations.first].site};
}

}  // namespace mscclc::proof
