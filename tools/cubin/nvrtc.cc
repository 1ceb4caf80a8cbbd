// libnvrtc, loaded when it is asked for. It has no headers of the standard library: what kernels
// use of it comes with their source (executor/compiled/emit.h).
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "executor/compiled/emit.h"
#include "tools/cubin/cubin_compiler.h"

namespace mscclc {
namespace {

using ProgramHandle = void*;
using RtcResult = int;
constexpr RtcResult kSuccess = 0, kCompilation = 6;

/// The functions of the library that are called here.
struct RtcFunctions {
  RtcResult (*create)(ProgramHandle*, const char* source, const char* name, int headers,
                      const char* const* texts, const char* const* names) = nullptr;
  RtcResult (*compile)(ProgramHandle, int options, const char* const*) = nullptr;
  RtcResult (*log_size)(ProgramHandle, size_t*) = nullptr;
  RtcResult (*log)(ProgramHandle, char*) = nullptr;
  RtcResult (*cubin_size)(ProgramHandle, size_t*) = nullptr;
  RtcResult (*cubin)(ProgramHandle, char*) = nullptr;
  RtcResult (*destroy)(ProgramHandle*) = nullptr;
  const char* (*error_text)(RtcResult) = nullptr;
};

/// A library, closed at the end.
class RtcLibrary {
 public:
  explicit RtcLibrary(const std::string& file)
      : handle_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~RtcLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  RtcLibrary(const RtcLibrary&) = delete;
  RtcLibrary& operator=(const RtcLibrary&) = delete;
  explicit operator bool() const { return handle_ != nullptr; }
  /// False: there is no such function.
  template <class Function>
  bool find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    return function != nullptr;
  }

 private:
  void* const handle_;
};

class Nvrtc final : public CubinCompiler {
 public:
  explicit Nvrtc(const std::string& file) : library_(file) {}

  Result<void> find_functions() {
    if (!library_) {
      const char* const said = dlerror();
      return Error{said == nullptr ? "it cannot be loaded" : said};
    }
    const bool found = library_.find(f_.create, "nvrtcCreateProgram") &&
                       library_.find(f_.compile, "nvrtcCompileProgram") &&
                       library_.find(f_.log_size, "nvrtcGetProgramLogSize") &&
                       library_.find(f_.log, "nvrtcGetProgramLog") &&
                       library_.find(f_.cubin_size, "nvrtcGetCUBINSize") &&
                       library_.find(f_.cubin, "nvrtcGetCUBIN") &&
                       library_.find(f_.destroy, "nvrtcDestroyProgram") &&
                       library_.find(f_.error_text, "nvrtcGetErrorString");
    if (!found) return Error{"it lacks functions of NVRTC 11.1 and later"};
    return {};
  }

  Result<std::string> compile(const std::string& source,
                              const std::string& architecture) const override {
    const std::string machine(kernel_header()), standard(standard_header());
    const std::string include = fmt::format("#include \"{}\"\n", kStandardHeader);
    std::vector<const char*> names{kKernelHeader, kStandardHeader};
    std::vector<const char*> texts{machine.c_str(), standard.c_str()};
    for (const char* name : standard_names()) {
      names.push_back(name);
      texts.push_back(include.c_str());
    }
    ProgramHandle program = nullptr;
    RtcResult result = f_.create(&program, source.c_str(), "kernels.cu",
                                 static_cast<int>(names.size()), texts.data(), names.data());
    std::optional<std::string> cubin;
    if (result == kSuccess) {
      const std::string arch = "--gpu-architecture=" + architecture;
      const char* const options[] = {"--std=c++20", "--device-as-default-execution-space",
                                     arch.c_str()};
      result = f_.compile(program, std::size(options), options);
    }
    if (result == kSuccess) cubin = text(program, f_.cubin_size, f_.cubin, result);
    Error error;
    if (!cubin) {
      error.message = fmt::format("libnvrtc failed: {}", f_.error_text(result));
      RtcResult ignored = kSuccess;
      const auto said =
          result == kCompilation ? text(program, f_.log_size, f_.log, ignored) : std::nullopt;
      if (said) error.message += "\n" + said->substr(0, said->find('\0'));
    }
    if (program != nullptr) (void)f_.destroy(&program);
    if (!cubin) return error;
    return *std::move(cubin);
  }

 private:
  /// What the library says of a program, by its size and then itself.
  static std::optional<std::string> text(ProgramHandle program,
                                         RtcResult (*size_of)(ProgramHandle, size_t*),
                                         RtcResult (*get)(ProgramHandle, char*),
                                         RtcResult& result) {
    size_t size = 0;
    if (result = size_of(program, &size); result != kSuccess) return std::nullopt;
    std::string text(size, '\0');
    if (result = get(program, text.data()); result != kSuccess) return std::nullopt;
    return text;
  }

  const RtcLibrary library_;
  RtcFunctions f_;
};

}  // namespace

Result<std::unique_ptr<CubinCompiler>> open_nvrtc(const std::string& file) {
  auto made = std::make_unique<Nvrtc>(file);
  if (const auto found = made->find_functions(); !found) return found.error();
  return made;
}

std::unique_ptr<CubinCompiler> find_nvrtc() {
  std::vector<std::string> files;
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != '\0') {
    files.push_back(std::string(home) + "/lib64/libnvrtc.so");
  }
  for (const char* name :
       {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"}) {
    files.emplace_back(name);
  }
  for (const std::string& file : files) {
    if (auto found = open_nvrtc(file)) return *std::move(found);
  }
  return nullptr;
}

}  // namespace mscclc
