#include "tests/engines/giving_up.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "executor/cuda/host/grid.h"

namespace mscclc {
namespace {

using cuda::CudaRanks;
using cuda::host::Gpu;

constexpr uint32_t kCalls = 3, kElements = 240;
constexpr uint64_t kPatience = 1'000'000;  // nanoseconds
constexpr Call kCall{.part_bytes = kElements * sizeof(float)};

bool prepare(CudaRanks& ranks, const CudaRanks::Options& options, uint64_t seed) {
  Gpu::get().set_seed(seed);
  Diagnostics diagnostics;
  return ranks.prepare(kCall, options, diagnostics);
}

bool write(CudaRanks& ranks, uint32_t rank, uint32_t call, float value) {
  std::vector<uint8_t> bytes(kCall.part_bytes);
  for (uint32_t i = 0; i < kElements; ++i) {
    std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
  }
  Diagnostics diagnostics;
  return ranks.write(rank, kInput, bytes.data(), diagnostics, call);
}

/// The one value that all elements have; -1: they have several.
std::optional<float> read(const CudaRanks& ranks, uint32_t rank) {
  std::vector<uint8_t> bytes(kCall.part_bytes);
  Diagnostics diagnostics;
  if (!ranks.read(rank, kOutput, bytes.data(), diagnostics)) return std::nullopt;
  float first = 0;
  std::memcpy(&first, bytes.data(), sizeof first);
  for (uint32_t i = 0; i < kElements; ++i) {
    if (std::memcmp(&bytes[i * sizeof first], &first, sizeof first) != 0) return -1.0f;
  }
  return first;
}

/// Calls in which rank 0 waits for rank 1 in vain.
bool prepare_without_partner(CudaRanks& ranks, CudaRanks::Options options, uint64_t seed) {
  options.apart = true;
  options.calls = kCalls;
  options.silent = 1;
  return prepare(ranks, options, seed);
}

}  // namespace

uint32_t blocks_of(const Program& program) {
  uint32_t blocks = 0;
  for (const Rank& rank : program.ranks) blocks += rank.blocks;
  return blocks;
}

std::optional<float> sum_after_giving_up(CudaRanks& ranks, const CudaRanks::Options& options,
                                         uint64_t seed) {
  if (!prepare_without_partner(ranks, options, seed)) return std::nullopt;
  for (uint32_t c = 0; c < kCalls; ++c) {
    if (!write(ranks, 0, c, static_cast<float>(c + 1)) || !write(ranks, 1, c, 10)) {
      return std::nullopt;
    }
  }
  ranks.abort();
  Diagnostics diagnostics;
  const bool all_well = ranks.run(diagnostics);
  ranks.silence(0);
  const bool second_well = ranks.run(diagnostics);
  Gpu::get().set_seed(0);
  if (all_well || second_well) return std::nullopt;  // the calls after the first have no partner
  return read(ranks, 1);
}

std::optional<bool> counts_stand_after_giving_up(CudaRanks& ranks,
                                                 const CudaRanks::Options& options, uint64_t seed) {
  if (!prepare_without_partner(ranks, options, seed)) return std::nullopt;
  ranks.abort();
  Diagnostics diagnostics;
  std::vector<uint64_t> first, second;
  if (ranks.run(diagnostics)) return std::nullopt;
  (void)ranks.run(diagnostics);
  const bool read_first = ranks.read_counts(first, diagnostics);
  (void)ranks.run(diagnostics);
  Gpu::get().set_seed(0);
  if (!read_first || !ranks.read_counts(second, diagnostics)) return std::nullopt;
  return first == second;
}

std::optional<bool> marked_by_first_to_give_up(CudaRanks& ranks, const CudaRanks::Options& options,
                                               uint64_t seed) {
  ranks.set_patience(kPatience);  // all that can begin does so before time goes on
  if (!prepare_without_partner(ranks, options, seed)) return std::nullopt;
  Diagnostics diagnostics;
  std::vector<uint64_t> counts;
  if (ranks.run(diagnostics)) return std::nullopt;
  Gpu::get().set_seed(0);
  if (!ranks.read_counts(counts, diagnostics)) return std::nullopt;
  constexpr uint64_t kMarked = uint64_t{1} << 21;  // wait.cuh: above bits of the call
  std::erase_if(counts, [](uint64_t count) { return count >> 63 == 0; });
  return counts.size() == ranks.program().ranks[0].blocks &&
         std::ranges::all_of(
             counts, [&](uint64_t count) { return count >> 42 == (kMarked | options.first_call); });
}

std::optional<uint32_t> begun_after_giving_up(CudaRanks& ranks, CudaRanks::Options options,
                                              uint64_t seed) {
  options.apart = true;
  options.calls = kCalls;
  options.counts_begun = true;
  if (!prepare(ranks, options, seed)) return std::nullopt;
  ranks.abort();
  Diagnostics diagnostics;
  (void)ranks.run(diagnostics);
  Gpu::get().set_seed(0);
  return ranks.begun();
}

}  // namespace mscclc
