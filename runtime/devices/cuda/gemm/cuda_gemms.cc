#include "runtime/devices/cuda/gemm/cuda_gemms.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/api/device.h"

namespace mscclc::cuda {
namespace {

abi::Stream driver_stream(StreamHandle stream) { return static_cast<abi::Stream>(stream); }

/// Zeros that are all operands of a product at once: it writes zeros where it reads them, in any
/// order. A workspace gets something else, and so has memory of its own.
class ZeroOperands {
 public:
  explicit ZeroOperands(Device& device) : device_(device) {}

  bool fill(Gemm& gemm, uint64_t workspace_bytes, Diagnostics& diagnostics) {
    const auto bytes = [](uint64_t count, Dtype dtype) { return count * info(dtype).bytes; };
    const uint64_t b_rows = gemm.b_transposed ? gemm.n : gemm.k;
    zeros_ = take(std::max({bytes(gemm.m * gemm.a_stride, gemm.a_dtype),
                            bytes(b_rows * gemm.b_stride, gemm.b_dtype),
                            bytes(gemm.m * gemm.d_stride, gemm.d_dtype),
                            bytes(gemm.n, gemm.d_dtype), uint64_t{sizeof(float)}}),
                  diagnostics);
    if (zeros_ == nullptr) return false;
    gemm.a = gemm.b = gemm.d = zeros_->data();
    if (gemm.has_bias) gemm.bias = zeros_->data();
    if (gemm.has_scales) {
      gemm.a_scale = gemm.b_scale = reinterpret_cast<const float*>(zeros_->data());
    }
    gemm.workspace_bytes = workspace_bytes;
    if (workspace_bytes == 0) return true;
    workspace_ = take(workspace_bytes, diagnostics);
    if (workspace_ == nullptr) return false;
    gemm.workspace = workspace_->data();
    return true;
  }

 private:
  std::unique_ptr<Memory> take(uint64_t bytes, Diagnostics& diagnostics) {
    return device_.allocate(bytes, "a GEMM's first call", diagnostics);
  }

  Device& device_;
  std::unique_ptr<Memory> zeros_, workspace_;
};

}  // namespace

bool CudaGemms::launched(int error, const char* what, Diagnostics& diagnostics) const {
  if (error == 0) return true;
  diagnostics.error("cuda", {},
                    fmt::format("cannot {} on {}: {}", what, device_.name(), error_text_(error)));
  return false;
}

StreamHandle CudaGemms::create_urgent_stream(Diagnostics& diagnostics) {
  const std::unique_ptr<OwnStream> stream = OwnStream::create(context_, diagnostics, true);
  return stream == nullptr ? nullptr : stream->release();
}

bool CudaGemms::order(StreamHandle earlier, StreamHandle later, Diagnostics& diagnostics) {
  if (event_ == nullptr) event_ = OwnEvent::create(context_, diagnostics);
  return event_ != nullptr && event_->record(driver_stream(earlier), diagnostics) &&
         event_->delay(driver_stream(later), diagnostics);
}

bool CudaGemms::raise(uint32_t* word, uint32_t times, StreamHandle stream,
                      Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  return current.is_set(diagnostics) &&
         launched(kernels_.raise(word, times, stream), "raise a flag", diagnostics);
}

bool CudaGemms::await(const FlagWait& wait, StreamHandle stream, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  return current.is_set(diagnostics) &&
         launched(kernels_.await(wait, stream), "wait for a flag", diagnostics);
}

bool CudaGemms::add_parts(const PartSum& sum, StreamHandle stream, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  return current.is_set(diagnostics) &&
         launched(kernels_.add_parts(sum, stream), "add up parts", diagnostics);
}

bool CudaGemms::multiply(GemmProvider& provider, const Gemm& gemm, StreamHandle stream,
                         std::function<void(const Diagnostics&)> /*failed*/,
                         Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  return current.is_set(diagnostics) && provider.run(gemm, stream, diagnostics);
}

bool CudaGemms::warm_up(GemmProvider& provider, const Gemm& gemm, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  const auto stream = OwnStream::create(context_, diagnostics);
  if (!current.is_set(diagnostics) || stream == nullptr) return false;
  ZeroOperands operands(device_);
  Gemm zeros = gemm;
  if (!operands.fill(zeros, provider.workspace_bytes(), diagnostics)) return false;
  const bool made = provider.run(zeros, stream->get(), diagnostics);
  // Also where it has failed: what is on the stream uses the operands.
  return device_.synchronize(stream->get(), diagnostics) && made;
}

std::unique_ptr<GemmProvider> CudaGemms::make_provider(Diagnostics& diagnostics) {
  return kernels_.make_provider(context_, diagnostics);
}

}  // namespace mscclc::cuda
