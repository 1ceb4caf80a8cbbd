#include <cuda_runtime_api.h>

#include "executor/cuda/kernel.h"
#include "runtime/api/gpu.h"
#include "runtime/devices/cuda/device.h"
#include "runtime/devices/cuda/driver/seen_gpus.h"
#include "runtime/devices/cuda/gemm/cublaslt.h"
#include "runtime/devices/cuda/gemm/cublaslt_library.h"
#include "runtime/devices/kernels/kernel_maker.h"
#include "runtime/support/process/per_process.h"

namespace mscclc::cuda {
namespace {

KernelLauncher interpreter() {
  return {.load =
              [](EarlyLaunch* early) {
                Abilities abilities;
                int error = load_kernels(&abilities);
                if (error == 0) error = load_scale_kernels();
                if (error == 0) error = load_gemm_steps();
                *early = {abilities.early_launch, abilities.early_in_captures};
                return error;
              },
          .keep_stack = keep_stack,
          .launch = launch,
          .most_resident_blocks = most_resident_blocks,
          .scale =
              [](const Scaling& what, void* stream) {
                return scale(what.dtype, what.to, what.from, what.count, what.factor, stream);
              },
          .gemm = {.raise = raise_flag,
                   .await =
                       [](const FlagWait& wait, void* stream) {
                         return await_flag(wait.word, wait.ended, wait.runs, wait.raises,
                                           wait.counts, stream);
                       },
                   .add_parts =
                       [](const PartSum& sum, void* stream) {
                         return add_parts({.dtype = sum.dtype,
                                           .to = sum.to,
                                           .from = sum.from,
                                           .parts = sum.parts,
                                           .bias = sum.bias,
                                           .count = sum.rows * sum.columns,
                                           .columns = sum.columns,
                                           .gelu = sum.activation == Activation::gelu,
                                           .before = sum.before},
                                          stream);
                       },
                   .make_provider = make_cublaslt},
          .error_text = [](int error) -> std::string {
            return cudaGetErrorString(static_cast<cudaError_t>(error));
          }};
}

}  // namespace

std::string why_no_gpu_part() { return ""; }
std::string why_no_gpu(int ordinal) { return why_not_seen(ordinal); }
std::string why_no_cublaslt() {
  const auto found = lt::find_library();
  return found ? "" : found.error().text();
}

int count_gpus(Diagnostics& diagnostics) {
  const Driver* driver = load_driver(diagnostics);
  int count = 0;
  if (driver == nullptr ||
      !succeeded(*driver, driver->DeviceGetCount(&count), "count GPUs", diagnostics)) {
    return 0;
  }
  return count;
}

std::unique_ptr<Device> open_gpu(int ordinal, Diagnostics& diagnostics,
                                 std::optional<uint32_t> node) {
  const Driver* driver = load_driver(diagnostics);
  CudaOptions options{.ordinal = ordinal, .kernels = &process_kernel_maker()};
  if (node) options.node = *node;
  if (driver == nullptr ||
      !options_from_environment(Environment::of_process(), options, diagnostics)) {
    return nullptr;
  }
  std::optional<Exchange> exchange = make_exchange(diagnostics);
  if (!exchange || !process_wide<ContextKeeper>().keep(*driver, ordinal, diagnostics))
    return nullptr;
  return CudaDevice::open(*driver, options, interpreter(), std::move(*exchange), diagnostics);
}

}  // namespace mscclc::cuda
