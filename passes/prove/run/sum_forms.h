// Collects what the sums of a run are: its results, as expressions that can be compared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/program/program.h"
#include "ir/program/proof.h"
#include "passes/prove/memory/chunk_contents.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/values.h"
#include "passes/prove/run/sum_expressions.h"

namespace mscclc::proof {

/// The expression of every sum, where what is proved of them says it: all ranks' contributions,
/// rounded once, in the order of a contract. "": it does not.
std::string known_sum(const Contract& contract, const Proof& proof);
/// An expression as records have it: a long one is cut off, and ends in a hash of all of it.
std::string cut_off(const std::string& text);

/// Of one traced run of one plan.
class SumForms {
 public:
  explicit SumForms(const Contract& contract) : contract_(contract) {}
  /// A sum in the output, here and at the ranks that this one stands for. REQUIRES: it is traced.
  void add(const System& system, const ChunkContents& contents, const ChunkName& name,
           const Symbol& found);
  /// Every sum in the output is this one.
  void add_all(const std::string& text);
  /// What all of them are.
  SumExpressions expressions() const;

 private:
  struct FormPair {
    uint32_t form;  ///< in texts_
    uint32_t own;   ///< the same, as seen from the owner
  };
  uint32_t owner(const ChunkName& name) const;
  uint32_t number(const std::string& text);
  uint32_t form(const ValueTrace& trace, const Symbol& found, uint32_t owner);
  std::string places() const;

  const Contract& contract_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, uint32_t> numbers_;        ///< in texts_
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> known_;  ///< by order and owner
  std::map<std::pair<uint32_t, uint32_t>, FormPair> sums_;   ///< by rank and chunk
};

}  // namespace mscclc::proof
