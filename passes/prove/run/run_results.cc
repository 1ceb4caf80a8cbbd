// Results that are wrong: who wrote them last, what they hold instead, and which others are wrong
// alike.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "passes/prove/report/report.h"
#include "passes/prove/run/run.h"

namespace mscclc::proof {

/// What is wrong with a result, in words, and as bits by which results that are wrong alike are
/// found.
struct Run::Difference {
  enum Kind : uint32_t {
    kMissing = 1,
    kOften = 2,
    kOtherCall = 4,
    kOther = 8,
    kUnwritten = 16,
    kUnknown = 32,
    kNotDivided = 64,
    kDivided = 128,
  };
  uint32_t kinds = 0;
  std::vector<std::string> texts;
  std::optional<ValueTrace::FirstRead> read;  ///< of what has not been written
  void add(Kind kind, std::string text) {
    kinds |= kind;
    texts.push_back(std::move(text));
  }
};

/// Of results that are wrong in one way one is a finding; the others are named with it.
void Run::report_wrong_value(const ChunkName& name, uint32_t call, const Symbol& wanted) {
  const uint64_t key = uint64_t{name.rank} << 32 | name.chunk;
  if (reported_[key] > 0) return;  // in an earlier call
  // What a call leaves shows as such in the next one; in the first it is memory as it was.
  if (trace_ && !system_.joint() && call + 1 < calls_of(name.rank)) return;
  const uint64_t chunk = system_.chunk(name.rank, name.buffer, name.chunk, call);
  // Pieces that hold the contributions, but in chunks of different lengths, say, are not a result.
  if (options_.suspects != nullptr && values_[chunk].any([&](const Symbol& s) { return raced(s); }))
    return;
  const ChunkValue::Piece piece =
      values_[chunk].piece_without(wanted).value_or(ChunkValue::Piece{{}, mixed_});
  const Event writer = last_store(chunk, piece.extent);
  Difference found;
  if (trace_) found = difference(name, call, piece.symbol, writer.op != kNone);
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
  const std::pair way(place_in_text(writer), found.kinds);
  const auto alike = wrong_ways_.find(way);
  if (alike == wrong_ways_.end()) {
    if (!may_report(key)) return;
    wrong_ways_.emplace(way, findings_.size());
    findings_.push_back(std::move(finding));
    return;
  }
  ++reported_[key];
  Finding& first = findings_[alike->second];  // of the first rank, whichever has ended first
  if (std::pair(name.rank, name.chunk) < std::pair(first.chunk.rank, first.chunk.chunk)) {
    finding.alike = std::move(first.alike);
    std::swap(first, finding);
  }
  first.alike.push_back(finding.chunk);
}

/// A number for the place in the program's text that an op comes from: ops of one loop have one.
uint64_t Run::place_in_text(const Event& event) const {
  if (event.op == kNone) return 0;
  const uint32_t rank = system_.processes()[event.process].rank;
  const Part& part = system_.part_of_op(rank, event.op);
  const Op& op = part.rank(rank).ops[event.op - part.first_op[rank]];
  return op.locations.count == 0 ? uint64_t{rank} << 32 | event.op
                                 : ~uint64_t{part.program->locations[op.locations.first].site};
}

/// The op that wrote these bytes last, or none of this rank's or another's.
Event Run::last_store(uint64_t chunk, const Extent& extent) const {
  for (uint32_t i = history_.stores(chunk); i != kNone; i = history_.record(i).next) {
    const Record& record = history_.record(i);
    if (record.event.op == kNone) continue;
    if (record.extent.may_touch(extent)) return record.event;
  }
  return {};
}

Run::Difference Run::difference(const ChunkName& name, uint32_t call, const Symbol& found,
                                bool written) const {
  const ValueTrace::Content content = trace_->content(found);
  Difference difference;
  if (content.unknown) {
    difference.add(Difference::kUnknown,
                   "for some message sizes it holds no single value: pieces of different "
                   "values, or what went through a chunk of another length");
    return difference;
  }
  if (content.unwritten) {
    if (written && content.read) {
      difference.kinds |= Difference::kUnwritten;
      difference.read = content.read;
    } else {
      difference.add(Difference::kUnwritten, content.inputs.empty()
                                                 ? "it was never written"
                                                 : "the sum includes data that was never written");
    }
    if (content.inputs.empty()) return difference;
  }
  compare_inputs(name, call, content, difference);
  compare_divisions(name, call, content, difference);
  return difference;
}

/// "input[1] of rank 2 of an earlier call"
std::string Run::name_of(const Contribution& input, uint64_t now) const {
  const uint64_t parts = system_.parts().size();
  const Part& part = system_.parts()[system_.joint() ? input.call % parts : 0];
  std::string text = fmt::format("input[{}] of rank {}", input.chunk, part.local[input.rank]);
  if (input.call == now) return text;
  if (system_.joint() && input.call % parts != now % parts) {
    return text + fmt::format(" of a call of '{}'", part.name);
  }
  return text + (input.call < now ? " of an earlier call" : " of a later call");
}

/// Which contributions are missing, are there too often, or are not promised.
void Run::compare_inputs(const ChunkName& name, uint32_t call, const ValueTrace::Content& content,
                         Difference& difference) const {
  const Part& part = part_of(name.rank, call);
  const uint64_t now = instance(name.rank, call);
  std::map<Contribution, uint64_t> wanted;
  Promise promise;
  part.contract().promise(part.local[name.rank], name.chunk, promise);
  for (const Place& p : promise.inputs) ++wanted[{part.world[p.rank], p.chunk, now}];
  if (wanted.size() == 1 && content.inputs.size() == 1 && !content.unwritten) {
    const auto& [input, times] = *content.inputs.begin();
    if (times == 1 && !wanted.contains(input)) {
      difference.add(input.call == now ? Difference::kOther : Difference::kOtherCall,
                     "it holds " + name_of(input, now));
      return;
    }
  }
  for (const auto& [input, times] : wanted) {
    const auto there = content.inputs.find(input);
    if (there == content.inputs.end()) {
      difference.add(Difference::kMissing, name_of(input, now) + " is missing");
    } else if (there->second < times) {
      difference.add(Difference::kMissing, fmt::format("{} is in it {} times, not {}",
                                                       name_of(input, now), there->second, times));
    }
  }
  for (const auto& [input, times] : content.inputs) {
    const auto asked = wanted.find(input);
    if (asked == wanted.end()) {
      difference.add(input.call == now ? Difference::kOther : Difference::kOtherCall,
                     name_of(input, now) + " is in it");
    } else if (times > asked->second) {
      difference.add(Difference::kOften,
                     times == 2 ? name_of(input, now) + " is in it twice"
                                : fmt::format("{} is in it {} times", name_of(input, now), times));
    }
  }
}

void Run::compare_divisions(const ChunkName& name, uint32_t call,
                            const ValueTrace::Content& content, Difference& difference) const {
  const Part& part = part_of(name.rank, call);
  Promise promise;
  part.contract().promise(part.local[name.rank], name.chunk, promise);
  const bool wanted = promise.reduced && promise.inputs.size() > 1 && divides(name.rank, call);
  if (content.parts_divided || (content.divided && !wanted)) {
    difference.add(Difference::kDivided,
                   "'avg' would divide a sum that is part of it: an op that is marked complete");
  } else if (wanted && !content.divided && difference.kinds == 0) {
    difference.add(Difference::kNotDivided,
                   "'avg' would not divide it: the op that adds it up is not marked complete");
  }
}

// ---- results beside races ----

bool Run::raced(const Symbol& symbol) const {
  return options_.suspects != nullptr && trace_->raced(symbol);
}

/// Has a load that is in a race got what is not of this call, or what has not been written there,
/// or not what the caller gave? In the order that is meant it would have got something else.
bool Run::stale(const Event& event, const ChunkName& name, uint64_t chunk, const Symbol& symbol) {
  const uint32_t rank = system_.processes()[event.process].rank;
  if (!options_.suspects->loads.contains(Suspects::key(rank, event.op))) return false;
  const uint64_t now = instance(rank, event.call);
  if (name.buffer == kInput) {
    return !symbol.same_contributions(symbols_.contribution(name.rank, name.chunk, now));
  }
  if (symbol.same_contributions(turned_.unwritten(chunk))) return true;
  const ValueTrace::Content content = trace_->content(symbol);
  return content.unknown ||
         std::ranges::any_of(content.inputs, [&](const auto& i) { return i.first.call != now; });
}

/// What a chunk holds whose pieces differ.
Symbol Run::mixed_at(uint64_t chunk) const {
  if (options_.suspects == nullptr) return mixed_;
  return values_[chunk].any([&](const Symbol& s) { return raced(s); }) ? raced_ : mixed_;
}

bool Run::finished() const {
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    if (calls_[r] < calls_of(r)) return false;
  }
  return true;
}

std::vector<Finding> explained(std::vector<Finding> findings, const Suspects& suspects,
                               const System& system, const LoopGroups& groups,
                               const Symbols& symbols, RunOptions options) {
  const auto wrong = [](const Finding& f) {
    return f.kind == Finding::Kind::wrong_value || f.kind == Finding::Kind::other_order;
  };
  const auto race = [](const Finding& f) {
    return f.kind == Finding::Kind::race || f.kind == Finding::Kind::slot_twice;
  };
  const bool races = std::ranges::any_of(findings, race);
  if (!races && !std::ranges::any_of(findings, wrong)) return findings;
  std::vector<Finding> others;  // results that hang on races say nothing
  std::ranges::copy_if(findings, std::back_inserter(others),
                       [&](const Finding& f) { return !wrong(f); });
  if (races && (system.joint() || !system.symmetry().trivial())) return others;
  try {
    options.traced = true;
    if (races) options.suspects = &suspects;
    std::vector<Finding> results;
    for (bool again = true; again;) {
      Run run(system, groups, symbols, options);
      run.go();
      std::ranges::copy_if(run.findings(), std::back_inserter(results), wrong);
      // Calls that take each other's packets do not end: then one call alone shows what it does.
      again = races && results.empty() && !run.finished() && options.calls > 1;
      options.calls = 1;
    }
    results.insert(results.end(), others.begin(), others.end());
    return results.empty() ? findings : results;
  } catch (const std::bad_alloc&) {
    return races ? others : findings;
  }
}

}  // namespace mscclc::proof
