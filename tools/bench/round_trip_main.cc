// round_trip: how long a signal takes from one GPU to another and back, for several forms of it.
//
//   round_trip             GPUs 0 and 1, a table of Markdown
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/files.h"
#include "tools/bench/base/statistics.h"
#include "tools/bench/kernels/round_trip.h"

namespace mscclc::bench {
namespace {

constexpr uint32_t kUntimed = 100, kTimed = 2000, kRepeats = 15;

/// Says what went wrong. True: nothing.
bool succeeded(cudaError_t result, const std::string& attempt) {
  if (result == cudaSuccess) return true;
  put_error(fmt::format("round_trip: cannot {}: {}\n", attempt, cudaGetErrorString(result)));
  return false;
}

/// One GPU: a stream, and memory that the other one reaches.
struct Side {
  int device = 0;
  cudaStream_t stream = nullptr;
  uint64_t* words = nullptr;  ///< arrived, sent, nanoseconds; a line of 128 bytes each

  static constexpr size_t kLine = 16, kBytes = 3 * kLine * sizeof(uint64_t);

  bool open(int ordinal, int peer) {
    device = ordinal;
    return succeeded(cudaSetDevice(device), fmt::format("use GPU {}", device)) &&
           succeeded(cudaDeviceEnablePeerAccess(peer, 0),
                     fmt::format("reach GPU {} from GPU {}", peer, device)) &&
           succeeded(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream") &&
           succeeded(cudaMalloc(reinterpret_cast<void**>(&words), kBytes), "allocate memory");
  }
  bool clear() const {
    return succeeded(cudaSetDevice(device), "use a GPU") &&
           succeeded(cudaMemset(words, 0, kBytes), "clear memory") &&
           succeeded(cudaDeviceSynchronize(), "clear memory");
  }
  bool launch(Signal signal, const Side& partner) const {
    return succeeded(cudaSetDevice(device), "use a GPU") &&
           succeeded(launch_round_trips(signal,
                                        {.arrived = words,
                                         .partner = partner.words,
                                         .sent = words + kLine,
                                         .nanoseconds = words + 2 * kLine,
                                         .untimed = kUntimed,
                                         .timed = kTimed,
                                         .serves = device == 0},
                                        stream),
                     "launch a kernel");
  }
  bool wait() const { return succeeded(cudaStreamSynchronize(stream), "wait for a kernel"); }
};

/// Microseconds of a round trip; nothing: reported.
std::optional<double> time_once(Signal signal, const std::array<Side, 2>& sides) {
  uint64_t nanoseconds = 0;
  const bool good = sides[0].clear() && sides[1].clear() && sides[1].launch(signal, sides[0]) &&
                    sides[0].launch(signal, sides[1]) && sides[0].wait() && sides[1].wait() &&
                    succeeded(cudaMemcpy(&nanoseconds, sides[0].words + 2 * Side::kLine,
                                         sizeof nanoseconds, cudaMemcpyDeviceToHost),
                              "read a time");
  if (!good) return std::nullopt;
  return static_cast<double>(nanoseconds) / 1000 / kTimed;
}

int run() {
  std::array<Side, 2> sides;
  if (!sides[0].open(0, 1) || !sides[1].open(1, 0)) return 1;
  std::vector<std::vector<double>> times(kSignals.size());
  for (uint32_t i = 0; i < kRepeats; ++i) {
    for (size_t k = 0; k < kSignals.size(); ++k) {
      const auto time = time_once(kSignals[k], sides);
      if (!time) return 1;
      times[k].push_back(*time);
    }
  }
  put("| signal | round trip, µs |\n|---|--:|\n");
  for (size_t k = 0; k < kSignals.size(); ++k) {
    put(fmt::format("| {} | {:.3f} |\n", name(kSignals[k]), quantile(times[k], 0.5)));
  }
  return 0;
}

}  // namespace
}  // namespace mscclc::bench

int main() { return mscclc::bench::run(); }
