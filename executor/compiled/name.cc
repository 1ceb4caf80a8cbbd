#include "executor/compiled/name.h"

#include <fmt/format.h>

#include "executor/compiled/kernel_header_digest.h"
#include "executor/compiled/shape.h"

namespace mscclc {

// MSCCLC_KERNEL (emit.cc) spells it in CUDA.
std::string kernel_name(const std::string& digest, const CompiledShape& shape, Dtype dtype) {
  return fmt::format("mscclc_{}_{}_{}_{}", digest.substr(0, 32), shape.key(),
                     shape.arithmetic(dtype), kKernelHeaderDigest);
}

std::string kernel_file(const std::string& plan_file, const std::string& architecture) {
  constexpr std::string_view kJson = ".json";
  const bool json = plan_file.ends_with(kJson);
  return fmt::format("{}.{}.cubin",
                     plan_file.substr(0, plan_file.size() - (json ? kJson.size() : 0)),
                     architecture);
}

}  // namespace mscclc
