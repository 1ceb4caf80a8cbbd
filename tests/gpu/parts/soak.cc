// Very many small calls: random plans, sizes, types, reductions and placements, eager and in
// graphs, with ranks that dawdle now and then. All ranks make the same choices, from one seed. The
// 64th call of every plan, and of every graph, gets new data and is checked to the last element;
// between them calls run on whatever the buffers hold.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/gpu/cases.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/stage/graphs.h"

namespace mscclc::testing {
namespace {

constexpr uint64_t kMaxBytes = 64 << 10;
constexpr uint32_t kCallsOfPlan = 4;  // different ones
constexpr uint32_t kGraphs = 24;      // of several calls
constexpr uint32_t kCallsOfGraph = 12;
constexpr uint64_t kCheckEvery = 64;
constexpr uint64_t kAskEvery = 20'000;  // calls after which ranks ask whether to go on

/// A call, and a graph that holds nothing else.
struct SoakCall {
  size_t plan;
  std::unique_ptr<CheckedCall> call;
  std::unique_ptr<Graph> graph;
};

/// Several calls of different plans.
struct SoakGraph {
  std::vector<CheckedCall*> calls;
  std::unique_ptr<Graph> graph;
  uint64_t launches = 0;
};

/// What a soak takes. Plans whose copies the host makes get one without graphs, and with few calls
/// queued: a launch that waits for room inside the driver holds a lock that these copies need
/// (docs/design/devices.md).
struct SoakPart {
  std::vector<Case> cases = {};
  bool graphs = true;
  uint64_t calls = 0;
};

bool has_ports(const Case& c) {
  return std::ranges::any_of(c.plan->ranks, [](const Rank& rank) {
    return std::ranges::any_of(
        rank.channels, [](const Channel& channel) { return channel.kind == ChannelKind::port; });
  });
}

class Soak {
 public:
  Soak(const StageOptions& options, Communicator& communicator, const SoakPart& part)
      : options_(options),
        part_(part),
        communicator_(communicator),
        choices_(options.seed),
        own_(options.seed * 1000 + communicator.rank()),
        stream_(communicator.device(), diagnostics_) {}

  /// Collective. "" if all was right.
  std::string run();

 private:
  bool prepare();
  bool load(const Case& c, bool zero_copy, uint32_t width);
  RunSpec random_spec(const Case& c, const std::vector<Dtype>& dtypes);
  bool capture();
  bool step();
  bool one_call(SoakCall& call);
  bool several_calls(SoakGraph& graph);
  bool check(const std::vector<CheckedCall*>& calls, const std::function<bool()>& launch);
  void dawdle();
  uint64_t choose(uint64_t below) { return choices_() % below; }

  const StageOptions& options_;
  const SoakPart& part_;
  Communicator& communicator_;
  std::mt19937_64 choices_;  ///< the same on all ranks
  std::mt19937_64 own_;
  Diagnostics diagnostics_;
  Stream stream_;
  std::unique_ptr<Graphs> graphs_;
  std::vector<std::unique_ptr<LoadedCase>> loaded_;
  std::vector<uint64_t> launches_;  ///< by loaded_
  std::vector<SoakCall> calls_;
  std::vector<SoakGraph> several_;
  uint64_t done_ = 0, checked_ = 0;
};

RunSpec Soak::random_spec(const Case& c, const std::vector<Dtype>& dtypes) {
  RunSpec spec{.dtype = dtypes[choose(dtypes.size())],
               .op = c.ops[choose(c.ops.size())],
               .in_place = c.in_place[choose(c.in_place.size())]};
  // As many small sizes as large ones.
  const uint64_t elements = 1 + choose(uint64_t{1} << choose(12));
  spec.bytes = c.bytes({elements, 0}, spec.dtype);
  if (spec.bytes > kMaxBytes) spec.bytes = c.bytes({1, 0}, spec.dtype);
  return spec;
}

bool Soak::load(const Case& c, bool zero_copy, uint32_t width) {
  const std::vector<Dtype> dtypes = c.dtypes_of(width);
  auto loaded = LoadedCase::load(
      communicator_, c, {.max_bytes = kMaxBytes, .dtype = dtypes.front(), .zero_copy = zero_copy},
      diagnostics_);
  if (loaded == nullptr) return false;
  for (uint32_t i = 0; i < kCallsOfPlan; ++i) {
    auto call = loaded->call_beside(random_spec(c, dtypes), diagnostics_);
    if (call == nullptr) return false;
    calls_.push_back({loaded_.size(), std::move(call), nullptr});
  }
  loaded_.push_back(std::move(loaded));
  return true;
}

bool Soak::capture() {
  const StreamHandle stream = stream_.get();
  for (SoakCall& c : calls_) {
    CheckedCall* call = c.call.get();
    c.graph = graphs_->capture(
        stream, [call, stream](Diagnostics& d) { return call->launch(stream, d); }, diagnostics_);
    if (c.graph == nullptr) return false;
  }
  for (uint32_t i = 0; i < kGraphs; ++i) {
    SoakGraph made;
    std::vector<bool> taken(loaded_.size());  // calls of one plan share their buffers
    for (uint32_t k = 0; k < kCallsOfGraph; ++k) {
      const SoakCall& c = calls_[choose(calls_.size())];
      if (taken[c.plan]) continue;
      taken[c.plan] = true;
      made.calls.push_back(c.call.get());
    }
    made.graph = graphs_->capture(
        stream,
        [calls = made.calls, stream](Diagnostics& d) {
          return std::ranges::all_of(calls, [&](CheckedCall* c) { return c->launch(stream, d); });
        },
        diagnostics_);
    if (made.graph == nullptr) return false;
    several_.push_back(std::move(made));
  }
  return true;
}

bool Soak::prepare() {
  graphs_ = make_graphs(options_, communicator_, diagnostics_);
  if (graphs_ == nullptr || stream_.get() == nullptr) return false;
  bool zero_copy = false;
  for (const Case& c : part_.cases) {
    zero_copy = !zero_copy;
    for (const uint32_t width : c.widths()) {
      if (!load(c, zero_copy, width)) return false;
    }
  }
  launches_.resize(loaded_.size());
  return !part_.graphs || capture();
}

// Everything before it has ended when data is filled in, and nothing runs beside it.
bool Soak::check(const std::vector<CheckedCall*>& calls, const std::function<bool()>& launch) {
  if (!communicator_.synchronize(stream_.get(), diagnostics_)) return false;
  for (CheckedCall* c : calls) {
    if (!c->fill(checked_, diagnostics_)) return false;
  }
  if (!launch() || !communicator_.synchronize(stream_.get(), diagnostics_)) return false;
  for (CheckedCall* c : calls) {
    if (!c->compare(checked_, diagnostics_)) return false;
    c->report(diagnostics_);
    if (c->wrong() != 0) return false;
  }
  checked_ += calls.size();
  return true;
}

bool Soak::one_call(SoakCall& c) {
  const bool in_graph = part_.graphs && choose(2) == 0;
  const auto launch = [&] {
    return in_graph ? c.graph->launch(stream_.get(), diagnostics_)
                    : c.call->launch(stream_.get(), diagnostics_);
  };
  ++done_;
  return ++launches_[c.plan] % kCheckEvery == 0 ? check({c.call.get()}, launch) : launch();
}

bool Soak::several_calls(SoakGraph& graph) {
  const auto launch = [&] { return graph.graph->launch(stream_.get(), diagnostics_); };
  done_ += graph.calls.size();
  return ++graph.launches % kCheckEvery == 0 ? check(graph.calls, launch) : launch();
}

void Soak::dawdle() {
  if (own_() % 256 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own_() % 2000));
}

bool Soak::step() {
  dawdle();
  return part_.graphs && choose(16) == 0 ? several_calls(several_[choose(several_.size())])
                                         : one_call(calls_[choose(calls_.size())]);
}

std::string Soak::run() {
  if (!prepare()) return text(diagnostics_);
  TimeLimit limit(options_.seconds);
  bool over = false;
  uint64_t next = kAskEvery;
  while (!over && done_ < part_.calls) {
    if (!step())
      return fmt::format("call {}, seed {}: {}", done_, options_.seed, text(diagnostics_));
    if (!part_.graphs && done_ % options_.queued == 0 &&
        !communicator_.synchronize(stream_.get(), diagnostics_)) {
      return text(diagnostics_);
    }
    if (done_ < next) continue;
    next += kAskEvery;
    if (!limit.ask(communicator_, over, diagnostics_)) return text(diagnostics_);
  }
  if (!communicator_.synchronize(stream_.get(), diagnostics_)) return text(diagnostics_);
  if (communicator_.rank() == 0) {
    fmt::print(
        "soak at {}, {}: {} calls of {} loaded plans in {:.1f} s, {:.0f} a second; {} of them "
        "checked{}\n",
        text(options_), part_.graphs ? "eager and in graphs" : "with ports, eager", done_,
        loaded_.size(), limit.seconds(), static_cast<double>(done_) / limit.seconds(), checked_,
        over ? "; stopped by --seconds" : "");
    std::fflush(stdout);
  }
  return "";
}

}  // namespace

bool check_soak(const StageOptions& options) {
  std::vector<std::string> refused;
  SoakPart parts[] = {{.graphs = true, .calls = options.calls - options.calls / 4},
                      {.graphs = false, .calls = options.calls / 4}};
  for (Case& c : all_cases(options, refused)) {
    parts[has_ports(c) ? 1 : 0].cases.push_back(std::move(c));
  }
  for (const SoakPart& part : parts) {
    if (part.cases.empty()) continue;
    const std::string fault = run_ranks(options, [&](Communicator& communicator) {
      return Soak(options, communicator, part).run();
    });
    if (fault.empty()) continue;
    fmt::print("soak at {}: FAILED\n{}\n", text(options), fault);
    return false;
  }
  return true;
}

}  // namespace mscclc::testing
