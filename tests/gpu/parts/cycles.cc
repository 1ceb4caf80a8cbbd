// Graphs, memory handles, loaded plans and communicators are made and destroyed over and over: file
// descriptors, threads and device memory are what they were, to the byte. Loaded plans take many
// milliseconds, so there are a twentieth as many of them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "runtime/api/job.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/held.h"
#include "tests/gpu/parts.h"

namespace mscclc::testing {
namespace {

constexpr uint64_t kBytes = 4096;
constexpr uint64_t kAskEvery = 32;
constexpr RunSpec kSpec{.bytes = kBytes, .dtype = Dtype::f32};

/// What a rank's cycles work on.
struct Bench {
  const StageOptions& options;
  Communicator& communicator;
  Graphs& graphs;
  const Case& plan;
  CheckedCall& call;
  StreamHandle stream;
  Diagnostics& diagnostics;
};

bool right_after(Bench& bench, Communicator& communicator, CheckedCall& call, uint64_t number,
                 const std::function<bool()>& launch) {
  if (!call.fill(number, bench.diagnostics) || !launch() ||
      !communicator.synchronize(bench.stream, bench.diagnostics) ||
      !call.compare(number, bench.diagnostics)) {
    return false;
  }
  call.report(bench.diagnostics);
  return call.wrong() == 0;
}

bool graph_cycle(Bench& bench, uint64_t i) {
  const auto graph = bench.graphs.capture(
      bench.stream, [&](Diagnostics& d) { return bench.call.launch(bench.stream, d); },
      bench.diagnostics);
  if (graph == nullptr) return false;
  const auto launch = [&] { return graph->launch(bench.stream, bench.diagnostics); };
  if (i % 64 == 0) return right_after(bench, bench.communicator, bench.call, i, launch);
  return launch() && bench.communicator.synchronize(bench.stream, bench.diagnostics);
}

// Sizes differ: allocations of one granule, and of several.
bool handle_cycle(Bench& bench, uint64_t i) {
  const uint64_t bytes = (i % 4 + 1) << 20;
  const auto memory = bench.communicator.device().allocate(bytes, "a buffer", bench.diagnostics);
  return memory != nullptr &&
         bench.communicator.register_buffer(memory->data(), bytes, bench.diagnostics) != nullptr;
}

bool plan_cycle(Bench& bench, uint64_t i) {
  const auto loaded =
      LoadedCase::load(bench.communicator, bench.plan,
                       {.max_bytes = kBytes, .zero_copy = i % 2 == 0}, bench.diagnostics);
  if (loaded == nullptr) return false;
  const auto call = loaded->call(kSpec, bench.diagnostics);
  return call != nullptr && right_after(bench, bench.communicator, *call, i, [&] {
           return call->launch(bench.stream, bench.diagnostics);
         });
}

/// Ranks that have met meet once more, for another communicator.
std::unique_ptr<Bootstrap> meet_again(Bench& bench) {
  Bootstrap& outer = bench.communicator.bootstrap();
  Diagnostics& diagnostics = bench.diagnostics;
  std::shared_ptr<Hub> hub;
  std::vector<uint8_t> own;
  if (outer.rank() == 0) {
    auto job = host_job(
        {.size = outer.size(), .rank = 0, .one_machine = true, .timeout = kPatience}, diagnostics);
    if (!job) return nullptr;
    const std::string id = job->id.text();
    own.assign(id.begin(), id.end());
    hub = std::move(job->hub);
  }
  std::vector<std::vector<uint8_t>> all;
  if (!outer.all_gather(own, "give out an id", all, diagnostics)) return nullptr;
  const std::string text(all[0].begin(), all[0].end());
  const auto id = UniqueId::parse(text, diagnostics);
  if (!id) return nullptr;
  return join_job(*id, outer.rank(), outer.size(), kPatience, std::move(hub), diagnostics);
}

// With a device of its own, and a call in one of eight.
bool communicator_cycle(Bench& bench, uint64_t i) {
  auto bootstrap = meet_again(bench);
  if (bootstrap == nullptr) return false;
  std::shared_ptr<Device> device =
      open_device(bench.options, bench.communicator.rank(), bench.diagnostics);
  if (device == nullptr) return false;
  const auto communicator =
      Communicator::create(std::move(bootstrap), device, {}, bench.diagnostics);
  if (communicator == nullptr) return false;
  if (i % 8 != 0) return true;
  const auto loaded =
      LoadedCase::load(*communicator, bench.plan, {.max_bytes = kBytes}, bench.diagnostics);
  if (loaded == nullptr) return false;
  const auto call = loaded->call(kSpec, bench.diagnostics);
  return call != nullptr && right_after(bench, *communicator, *call, i, [&] {
           return call->launch(bench.stream, bench.diagnostics);
         });
}

struct Kind {
  const char* name;
  uint64_t one_in;  ///< how many there are, for so many graphs
  bool (*cycle)(Bench&, uint64_t i);
};

constexpr Kind kKinds[] = {
    {"graphs", 1, graph_cycle},
    {"memory handles", 1, handle_cycle},
    {"loaded plans", 20, plan_cycle},
    {"communicators", 1, communicator_cycle},
};

bool repeat(Bench& bench, const Kind& kind, uint64_t count, TimeLimit& limit, uint64_t& done) {
  bool over = false;
  for (done = 0; done < count && !over; ++done) {
    if (!kind.cycle(bench, done)) return false;
    if (done % kAskEvery == 0 && !limit.ask(bench.communicator, over, bench.diagnostics)) {
      return false;
    }
  }
  return true;
}

/// What is held when the system has caught up: threads that were joined, and memory that peers have
/// let go of, may be counted for a moment longer.
bool held_again(Bench& bench, const Held& before, Held& after) {
  for (int i = 0; i < 50; ++i) {
    if (!count_held(bench.communicator, bench.graphs, after, bench.diagnostics)) return false;
    const uint8_t own = after == before;
    std::vector<std::vector<uint8_t>> all;
    if (!bench.communicator.bootstrap().all_gather({&own, 1}, "compare", all, bench.diagnostics)) {
      return false;
    }
    if (std::ranges::count(all, std::vector<uint8_t>{1}) == std::ssize(all)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

// The first cycles fill pools of the driver and of this library.
std::string run_kind(Bench& bench, const Kind& kind) {
  const uint64_t count = std::max<uint64_t>(1, bench.options.cycles / kind.one_in);
  uint64_t done = 0;
  TimeLimit unlimited(0), limit(bench.options.seconds / std::size(kKinds));
  Held before, after;
  if (!repeat(bench, kind, std::min<uint64_t>(count, 256), unlimited, done) ||
      !count_held(bench.communicator, bench.graphs, before, bench.diagnostics)) {
    return fmt::format("{}, first cycles: {}", kind.name, text(bench.diagnostics));
  }
  if (!repeat(bench, kind, count, limit, done)) {
    return fmt::format("{}, cycle {}: {}", kind.name, done, text(bench.diagnostics));
  }
  const double seconds = limit.seconds();
  if (!held_again(bench, before, after)) return text(bench.diagnostics);
  if (bench.communicator.rank() == 0) {
    fmt::print("cycles of {}: {} of {} in {:.1f} s; before: {}; after: {}\n", kind.name, done,
               count, seconds, text(before), text(after));
    std::fflush(stdout);
  }
  return before == after ? ""
                         : fmt::format(
                               "{} cycles of {} leave something behind; before: {}; "
                               "after: {}",
                               done, kind.name, text(before), text(after));
}

std::string run_rank(const StageOptions& options, Communicator& communicator, const Case& plan) {
  Diagnostics diagnostics;
  const Stream stream(communicator.device(), diagnostics);
  const auto graphs = make_graphs(options, communicator, diagnostics);
  const auto loaded = LoadedCase::load(communicator, plan, {.max_bytes = kBytes}, diagnostics);
  if (!stream.get() || !graphs || !loaded) return text(diagnostics);
  const auto call = loaded->call(kSpec, diagnostics);
  if (!call) return text(diagnostics);
  Bench bench{options, communicator, *graphs, plan, *call, stream.get(), diagnostics};
  for (const Kind& kind : kKinds) {
    std::string fault = run_kind(bench, kind);
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace

bool check_cycles(const StageOptions& options) {
  // Signals, scratch and buffers of peers: it maps all kinds of memory.
  const auto plan = library_case("allreduce_allpairs", options.ranks);
  const std::string fault = plan ? run_ranks(options,
                                             [&](Communicator& communicator) {
                                               return run_rank(options, communicator, *plan);
                                             })
                                 : plan.error().text();
  fmt::print("cycles at {}: {}\n", text(options), fault.empty() ? "right" : "FAILED\n" + fault);
  return fault.empty();
}

}  // namespace mscclc::testing
