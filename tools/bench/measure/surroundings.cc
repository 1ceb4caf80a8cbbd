#include "tools/bench/measure/surroundings.h"

#include "tools/bench/measure/timing.h"

namespace mscclc::bench {
namespace {

constexpr uint32_t kChunkAlign = 16;

bool launch(BusyKernel kernel, cudaStream_t stream, bool early, Diagnostics& diagnostics) {
  kernel.early = early;
  return succeeded(launch_busy(kernel, stream), "launch a kernel", diagnostics);
}

}  // namespace

std::optional<Surroundings> Surroundings::of(const Workload& w, uint32_t rank,
                                             const Options& options, Diagnostics& diagnostics) {
  int device = 0, processors = 0, kilohertz = 0;
  if (!succeeded(cudaGetDevice(&device), "find the device", diagnostics) ||
      !succeeded(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                 "count multiprocessors", diagnostics) ||
      !succeeded(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device),
                 "read the clock rate", diagnostics)) {
    return std::nullopt;
  }
  const Chunking chunking(*w.contract, w.part, kChunkAlign);
  BusyKernel kernel;
  kernel.cycles = static_cast<uint64_t>(options.between * kilohertz / 1000);
  kernel.blocks = static_cast<uint32_t>(processors);
  Surroundings made;
  made.before_ = made.after_ = kernel;
  made.before_.data = w.input;
  made.before_.bytes = chunking.buffer_bytes(Side::input, rank);
  made.before_.writes = true;
  made.after_.data = w.output;
  made.after_.bytes = chunking.buffer_bytes(Side::output, rank);
  return made;
}

bool Surroundings::launch_before(cudaStream_t stream, bool early, Diagnostics& diagnostics) const {
  return launch(before_, stream, early, diagnostics);
}
bool Surroundings::launch_after(cudaStream_t stream, bool early, Diagnostics& diagnostics) const {
  return launch(after_, stream, early, diagnostics);
}

}  // namespace mscclc::bench
