// Finds programs that show the loss of a premise: random ones (tests/random_programs) that the
// prover refuses, and does not without the premise. They are cut down line by line.
//
// `find_programs FOLDER FIRST COUNT NAME...`: among so many, for these premises; into files.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "ir/verify/verify.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/prove.h"
#include "passes/registry.h"
#include "tests/random_programs/families/edges.h"
#include "tests/random_programs/families/families.h"

namespace mscclc {
namespace {

using proof::Premise;

const std::map<std::string, Premise> kNames = {
#define PREMISE(name, lemma, says) {#name, Premise::name},
#include "passes/prove/model/premises.def"
#undef PREMISE
};

std::string random_text(uint64_t number) {
  namespace programs = random_programs;
  Dice dice(number);
  programs::Sketch sketch = programs::draw_family(dice).make(dice);
  const uint32_t edges = dice.below(3);
  for (uint32_t i = 0; i < edges; ++i) programs::cross_edge(sketch, dice);
  return programs::text(sketch, dice.below(2) == 0 ? programs::Form::ir : programs::Form::foreign);
}

/// As the prover's tests do: no pass adds a sync or joins ops.
std::optional<Program> load(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  auto program = parse_program(sources, sources.add("t.mscl", text), {}, diagnostics);
  PassOptions options;
  options.only = {"assign", "groups", "split"};
  if (!program || !run_passes(*program, options, diagnostics)) return std::nullopt;
  Program marked = *program;
  options.only = {"complete_sums"};
  if (run_passes(marked, options, diagnostics)) program = marked;
  if (!verify_structure(*program, diagnostics)) program.reset();
  return program;
}

/// What is said of the program, without a premise.
Proof said(const Program& program, Premise removed) {
  proof::removed_premises = {removed};
  Diagnostics ignored;
  Proof proof = prove(program, ignored, {});
  const Proof by_some = prove(program, ignored, {.symmetry_from = 0});
  proof.proved |= by_some.proved;
  if (by_some.proved) {
    for (const auto& [order, kept] : kProvedOrders) proof.orders.*kept |= by_some.orders.*kept;
  }
  proof::removed_premises.clear();
  return proof;
}

bool says_more(const Proof& mutant, const Proof& proof) {
  if (!mutant.proved) return false;
  const auto keeps_more = [&](const ProvedOrder& row) {
    return mutant.orders.*row.kept > proof.orders.*row.kept;
  };
  return !proof.proved || std::ranges::any_of(kProvedOrders, keeps_more) ||
         mutant.keeps_input > proof.keeps_input ||
         (mutant.rounding == Rounding::once && proof.rounding != Rounding::once) ||
         (mutant.between_calls == BetweenCalls::meeting &&
          proof.between_calls != BetweenCalls::meeting);
}

bool shows(const std::string& text, Premise premise) {
  const auto program = load(text);
  return program && says_more(said(*program, premise), said(*program, Premise::none));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::string cut_down(const std::string& text, Premise premise) {
  std::vector<std::string> lines = lines_of(text);
  for (bool again = true; again;) {
    again = false;
    for (size_t length = 4; length > 0; --length) {
      for (size_t i = 0; i + length <= lines.size();) {
        std::vector<std::string> fewer = lines;
        fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i),
                    fewer.begin() + static_cast<ptrdiff_t>(i + length));
        if (shows(joined(fewer), premise)) {
          lines = fewer;
          again = true;
        } else {
          ++i;
        }
      }
    }
  }
  return joined(lines);
}

int run(const std::string& folder, uint64_t first, uint64_t count,
        std::map<std::string, Premise> wanted) {
  for (uint64_t number = first; number < first + count && !wanted.empty(); ++number) {
    const std::string text = random_text(number);
    const auto program = load(text);
    if (!program) continue;
    const Proof proof = said(*program, Premise::none);
    std::erase_if(wanted, [&](const auto& entry) {
      if (!says_more(said(*program, entry.second), proof)) return false;
      std::ofstream(folder + "/" + entry.first + ".mscl") << cut_down(text, entry.second);
      fmt::print("{}: program {}\n", entry.first, number);
      std::fflush(stdout);
      return true;
    });
  }
  for (const auto& [name, premise] : wanted) fmt::print("not found: {}\n", name);
  return wanted.empty() ? 0 : 1;
}

}  // namespace
}  // namespace mscclc

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  std::map<std::string, mscclc::proof::Premise> wanted;
  for (int i = 4; i < argc; ++i) {
    if (mscclc::kNames.contains(argv[i])) wanted.insert(*mscclc::kNames.find(argv[i]));
  }
  return mscclc::run(argv[1], std::strtoull(argv[2], nullptr, 10),
                     std::strtoull(argv[3], nullptr, 10), wanted);
}
