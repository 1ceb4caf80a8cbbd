// The premises of the prover's lemmas, as the code asks for them: where a rule checks one, it says
// which. So a test can take each away, and see that some program is proved then that must not be,
// or said to be what it is not (tests/prover_mutants). Without MSCCLC_PROVER_MUTANTS a premise is
// its condition, and nothing else.
#pragma once

#include <cstdint>

#ifdef MSCCLC_PROVER_MUTANTS
#include <algorithm>
#include <vector>
#endif

namespace mscclc::proof {

enum class Premise : uint16_t {
#define PREMISE(name, lemma, says) name,
#include "passes/prove/model/premises.def"
#undef PREMISE
  none
};

#ifdef MSCCLC_PROVER_MUTANTS
/// Those that are taken away: several, where only they together show.
extern std::vector<Premise> removed_premises;  // tests/prover_mutants/removed_premises.cc
inline bool removed(Premise premise) {
  return std::ranges::find(removed_premises, premise) != removed_premises.end();
}
#else
constexpr bool removed(Premise) { return false; }
#endif

/// Does the premise hold?
constexpr bool premise(Premise which, bool holds) { return holds || removed(which); }

/// What the premise asks for, or less.
template <class T>
constexpr const T& premise(Premise which, const T& asked, const T& less) {
  return removed(which) ? less : asked;
}

}  // namespace mscclc::proof
