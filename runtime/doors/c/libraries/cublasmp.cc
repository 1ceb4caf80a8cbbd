#include "runtime/doors/c/libraries/cublasmp.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "runtime/doors/nccl/backends/report.h"
#include "runtime/support/process/open_library.h"

namespace mscclc::capi::mp {
namespace {

constexpr const char* kName = "libcublasmp.so.0";
// As NVIDIA's documents say since 0.8; until the second, what a first call makes is made in a
// graph.
constexpr int kLeastNccl = 22902, kFirstInGraphs = 23007;

std::vector<std::string> candidates(const std::string& nccl) {
  const auto folder = std::filesystem::path(nccl).parent_path();
  std::vector<std::string> paths = {folder / kName};
  for (const char* toolkit : {"cu13", "cu12"}) {
    paths.push_back(
        (folder / "../../cublasmp" / toolkit / "lib" / kName).lexically_normal().string());
  }
  std::erase_if(paths, [](const auto& path) { return !std::filesystem::exists(path); });
  paths.push_back(kName);
  return paths;
}

/// "", or whose functions it calls in place of this NCCL's. Those that the program and its
/// libraries offer to all come before what a library asks for by name.
std::string calls_another(void* opened, const nccl::RealNccl& nccl) {
  void* called = ::dlsym(RTLD_DEFAULT, "ncclCommCount");
  if (called == nullptr) called = ::dlsym(opened, "ncclCommCount");
  if (called == reinterpret_cast<void*>(nccl.CommCount)) return "";
  Dl_info info;
  const bool known = ::dladdr(called, &info) != 0 && info.dli_fname != nullptr;
  return known ? info.dli_fname : "another NCCL";
}

Result<Library> load(const std::string& path, const nccl::RealNccl& nccl) {
  const auto opened = open_library(path);
  if (!opened) return opened.error();
  const std::string other = calls_another(*opened, nccl);
  if (!other.empty()) {
    return Error{
        fmt::format("{}: it would call the NCCL of {}, not that of {}", path, other, nccl.path)};
  }
  Library found;
#define FUNCTION(name, parameters)                                                      \
  if (auto there = find_function(*opened, "cublasMp" #name, found.name); !there) {      \
    return Error{fmt::format("{}: {} (0.8 is the first)", path, there.error().text())}; \
  }
  MSCCLC_CUBLASMP(FUNCTION)
#undef FUNCTION
  (void)find_function(*opened, "cublasMpGetStatusString", found.GetStatusString);
  return found;
}

}  // namespace

std::string why_first_uncaptured(const nccl::RealNccl& nccl) {
  if (nccl.version >= kFirstInGraphs) return "";
  return fmt::format("that needs NCCL {} or later; {} is {}", nccl::version_text(kFirstInGraphs),
                     nccl.path, nccl::version_text(nccl.version));
}

Result<Library> find_library(const nccl::RealNccl& nccl) {
  if (nccl.version < kLeastNccl) {
    return Error{fmt::format("it needs NCCL {} or later; {} is {}: give another by MSCCLC_NCCL",
                             nccl::version_text(kLeastNccl), nccl.path,
                             nccl::version_text(nccl.version))};
  }
  std::string tried;
  for (const std::string& path : candidates(nccl.path)) {
    auto found = load(path, nccl);
    if (found) return found;
    tried += (tried.empty() ? "" : "; ") + found.error().text();
  }
  return Error{tried};
}

}  // namespace mscclc::capi::mp
