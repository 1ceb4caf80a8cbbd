// libnvrtc, loaded when it is asked for, and never closed. It has no headers of the standard
// library: what kernels use of it comes with their source (executor/compiled/emit.h).
#include <dlfcn.h>
#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <vector>

#include "executor/compiled/emit.h"
#include "runtime/devices/kernels/cubin_compiler.h"
#include "runtime/support/process/open_library.h"

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
  RtcResult (*version)(int* major, int* minor) = nullptr;
};

class Nvrtc final : public CubinCompiler {
 public:
  Nvrtc(const std::string& file, void* library) : file_(real_path(file, library)) {
    found_ = find_function(library, "nvrtcCreateProgram", f_.create) &&
             find_function(library, "nvrtcCompileProgram", f_.compile) &&
             find_function(library, "nvrtcGetProgramLogSize", f_.log_size) &&
             find_function(library, "nvrtcGetProgramLog", f_.log) &&
             find_function(library, "nvrtcGetCUBINSize", f_.cubin_size) &&
             find_function(library, "nvrtcGetCUBIN", f_.cubin) &&
             find_function(library, "nvrtcDestroyProgram", f_.destroy) &&
             find_function(library, "nvrtcGetErrorString", f_.error_text) &&
             find_function(library, "nvrtcVersion", f_.version);
    int major = 0, minor = 0;
    found_ = found_ && f_.version(&major, &minor) == kSuccess;
    version_ = fmt::format("NVRTC {}.{}", major, minor);
  }
  bool has_functions() const { return found_; }
  const std::string& version() const override { return version_; }
  const std::string& file() const override { return file_; }

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

  /// Its built-ins, and tables that only a kernel needs.
  Result<void> prepare(const std::string& architecture) const override {
    const auto made = compile("__global__ void first() {}\n", architecture);
    return made ? Result<void>() : made.error();
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

  /// Of a name without a folder: what the loader has found.
  static std::string real_path(const std::string& file, void* library) {
    Dl_info info = {};
    void* const function = ::dlsym(library, "nvrtcVersion");
    const bool known = file.find('/') == std::string::npos && function != nullptr &&
                       ::dladdr(function, &info) != 0 && info.dli_fname != nullptr;
    return known ? info.dli_fname : file;
  }

  const std::string file_;
  std::string version_;
  bool found_ = false;
  RtcFunctions f_;
};

}  // namespace

Result<std::unique_ptr<CubinCompiler>> open_nvrtc(const std::string& file) {
  const auto library = open_library(file);
  if (!library) return library.error();
  auto made = std::make_unique<Nvrtc>(file, *library);
  if (!made->has_functions()) return Error{"it lacks functions of NVRTC 11.1 and later"};
  return made;
}

}  // namespace mscclc
