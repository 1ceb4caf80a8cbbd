// Messages that are made in pieces: programs of the library, each made to do calls of thousands of
// bytes a few hundred at a time, and what they share when their calls are in turn.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "compiler/compile.h"
#include "plans/format/embedded_library.h"
#include "plans/format/plan_json.h"
#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "runtime/api/plan_registry.h"
#include "tests/collectives/definition.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::expected;
using testing::in_place_offset;
using testing::value;

using Kind = CollectiveKind;
constexpr uint32_t kPieceRanks = 3;
constexpr uint64_t kPieceBytes = 1024;

/// `select`: its options in place of those of the program; "": these.
std::shared_ptr<const Program> compile_one(const std::string& name,
                                           std::vector<std::pair<std::string, int64_t>> values,
                                           const std::string& select = "") {
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  for (const auto& [param, value] : values)
    options.defines.emplace_back(param, std::to_string(value));
  for (const LibraryFile& file : embedded_library()) {
    if (file.name != name + ".mscl") continue;
    std::string text(file.text);
    const size_t begin = select.empty() ? std::string::npos : text.find("\nselect ");
    if (begin != std::string::npos) {
      text.replace(begin, text.find('\n', begin + 1) - begin, "\nselect " + select);
    }
    const FileId id = sources.add(std::string(file.name), text);
    auto program = compile(sources, id, options, {}, diagnostics);
    if (program) return std::make_shared<const Program>(*std::move(program));
  }
  INFO(name << testing::text(diagnostics));
  REQUIRE(false);
  return nullptr;
}

/// Gives one plan for each collective.
class OneForEach final : public PlanProvider {
 public:
  void add(const std::string& name, std::vector<std::pair<std::string, int64_t>> values) {
    auto plan = compile_one(name, std::move(values));
    const Kind kind = plan->contract.kind;
    plans_[kind] = std::make_shared<PickedPlan>(PickedPlan{.name = name,
                                                           .plan = std::move(plan),
                                                           .max_bytes = ~uint64_t{0},
                                                           .proof = {},
                                                           .why = "it is the only one"});
  }
  std::shared_ptr<const PickedPlan> pick(const PlanRequest& request, std::vector<PassedOver>*,
                                         Diagnostics&) override {
    const auto found = plans_.find(request.call.kind);
    return found == plans_.end() ? nullptr : found->second;
  }

 private:
  std::map<Kind, std::shared_ptr<const PickedPlan>> plans_;
};

struct Case {
  Kind kind;
  uint64_t count;
  bool in_place = false, registered = false;
};

/// Two buffers of a rank, with something on both sides of what a call uses.
struct PieceBuffers {
  static constexpr int32_t kUntouched = -77;
  static constexpr uint64_t kMargin = 5, kElements = 20000;
  std::unique_ptr<Memory> memory;
  int32_t *first, *second;

  PieceBuffers(Communicator& communicator, Diagnostics& diagnostics)
      : memory(communicator.device().allocate(8 * kElements, "buffers", diagnostics)),
        first(reinterpret_cast<int32_t*>(memory->data()) + kMargin),
        second(first + kElements) {}
  void clear() { std::fill(first - kMargin, first + 2 * kElements - kMargin, kUntouched); }
};

std::string check_call(Collectives& collectives, PieceBuffers& buffers, const Case& c) {
  Communicator& communicator = collectives.communicator();
  const uint32_t rank = communicator.rank();
  const CollectiveInfo& kind = info(c.kind);
  const auto elements = [&](Side side) {
    return kind.has_rows(side) ? c.count * kPieceRanks : c.count;
  };
  const auto here = [&](Side side) { return !kind.side(side).only_at_root || rank == 0; };
  CollectiveCall call{
      .kind = c.kind, .count = c.count, .dtype = Dtype::i32, .registered = c.registered};
  buffers.clear();
  int32_t *from = buffers.first, *to = buffers.second;
  if (c.in_place) {
    const int64_t offset = in_place_offset(call, rank);
    from = buffers.second + (offset < 0 ? -offset : 0);
    to = buffers.second + (offset > 0 ? offset : 0);
  }
  const uint64_t in = here(Side::input) ? elements(Side::input) : 0;
  const uint64_t out = here(Side::output) ? elements(Side::output) : 0;
  for (uint64_t i = 0; i < in; ++i) from[i] = value(rank, i);
  Diagnostics diagnostics;
  const StreamHandle stream = communicator.device().create_stream(diagnostics);
  call.input = in > 0 ? from : nullptr;
  call.output = out > 0 ? to : nullptr;
  const bool done =
      collectives.call(call, stream, diagnostics) && communicator.synchronize(stream, diagnostics);
  communicator.device().destroy_stream(stream);
  if (!done) return testing::text(diagnostics);
  for (uint64_t i = 0; i < out; ++i) {
    if (to[i] == expected(call, rank, kPieceRanks, i)) continue;
    return fmt::format("{} of {}{}{}: element {} is {}, not {}", name(c.kind), c.count,
                       c.in_place ? " in place" : "", c.registered ? " registered" : "", i, to[i],
                       expected(call, rank, kPieceRanks, i));
  }
  const uint64_t end = c.in_place ? std::max(in, out) : out;
  const bool kept = std::all_of(buffers.second + end,
                                buffers.second + PieceBuffers::kElements - PieceBuffers::kMargin,
                                [](int32_t x) { return x == PieceBuffers::kUntouched; });
  return kept ? "" : fmt::format("{} of {} writes beyond its output", name(c.kind), c.count);
}

using Cases = std::function<std::string(Collectives&, PieceBuffers&)>;

std::string run_ranks(const std::shared_ptr<PlanProvider>& plans, const Cases& cases,
                      const CollectivesOptions& options = {.piece_bytes = kPieceBytes}) {
  return testing::run_threads(kPieceRanks, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto collectives = Collectives::create(communicator, plans, options, diagnostics);
    if (collectives == nullptr) return testing::text(diagnostics);
    PieceBuffers buffers(communicator, diagnostics);
    std::string said = cases(*collectives, buffers);
    if (!said.empty()) communicator.abort(said);
    return said;
  });
}

const std::vector<uint64_t> kCounts = {1, 84, 85, 256, 257, 1000, 3001};

/// Calls of each kind, in turn, whose sizes go up and down.
std::string every_kind(Collectives& collectives, PieceBuffers& buffers, std::vector<Kind> kinds,
                       bool registered) {
  for (const uint64_t count : kCounts) {
    for (const Kind kind : kinds) {
      for (const bool in_place : {false, true}) {
        if (in_place && (!info(kind).can_alias || info(kind).has_root() || kind == Kind::alltoall))
          continue;
        std::string said = check_call(collectives, buffers, {kind, count, in_place, registered});
        if (!said.empty()) return said;
      }
    }
  }
  return "";
}

const std::vector<Kind> kPieceKinds = {Kind::allreduce,     Kind::reduce,   Kind::allgather,
                                       Kind::gather,        Kind::alltoall, Kind::broadcast,
                                       Kind::reducescatter, Kind::scatter,  Kind::sendrecv};

/// Plans that read and write the buffers of other ranks, so that calls go through staging.
std::shared_ptr<OneForEach> direct_plans() {
  auto plans = std::make_shared<OneForEach>();
  for (const char* const name :
       {"allreduce_push", "allgather_direct", "alltoall_direct", "reducescatter_direct",
        "gather_direct", "scatter_direct", "reduce_direct", "sendrecv"}) {
    plans->add(name, {{"R", kPieceRanks}, {"B", 2}, {"T", 32}});
  }
  plans->add("broadcast_direct", {{"R", kPieceRanks}});
  return plans;
}

TEST_CASE("pieces that go through staging, which all plans share") {
  CHECK(run_ranks(direct_plans(), [](Collectives& c, PieceBuffers& b) {
          return every_kind(c, b, kPieceKinds, false);
        }) == "");
}

TEST_CASE("pieces that go through scratch") {
  auto plans = std::make_shared<OneForEach>();
  for (const char* const name : {"allreduce_2shot_packets", "allgather_packets", "alltoall_packets",
                                 "reducescatter_packets", "gather_packets", "scatter_packets",
                                 "reduce_packets", "broadcast_packets", "sendrecv_packets"}) {
    plans->add(name, {{"R", kPieceRanks}});
  }
  CHECK(run_ranks(plans, [](Collectives& c, PieceBuffers& b) {
          return every_kind(c, b, kPieceKinds, false);
        }) == "");
}

TEST_CASE("registered buffers are used in one piece by plans without scratch") {
  const std::vector<Kind> kinds = {Kind::allgather, Kind::alltoall, Kind::reducescatter,
                                   Kind::sendrecv};
  CHECK(run_ranks(direct_plans(), [&](Collectives& c, PieceBuffers& b) -> std::string {
          Diagnostics diagnostics;
          if (!c.register_buffer(b.memory->data(), b.memory->bytes(), diagnostics)) {
            return testing::text(diagnostics);
          }
          return every_kind(c, b, kinds, true);
        }) == "");
}

TEST_CASE("registered buffers are used piece by piece by plans with scratch") {
  auto plans = std::make_shared<OneForEach>();
  plans->add("allreduce_push", {{"R", kPieceRanks}, {"B", 2}, {"T", 32}});
  CHECK(run_ranks(plans, [&](Collectives& c, PieceBuffers& b) -> std::string {
          Diagnostics diagnostics;
          if (!c.register_buffer(b.memory->data(), b.memory->bytes(), diagnostics)) {
            return testing::text(diagnostics);
          }
          std::string said = every_kind(c, b, {Kind::allreduce}, true);
          if (said.empty() && c.use().cached < 2 * kCounts.size()) said = "no pieces are kept";
          return said;
        }) == "");
}

/// A registry of one program of the library, as "mine", with `select` options of ours.
std::shared_ptr<PlanRegistry> registry_of(const std::string& name, const std::string& select,
                                          std::shared_ptr<PlanProvider> library = nullptr) {
  Diagnostics diagnostics;
  auto all = PlanRegistry::create({.library = std::move(library)}, diagnostics);
  const auto plan = compile_one(name, {{"R", kPieceRanks}}, select);
  const auto json = write_plan(*plan, *find_target("sm_90", diagnostics), diagnostics);
  const bool made =
      all != nullptr && json && all->register_plan(*json, "mine", diagnostics).has_value();
  INFO(testing::text(diagnostics));
  REQUIRE(made);
  return all;
}

TEST_CASE("a plan that a selector names serves messages beyond its own sizes") {
  const auto plans = registry_of("allreduce_2shot_packets", "sizes: 0..1KiB");
  plans->set_selector([](const PlanRequest&) { return Selection{Selection::Kind::plan, "mine"}; });
  const auto three_calls = [](Collectives& c, PieceBuffers& b) -> std::string {
    for (int i = 0; i < 3; ++i) {
      std::string said = check_call(c, b, {Kind::allreduce, 10000});
      if (!said.empty()) return said;
    }
    return c.use().plans == 1 ? "" : fmt::format("{} plans are loaded", c.use().plans);
  };
  CHECK(run_ranks(plans, three_calls, {}) == "");
  CHECK(run_ranks(plans, three_calls) == "");
}

/// Another plan of allreduce, for all sizes.
std::shared_ptr<OneForEach> other_allreduce() {
  auto plans = std::make_shared<OneForEach>();
  plans->add("allreduce_push", {{"R", kPieceRanks}, {"B", 2}, {"T", 32}});
  return plans;
}

TEST_CASE("a plan that is registered for large messages does their pieces, too") {
  const auto plans = registry_of("allreduce_2shot_packets", "sizes: 2KiB..1GiB", other_allreduce());
  const auto calls = [](Collectives& c, PieceBuffers& b) -> std::string {
    Diagnostics diagnostics;
    const auto chosen = [&](uint64_t count) {
      const CollectiveCall call{.kind = Kind::allreduce, .count = count, .dtype = Dtype::i32};
      const auto picked = c.choose(call, false, nullptr, diagnostics);
      return picked == nullptr ? testing::text(diagnostics) : picked->name;
    };
    if (chosen(256) != "allreduce_push") return chosen(256) + " for a small one";
    if (chosen(1000) != "mine") return chosen(1000) + " for a large one";
    std::string said = check_call(c, b, {Kind::allreduce, 1000});
    return said.empty() ? check_call(c, b, {Kind::allreduce, 3001}) : said;
  };
  CHECK(run_ranks(plans, calls) == "");
}

TEST_CASE("rows that lie apart are refused where a plan cannot have them") {
  const auto plan = compile_one("allgather_direct", {{"R", kPieceRanks}, {"B", 2}, {"T", 32}});
  CHECK(takes_pieces(*plan, {}));
  const std::string said = testing::run_threads(kPieceRanks, [&](Communicator& c) -> std::string {
    Diagnostics diagnostics;
    const auto executable = c.load(plan, {.max_bytes = 4096}, diagnostics);
    if (executable == nullptr) return testing::text(diagnostics);
    PieceBuffers buffers(c, diagnostics);
    for (const uint64_t pitch : {uint64_t{12}, (uint64_t{1} << 62) + 16, ~uint64_t{0}}) {
      const BoundCall call = executable->bind({.bytes = 16 * kPieceRanks,
                                               .dtype = Dtype::i32,
                                               .input = buffers.first,
                                               .output = buffers.second,
                                               .row_pitch = pitch},
                                              diagnostics);
      if (call || diagnostics.all().back().code != "message-size") return "it was bound";
    }
    return "";
  });
  CHECK(said == "");
}

}  // namespace
}  // namespace mscclc
