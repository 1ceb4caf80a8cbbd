#include "tests/gpu/stage.h"

#include <fmt/format.h>

#include "runtime/cuda/open.h"
#include "tests/gpu/graphs.h"

namespace mscclc::testing {

std::string run_ranks(const StageOptions& options, const RankBody& body,
                      std::optional<Timeouts> given) {
  const Timeouts timeouts = given.value_or(Timeouts(options.patience));
  const OpenDevice open = [&](uint32_t rank, Diagnostics& diagnostics) {
    return open_device(options, rank, diagnostics);
  };
  // Graphs are made by the CUDA runtime, which works with the thread's own device.
  const RankBody bound = [&](Communicator& communicator) {
    Diagnostics diagnostics;
    return communicator.device().bind_thread(diagnostics) ? body(communicator) : text(diagnostics);
  };
  return options.threads ? run_threads(options.ranks, bound, timeouts, open)
                         : run_processes(options.ranks, bound, timeouts, open);
}

std::unique_ptr<Device> open_device(const StageOptions& options, uint32_t rank,
                                    Diagnostics& diagnostics) {
  return options.host ? open_host(rank, diagnostics)
                      : cuda::open_gpu(static_cast<int>(rank % options.gpus), diagnostics);
}

double TimeLimit::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

bool TimeLimit::ask(Communicator& communicator, bool& over, Diagnostics& diagnostics) {
  const uint8_t own = this->over();
  std::vector<std::vector<uint8_t>> all;
  if (!communicator.bootstrap().all_gather({&own, 1}, "ask for the time", all, diagnostics)) {
    return false;
  }
  for (const std::vector<uint8_t>& said : all) over |= said == std::vector<uint8_t>{1};
  return true;
}

std::unique_ptr<Graphs> make_graphs(const StageOptions& options, Communicator& communicator,
                                    Diagnostics& diagnostics) {
  return options.host ? host_graphs(communicator.device())
                      : cuda_graphs(options.threads, diagnostics);
}

std::string text(const StageOptions& options) {
  return fmt::format("{} ranks as {}{}", options.ranks, options.threads ? "threads" : "processes",
                     options.host ? " on the host" : "");
}

std::string left_out(uint64_t count) {
  return count == 0 ? "" : fmt::format(", {} left out by --seconds", count);
}

}  // namespace mscclc::testing
