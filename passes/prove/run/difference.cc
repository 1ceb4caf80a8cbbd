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

namespace {

/// What is wrong with the sum that a row function is applied to.
std::vector<std::string> of_sum(const std::string& function, const Difference& found) {
  constexpr std::string_view kMissing = " is missing";
  std::vector<std::string> texts;
  for (const std::string& text : found.texts) {
    texts.push_back(text.ends_with(kMissing)
                        ? fmt::format("'{}' is applied to a sum that lacks {}", function,
                                      text.substr(0, text.size() - kMissing.size()))
                        : fmt::format("'{}' is applied to another sum: {}", function, text));
  }
  if (texts.empty()) texts.push_back(fmt::format("'{}' is applied to no sum", function));
  return texts;
}

std::string no_result(const std::string& function, const ValueTrace::Content& content) {
  if (content.unwritten && content.inputs.empty()) return "it was never written";
  if (content.unknown) return "for some message sizes it holds no single value";
  return fmt::format("it holds no result of '{}'", function);
}

}  // namespace

Difference applied_difference(const System& system, const CallOrder& calls, const ChunkName& name,
                              uint32_t call, const ValueTrace& trace, const Symbol& symbol,
                              const Applying& wanted) {
  Difference found;
  const rows::Function& function = system.program().functions[wanted.function];
  const auto add = [&](std::string text) { found.add(Difference::kApplied, std::move(text)); };
  const ValueTrace::Applied* const applied = trace.applied(symbol);
  if (applied == nullptr) {
    add(no_result(function.name, trace.content(symbol)));
    return found;
  }
  if (applied->function != wanted.function || applied->k != wanted.k) {
    const rows::Function& other = system.program().functions[applied->function];
    add(fmt::format("it holds '{}' of '{}', not '{}' of '{}'", other.outputs[applied->k].name,
                    other.name, function.outputs[wanted.k].name, function.name));
    return found;
  }
  for (size_t i = 0; i < wanted.arguments.size(); ++i) {
    const Symbol& argument = applied->arguments[i];
    if (argument.same_contributions(wanted.arguments[i])) continue;
    if (i > 0) {
      add(
          fmt::format("'{}' of '{}' is not what this rank's caller gives for these rows: it is of "
                      "other rows, another value, or another rank's and not 'replicated'",
                      function.params[i].name, function.name));
      continue;
    }
    const Difference sum = difference(system, calls, name, call, trace.content(argument), true);
    for (std::string& text : of_sum(function.name, sum)) add(std::move(text));
  }
  if (found.texts.empty() && symbol.plus_zero) {
    add("it went through sentinel packets, which have no -0.0, and row functions may give it; "
        "use LL16 or LL8");
  } else if (found.texts.empty()) {
    add(
        fmt::format("what '{}' is applied to went through sentinel packets, which have no -0.0; "
                    "use LL16 or LL8",
                    function.name));
  }
  return found;
}

}  // namespace mscclc::proof
