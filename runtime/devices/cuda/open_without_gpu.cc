#include "runtime/api/gpu.h"

namespace mscclc::cuda {
namespace {

void report(Diagnostics& diagnostics) {
  diagnostics.error("no-gpu-part", {}, why_no_gpu_part())
      .notes.push_back({"with CUDA's nvcc: bazel build --config=cuda //tools:mscclc "
                        "//runtime/doors/c:libmscclc.so.0 //runtime/doors/nccl:libnccl.so.2"});
}

}  // namespace

std::string why_no_gpu_part() { return "this mscclc was built without the GPU part"; }
std::string why_no_gpu(int) { return why_no_gpu_part(); }
std::string why_no_cublaslt() { return why_no_gpu_part(); }

int count_gpus(Diagnostics& diagnostics) {
  report(diagnostics);
  return 0;
}

std::unique_ptr<Device> open_gpu(int, Diagnostics& diagnostics, std::optional<uint32_t>) {
  report(diagnostics);
  return nullptr;
}

}  // namespace mscclc::cuda
