// Patterns of graphs, for a plan of each family: the ways in which applications capture and replay
// calls. New data for every replay, all of it checked.
#include <fmt/format.h>

#include <cstdio>
#include <random>

#include "tests/gpu/cases.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/parts/graph_abort.h"
#include "tests/gpu/stage/graphs.h"

namespace mscclc::testing {
namespace {

constexpr uint64_t kMaxBytes = 256 << 10;
constexpr uint64_t kReplays = 6;

using Calls = std::vector<CheckedCall*>;
using Owned = std::vector<std::unique_ptr<CheckedCall>>;

/// One rank's things for a pattern: two plans, two streams.
struct Bench {
  Communicator& communicator;
  Graphs& graphs;
  LoadedCase &a, &b;
  StreamHandle main, side;
  bool in_place;  ///< plan `a` can be called so
  Diagnostics& diagnostics;
  uint64_t number = 0;  ///< of the data

  std::unique_ptr<CheckedCall> call(LoadedCase& of, uint64_t bytes, bool placed = false) {
    return of.call({.bytes = bytes,
                    .dtype = Dtype::f32,
                    .op = of.of().ops.front(),
                    .in_place = placed ? of.of().in_place.back() : of.of().in_place.front()},
                   diagnostics);
  }
  bool launch(const Calls& calls, StreamHandle stream) {
    for (CheckedCall* c : calls) {
      if (!c->launch(stream, diagnostics)) return false;
    }
    return true;
  }
  /// A graph of calls one after the other.
  std::unique_ptr<Graph> capture(const Calls& calls) {
    return graphs.capture(
        main, [this, calls](Diagnostics&) { return launch(calls, main); }, diagnostics);
  }
  /// Fills, runs, waits, and checks.
  bool check(const Calls& calls, const std::function<bool()>& run) {
    ++number;
    for (CheckedCall* c : calls) {
      if (!c->fill(number, diagnostics)) return false;
    }
    if (!run() || !communicator.synchronize(side, diagnostics) ||
        !communicator.synchronize(main, diagnostics)) {
      return false;
    }
    bool right = true;
    for (CheckedCall* c : calls) {
      if (!c->compare(number, diagnostics)) return false;
      c->report(diagnostics);
      right &= c->wrong() == 0;
    }
    return right;
  }
  bool replay(Graph* graph, const Calls& calls, uint64_t times = kReplays) {
    for (uint64_t i = 0; graph != nullptr && i < times; ++i) {
      if (!check(calls, [&] { return graph->launch(main, diagnostics); })) return false;
    }
    return graph != nullptr;
  }
};

bool one_call(Bench& bench) {
  const auto call = bench.call(bench.a, 4096);
  return call && bench.replay(bench.capture({call.get()}).get(), {call.get()});
}

// Three calls of one plan, with others between, each with its own buffers.
bool several_calls(Bench& bench) {
  Owned owned;
  Calls calls;
  for (const uint64_t bytes : {4096, 1 << 16, 512}) {
    for (LoadedCase* of : {&bench.a, &bench.b}) {
      owned.push_back(bench.call(*of, bytes));
      if (owned.back() == nullptr) return false;
      calls.push_back(owned.back().get());
    }
  }
  return bench.replay(bench.capture(calls).get(), calls);
}

// A graph with two branches: a plan on each.
bool two_streams(Bench& bench) {
  const auto first = bench.call(bench.a, 1 << 14), second = bench.call(bench.b, 1 << 15);
  if (!first || !second) return false;
  const auto graph = bench.graphs.capture(
      bench.main,
      [&](Diagnostics& d) {
        return bench.graphs.order(bench.main, bench.side, d) && first->launch(bench.main, d) &&
               second->launch(bench.side, d) && bench.graphs.order(bench.side, bench.main, d);
      },
      bench.diagnostics);
  return bench.replay(graph.get(), {first.get(), second.get()});
}

// Graphs of two plans, each on its stream, with nothing between them.
bool graphs_side_by_side(Bench& bench) {
  const auto first = bench.call(bench.a, 1 << 14), second = bench.call(bench.b, 1 << 15);
  if (!first || !second) return false;
  const auto one = bench.capture({first.get()});
  const auto other = bench.graphs.capture(
      bench.side, [&](Diagnostics& d) { return second->launch(bench.side, d); }, bench.diagnostics);
  if (!one || !other) return false;
  for (uint64_t i = 0; i < kReplays; ++i) {
    const bool right = bench.check({first.get(), second.get()}, [&] {
      return one->launch(bench.main, bench.diagnostics) &&
             other->launch(bench.side, bench.diagnostics);
    });
    if (!right) return false;
  }
  return true;
}

bool made_again(Bench& bench) {
  for (int i = 0; i < 8; ++i) {
    const auto call = bench.call(bench.a, 1024 << (i % 4));
    if (!call || !bench.replay(bench.capture({call.get()}).get(), {call.get()}, 2)) return false;
  }
  return true;
}

// All ranks must make the same choices.
bool mixed_with_eager(Bench& bench) {
  const auto replayed = bench.call(bench.a, 8192), eager = bench.call(bench.a, 2048);
  if (!replayed || !eager) return false;
  const auto graph = bench.capture({replayed.get()});
  if (!graph) return false;
  std::mt19937 random(7);
  for (uint64_t i = 0; i < 4 * kReplays; ++i) {
    const uint32_t kind = random() % 3;
    Calls calls;
    if (kind != 0) calls.push_back(replayed.get());
    if (kind != 1) calls.push_back(eager.get());
    const bool right = bench.check(calls, [&] {
      return (kind == 1 || eager->launch(bench.main, bench.diagnostics)) &&
             (kind == 0 || graph->launch(bench.main, bench.diagnostics));
    });
    if (!right) return false;
  }
  return true;
}

// Graphs of different sizes share the plan's counts and scratch; also twice without a wait.
bool several_graphs(Bench& bench) {
  Owned calls;
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const uint64_t bytes : {512, 1 << 17, 4096}) {
    calls.push_back(bench.call(bench.a, bytes));
    if (calls.back() == nullptr) return false;
    graphs.push_back(bench.capture({calls.back().get()}));
    if (graphs.back() == nullptr) return false;
  }
  for (uint64_t i = 0; i < kReplays; ++i) {
    const bool right = bench.check({calls[0].get(), calls[1].get(), calls[2].get()}, [&] {
      for (size_t k = 0; k < 3; ++k) {
        if (!graphs[(k + i) % 3]->launch(bench.main, bench.diagnostics)) return false;
      }
      return true;
    });
    if (!right) return false;
  }
  return true;
}

bool in_place(Bench& bench) {
  if (!bench.in_place) return true;
  const auto call = bench.call(bench.a, 1 << 14, true);
  return call && bench.replay(bench.capture({call.get()}).get(), {call.get()});
}

struct Pattern {
  const char* name;
  bool (*run)(Bench&);
};

constexpr Pattern kPatterns[] = {
    {"one call", one_call},
    {"several calls in one graph", several_calls},
    {"two streams in one graph", two_streams},
    {"graphs on two streams", graphs_side_by_side},
    {"destroyed and made again", made_again},
    {"mixed with eager calls", mixed_with_eager},
    {"several graphs of a plan", several_graphs},
    {"in place", in_place},
};

/// A plan of each family; beside it runs the next one.
constexpr const char* kFamilies[] = {
    "allreduce_1shot",    "allreduce_2shot_packets", "allreduce_1shot_ordered",
    "allreduce_allpairs", "alltoall_direct",         "allreduce_ring",
    "sendrecv_port"};

std::string run_family(const StageOptions& options, Communicator& communicator, const Case& a,
                       const Case& b, bool zero_copy, const Pattern& pattern) {
  Diagnostics diagnostics;
  const LoadOptions load{.max_bytes = kMaxBytes, .zero_copy = zero_copy};
  const auto first = LoadedCase::load(communicator, a, load, diagnostics);
  const auto second = LoadedCase::load(communicator, b, load, diagnostics);
  const auto graphs = make_graphs(options, communicator, diagnostics);
  const Stream main(communicator.device(), diagnostics), side(communicator.device(), diagnostics);
  if (!first || !second || !graphs || !main.get() || !side.get()) return text(diagnostics);
  Bench bench{communicator, *graphs,           *first,     *second, main.get(),
              side.get(),   a.in_place.back(), diagnostics};
  return pattern.run(bench) ? "" : "wrong\n" + text(diagnostics);
}

struct Item {
  const Pattern& pattern;
  const Case &a, &b;
};

std::string run_item(const StageOptions& options, Communicator& communicator, const Item& item) {
  for (const bool zero_copy : {false, true}) {
    const std::string fault =
        run_family(options, communicator, item.a, item.b, zero_copy, item.pattern);
    if (!fault.empty()) return (zero_copy ? "zero copy: " : "staged: ") + fault;
  }
  if (communicator.rank() == 0) {
    fmt::print("graph, {}, {}: right\n", item.pattern.name, item.a.name);
    std::fflush(stdout);
  }
  return "";
}

}  // namespace

bool check_graphs(const StageOptions& options) {
  std::vector<Case> families;
  for (const char* name : kFamilies) {
    auto c = library_case(name, options.ranks);
    if (!c) {
      fmt::print("{}: FAILED\n{}\n", name, c.error().text());
      return false;
    }
    families.push_back(std::move(*c));
  }
  std::vector<Item> items;
  for (size_t i = 0; i < families.size(); ++i) {
    const Case& a = families[i];
    if (a.name.find(options.filter) == std::string::npos) continue;
    for (const Pattern& pattern : kPatterns) {
      items.push_back({pattern, a, families[(i + 1) % families.size()]});
    }
  }
  const bool aborted = check_abort(options);
  const Tally tally = run_series(
      options, items.size(),
      [&](Communicator& communicator, size_t i) {
        return run_item(options, communicator, items[i]);
      },
      [&](size_t i, const std::string& fault) {
        fmt::print("graph, {}, {}: FAILED\n{}\n", items[i].pattern.name, items[i].a.name, fault);
        std::fflush(stdout);
      });
  fmt::print("graph patterns at {}: {} right, {} wrong{}\n", text(options),
             tally.right + (aborted ? 1 : 0), tally.wrong + (aborted ? 0 : 1),
             left_out(tally.late));
  return aborted && tally.wrong == 0;
}

}  // namespace mscclc::testing
