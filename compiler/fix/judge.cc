#include "compiler/fix/judge.h"

#include <algorithm>
#include <tuple>

#include "compiler/compile.h"
#include "compiler/parser/parser.h"
#include "compiler/proof_gate.h"
#include "passes/prove/prove.h"

namespace mscclc::fix {
namespace {

/// Ops that a changed program may unroll to: more than the library's programs have, far less than
/// what a loop too many costs.
constexpr uint64_t kMaxOps = 1'000'000;

size_t count_errors(const Diagnostics& diagnostics) {
  return static_cast<size_t>(
      std::ranges::count(diagnostics.all(), Severity::error, &Diagnostic::severity));
}

uint64_t count_ops(const Program& program) {
  uint64_t ops = 0;
  for (const Rank& rank : program.ranks) ops += rank.ops.size();
  return ops;
}

/// The names of parameters that `ranks:` of the collective says.
std::vector<std::string> rank_parameters(const Outline& outline) {
  std::vector<std::string> parameters, found;
  for (const Statement& s : outline.statements()) {
    if (s.parent != kNothing || outline.keyword(s) != "param") continue;
    for (uint32_t w = s.first + 1; w + 1 < s.end; ++w) {
      const bool named = outline.words()[w + 1].kind == Tok::assign;
      if (named) parameters.emplace_back(outline.text(outline.words()[w]));
    }
  }
  for (const Statement& s : outline.statements()) {
    if (s.parent != kNothing || outline.keyword(s) != "collective") continue;
    bool ranks = false;
    for (uint32_t w = s.first; w < s.end; ++w) {
      const std::string word(outline.text(outline.words()[w]));
      if (word == "ranks") ranks = true;
      if (word == ",") ranks = false;
      if (ranks && std::ranges::find(parameters, word) != parameters.end()) found.push_back(word);
    }
  }
  return found;
}

}  // namespace

bool Verdict::better_than(const Verdict& other) const {
  const auto key = [](const Verdict& v) {
    return std::tuple(v.world, v.stage, -static_cast<int64_t>(v.errors));
  };
  return key(*this) > key(other);
}

Judge::Judge(std::string file, const Outline& original, FrontEndOptions front, PassOptions passes,
             TimeLimit time)
    : file_(std::move(file)),
      front_(std::move(front)),
      passes_(std::move(passes)),
      time_(std::move(time)),
      promises_(original.promises()) {
  front_.max_ops = std::min(front_.max_ops, kMaxOps);
  front_.relative_names = false;
  passes_.before = passes_.after = nullptr;
  passes_.records = nullptr;
  add_worlds(original);
  costs_.resize(worlds_.size());
}

void Judge::add_worlds(const Outline& original) {
  const std::vector<std::string> names = rank_parameters(original);
  for (const char* value : {"3", "2", "4"}) {
    if (!names.empty()) add_world(names, value);
  }
  given_ = worlds_.size();
  worlds_.push_back(front_.defines);
  add_other_parameters(original, names);
}

/// The other of a truth value, and small numbers in the place of others.
void Judge::add_other_parameters(const Outline& original, const std::vector<std::string>& ranks) {
  const auto& words = original.words();
  for (const Statement& s : original.statements()) {
    if (s.parent != kNothing || original.keyword(s) != "param") continue;
    for (uint32_t w = s.first + 1; w + 2 < s.end; ++w) {
      const std::string name(original.text(words[w]));
      const std::string_view value = original.text(words[w + 2]);
      const bool whole = w + 3 == s.end || words[w + 3].kind == Tok::comma;
      if (words[w + 1].kind != Tok::assign || !whole) continue;
      if (std::ranges::find(ranks, name) != ranks.end()) continue;
      if (value == "true" || value == "false")
        add_world({name}, value == "true" ? "false" : "true");
      if (words[w + 2].kind != Tok::integer || value.size() > 1) continue;
      for (const char* small : {"1", "2"}) {
        if (value != small) add_world({name}, small);
      }
    }
  }
}

void Judge::add_world(const std::vector<std::string>& names, const std::string& value) {
  Defines defines = front_.defines;
  for (const std::string& name : names) {
    const auto known =
        std::ranges::find(defines, name, &std::pair<std::string, std::string>::first);
    if (known == defines.end()) {
      defines.emplace_back(name, value);
    } else {
      known->second = value;
    }
  }
  worlds_.push_back(std::move(defines));
}

Verdict Judge::judge(const std::string& text) {
  Verdict verdict;
  for (; verdict.world < worlds_.size(); ++verdict.world) {
    const bool given = verdict.world == given_;
    if (!has_time(verdict.world)) return verdict;
    const Outcome outcome = run(text, verdict.world, false);
    verdict.stage = outcome.stage;
    verdict.errors = count_errors(outcome.diagnostics);
    if (outcome.stage != Stage::proved && (given || outcome.applies)) return verdict;
  }
  verdict.proved = true;
  return verdict;
}

Diagnostics Judge::errors(const std::string& text) {
  return has_time(given_) ? run(text, given_, true).diagnostics : Diagnostics();
}

Judge::Outcome Judge::run(const std::string& text, size_t world, bool try_copies) {
  const double begin = time_.elapsed();
  Outcome outcome = compile_and_prove(text, worlds_[world], try_copies);
  costs_[world] = std::max(costs_[world], time_.elapsed() - begin);
  return outcome;
}

Judge::Outcome Judge::compile_and_prove(const std::string& text, const Defines& defines,
                                        bool try_copies) {
  Outcome outcome;
  Sources sources;
  const FileId file = sources.add(file_, text);
  FrontEndOptions front = front_;
  front.defines = defines;
  const auto program = compile(sources, file, front, passes_, outcome.diagnostics);
  if (!program || !program->split) {
    ast::Ast tree(sources);
    Diagnostics unused;
    if (parse_file(sources, file, tree, unused) != nullptr) outcome.stage = Stage::parsed;
    outcome.applies = !is_for_others(text, outcome.diagnostics);
    return outcome;
  }
  outcome.stage = Stage::compiled;
  ops_ += count_ops(*program);
  const Proof proof = prove(*program, outcome.diagnostics, {.try_copies = try_copies});
  if (proof.proved && can_keep_order(*program, proof, outcome.diagnostics)) {
    outcome.stage = Stage::proved;
  }
  return outcome;
}

/// Are all errors in what the program says of its parameters?
bool Judge::is_for_others(const std::string& text, const Diagnostics& diagnostics) const {
  const Outline outline(text);
  return std::ranges::all_of(diagnostics.all(), [&](const Diagnostic& d) {
    if (d.severity != Severity::error) return true;
    if (!d.span.valid() || d.span.file != 0) return d.span.valid();
    const uint32_t s = outline.statement_at(outline.byte_of(d.span.line, d.span.column));
    return s != kNothing && !outline.in_body(s);
  });
}

}  // namespace mscclc::fix
