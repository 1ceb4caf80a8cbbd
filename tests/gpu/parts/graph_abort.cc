#include "tests/gpu/parts/graph_abort.h"

#include <fmt/format.h>

#include <thread>

#include "tests/gpu/planted.h"
#include "tests/gpu/stage/graphs.h"

namespace mscclc::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{500};
constexpr std::chrono::milliseconds kBound{5'000};  // from abort() to the end of all kernels
constexpr std::chrono::milliseconds kWaits{600'000};
constexpr const char* kWhy = "the application has had enough";

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A graph with as many calls as make all ranks wait.
std::unique_ptr<Graph> stuck_graph(Graphs& graphs, CheckedCall& call, StreamHandle stream,
                                   uint32_t ranks, Diagnostics& diagnostics) {
  return graphs.capture(
      stream,
      [&call, stream, ranks](Diagnostics& d) {
        for (uint64_t i = 0; i < calls_until_all_wait(ranks); ++i) {
          if (!call.launch(stream, d)) return false;
        }
        return true;
      },
      diagnostics);
}

/// Waits for a graph that hangs; "" if abort() of rank 0 ends it as it should.
std::string wait_for_abort(Communicator& communicator, Graph& graph, StreamHandle stream) {
  Diagnostics diagnostics;
  if (!graph.launch(stream, diagnostics)) return text(diagnostics);
  const auto begin = Clock::now();
  std::thread host([&] {
    std::this_thread::sleep_for(kPause);
    if (communicator.rank() == 0) communicator.abort(kWhy);
  });
  const bool ended_well = communicator.synchronize(stream, diagnostics);
  const auto took = Clock::now() - begin;
  host.join();
  const std::string said = text(diagnostics);
  if (ended_well) return "a graph that hangs has ended well";
  if (took < kPause / 2) return "it has ended before abort()\n" + said;
  if (took > kPause + kBound) return "it has ended too late\n" + said;
  if (!contains(said, kWhy)) return "the report does not say why\n" + said;
  if (!contains(said, fmt::format("rank {}, tb 0", communicator.rank()))) {
    return "the report does not say who waited\n" + said;
  }
  return "";
}

std::string run_rank(const StageOptions& options, Communicator& communicator, const Case& stuck) {
  Diagnostics diagnostics;
  const Stream stream(communicator.device(), diagnostics);
  const auto graphs = make_graphs(options, communicator, diagnostics);
  const auto loaded = LoadedCase::load(communicator, stuck, {.max_bytes = 4096}, diagnostics);
  if (!stream.get() || !graphs || !loaded) return text(diagnostics);
  const auto call =
      loaded->call({.bytes = 4096, .dtype = Dtype::f32, .op = stuck.ops.front(), .in_place = false},
                   diagnostics);
  if (!call) return text(diagnostics);
  const auto graph = stuck_graph(*graphs, *call, stream.get(), communicator.size(), diagnostics);
  if (!graph) return text(diagnostics);
  std::string fault = wait_for_abort(communicator, *graph, stream.get());
  if (!fault.empty()) return fault;
  // Replays that come later end at once, and new calls are refused.
  Diagnostics later;
  const auto begin = Clock::now();
  (void)graph->launch(stream.get(), later);  // synchronize() says it
  if (communicator.synchronize(stream.get(), later)) return "a later replay has ended well";
  if (Clock::now() - begin > kBound) return "a later replay has ended late";
  if (call->launch(stream.get(), later)) return "a later call was not refused";
  return "";
}

}  // namespace

bool check_abort(const StageOptions& options) {
  const auto hangs = planted_hangs(options.ranks);
  if (!hangs) {
    fmt::print("{}\n", hangs.error().text());
    return false;
  }
  bool right = true;
  for (const PlantedHang& hang : *hangs) {
    const std::string fault = run_ranks(
        options,
        [&](Communicator& communicator) { return run_rank(options, communicator, hang.plan); },
        Timeouts(options.patience, kWaits));
    fmt::print("graph, abort during replay, {}: {}\n", hang.plan.name,
               fault.empty() ? "right" : "FAILED\n" + fault);
    std::fflush(stdout);
    right &= fault.empty();
  }
  return right;
}

}  // namespace mscclc::testing
