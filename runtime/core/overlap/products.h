// The GEMMs of an object: made ready once, then put on streams tile by tile.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/api/gemm.h"
#include "runtime/core/overlap/config.h"
#include "runtime/core/overlap/tiles.h"

namespace mscclc::overlap {

/// Memory that all GEMMs of a stream use in turn.
struct GemmScratch {
  void* data = nullptr;
  uint64_t bytes = 0;
};

/// Thread safety: one thread at a time.
class Products {
 public:
  /// All must outlive it. `multiprocessors`: that GEMMs may take; 0: all.
  Products(const OverlapConfig& config, GemmStreams& streams, GemmProvider& provider,
           uint32_t multiprocessors, std::function<void(const Diagnostics&)> failed)
      : config_(config),
        streams_(streams),
        provider_(provider),
        multiprocessors_(multiprocessors),
        failed_(std::move(failed)) {}

  /// Makes the provider ready for all tiles. False: reported.
  [[nodiscard]] bool prepare(const std::vector<Tile>& tiles, Diagnostics& diagnostics);
  /// Puts a tile's GEMMs on a stream, one for each B, and the bias and activation of what is
  /// complete then, as far as GEMMs have none. `a`: row 0 of [m, k], though no rows may be there
  /// but the tile's; `d`: row 0 of [m, n], for each B. False: reported.
  [[nodiscard]] bool run(const Tile& tile, const OverlapCall& call, const void* a,
                         const std::vector<void*>& d, const GemmScratch& scratch,
                         StreamHandle stream, Diagnostics& diagnostics);

 private:
  bool adds_bias() const;
  Gemm shape_of(const Tile& tile, size_t weight) const;
  bool finish(const Tile& tile, const OverlapCall& call, size_t weight, void* out,
              StreamHandle stream, Diagnostics& diagnostics);

  const OverlapConfig& config_;
  GemmStreams& streams_;
  GemmProvider& provider_;
  const uint32_t multiprocessors_;
  const std::function<void(const Diagnostics&)> failed_;
};

}  // namespace mscclc::overlap
