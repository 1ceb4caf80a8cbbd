#include "passes/prove/run/difference.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace mscclc::proof {
namespace {

/// Compares one result with what is promised of it.
class Comparison {
 public:
  Comparison(const System& system, const CallOrder& calls, const ChunkName& name, uint32_t call,
             const ValueTrace::Content& content)
      : system_(system),
        content_(content),
        part_(calls.part(name.rank, call)),
        now_(calls.instance(name.rank, call)),
        divides_(calls.divides(name.rank, call)) {
    part_.contract().promise(part_.local[name.rank], name.chunk, promise_);
    for (const CallerChunk& p : promise_.inputs) ++wanted_[{part_.world[p.rank], p.chunk, now_}];
  }

  /// Adds to what is known.
  Difference run_after(Difference known) {
    difference_ = std::move(known);
    if (!one_other_input()) {
      look_for_missing();
      look_for_others();
    }
    compare_divisions();
    return std::move(difference_);
  }

 private:
  /// "input[1] of rank 2 of an earlier call"
  std::string name_of(const Contribution& input) const {
    const uint64_t parts = system_.parts().size();
    const Part& part = system_.parts()[system_.joint() ? input.call % parts : 0];
    std::string text = fmt::format("input[{}] of rank {}", input.chunk, part.local[input.rank]);
    if (input.call == now_) return text;
    if (system_.joint() && input.call % parts != now_ % parts) {
      return text + fmt::format(" of a call of '{}'", part.name);
    }
    return text + (input.call < now_ ? " of an earlier call" : " of a later call");
  }

  Difference::Kind other(const Contribution& input) const {
    return input.call == now_ ? Difference::kOther : Difference::kOtherCall;
  }

  /// Is there one input in place of another one?
  bool one_other_input() {
    if (wanted_.size() != 1 || content_.inputs.size() != 1 || content_.unwritten) return false;
    const auto& [input, times] = *content_.inputs.begin();
    if (times != 1 || wanted_.contains(input)) return false;
    difference_.add(other(input), "it holds " + name_of(input));
    return true;
  }

  void look_for_missing() {
    for (const auto& [input, times] : wanted_) {
      const auto there = content_.inputs.find(input);
      if (there == content_.inputs.end()) {
        difference_.add(Difference::kMissing, name_of(input) + " is missing");
      } else if (there->second < times) {
        difference_.add(Difference::kMissing, fmt::format("{} is in it {} times, not {}",
                                                          name_of(input), there->second, times));
      }
    }
  }

  /// What is there too often, or is not promised.
  void look_for_others() {
    for (const auto& [input, times] : content_.inputs) {
      const auto asked = wanted_.find(input);
      if (asked == wanted_.end()) {
        difference_.add(other(input), name_of(input) + " is in it");
      } else if (times > asked->second) {
        difference_.add(Difference::kOften,
                        times == 2 ? name_of(input) + " is in it twice"
                                   : fmt::format("{} is in it {} times", name_of(input), times));
      }
    }
  }

  void compare_divisions() {
    const bool wanted = promise_.reduced && promise_.inputs.size() > 1 && divides_;
    if (content_.parts_divided || (content_.divided && !wanted)) {
      difference_.add(Difference::kDivided,
                      "'avg' would divide a sum that is part of it: an op that is marked complete");
    } else if (wanted && !content_.divided && difference_.kinds == 0) {
      difference_.add(Difference::kNotDivided,
                      "'avg' would not divide it: the op that adds it up is not marked complete");
    }
  }

  const System& system_;
  const ValueTrace::Content& content_;
  const Part& part_;
  const uint64_t now_;
  const bool divides_;
  Promise promise_;
  std::map<Contribution, uint64_t> wanted_;
  Difference difference_;
};

}  // namespace

Difference difference(const System& system, const CallOrder& calls, const ChunkName& name,
                      uint32_t call, const ValueTrace::Content& content, bool written) {
  Difference of_memory;
  if (content.unknown) {
    of_memory.add(Difference::kUnknown,
                  "for some message sizes it holds no single value: pieces of different "
                  "values, or what went through a chunk of another length");
    return of_memory;
  }
  if (content.unwritten) {
    if (written && content.read) {
      of_memory.kinds |= Difference::kUnwritten;
      of_memory.read = content.read;
    } else {
      of_memory.add(Difference::kUnwritten, content.inputs.empty()
                                                ? "it was never written"
                                                : "the sum includes data that was never written");
    }
    if (content.inputs.empty()) return of_memory;
  }
  Comparison comparison(system, calls, name, call, content);
  return comparison.run_after(std::move(of_memory));
}

}  // namespace mscclc::proof
