#include "tests/collectives/differing_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "ir/support/read_file.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "runtime/api/plan_registry.h"
#include "tests/collectives/compiled_in_library.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {
namespace {

constexpr uint8_t kUntouched = 0xA5;
constexpr uint64_t kInput = 64 << 10, kOutput = 4 << 20, kBytes = 10 << 20;
constexpr uint64_t kFarLonger = 700'000;
constexpr uint32_t kCallsAfter = 3, kMaxRanks = 4;
constexpr const char* kNames[kDifferences] = {
    "shorter",    "longer", "far longer", "type",         "reduction",
    "collective", "place",  "offset",     "registration", "call left out"};

std::string direct_plan(const std::string& program, uint32_t ranks, Diagnostics& diagnostics) {
  Sources sources;
  const FileId file = sources.add(program, read_file("plans/" + program + ".mscl").value_or(""));
  FrontEndOptions front;
  front.defines = {{"R", std::to_string(ranks)}, {"B", "4"}, {"T", "64"}};
  auto plan = compile(sources, file, front, {}, diagnostics);
  if (!plan) return "";
  plan->select = {};
  return write_plan(*plan, *find_target("sm_90", diagnostics), diagnostics).value_or("");
}

/// The library; for registered buffers plans that write to them, whatever the size.
std::shared_ptr<PlanProvider> plans_for(bool registered) {
  const auto library = testing::compiled_in_library();
  static const auto direct = [&] {
    Diagnostics diagnostics;
    auto plans = PlanRegistry::create({.library = library}, diagnostics);
    for (const char* program : {"allgather_direct", "allreduce_allpairs", "reducescatter_direct"}) {
      for (uint32_t ranks = 2; plans != nullptr && ranks <= kMaxRanks; ++ranks) {
        const std::string plan = direct_plan(program, ranks, diagnostics);
        (void)plans->register_plan(plan, fmt::format("{} {}", program, ranks), diagnostics);
      }
    }
    if (diagnostics.has_errors()) {
      fmt::print(stderr, "{}", testing::text(diagnostics));
      std::abort();  // ranks ask on threads, where nothing is required
    }
    return plans;
  }();
  return registered ? std::shared_ptr<PlanProvider>(direct) : library;
}

/// A rank's calls, and what of its memory they name.
class OneRank {
 public:
  OneRank(Communicator& communicator, const DifferingTrial& trial)
      : communicator_(communicator), trial_(trial), random_(trial.seed) {}

  std::string run() {
    collectives_ =
        Collectives::create(communicator_, plans_for(trial_.registered), {}, diagnostics_);
    memory_ = communicator_.device().allocate(kBytes, "memory", diagnostics_);
    if (collectives_ == nullptr || memory_ == nullptr) return testing::text(diagnostics_);
    std::memset(memory_->data(), kUntouched, kBytes);
    if (!collectives_->register_buffer(memory_->data(), kBytes, diagnostics_)) {
      return testing::text(diagnostics_);
    }
    const StreamHandle stream = communicator_.device().create_stream(diagnostics_);
    const std::string said = make_calls(stream);
    communicator_.device().destroy_stream(stream);  // waits
    return said + beyond();
  }

 private:
  std::string make_calls(StreamHandle stream) {
    for (uint32_t i = 0; i < trial_.from + kCallsAfter; ++i) {
      const bool waits = random_() % 2 == 0;
      CollectiveCall call = draw(i);
      const bool odd = (communicator_.rank() == trial_.odd) != trial_.stays;
      if (odd && i >= trial_.from) {
        if (trial_.difference == Difference::skipped && i == trial_.from) continue;
        change(call);
      }
      name(call);
      const bool done = collectives_->call(call, stream, diagnostics_) &&
                        (!waits || communicator_.synchronize(stream, diagnostics_));
      if (!done) return testing::text(diagnostics_);
    }
    if (!communicator_.synchronize(stream, diagnostics_)) return testing::text(diagnostics_);
    // A rank that waits for nothing may have come to the end before the others differ.
    Diagnostics late;
    (void)communicator_.bootstrap().barrier("the end", late);
    if (communicator_.check(diagnostics_)) return "all calls were made\n";
    return testing::text(diagnostics_);
  }

  /// The same on all ranks.
  CollectiveCall draw(uint32_t i) {
    constexpr CollectiveKind kKinds[] = {CollectiveKind::allreduce, CollectiveKind::allgather,
                                         CollectiveKind::reducescatter};
    const bool repeats = random_() % 3 == 0;
    const uint64_t drawn = 64 + random_() % (random_() % 2 == 0 ? 2'000 : 100'000);
    const CollectiveKind kind = kKinds[random_() % 3];
    if (i == 0 || (!repeats && i != trial_.from)) {
      latest_ = {.kind = kind, .count = drawn, .registered = trial_.registered};
      if (trial_.difference == Difference::reduction || trial_.difference == Difference::place) {
        latest_.kind = CollectiveKind::allreduce;  // which has both
      }
      // Only where other ranks write to the output.
      if (trial_.difference == Difference::offset) latest_.kind = CollectiveKind::allgather;
    }
    CollectiveCall call = latest_;
    call.input = memory_->data() + kInput;
    call.output = memory_->data() + kOutput;
    if (trial_.difference == Difference::place) call.output = memory_->data() + kInput;
    // Another call than the one before, or not: a rank that stays must repeat it for both.
    if (trial_.difference == Difference::skipped) call.count += i;
    return call;
  }

  void change(CollectiveCall& call) const {
    switch (trial_.difference) {
      case Difference::shorter:
        --call.count;
        break;
      case Difference::longer:
        ++call.count;
        break;
      case Difference::far_longer:
        call.count = kFarLonger / communicator_.size();
        break;
      case Difference::type:
        call.dtype = Dtype::i32;
        break;
      case Difference::reduction:
        call.op = ReduceOp::max;
        break;
      case Difference::collective:
        call.kind = call.kind == CollectiveKind::allgather ? CollectiveKind::reducescatter
                                                           : CollectiveKind::allgather;
        break;
      case Difference::place:
        call.output = memory_->data() + kOutput;
        break;
      case Difference::offset:
        call.output = memory_->data() + kOutput + 256;
        break;
      case Difference::registration:
        call.registered = false;
        break;
      case Difference::skipped:
        break;
    }
  }

  uint64_t bytes(const CollectiveCall& call, Side side) const {
    return call.count * info(call.dtype).bytes *
           (info(call.kind).has_rows(side) ? communicator_.size() : 1);
  }
  void name(const CollectiveCall& call) {
    const auto mark = [&](const void* at, uint64_t count) {
      const auto begin = static_cast<uint64_t>(static_cast<const uint8_t*>(at) - memory_->data());
      named_.emplace_back(begin, begin + count);
    };
    mark(call.input, bytes(call, Side::input));
    mark(call.output, bytes(call, Side::output));
  }

  /// Bytes in [from, to) that are not as they were. By blocks: sanitizers make single bytes slow.
  uint64_t changed(uint64_t from, uint64_t to) const {
    static const std::vector<uint8_t> untouched(4096, kUntouched);
    uint64_t count = 0;
    for (uint64_t n = 0; from < to; from += n) {
      n = std::min<uint64_t>(untouched.size(), to - from);
      const uint8_t* const at = memory_->data() + from;
      if (std::memcmp(at, untouched.data(), n) == 0) continue;
      count += n - static_cast<uint64_t>(std::count(at, at + n, kUntouched));
    }
    return count;
  }

  std::string beyond() {
    std::ranges::sort(named_);
    uint64_t count = 0, from = 0;
    for (const auto& [begin, end] : named_) {
      count += changed(from, begin);
      from = std::max(from, end);
    }
    count += changed(from, kBytes);
    return count == 0 ? "" : fmt::format("beyond: {}\n", count);
  }

  Communicator& communicator_;
  const DifferingTrial& trial_;
  std::minstd_rand random_;
  Diagnostics diagnostics_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Collectives> collectives_;
  std::vector<std::pair<uint64_t, uint64_t>> named_;  ///< of the memory, from and to
  CollectiveCall latest_;
};

}  // namespace

DifferingTrial draw_differing(uint64_t seed) {
  std::minstd_rand random(static_cast<uint32_t>(seed * 2654435761u + 1));
  for (int i = 0; i < 4; ++i) random();
  DifferingTrial trial{.seed = seed + 1};
  trial.ranks = 2 + static_cast<uint32_t>(random() % (kMaxRanks - 1));
  trial.odd = static_cast<uint32_t>(random() % trial.ranks);
  trial.difference = static_cast<Difference>(random() % kDifferences);
  trial.registered = trial.difference == Difference::offset ||
                     trial.difference == Difference::registration || random() % 2 == 0;
  trial.from = static_cast<uint32_t>(random() % 8);
  trial.stays = trial.difference != Difference::skipped && random() % 2 == 0;
  trial.processes = random() % 8 == 0;
  if (random() % 3 != 0) return trial;
  // Plans that write to registered buffers need their memory; the library's go over lanes.
  if (trial.difference == Difference::offset || trial.difference == Difference::registration)
    return trial;
  trial.registered = false;
  trial.on_node = trial.ranks == 4 ? 1 + static_cast<uint32_t>(random() % 2) : 1;
  return trial;
}

std::string text(const DifferingTrial& trial) {
  return fmt::format("{} {}{}, {} buffers: {} of rank {} from call {} on{}", trial.ranks,
                     trial.processes ? "processes" : "threads",
                     trial.on_node == 0 ? "" : fmt::format(" in nodes of {}", trial.on_node),
                     trial.registered ? "registered" : "other",
                     kNames[static_cast<size_t>(trial.difference)], trial.odd, trial.from,
                     trial.stays ? ", for all others" : "");
}

DifferingOutcome try_differing(const DifferingTrial& trial) {
  const auto body = [&](Communicator& c) { return OneRank(c, trial).run(); };
  const auto open = [&](uint32_t rank, Diagnostics& diagnostics) {
    return trial.on_node == 0
               ? open_host(rank, diagnostics)
               : make_host_device(diagnostics, {}, HostLanes::copies, rank / trial.on_node);
  };
  std::vector<std::string> said;
  if (trial.processes) {
    for (const Outcome& outcome : processes(trial.ranks, body, {}, {}, open))
      said.push_back(outcome.said);
  } else {
    said = threads(trial.ranks, body, {}, open);
  }
  DifferingOutcome outcome;
  for (uint32_t r = 0; r < said.size(); ++r) {
    constexpr std::string_view kBeyond = "beyond: ";
    const size_t at = said[r].find(kBeyond);
    if (at != std::string::npos) outcome.beyond += std::stoull(said[r].substr(at + kBeyond.size()));
    const bool reported = said[r].find("different calls") != std::string::npos;
    if (at != std::string::npos || !reported)
      outcome.wrong += fmt::format("rank {}: {}\n", r, said[r]);
  }
  return outcome;
}

}  // namespace mscclc::testing
