// Results that are wrong: who wrote them last, what they hold instead, and which others are wrong
// alike.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "passes/prove/report.h"
#include "passes/prove/run.h"

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
  const ChunkValue::Piece piece =
      values_[chunk].piece_without(wanted).value_or(ChunkValue::Piece{{}, mixed_});
  const Event writer = last_store(chunk, piece.extent);
  Difference found;
  if (trace_) found = difference(name, call, piece.symbol);
  Finding finding{};
  finding.kind = Finding::Kind::wrong_value;
  finding.in_place = system_.in_place();
  finding.chunk = name;
  finding.first = writer;
  finding.first.call = call;
  finding.notes = std::move(found.texts);
  const std::pair way(place_in_text(writer), found.kinds);
  const auto alike = wrong_ways_.find(way);
  if (alike == wrong_ways_.end()) {
    if (!may_report(key)) return;
    wrong_ways_.emplace(way, findings_.size());
    findings_.push_back(std::move(finding));
    return;
  }
  ++reported_[key];
  Finding& told = findings_[alike->second];  // of the first rank, whichever has ended first
  if (std::pair(name.rank, name.chunk) < std::pair(told.chunk.rank, told.chunk.chunk)) {
    finding.alike = std::move(told.alike);
    std::swap(told, finding);
  }
  told.alike.push_back(finding.chunk);
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
  for (uint32_t i = history_.head(chunk); i != kNone; i = history_.record(i).next) {
    const Record& record = history_.record(i);
    if (!record.write || record.event.op == kNone) continue;
    if (record.extent.may_touch(extent)) return record.event;
  }
  return {};
}

Run::Difference Run::difference(const ChunkName& name, uint32_t call, const Symbol& found) const {
  const ValueTrace::Content content = trace_->content(found);
  Difference difference;
  if (content.unknown) {
    difference.add(Difference::kUnknown,
                   "it holds what is no one value for every message size: pieces of different "
                   "values, or what went through a chunk of another length");
    return difference;
  }
  if (content.unwritten) {
    difference.add(Difference::kUnwritten, content.inputs.empty()
                                               ? "nobody has written it"
                                               : "added up in it is what nobody has written");
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

std::vector<Finding> explained(std::vector<Finding> findings, const System& system,
                               const LoopGroups& groups, const Symbols& symbols,
                               RunOptions options) {
  const std::vector<Finding> told = causes(findings);
  const bool wrong = std::ranges::any_of(
      told, [](const Finding& f) { return f.kind == Finding::Kind::wrong_value; });
  if (!wrong) return findings;
  try {
    options.traced = true;
    Run run(system, groups, symbols, std::move(options));
    run.go();
    return run.findings().empty() ? findings : run.findings();
  } catch (const std::bad_alloc&) {
    return findings;
  }
}

}  // namespace mscclc::proof
