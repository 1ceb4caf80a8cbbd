#include "runtime/devices/cuda/gemm/cublaslt_library.h"

#include <fmt/format.h>

#include "runtime/support/process/open_library.h"

namespace mscclc::cuda::lt {
namespace {

constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
constexpr const char* kToolkit = "/usr/local/cuda/lib64/";

Result<void*> open_any() {
  for (const char* name : kNames) {
    if (void* const loaded = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return loaded;
  }
  std::string tried;
  for (const std::string folder : {"", kToolkit}) {
    for (const char* name : kNames) {
      const auto opened = open_library(folder + name);
      if (opened) return *opened;
      tried += (tried.empty() ? "" : "; ") + opened.error().text();
    }
  }
  return Error{
      fmt::format("GEMMs on GPUs need cuBLASLt, and there is none ({}); install it, or make the "
                  "products yourself (mscclc_overlap_config_t::gemm, GemmProvider)",
                  tried)};
}

Result<void> find_functions(void* opened, Library& found) {
#define FUNCTION(name, parameters)                                                \
  if (auto there = find_function(opened, "cublasLt" #name, found.name); !there) { \
    return Error{"cuBLASLt: " + there.error().text()};                            \
  }
  MSCCLC_CUBLASLT(FUNCTION)
#undef FUNCTION
  (void)find_function(opened, "cublasLtGetStatusString", found.GetStatusString);
  return {};
}

}  // namespace

Result<Library> find_library() {
  const auto opened = open_any();
  if (!opened) return opened.error();
  Library found;
  const auto complete = find_functions(*opened, found);
  if (!complete) return complete.error();
  return found;
}

}  // namespace mscclc::cuda::lt
