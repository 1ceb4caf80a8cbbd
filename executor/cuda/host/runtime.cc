#include "executor/cuda/host/runtime.h"

mscclc::cuda::host::Stream& default_stream() {
  static mscclc::cuda::host::Stream stream;
  return stream;
}
