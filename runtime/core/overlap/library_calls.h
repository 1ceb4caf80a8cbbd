// Collectives of this library before or after GEMMs: ready when the object is, so that the first
// run may be captured.
#pragma once

#include <array>

#include "runtime/api/collectives.h"
#include "runtime/core/overlap/backend.h"

namespace mscclc::overlap {

/// The job outlives it. Thread safety: the communicator's.
class LibraryCalls {
 public:
  explicit LibraryCalls(const Job& job) : job_(job) {}
  ~LibraryCalls() { release(); }
  LibraryCalls(const LibraryCalls&) = delete;
  LibraryCalls& operator=(const LibraryCalls&) = delete;

  /// Where a call's buffers lie in memory of so many bytes, of which load() has need.
  struct Offsets {
    uint64_t input, output, bytes;
  };
  /// Picks plans for calls like this one, captured or not, once and for all, and takes what load()
  /// needs. Of the call's buffers only the offsets matter. False: reported.
  [[nodiscard]] bool prepare(CollectiveCall call, const Offsets& at, Diagnostics& diagnostics);
  /// Loads and binds them; collective, once all ranks have prepared. False: reported, on all ranks.
  [[nodiscard]] bool load(Diagnostics& diagnostics);
  [[nodiscard]] bool call(const CollectiveCall& call, StreamHandle stream,
                          Diagnostics& diagnostics);

 private:
  void release();

  const Job& job_;
  CollectiveCall call_;              ///< as load() makes it ready
  std::array<PlanChoice, 2> plans_;  ///< of calls that are not captured, and of those that are
  std::unique_ptr<Memory> memory_;   ///< of the call
  StreamHandle stream_ = nullptr;    ///< of the call
};

}  // namespace mscclc::overlap
