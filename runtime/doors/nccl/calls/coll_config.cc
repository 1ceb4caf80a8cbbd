#include "runtime/doors/nccl/calls/coll_config.h"

#include <cstring>

#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/calls/functions.h"

namespace mscclc::nccl {
namespace {

/// Its first fields.
struct CollConfig {
  size_t size;
  unsigned int magic, version;
  void* extensions;
  int min_ctas, max_ctas, nvls_ctas, cluster;
  const char* algorithms;
};

/// More than any version has.
constexpr size_t kMaxBytes = 4096;

}  // namespace

bool copy_config(const ncclCollConfig_t* config, NcclCall& call) {
  if (config == nullptr) return true;
  size_t size = 0;
  std::memcpy(&size, config, sizeof size);
  if (size < sizeof(CollConfig) || size > kMaxBytes) return false;
  const auto* const first = reinterpret_cast<const uint8_t*>(config);
  CollConfig read;
  std::memcpy(&read, first, sizeof read);
  if (read.magic != MSCCLC_NCCL_MAGIC) return false;
  call.config = std::make_shared<std::vector<uint8_t>>(first, first + size);
  return true;
}

bool asks_for_algorithm(const NcclCall& call) {
  if (call.config == nullptr) return false;
  CollConfig read;
  std::memcpy(&read, call.config->data(), sizeof read);
  return read.algorithms != nullptr && *read.algorithms != '\0';
}

std::optional<ncclResult_t> call_with_config(const RealNccl& real, ncclComm_t comm,
                                             const NcclCall& call) {
  const CollectiveFunction* const function = function_of(call.kind);
  if (function == nullptr || call.reduction != nullptr) return std::nullopt;
  const auto* const config = reinterpret_cast<const ncclCollConfig_t*>(call.config->data());
  return function->call_with_config(real, comm, call, nccl_op_of(call.op), config);
}

}  // namespace mscclc::nccl
