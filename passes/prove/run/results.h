// What calls leave in their buffers: is it what the contract promises? Else who wrote it last, what
// it holds instead, and which other results are wrong alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "passes/prove/memory/chunk_contents.h"
#include "passes/prove/memory/external_rows.h"
#include "passes/prove/memory/history.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/values.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/finding_list.h"
#include "passes/prove/processes/run_options.h"
#include "passes/prove/run/sum_contracts.h"

namespace mscclc::proof {

class Results {
 public:
  /// All of them must outlive it.
  Results(const System& system, const Symbols& symbols, const RunOptions& options,
          const CallOrder& calls, const History& history, const ChunkContents& contents,
          const ExternalRows& externals, FindingList& findings);

  /// The call of a rank is over. REQUIRES: the caller has not yet touched its buffers.
  void check(uint32_t rank, uint32_t call);
  /// Which contracts about their bits all sums keep.
  const SumOrders& orders() const { return sums_.kept(); }
  /// Do all inputs hold what the caller gave?
  bool keep_input() const { return keep_input_; }

 private:
  /// What is promised of an output chunk.
  struct Promised {
    Symbol symbol = {};
    bool made = false;
    const SumContracts::Summands* added = nullptr;  ///< nullptr: no sum
    std::vector<Symbol> arguments = {};  ///< of the row function that makes it, if one does
  };

  static bool moves_alike(const Contract& contract, const Promised& promised);
  const Promised& promised(uint32_t rank, uint32_t chunk, uint32_t call);
  Promised promise(uint32_t rank, uint32_t chunk, uint32_t call);
  void apply_then(uint32_t rank, uint32_t chunk, Promised& promised) const;
  uint64_t shape_after(uint64_t shape, const Promised& promised, uint32_t result) const;
  void check_externals(uint32_t rank, uint32_t call);
  void check_external(uint32_t rank, uint32_t call, uint32_t result, uint32_t chunk);
  void check_order(const ChunkName& name, uint32_t call, uint32_t result, const Promised& wanted,
                   const ExternalRows::Written& written);
  void add_external(const ChunkName& name, uint32_t result, uint32_t call,
                    const Promised& promised);
  void check_outputs(uint32_t rank, uint32_t call);
  void check_inputs(uint32_t rank, uint32_t call);
  /// `exact`: -0.0 may not be lost.
  void report_wrong(const ChunkName& name, uint32_t call, const Promised& wanted, bool exact);
  Finding wrong(const ChunkName& name, uint32_t call, uint64_t chunk, const Promised& wanted,
                bool exact) const;
  void add_alike(uint64_t key, Finding finding);
  uint64_t place_in_text(const Event& event) const;

  const System& system_;
  const Symbols& symbols_;
  const RunOptions& options_;
  const CallOrder& calls_;
  const History& history_;
  const ChunkContents& contents_;
  const ExternalRows& externals_;
  FindingList& findings_;
  SumContracts sums_;
  std::optional<ThenBinding> then_;  ///< of a collective of rows
  bool keep_input_ = true;
  std::unordered_map<uint64_t, Promised> promised_;  ///< by call and output chunk
  Promised unshared_;                                ///< the last that was not shared
  /// Of wrong results: what wrote them last, and what is wrong -> position in findings_.
  std::map<std::pair<uint64_t, uint32_t>, size_t> wrong_ways_;
};

}  // namespace mscclc::proof
