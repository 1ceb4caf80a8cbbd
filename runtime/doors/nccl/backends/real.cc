#include "runtime/doors/nccl/backends/real.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <mutex>

#include "ir/support/read_file.h"
#include "runtime/doors/nccl/backends/device.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/process/open_library.h"
#include "runtime/support/process/per_process.h"

// A copy of this library under another name is known by it.
extern "C" __attribute__((visibility("default"))) const char mscclc_nccl_front[] = "mscclc";

namespace mscclc::nccl {
namespace {

constexpr const char* kMarker = "mscclc_nccl_front";

#if defined(MSCCLC_ASAN) || defined(MSCCLC_TSAN)
// Sanitizers must find their own malloc first. Then there is only the depth guard.
constexpr int kLoadFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kLoadFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

bool same_file(const std::string& a, const std::string& b) {
  struct stat x, y;
  return ::stat(a.c_str(), &x) == 0 && ::stat(b.c_str(), &y) == 0 && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino;
}

/// The file that this code is in.
std::string own_file() {
  Dl_info info;
  return ::dladdr(mscclc_nccl_front, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

/// A framework whose wheel takes NCCL's beside it.
struct Framework {
  std::string_view library;  ///< a part of the path of its library that uses NCCL
  const char* packages;      ///< the folder of the packages, from where `library` begins
};
constexpr Framework kFrameworks[] = {
    {"/libtorch_cuda.so", "../.."},
    {"/cupy_backends/cuda/libs/nccl.", "."},
    {"/xla_cuda_plugin.so", "../.."},
};

/// What stands before `framework.library` in the path that /proc/self/maps has, or "".
std::string folder_of(const Framework& framework, std::string_view maps) {
  const size_t name = maps.find(framework.library);
  if (name == std::string_view::npos) return "";
  const size_t line =
      maps.rfind('\n', name) == std::string_view::npos ? 0 : maps.rfind('\n', name) + 1;
  const size_t path = maps.find('/', line);
  return std::string(maps.substr(path, name - path));
}

/// The same file by a name that nothing else uses. Where our audit library has answered another
/// load of this path, the loader knows ours by the path.
std::string unused_spelling(const std::string& path) {
  const std::filesystem::path file(path);
  return file.parent_path().string() + "/./" + file.filename().string();
}

void find_functions(void* handle, RealNccl& real) {
#define API(since, how, result, name, parameters, arguments) \
  real.name = reinterpret_cast<result(*) parameters>(::dlsym(handle, "nccl" #name));
#include "runtime/doors/nccl/abi/api.def"
#undef API
}

/// What no version lacks.
const char* missing_function(const RealNccl& real) {
#define API(since, how, result, name, parameters, arguments) \
  if (since <= 20400 && real.name == nullptr) return "nccl" #name;
#include "runtime/doors/nccl/abi/api.def"
#undef API
  return nullptr;
}

struct Found {
  std::unique_ptr<const RealNccl> real;
  std::string why;
};

Found find_real() {
  Diagnostics diagnostics;
  const Environment environment = Environment::of_process();
  const std::string named = environment.has(Variable::MSCCLC_NCCL)
                                ? environment.text(Variable::MSCCLC_NCCL, diagnostics).value_or("")
                                : "";
  // NVIDIA's needs GPUs: on the host only a fake will do, which the user must name.
  if (named.empty() && runs_on_host()) {
    return {nullptr, "there is no NCCL on the host device unless MSCCLC_NCCL names one"};
  }
  std::string maps;
  if (const auto text = read_file("/proc/self/maps")) maps = *text;
  Found found;
  for (const std::string& path : candidates(named, own_file(), maps)) {
    if (named.empty() && !std::filesystem::exists(path)) continue;
    auto real = load_real(path);
    if (real) return {*std::move(real), ""};
    found.why += (found.why.empty() ? "" : "; ") + real.error().text();
  }
  if (!named.empty()) warn_of_setting("MSCCLC_NCCL: " + found.why);
  if (found.why.empty()) {
    found.why = "there is no NCCL to fall back to: set MSCCLC_NCCL to its libnccl.so.2";
  }
  return found;
}

/// Never destroyed: threads of NCCL's may outlive main().
struct RealOfProcess {
  std::once_flag once;
  Found found;
};
RealOfProcess& real_of_process() { return kept_over_forks<RealOfProcess>(); }

}  // namespace

std::vector<std::string> candidates(std::string_view named, std::string_view self,
                                    std::string_view maps) {
  if (!named.empty()) return {std::filesystem::absolute(named)};
  std::vector<std::string> paths;
  if (!self.empty()) {
    paths.push_back(std::filesystem::absolute(self).parent_path() / "libnccl_real.so.2");
  }
  for (const Framework& framework : kFrameworks) {
    const std::string folder = folder_of(framework, maps);
    if (folder.empty()) continue;
    const auto packages = std::filesystem::path(folder) / framework.packages;
    paths.push_back((packages / "nvidia/nccl/lib/libnccl.so.2").lexically_normal());
  }
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                             "/usr/lib64", "/usr/local/lib", "/usr/local/cuda/lib64"}) {
    paths.push_back(fmt::format("{}/libnccl.so.2", folder));
  }
  return paths;
}

Result<std::unique_ptr<const RealNccl>> load_real(const std::string& path) {
  const auto refuse = [&](const std::string& reason) {
    return Error{fmt::format("'{}' cannot be the NCCL to fall back to: {}", path, reason)};
  };
  const std::string remedy = "it is mscclc's own; set MSCCLC_NCCL to NVIDIA's libnccl.so.2";
  if (same_file(path, own_file())) return refuse(remedy);
  if (is_no_file(path)) return refuse("it is not a file");
  const InsideReal inside;
  void* handle = ::dlopen(unused_spelling(path).c_str(), kLoadFlags);
  if (handle == nullptr) return refuse(::dlerror());
  // Asking the loader for the marker would also find ours where there is no DEEPBIND: what counts
  // is in which file it is.
  const void* marker = ::dlsym(handle, kMarker);
  Dl_info info;
  if (marker != nullptr && ::dladdr(marker, &info) != 0 && same_file(info.dli_fname, path)) {
    return refuse(remedy);
  }
  auto real = std::make_unique<RealNccl>();
  find_functions(handle, *real);
  const bool is_own = ::dladdr(reinterpret_cast<void*>(real->GetVersion), &info) != 0 &&
                      same_file(info.dli_fname, own_file());
  if (is_own) return refuse("the loader gives mscclc's own in its place");
  if (const char* name = missing_function(*real)) {
    return refuse(fmt::format("it has no {}()", name));
  }
  real->path = path;
  if (real->GetVersion(&real->version) != ncclSuccess) return refuse("it gives no version");
  return real;
}

const RealNccl* real_nccl() {
  std::call_once(real_of_process().once, [] { real_of_process().found = find_real(); });
  return real_of_process().found.real.get();
}

const std::string& why_no_real() {
  (void)real_nccl();
  return real_of_process().found.why;
}

void replace_real_nccl(std::unique_ptr<const RealNccl> real, std::string why) {
  (void)real_nccl();
  real_of_process().found = {std::move(real), std::move(why)};
}

}  // namespace mscclc::nccl
