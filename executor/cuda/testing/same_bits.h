// A plan on the CUDA machine and on the simulator: every bit that the collective promises must be
// the same, also of sums that are rounded, as both add in the same order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/cuda/testing/ranks.h"
#include "executor/simulator/cluster.h"

namespace mscclc::cuda {

class SameBits {
 public:
  /// The program must outlive it.
  explicit SameBits(const Program& program) : gpu_(program), cluster_(program) {}
  /// `rows`: of the GPU.
  [[nodiscard]] bool build(Diagnostics& diagnostics, RowSteps rows = RowSteps::apart) {
    return gpu_.build(diagnostics, rows) && cluster_.build(diagnostics);
  }

  /// A call whose ranks have about so many elements each.
  Call call(uint64_t elements, Dtype dtype, ReduceOp reduce = ReduceOp::sum) const;
  /// Are inputs as long as outputs at all ranks (Options::chained)?
  bool can_chain() const;
  /// Runs the calls of `options` `rounds` times. "": the same bits; else the first that differs, or
  /// what was reported.
  std::string run(const Call& call, const CudaRanks::Options& options, uint32_t rounds,
                  uint64_t seed);
  CudaRanks& gpu() { return gpu_; }
  const Program& program() const { return cluster_.program(); }

 private:
  using Bytes = std::vector<uint8_t>;
  std::string run_round(const CudaRanks::Options& options, uint64_t seed);
  Bytes input_of(uint32_t rank, uint64_t seed) const;
  std::string compare(uint32_t call, const std::vector<Bytes>& expected);
  bool write_externals(uint64_t seed, Diagnostics& diagnostics);
  std::string compare_externals();
  void keep_promised(uint32_t rank, Bytes& output) const;

  CudaRanks gpu_;
  Cluster cluster_;
};

/// Elements of one sign or the other whose exponents lie close together, so that sums are rounded,
/// and some zeros of both signs, here and there those of all seeds alike, so that sums are zero,
/// and numbers that are next to zero; of integers any bits.
std::vector<uint8_t> rounding_input(uint64_t bytes, Dtype dtype, uint64_t seed);

}  // namespace mscclc::cuda
