#include "passes/prove/memory/external_rows.h"

#include <algorithm>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {

void ExternalRows::begin_call(uint32_t rank) {
  written_.erase(written_.lower_bound({rank, 0, 0}), written_.lower_bound({rank + 1, 0, 0}));
}

/// Lemma V2: one symbol at all ranks only where the program says that they have the same.
Symbol ExternalRows::given(uint32_t external, uint32_t rank, uint32_t chunk) const {
  const rows::External& e = program_.externals[external];
  const bool own =
      premise(Premise::local_externals_differ, e.holding == rows::Holding::local, false);
  const uint32_t rows = e.has_rows() ? chunk + 1 : 0;
  return contents_.symbols().external(external, own ? rank + 1 : 0, rows,
                                      calls_.instance(rank, calls_.now(rank)));
}

void ExternalRows::store(uint32_t external, uint32_t rank, uint32_t chunk, uint32_t parts,
                         const Symbol& stored, const Event& writer) {
  Written& written = written_[{rank, external, chunk}];
  written.symbols.push_back(stored);
  written.parts = std::max(parts, 1u);
  written.writer = writer;
}

const ExternalRows::Written* ExternalRows::written(uint32_t external, uint32_t rank,
                                                   uint32_t chunk) const {
  const auto found = written_.find({rank, external, chunk});
  return found == written_.end() ? nullptr : &found->second;
}

}  // namespace mscclc::proof
