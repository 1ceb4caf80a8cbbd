#include "runtime/doors/nccl/calls/coll_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/functions.h"

namespace mscclc::nccl {
namespace {

/// As of 2.32. All but the event is there since 2.31.
struct CollConfig {
  size_t size;
  unsigned int magic, version;
  void* extensions;
  int min_ctas, max_ctas, nvls_ctas, cluster;
  const char* algorithms;
  int force_algorithms, cta_policy;
  uint64_t profiler_tag;
  cudaEvent_t launch_completion;
};
constexpr size_t kLeastBytes = offsetof(CollConfig, launch_completion);
constexpr unsigned kVersionOfEvent = 23200;

/// More than any version has.
constexpr size_t kMaxBytes = 4096;
/// NCCL_CTA_POLICY_EFFICIENCY and _ZERO.
constexpr int kMaxCtaPolicy = 3;

}  // namespace

CollConfig read_config(const uint8_t* bytes, size_t size) {
  CollConfig read{};
  std::memcpy(&read, bytes, std::min(size, sizeof read));
  if (read.version < kVersionOfEvent) read.launch_completion = nullptr;
  return read;
}

bool copy_config(const ncclCollConfig_t* config, NcclCall& call) {
  if (config == nullptr) return true;
  size_t size = 0;
  std::memcpy(&size, config, sizeof size);
  if (size < kLeastBytes || size > kMaxBytes) return false;
  const auto* const first = reinterpret_cast<const uint8_t*>(config);
  const CollConfig read = read_config(first, size);
  if (read.magic != MSCCLC_NCCL_MAGIC) return false;
  // NCCL ignores numbers that are out of range.
  if (read.max_ctas > 0) call.most_blocks = static_cast<uint32_t>(read.max_ctas);
  if (read.cta_policy >= 0 && read.cta_policy <= kMaxCtaPolicy) call.cta_policy = read.cta_policy;
  call.profiler_tag = read.profiler_tag;
  call.launch_completion = read.launch_completion;
  call.config = std::make_shared<std::vector<uint8_t>>(first, first + size);
  return true;
}

bool asks_for_algorithm(const NcclCall& call) {
  if (call.config == nullptr) return false;
  const CollConfig read = read_config(call.config->data(), call.config->size());
  return read.algorithms != nullptr && *read.algorithms != '\0';
}

std::optional<ncclResult_t> call_with_config(const RealNccl& real, ncclComm_t comm,
                                             const NcclCall& call) {
  const CollectiveFunction* const function = function_of(call.kind);
  std::optional<ncclResult_t> result;
  const bool records = real.version >= static_cast<int>(kVersionOfEvent);
  if (function != nullptr && call.reduction == nullptr &&
      (records || call.launch_completion == nullptr)) {
    const auto* const config = reinterpret_cast<const ncclCollConfig_t*>(call.config->data());
    result = function->call_with_config(real, comm, call, nccl_op_of(call.op), config);
  }
  if (result || call.launch_completion == nullptr) return result;
  return fail(ncclInvalidUsage,
              fmt::format("{}: no plan serves it, and NCCL {} records no launchCompletionEvent{}",
                          name(call), version_text(real.version),
                          call.reduction == nullptr ? "" : " of pre-multiplied sums"));
}

}  // namespace mscclc::nccl
