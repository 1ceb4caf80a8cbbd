// What externals hold: of those that are read, symbols; of those that are written, what ops have
// put there in the call at hand. No rank reaches another's, and each chunk of one that is written
// has one op (row_faults.h), so nothing here needs an order.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "ir/program/applied.h"
#include "passes/prove/memory/chunk_contents.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/processes/call_order.h"

namespace mscclc::proof {

class ExternalRows {
 public:
  /// All of them must outlive it.
  ExternalRows(const Program& program, const CallOrder& calls, ChunkContents& contents)
      : program_(program), calls_(calls), contents_(contents) {}

  /// A rank's call begins: nothing has been written.
  void begin_call(uint32_t rank);
  /// What the caller gave at a rank, for chunk `chunk` of the output.
  Symbol given(uint32_t external, uint32_t rank, uint32_t chunk) const;
  /// An op has stored a result; one of `parts` that do so together.
  void store(uint32_t external, uint32_t rank, uint32_t chunk, uint32_t parts, const Symbol& stored,
             const Event& writer);

  struct Written {
    std::vector<Symbol> symbols;  ///< of the parts that have come
    uint32_t parts = 1;           ///< how many there are
    Event writer = {};            ///< the last
  };
  /// nullptr: nothing.
  const Written* written(uint32_t external, uint32_t rank, uint32_t chunk) const;

 private:
  const Program& program_;
  const CallOrder& calls_;
  ChunkContents& contents_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Written> written_;  ///< rank, external, chunk
};

}  // namespace mscclc::proof
