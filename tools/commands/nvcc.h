// NVIDIA's compiler as a process: CUDA source to a cubin.
#pragma once

#include <optional>
#include <string>

namespace mscclc {

inline constexpr const char* kNoNvcc =
    "there is no nvcc in CUDA_HOME, PATH or /usr/local/cuda; '--emit=cuda' writes the source for a "
    "machine that has it";

/// The compiler: of CUDA_HOME, of PATH, or of /usr/local/cuda. nullopt: there is none.
std::optional<std::string> find_nvcc();

/// Compiles `source` for `architecture` ("sm_90") and writes the cubin to `output`. On failure says
/// why, with what the compiler says. Thread safety: any thread.
[[nodiscard]] bool compile_cubin(const std::string& nvcc, const std::string& source,
                                 const std::string& architecture, const std::string& output,
                                 std::string& error);

}  // namespace mscclc
