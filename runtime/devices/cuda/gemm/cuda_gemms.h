// Products and flags on streams of a GPU.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/api/gemm.h"
#include "runtime/devices/cuda/driver/stream.h"

namespace mscclc {
class Device;
}

namespace mscclc::cuda {

/// The kernels, which nvcc compiles elsewhere (executor/cuda), and cuBLASLt. Called with the GPU's
/// context current; errors are numbers of cudaError_t, 0: none.
struct GemmKernels {
  std::function<int(uint32_t* word, uint32_t times, void* stream)> raise;
  std::function<int(const FlagWait& wait, void* stream)> await;
  std::function<int(const PartSum& sum, void* stream)> add_parts;
  /// The device's own provider. nullptr: reported.
  std::function<std::unique_ptr<GemmProvider>(SharedContext context, Diagnostics& diagnostics)>
      make_provider;
};

class CudaGemms final : public GemmStreams {
 public:
  /// `device` and what else is a reference outlive it.
  CudaGemms(Device& device, SharedContext context, const GemmKernels& kernels,
            const std::function<std::string(int)>& error_text)
      : device_(device), context_(std::move(context)), kernels_(kernels), error_text_(error_text) {}

  StreamHandle create_urgent_stream(Diagnostics& diagnostics) override;
  bool order(StreamHandle earlier, StreamHandle later, Diagnostics& diagnostics) override;
  bool raise(uint32_t* word, uint32_t times, StreamHandle stream,
             Diagnostics& diagnostics) override;
  bool await(const FlagWait& wait, StreamHandle stream, Diagnostics& diagnostics) override;
  bool add_parts(const PartSum& sum, StreamHandle stream, Diagnostics& diagnostics) override;
  bool multiply(GemmProvider& provider, const Gemm& gemm, StreamHandle stream,
                std::function<void(const Diagnostics&)> failed, Diagnostics& diagnostics) override;
  bool warm_up(GemmProvider& provider, const Gemm& gemm, Diagnostics& diagnostics) override;
  std::unique_ptr<GemmProvider> make_provider(Diagnostics& diagnostics) override;

 private:
  bool launched(int error, const char* what, Diagnostics& diagnostics) const;

  Device& device_;
  const SharedContext context_;
  const GemmKernels& kernels_;
  const std::function<std::string(int)>& error_text_;
  std::unique_ptr<OwnEvent> event_;  ///< between two streams
};

}  // namespace mscclc::cuda
