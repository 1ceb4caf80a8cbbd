#include "tests/gpu/stage/stage.h"

#include <fmt/format.h>

#include <cstdlib>

#include "runtime/api/gpu.h"
#include "tests/gpu/stage/graphs.h"
#include "tests/helpers/runtime/shared_value.h"

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

namespace {

/// Collective: sets `any` on all ranks if it is so on one. False: the ranks could not talk.
bool ask_all(Communicator& communicator, bool own, std::string_view what, bool& any,
             Diagnostics& diagnostics) {
  const uint8_t byte = own;
  std::vector<std::vector<uint8_t>> all;
  if (!communicator.bootstrap().all_gather({&byte, 1}, what, all, diagnostics)) return false;
  for (const std::vector<uint8_t>& said : all) any |= said == std::vector<uint8_t>{1};
  return true;
}

}  // namespace

bool TimeLimit::ask(Communicator& communicator, bool& over, Diagnostics& diagnostics) {
  return ask_all(communicator, this->over(), "ask for the time", over, diagnostics);
}

namespace {

/// A rank's part of a series, from item `done` on, which it counts up.
std::string serve(Communicator& communicator, TimeLimit& limit, size_t count,
                  std::atomic<int64_t>& done,
                  const std::function<std::string(Communicator&, size_t)>& body) {
  for (size_t item = done; item < count; ++item) {
    Diagnostics diagnostics;
    bool over = false, wrong = false;
    if (!limit.ask(communicator, over, diagnostics)) return text(diagnostics);
    if (over) return "";
    const std::string fault = body(communicator, item);
    const bool talked =
        ask_all(communicator, !fault.empty(), "compare results", wrong, diagnostics);
    if (!talked || wrong) return fault.empty() ? text(diagnostics) : fault;
    if (communicator.rank() == 0) done = static_cast<int64_t>(item + 1);
  }
  return "";
}

}  // namespace

Tally run_series(const StageOptions& options, size_t count,
                 const std::function<std::string(Communicator&, size_t)>& body,
                 const std::function<void(size_t, const std::string&)>& failed) {
  Tally tally;
  TimeLimit limit(options.seconds);
  SharedValue done;
  if (!done.mapped()) std::abort();
  while (static_cast<size_t>(done.at()) < count && !limit.over()) {
    const std::string fault = run_ranks(options, [&](Communicator& communicator) {
      return serve(communicator, limit, count, done.at(), body);
    });
    if (fault.empty()) continue;
    failed(done.at(), fault);
    ++tally.wrong;
    ++done.at();
  }
  tally.late = count - done.at();
  tally.right = done.at() - tally.wrong;
  return tally;
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
