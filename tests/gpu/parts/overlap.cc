// Calls on several streams that do not fit beside one another, or hardly, and that would begin in
// another order on each GPU: an odd rank's first stream is held, an even rank's second one. Beside
// kernels of the user's, and of NCCL.
#include <fmt/format.h>

#include <cstdio>
#include <functional>

#include "runtime/api/job.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/others/nccl_sum.h"
#include "tests/gpu/others/user_kernels.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/stage/graphs.h"
#include "tests/helpers/runtime/processes.h"

namespace mscclc::testing {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kRounds = 12;
constexpr auto kHeld = 3ms;
constexpr auto kFilled = 500us;
constexpr auto kLate = 300ms;     ///< an odd rank, so that the others' copies are made late
constexpr uint64_t kDeep = 5000;  ///< calls, more than the driver queues

/// A plan, and the largest message that it is called with.
struct Plan {
  const char* program;
  Defines defines;
  uint64_t bytes;
};

// They fill a GPU of 132 multiprocessors, as target sm_90 has: two blocks of 1024 threads do not
// fit on one, as their kernels have more than 32 registers a thread. One multiprocessor that is
// left free is enough for both to end, as a block waits only for the same block of other ranks.
const Plan kSum = {"allreduce_push", {{"B", "132"}, {"T", "1024"}}, 2 << 20};
const Plan kScatter = {"reducescatter_direct", {{"B", "132"}, {"T", "1024"}}, 2 << 20};
const Plan kSmall = {"allreduce_1shot_ordered", {{"F", "LL16"}, {"B", "2"}, {"T", "128"}}, 1024};
const Plan kHalf = {"allreduce_2shot_packets", {{"F", "LL128"}, {"B", "64"}, {"T", "128"}}, 262144};
const Plan kEngines = {"alltoall_copy_engine", {{"B", "16"}, {"T", "1024"}}, 1 << 20};

/// One rank's things for a pattern: two streams, and a call on each.
struct Bench {
  const StageOptions& options;
  Communicator& communicator;
  Graphs& graphs;
  StreamHandle main, side;
  CheckedCall &first, &second;
  Diagnostics& diagnostics;
  uint64_t number = 0;  ///< of the data

  /// Holds the stream whose call shall not be the first on this rank's GPU.
  bool hold_one() {
    return options.host || hold(communicator.rank() % 2 == 0 ? side : main, kHeld, diagnostics);
  }
  /// A kernel of the user's.
  bool fill_on(StreamHandle stream, Manner manner) {
    return options.host || fill_gpu(stream, manner, kFilled, diagnostics);
  }
  bool fill() {
    ++number;
    return first.fill(number, diagnostics) && second.fill(number, diagnostics);
  }
  bool compare() {
    if (!communicator.synchronize(main, diagnostics) ||
        !communicator.synchronize(side, diagnostics)) {
      return false;
    }
    for (CheckedCall* call : {&first, &second}) {
      if (!call->compare(number, diagnostics)) return false;
      call->report(diagnostics);
      if (call->wrong() != 0) return false;
    }
    return true;
  }
  /// Rounds of `run` with new data, all of it checked.
  bool repeat(const std::function<bool()>& run) {
    for (uint64_t i = 0; i < kRounds; ++i) {
      if (!fill() || !run() || !compare()) return false;
    }
    return true;
  }
};

bool two_streams(Bench& b) {
  return b.repeat([&] {
    return b.hold_one() && b.first.launch(b.main, b.diagnostics) &&
           b.second.launch(b.side, b.diagnostics);
  });
}

/// Turns of both streams, several deep.
bool in_turns(Bench& b) {
  return b.repeat([&] {
    for (int i = 0; i < 5; ++i) {
      if (!b.hold_one() || !b.first.launch(b.main, b.diagnostics) ||
          !b.second.launch(b.side, b.diagnostics)) {
        return false;
      }
    }
    return true;
  });
}

bool two_branches(Bench& b) {
  const auto graph = b.graphs.capture(
      b.main,
      [&](Diagnostics& d) {
        return b.graphs.order(b.main, b.side, d) && b.hold_one() && b.first.launch(b.main, d) &&
               b.second.launch(b.side, d) && b.graphs.order(b.side, b.main, d);
      },
      b.diagnostics);
  return graph && b.repeat([&] { return graph->launch(b.main, b.diagnostics); });
}

/// After each call a kernel of the user's that begins early, fills the GPU, and waits.
bool early_kernels(Bench& b) {
  return b.repeat([&] {
    return b.hold_one() && b.first.launch(b.main, b.diagnostics) &&
           b.fill_on(b.main, Manner::early) && b.second.launch(b.side, b.diagnostics) &&
           b.fill_on(b.side, Manner::early);
  });
}

/// Ahead of each call a kernel that lets it begin at once, and goes on.
bool triggering_kernels(Bench& b) {
  return b.repeat([&] {
    return b.hold_one() && b.fill_on(b.main, Manner::triggers) &&
           b.first.launch(b.main, b.diagnostics) && b.fill_on(b.side, Manner::triggers) &&
           b.second.launch(b.side, b.diagnostics);
  });
}

/// A kernel of the user's on the streams, which has nothing to do with the calls.
bool full_gpu(Bench& b) {
  return b.repeat([&] {
    return b.hold_one() && b.fill_on(b.main, Manner::plain) &&
           b.first.launch(b.main, b.diagnostics) && b.second.launch(b.side, b.diagnostics) &&
           b.fill_on(b.side, Manner::plain);
  });
}

/// Many staged calls of copy engines, queued one after another: no copy may be stuck in a queue
/// with a kernel that waits for it (CUDA_DEVICE_MAX_CONNECTIONS=1).
bool queued(Bench& b) {
  return b.repeat([&] {
    for (int i = 0; i < 10; ++i) {
      if (!b.first.launch(b.main, b.diagnostics) || !b.second.launch(b.side, b.diagnostics)) {
        return false;
      }
    }
    return true;
  });
}

/// More calls than the driver queues, after a call whose copies an engine has yet to make: the
/// caller's thread then waits inside the driver, and the proxy's must still get its copies through.
bool launched_deep(Bench& b, const std::function<bool()>& launch) {
  const auto late = [&] {
    return b.options.host || b.communicator.rank() % 2 == 0 || hold(b.main, kLate, b.diagnostics);
  };
  if (!b.fill() || !late() || !b.first.launch(b.main, b.diagnostics)) return false;
  for (uint64_t i = 0; i < kDeep; ++i) {
    if (!launch()) return false;
  }
  return b.compare();
}

bool deep_queue(Bench& b) {
  return launched_deep(b, [&] { return b.second.launch(b.main, b.diagnostics); });
}

bool deep_queue_of_graphs(Bench& b) {
  const auto graph = b.graphs.capture(
      b.main, [&](Diagnostics& d) { return b.second.launch(b.main, d); }, b.diagnostics);
  return graph && launched_deep(b, [&] { return graph->launch(b.main, b.diagnostics); });
}

/// NCCL's all-reduce instead of the second call: it must fit beside the first one.
bool beside_nccl(Bench& b) {
  if (b.options.host) return true;
  const auto made = NcclSum::make(b.communicator);
  if (!made) {
    if (b.communicator.rank() == 0) {
      fmt::print("overlap, NCCL is left out: {}\n", made.error().text());
    }
    return true;
  }
  NcclSum* const sum = made->get();
  constexpr size_t kFloats = 1 << 18;
  const auto data = b.communicator.device().allocate(kFloats * 4, "floats", b.diagnostics);
  if (data == nullptr) return false;
  return b.repeat([&] {
    return b.hold_one() && b.first.launch(b.main, b.diagnostics) &&
           sum->launch(data->data(), kFloats, b.side) && b.second.launch(b.main, b.diagnostics);
  });
}

struct Pattern {
  const char* name;
  bool (*run)(Bench&);
  const Plan &first, &second;
  bool two_communicators = false;
};

const Pattern kPatterns[] = {
    {"two streams", two_streams, kSum, kScatter},
    {"two communicators", two_streams, kSum, kScatter, true},
    {"two streams in turns", in_turns, kScatter, kSum},
    {"two branches of a graph", two_branches, kSum, kScatter},
    {"small calls on two streams", in_turns, kSmall, kSmall},
    {"small calls in two branches", two_branches, kSmall, kSmall},
    {"a small call beside a large one", two_streams, kSum, kSmall},
    {"kernels that begin early after small calls", early_kernels, kSmall, kSmall},
    {"kernels that begin early after large calls", early_kernels, kSum, kSmall},
    {"kernels that let small calls begin", triggering_kernels, kSmall, kSmall},
    {"kernels that fill the GPU", full_gpu, kSum, kScatter},
    {"queued calls of copy engines", queued, kEngines, kEngines},
    {"a deep queue after a call of copy engines", deep_queue, kEngines, kSmall},
    {"a deep queue of graphs after it", deep_queue_of_graphs, kEngines, kSmall},
    {"NCCL beside a call of half a GPU", beside_nccl, kHalf, kSmall},
};

Result<Case> case_of(const Plan& plan, uint32_t ranks) {
  Defines defines = plan.defines;
  defines.push_back({"R", std::to_string(ranks)});
  return library_case(plan.program, defines);
}

struct Item {
  const Pattern& pattern;
  Case first, second;
};

/// A communicator of the same ranks beside another.
std::unique_ptr<Communicator> second_communicator(const StageOptions& options, Communicator& beside,
                                                  Diagnostics& diagnostics) {
  const uint32_t rank = beside.rank(), size = beside.size();
  std::optional<HostedJob> job;
  std::string id;
  if (rank == 0) {
    job = host_job({.size = size, .one_machine = true, .timeout = options.patience}, diagnostics);
    if (job) id = job->id.text();
  }
  std::vector<std::vector<uint8_t>> all;
  const auto* bytes = reinterpret_cast<const uint8_t*>(id.data());
  if (!beside.bootstrap().all_gather({bytes, id.size()}, "a unique id", all, diagnostics)) {
    return nullptr;
  }
  const auto where = UniqueId::parse(std::string(all[0].begin(), all[0].end()), diagnostics);
  if (!where) return nullptr;
  auto bootstrap = join_job(*where, rank, size, options.patience,
                            job ? std::move(job->hub) : nullptr, diagnostics);
  std::shared_ptr<Device> device = open_device(options, rank, diagnostics);
  if (bootstrap == nullptr || device == nullptr) return nullptr;
  return Communicator::create(std::move(bootstrap), std::move(device),
                              {.timeout = options.patience}, diagnostics);
}

std::string run_item(const StageOptions& options, Communicator& communicator, const Item& item) {
  Diagnostics diagnostics;
  std::unique_ptr<Communicator> other;
  if (item.pattern.two_communicators) {
    other = second_communicator(options, communicator, diagnostics);
    if (other == nullptr) return text(diagnostics);
  }
  Communicator& second = other == nullptr ? communicator : *other;
  const auto load = [&](Communicator& c, const Case& of, const Plan& plan) {
    return LoadedCase::load(c, of, {.max_bytes = plan.bytes}, diagnostics);
  };
  const auto a = load(communicator, item.first, item.pattern.first);
  const auto b = a ? load(second, item.second, item.pattern.second) : nullptr;
  const auto graphs = make_graphs(options, communicator, diagnostics);
  const Stream main(communicator.device(), diagnostics), side(communicator.device(), diagnostics);
  if (!a || !b || !graphs || !main.get() || !side.get()) return text(diagnostics);
  const auto call = [&](LoadedCase& of, const Plan& plan) {
    return of.call({.bytes = plan.bytes,
                    .dtype = Dtype::f32,
                    .op = of.of().ops.front(),
                    .in_place = of.of().in_place.front()},
                   diagnostics);
  };
  const auto first = call(*a, item.pattern.first), last = call(*b, item.pattern.second);
  if (!first || !last) return text(diagnostics);
  Bench bench{options, communicator, *graphs, main.get(), side.get(), *first, *last, diagnostics};
  if (!item.pattern.run(bench)) return "wrong\n" + text(diagnostics);
  if (communicator.rank() == 0) {
    fmt::print("overlap, {}: right\n", item.pattern.name);
    std::fflush(stdout);
  }
  return "";
}

/// Ranks that launch in different orders calls that do not fit beside one another break the
/// contract: all ranks report it.
bool check_different_orders(const StageOptions& options) {
  const auto sum = case_of(kSum, options.ranks);
  const auto scatter = case_of(kScatter, options.ranks);
  if (!sum || !scatter) {
    fmt::print("overlap: FAILED\n{}\n", (sum ? scatter : sum).error().text());
    return false;
  }
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto a = LoadedCase::load(communicator, *sum, {.max_bytes = kSum.bytes}, diagnostics);
    const auto b =
        LoadedCase::load(communicator, *scatter, {.max_bytes = kScatter.bytes}, diagnostics);
    const Stream main(communicator.device(), diagnostics), side(communicator.device(), diagnostics);
    if (!a || !b || !main.get() || !side.get()) return text(diagnostics);
    const RunSpec spec{.bytes = kSum.bytes,
                       .dtype = Dtype::f32,
                       .op = scatter->ops.front(),
                       .in_place = scatter->in_place.front()};
    const auto first = a->call(spec, diagnostics), second = b->call(spec, diagnostics);
    if (!first || !second) return text(diagnostics);
    const bool turned = communicator.rank() % 2 != 0;
    const bool launched = (turned ? second : first)->launch(main.get(), diagnostics) &&
                          (turned ? first : second)->launch(side.get(), diagnostics);
    const bool ended = launched && communicator.synchronize(main.get(), diagnostics) &&
                       communicator.synchronize(side.get(), diagnostics);
    if (ended) return "both calls ended: they fit beside one another";
    const bool reported = text(diagnostics).find("waits for") != std::string::npos;
    return reported ? "" : text(diagnostics);
  };
  const std::string fault = options.host ? "" : run_ranks(options, body, Timeouts(20s, 2s));
  fmt::print("overlap, ranks that launch in different orders report it: {}\n",
             fault.empty() ? "right" : "FAILED\n" + fault);
  std::fflush(stdout);
  return fault.empty();
}

/// Says what the first GPU of a process costs: driver, context, and all kernels.
void print_time_to_open(const StageOptions& options) {
  Processes processes;
  processes.start([&] {
    Diagnostics diagnostics;
    const auto milliseconds = [&] {
      const TimeLimit clock(0);
      const auto device = open_device(options, 0, diagnostics);
      return device == nullptr ? -1 : 1000 * clock.seconds();
    };
    const double first = milliseconds(), again = milliseconds();
    fmt::print("overlap, a GPU is opened in {:.1f} ms, and again in {:.1f} ms\n", first, again);
    std::fflush(stdout);
    return 0;
  });
  processes.wait(0, 60s);
}

}  // namespace

bool check_overlap(const StageOptions& options) {
  print_time_to_open(options);
  std::vector<Item> items;
  for (const Pattern& pattern : kPatterns) {
    if (std::string_view(pattern.name).find(options.filter) == std::string_view::npos) continue;
    auto first = case_of(pattern.first, options.ranks);
    auto second = case_of(pattern.second, options.ranks);
    if (!first || !second) {
      fmt::print("overlap, {}: FAILED\n{}\n", pattern.name,
                 (first ? second : first).error().text());
      return false;
    }
    items.push_back({pattern, std::move(*first), std::move(*second)});
  }
  const Tally tally = run_series(
      options, items.size(),
      [&](Communicator& communicator, size_t i) {
        return run_item(options, communicator, items[i]);
      },
      [&](size_t i, const std::string& fault) {
        fmt::print("overlap, {}: FAILED\n{}\n", items[i].pattern.name, fault);
        std::fflush(stdout);
      });
  const bool reported = !options.filter.empty() || check_different_orders(options);
  fmt::print("calls that overlap at {}: {} right, {} wrong{}\n", text(options),
             tally.right + (reported ? 1 : 0), tally.wrong + (reported ? 0 : 1),
             left_out(tally.late));
  return reported && tally.wrong == 0;
}

}  // namespace mscclc::testing
