#include "runtime/doors/nccl/entry_points/ranges.h"

#include "runtime/support/environment/environment.h"

namespace mscclc::nccl::entry_points {
namespace {

NvtxDomain open_domain() {
  Diagnostics ignored;  // NCCL takes any value, and says nothing
  const auto off = Environment::of_process().number(Variable::NCCL_NVTX_DISABLE, ignored);
  return off.value_or(0) == 0 ? NvtxDomain("NCCL") : NvtxDomain();
}

}  // namespace

NvtxRange range_of(const char* function, std::optional<uint64_t> bytes) {
  static const NvtxDomain domain = open_domain();
  return NvtxRange(domain, function, bytes);
}

}  // namespace mscclc::nccl::entry_points
