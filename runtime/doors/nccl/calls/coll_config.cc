#include "runtime/doors/nccl/calls/coll_config.h"

#include <cstring>

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

bool copy_config(const ncclCollConfig_t* config, Call& call) {
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

bool asks_for_algorithm(const Call& call) {
  if (call.config == nullptr) return false;
  CollConfig read;
  std::memcpy(&read, call.config->data(), sizeof read);
  return read.algorithms != nullptr && *read.algorithms != '\0';
}

std::optional<ncclResult_t> call_with_config(const RealNccl& real, ncclComm_t comm, const Call& c) {
  // One version brought them all.
  if (real.AllReduceConfig == nullptr || c.reduction != nullptr) return std::nullopt;
  const auto* const config = reinterpret_cast<const ncclCollConfig_t*>(c.config->data());
  switch (c.kind) {
    case CallKind::allreduce:
      return real.AllReduceConfig(c.send, c.receive, c.count, c.type, c.op, comm, c.stream, config);
    case CallKind::broadcast:
      return real.BroadcastConfig(c.send, c.receive, c.count, c.type, c.root, comm, c.stream,
                                  config);
    case CallKind::reduce:
      return real.ReduceConfig(c.send, c.receive, c.count, c.type, c.op, c.root, comm, c.stream,
                               config);
    case CallKind::allgather:
      return real.AllGatherConfig(c.send, c.receive, c.count, c.type, comm, c.stream, config);
    case CallKind::reducescatter:
      return real.ReduceScatterConfig(c.send, c.receive, c.count, c.type, c.op, comm, c.stream,
                                      config);
    case CallKind::alltoall:
      return real.AlltoAllConfig(c.send, c.receive, c.count, c.type, comm, c.stream, config);
    case CallKind::gather:
      return real.GatherConfig(c.send, c.receive, c.count, c.type, c.root, comm, c.stream, config);
    case CallKind::scatter:
      return real.ScatterConfig(c.send, c.receive, c.count, c.type, c.root, comm, c.stream, config);
    case CallKind::send:
    case CallKind::recv:
    case CallKind::other:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace mscclc::nccl
