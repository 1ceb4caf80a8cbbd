#include "tools/commands/programs/kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/compiled/emit.h"
#include "ir/verify/row_faults.h"
#include "runtime/choice/proofs/plan_digest.h"
#include "tools/io/files.h"

namespace mscclc {

std::optional<std::string> kernel_source(const Program& program, std::span<const Dtype> dtypes,
                                         Diagnostics& diagnostics) {
  if (const auto fault = columns_fault(program)) {
    diagnostics.error(fault->code, {}, fault->message);
    return std::nullopt;
  }
  const auto digest = plan_digest(program, diagnostics);
  if (!digest) return std::nullopt;
  return write_kernels(program, hex(*digest), dtypes, diagnostics);
}

Result<void> write_kernel_source(const std::string& source, const std::string& output) {
  if (output != "-") {
    const size_t slash = output.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : output.substr(0, slash + 1);
    const auto written = write_file(folder + kKernelHeader, kernel_header());
    if (!written) return written;
  }
  return write_file(output, source);
}

Result<std::unique_ptr<CubinCompiler>> find_cubin_compiler() {
  const Environment environment = Environment::of_process();
  if (names_nvrtc(environment)) {
    auto named = find_nvrtc(environment);
    if (named) return named;
    return Error{named.error().text() + "; without MSCCLC_NVRTC, nvcc would compile"};
  }
  if (auto nvcc = find_nvcc()) return nvcc;
  if (auto nvrtc = find_nvrtc(environment)) return nvrtc;
  return Error{
      "there is no nvcc in CUDA_HOME, PATH or /usr/local/cuda, and no libnvrtc that can be loaded; "
      "'--emit=cuda' writes the source for a machine that has one of them"};
}

std::string check_architecture(const std::string& architecture) {
  const bool good = architecture.size() >= 5 && architecture.starts_with("sm_") &&
                    std::all_of(architecture.begin() + 3, architecture.end(), [](char c) {
                      return (c >= '0' && c <= '9') || c == 'a' || c == 'f';
                    });
  return good ? "" : fmt::format("architectures are written like sm_90, not '{}'", architecture);
}

}  // namespace mscclc
