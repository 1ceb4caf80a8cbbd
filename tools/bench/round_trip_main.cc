// round_trip: how long a signal takes from one GPU to another and back, and a request from a GPU to
// the host and its answer, for several forms of each.
//
//   round_trip             GPUs 0 and 1, or GPU 0 and the host alone; tables of Markdown
#include <fmt/format.h>

#include <array>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "executor/shared_atomics.h"
#include "tools/bench/kernels/push.h"
#include "tools/bench/kernels/round_trip.h"
#include "tools/bench/support/statistics.h"
#include "tools/io/files.h"

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

/// What the host shares with GPU 0 while that pushes.
struct Pushed {
  alignas(128) uint64_t slot[4] = {};
  alignas(128) uint64_t answer = 0;
  alignas(128) uint64_t nanoseconds = 0;
};

/// Answers all pushes as they come, or until the kernel has ended.
void answer_all(Push push, Pushed& pushed) {
  constexpr uint64_t kLooks = 1 << 20;  // from one question to the driver to the next
  uint64_t looks = 0;
  for (uint64_t number = 1; number <= uint64_t{kUntimed} + kTimed; ++number) {
    for (uint32_t word = 0; word < words_of(push);) {
      if (load_acquire<uint64_t>(&pushed.slot[word]) == number) ++word;
      if (++looks % kLooks == 0 && cudaStreamQuery(nullptr) != cudaErrorNotReady) return;
    }
    store_release(&pushed.answer, number);
  }
}

/// Microseconds of a push and its answer; nothing: reported.
std::optional<double> time_once(Push push, Pushed& pushed) {
  pushed = {};
  const bool started = succeeded(launch_pushes(push,
                                               {.slot = pushed.slot,
                                                .answer = &pushed.answer,
                                                .nanoseconds = &pushed.nanoseconds,
                                                .untimed = kUntimed,
                                                .timed = kTimed},
                                               nullptr),
                                 "launch a kernel");
  if (!started) return std::nullopt;
  answer_all(push, pushed);
  if (!succeeded(cudaDeviceSynchronize(), "wait for a kernel")) return std::nullopt;
  return static_cast<double>(pushed.nanoseconds) / 1000 / kTimed;
}

/// The forms in turns, and the median of each. False: reported.
template <class Forms, class Time>
bool time_all(const std::string& head, const Forms& forms, const Time& time_once_of) {
  std::vector<std::vector<double>> times(forms.size());
  for (uint32_t i = 0; i < kRepeats; ++i) {
    for (size_t k = 0; k < forms.size(); ++k) {
      const auto time = time_once_of(forms[k]);
      if (!time) return false;
      times[k].push_back(*time);
    }
  }
  put(fmt::format("| {} | round trip, µs |\n|---|--:|\n", head));
  for (size_t k = 0; k < forms.size(); ++k) {
    put(fmt::format("| {} | {:.3f} |\n", name(forms[k]), quantile(times[k], 0.5)));
  }
  return true;
}

bool time_signals() {
  std::array<Side, 2> sides;
  return sides[0].open(0, 1) && sides[1].open(1, 0) &&
         time_all("signal", kSignals, [&](Signal signal) { return time_once(signal, sides); });
}

bool time_pushes() {
  void* memory = nullptr;
  if (!succeeded(cudaSetDevice(0), "use GPU 0") ||
      !succeeded(cudaMallocHost(&memory, sizeof(Pushed)), "allocate pinned memory")) {
    return false;
  }
  auto* const pushed = new (memory) Pushed;
  const bool good =
      time_all("request", kPushes, [&](Push push) { return time_once(push, *pushed); });
  return succeeded(cudaFreeHost(memory), "free memory") && good;
}

int run() {
  int gpus = 0;
  if (!succeeded(cudaGetDeviceCount(&gpus), "count GPUs")) return 1;
  if (gpus > 1 && !time_signals()) return 1;
  return time_pushes() ? 0 : 1;
}

}  // namespace
}  // namespace mscclc::bench

int main() { return mscclc::bench::run(); }
