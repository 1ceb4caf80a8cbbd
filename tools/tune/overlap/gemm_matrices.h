// Matrices of one rank's GEMMs that are timed, of small numbers that all types have, and a check of
// what came out by the definition, at some elements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/api/device.h"
#include "runtime/api/overlap.h"

namespace mscclc::tune {

/// Thread safety: the device's.
class GemmMatrices {
 public:
  /// `device` outlives it. nullptr: reported.
  [[nodiscard]] static std::unique_ptr<GemmMatrices> make(Device& device,
                                                          const OverlapConfig& shape, uint32_t rank,
                                                          uint32_t ranks, Diagnostics& diagnostics);
  /// Are they what a config's runs need?
  bool fit(const OverlapConfig& config) const;
  const OverlapCall& call() const { return call_; }
  /// Overwrites what wrong() looks at. False: reported.
  [[nodiscard]] bool poison(Diagnostics& diagnostics);
  /// How many of the elements that are looked at a run has not written as it must. nullopt:
  /// reported.
  std::optional<uint64_t> wrong(Diagnostics& diagnostics) const;

 private:
  struct LookedAt {
    size_t weight;
    uint64_t row, column;
  };
  GemmMatrices(Device& device, const OverlapConfig& shape, uint32_t rank, uint32_t ranks);
  uint8_t* take(uint64_t bytes, Diagnostics& diagnostics);
  bool fill(uint8_t* to, uint64_t count, uint64_t seed, Diagnostics& diagnostics) const;
  uint64_t out_rows() const;
  uint8_t* address_of(const LookedAt& place) const;
  bool is_right(const LookedAt& place, float got) const;
  double product(const LookedAt& place, uint32_t of, uint64_t row) const;

  Device& device_;
  const OverlapConfig shape_;
  const uint32_t rank_, ranks_;
  std::vector<std::unique_ptr<Memory>> memory_;
  OverlapCall call_;
  std::vector<LookedAt> places_;
};

}  // namespace mscclc::tune
