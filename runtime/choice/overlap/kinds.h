// Facts of the kinds of GEMMs that overlap with collectives, and the names of their backends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/contract/collectives.h"
#include "runtime/api/overlap.h"

namespace mscclc::overlap {

/// Chunks of a rank's rows, at most: each has a flag, and blocks of its own.
inline constexpr uint32_t kMaxChunks = 64;

/// Facts of a kind.
struct KindInfo {
  OverlapKind kind;
  CollectiveKind collective;
  bool sums;                ///< a GEMM, then the collective; else the reverse
  uint32_t blocks_a_chunk;  ///< of the plan's, for each chunk and instance
};
std::span<const KindInfo> kinds();
/// nullptr: there is no such kind.
const KindInfo* find_kind(OverlapKind kind);
/// Of a name, as "allgather_gemm". nullptr: there is no such kind.
const KindInfo* find_kind(std::string_view name);
std::vector<std::string> kind_names();
/// REQUIRES: there is such a kind.
const KindInfo& info(OverlapKind kind);

/// Types of A and B: both of a wide one, the same; or each of a narrow one.
constexpr bool is_wide(Dtype type) {
  return type == Dtype::f32 || type == Dtype::f16 || type == Dtype::bf16;
}
constexpr bool is_narrow(Dtype type) { return type == Dtype::e4m3 || type == Dtype::e5m2; }

inline constexpr std::string_view kAuto = "auto", kFlagged = "mscclc", kCopyEngine = "copy_engine",
                                  kSerial = "serial", kNccl = "nccl", kCublasMp = "cublasmp";

/// Does a plan with flags run beside the GEMMs?
constexpr bool runs_beside(std::string_view backend) {
  return backend == kFlagged || backend == kCopyEngine;
}

/// Blocks that the backend's plan has with one instance. REQUIRES: runs_beside().
uint32_t least_blocks(OverlapKind kind, std::string_view backend, uint32_t chunks);

}  // namespace mscclc::overlap
