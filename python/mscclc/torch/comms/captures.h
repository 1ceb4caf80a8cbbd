// Captures of CUDA graphs, without a link to CUDA's library, which a torch for CPUs has not.
#pragma once

#include <c10/core/Stream.h>
#include <dlfcn.h>

namespace mscclc::torch_comms {

/// True while work that is put on the stream becomes part of a graph: its events must not be asked.
inline bool captures(const c10::Stream& stream) {
  if (!stream.device().is_cuda()) return false;
  using Ask = int (*)(void* stream, int* status);
  static const auto ask = reinterpret_cast<Ask>(dlsym(RTLD_DEFAULT, "cudaStreamIsCapturing"));
  int status = 0;
  return ask != nullptr && ask(stream.native_handle(), &status) == 0 && status != 0;
}

/// This thread may ask for events of its own while another one captures.
inline void relax_captures() {
  using Exchange = int (*)(int* mode);
  static const auto exchange =
      reinterpret_cast<Exchange>(dlsym(RTLD_DEFAULT, "cudaThreadExchangeStreamCaptureMode"));
  int relaxed = 2;
  if (exchange != nullptr) exchange(&relaxed);
}

}  // namespace mscclc::torch_comms
