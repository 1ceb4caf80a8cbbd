// GEMMs that overlap on GPUs of the fake driver, which runs nothing and refuses what a capture
// forbids: what is put on streams, also in a graph whose first run is the first at all.
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/overlap.h"
#include "tests/collectives/compiled_in_library.h"
#include "tests/fakes/cuda/test_world.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using cuda::FakeDriver;
using cuda::World;

/// Puts a kernel on the stream for each product.
class FakeProducts final : public GemmProvider {
 public:
  explicit FakeProducts(World& world) : world_(world) {}
  bool prepare(const Gemm&, Diagnostics&) override {
    ++prepared;
    return true;
  }
  bool run(const Gemm& gemm, StreamHandle stream, Diagnostics&) override {
    multiprocessors = gemm.multiprocessors;
    if (gemm.bias != nullptr) ++biased;
    return world_.step(stream) == 0;
  }
  std::atomic<uint32_t> prepared = 0, multiprocessors = 0, biased = 0;

 private:
  World& world_;
};

/// Makes the first product on each stream, and no other.
class OneProduct final : public GemmProvider {
 public:
  explicit OneProduct(World& world) : world_(world) {}
  bool run(const Gemm&, StreamHandle stream, Diagnostics& diagnostics) override {
    const std::lock_guard lock(mutex_);
    if (made_.insert(stream).second) return world_.step(stream) == 0;
    failed_.insert(stream);
    diagnostics.error("gemm-failed", {}, "no second product");
    return false;
  }
  bool has_failed_on(StreamHandle stream) {
    const std::lock_guard lock(mutex_);
    return failed_.contains(stream);
  }

 private:
  World& world_;
  std::mutex mutex_;
  std::set<StreamHandle> made_, failed_;
};

/// Puts on the stream what writes a product, and answers that there is none.
class FailedProduct final : public GemmProvider {
 public:
  explicit FailedProduct(World& world) : world_(world) {}
  bool run(const Gemm& gemm, StreamHandle stream, Diagnostics& diagnostics) override {
    world_.fake.launch(stream, cuda::address_of(gemm.d), 1);
    diagnostics.error("gemm-failed", {}, "no product of zeros");
    return false;
  }

 private:
  World& world_;
};

/// NCCL's collectives, each a kernel.
class FakeCollectives final : public OtherCollectives {
 public:
  explicit FakeCollectives(World& world) : world_(world) {}
  bool call(const CollectiveCall&, StreamHandle stream, Diagnostics&) override {
    return world_.step(stream) == 0;
  }
  void abort() override {}

 private:
  World& world_;
};

/// cuBLASMp's GEMMs, each object's in two kernels.
class FakeOtherGemms final : public OtherGemms {
 public:
  explicit FakeOtherGemms(World& world) : world_(world) {}
  bool run(const OverlapCall&, StreamHandle stream, Diagnostics&) override {
    return world_.step(stream) == 0 && world_.step(stream) == 0;
  }
  uint64_t held_bytes() const override { return 0; }
  void abort() override {}

 private:
  World& world_;
};

/// `first_uncaptured`: why its first run cannot be captured; "": it can.
OtherGemmLibrary fake_cublasmp(World& world, const char* first_uncaptured) {
  const auto make = [&world](Communicator&, const OverlapConfig&, Diagnostics&) {
    return std::make_unique<FakeOtherGemms>(world);
  };
  return {.make = make, .missing = "", .first_uncaptured = first_uncaptured};
}

/// What a node of a graph comes after.
std::set<cuda::abi::GraphNode> nodes_before(World& world, cuda::abi::GraphNode node) {
  std::set<cuda::abi::GraphNode> before;
  std::vector<cuda::abi::GraphNode> ahead = {node};
  while (!ahead.empty()) {
    const auto edges = world.fake.edges(ahead.back());
    ahead.pop_back();
    for (const auto& edge : edges) {
      if (before.insert(edge).second) ahead.push_back(edge);
    }
  }
  return before;
}

/// Launches that it comes after.
size_t launches_before(World& world, cuda::abi::GraphNode node) {
  const auto before = nodes_before(world, node);
  const std::lock_guard lock(world.launching);
  return static_cast<size_t>(std::ranges::count_if(
      world.nodes, [&](cuda::abi::GraphNode launch) { return before.contains(launch); }));
}

/// What a rank does with its object; "" if all was well.
using ObjectBody = std::function<std::string(Overlap&, const OverlapCall&, StreamHandle)>;

/// Two ranks, each with a GPU, that make one object. `most`: gets what was allocated meanwhile on
/// rank 0's at most.
std::string on_fake_gpus(
    World& world, GemmProvider* provider, const OverlapConfig& config, const ObjectBody& body,
    const std::shared_ptr<PlanProvider>& library = testing::compiled_in_library(),
    const OtherGemmLibrary& cublasmp = {}, uint64_t* most = nullptr) {
  static const auto programs = builtin_overlap_programs();
  cuda::ContextKeeper keeper;
  return testing::run_threads(
      2,
      [&](Communicator& communicator) -> std::string {
        Diagnostics d;
        Device& device = communicator.device();
        if (!device.bind_thread(d)) return testing::text(d);
        const auto shared = [](auto& of) {
          return std::shared_ptr<std::remove_reference_t<decltype(of)>>(&of, [](auto*) {});
        };
        const std::shared_ptr<Collectives> collectives =
            Collectives::create(communicator, library, {}, d);
        const OverlapOwner owner{shared(device), shared(communicator), collectives,
                                 make_overlap_turns()};
        const auto make_nccl = [&world](Communicator&, Diagnostics&) {
          return std::make_unique<FakeCollectives>(world);
        };
        const OverlapOptions options{.programs = programs,
                                     .gemm = provider,
                                     .nccl = {.make = make_nccl, .missing = ""},
                                     .cublasmp = cublasmp};
        const auto object = Overlap::create(owner, config, options, d);
        if (object == nullptr) return testing::text(d);
        if (most != nullptr && communicator.rank() == 0) *most = world.fake.most_allocated(0);
        const auto memory = device.allocate(1 << 26, "matrices", d);
        if (memory == nullptr) return testing::text(d);
        uint8_t* const at = memory->data();
        OverlapCall call{.a = at};
        call.b = {at + (1 << 24)};
        call.out = {at + (2 << 24)};
        const StreamHandle stream = device.create_stream(d);
        // Bodies wait for each other: none begins where a rank has failed.
        const bool all = communicator.bootstrap().barrier("run an object", d);
        std::string said = all ? body(*object, call, stream) : testing::text(d);
        if (!communicator.synchronize(stream, d)) said += testing::text(d);
        device.destroy_stream(stream);
        return said;
      },
      testing::kPatience,
      [&](uint32_t rank, Diagnostics& d) -> std::unique_ptr<Device> {
        FakeDriver::enter(0);
        if (!keeper.keep(world.fake.driver(), static_cast<int>(rank), d)) return nullptr;
        return world.open(0, static_cast<int>(rank), d, false);
      });
}

OverlapConfig gemm_on_gpus(OverlapKind kind, const char* backend) {
  return {.kind = kind, .m = 16, .k = 32, .n = {32}, .backend = backend, .chunks = 2, .budget = 8};
}

/// A run in a capture, which is the first at all, and one outside.
ObjectBody captured_and_eager(World& world) {
  return [&world](Overlap& object, const OverlapCall& call, StreamHandle stream) -> std::string {
    Diagnostics d;
    world.fake.begin_capture(cuda::abi::kCaptureModeGlobal, stream);
    const bool captured = object.run(call, stream, d);
    world.fake.end_capture();
    return captured && object.run(call, stream, d) ? "" : testing::text(d);
  };
}

/// The library that is compiled in, and what is asked of it.
class CountedLibrary final : public PlanProvider {
 public:
  std::shared_ptr<const PickedPlan> pick(const PlanRequest& request,
                                         std::vector<PassedOver>* passed_over,
                                         Diagnostics& diagnostics) override {
    ++(request.call.in_place ? in_place : apart);
    return testing::compiled_in_library()->pick(request, passed_over, diagnostics);
  }
  std::atomic<uint32_t> in_place = 0, apart = 0;
};

struct Expected {
  OverlapKind kind;
  const char* backend;
  uint32_t kernels;         ///< of a run of a rank
  bool collective = false;  ///< of the library
};

TEST_CASE("the first run may be captured, and puts the same on streams as one that is not") {
  constexpr Expected kAll[] = {
      // The plan, its end, four products, and two flags to wait for.
      {OverlapKind::allgather_gemm, "mscclc", 1 + 1 + 4 + 2},
      {OverlapKind::alltoall_gemm, "mscclc", 1 + 1 + 4 + 2},
      // The plan, four products and their flags: nothing that waits for the plan's kernel in a
      // hardware queue that streams share, and that the products would come after.
      {OverlapKind::gemm_reducescatter, "mscclc", 1 + 4 + 4},
      {OverlapKind::gemm_allreduce, "mscclc", 1 + 4 + 4},
      // Sums: after the plan's, one of the whole GPU; and the library's AllGather.
      {OverlapKind::allgather_gemm, "copy_engine", 1 + 1 + 4 + 2},
      {OverlapKind::alltoall_gemm, "copy_engine", 1 + 1 + 4 + 2},
      {OverlapKind::gemm_reducescatter, "copy_engine", 1 + 4 + 4 + 1},
      {OverlapKind::gemm_allreduce, "copy_engine", 1 + 4 + 4 + 1 + 1, true},
      {OverlapKind::allgather_gemm, "serial", 1 + 4, true},
      {OverlapKind::gemm_allreduce, "serial", 1 + 4, true},
      // NCCL's kernel, and four products.
      {OverlapKind::allgather_gemm, "nccl", 1 + 4},
      {OverlapKind::alltoall_gemm, "nccl", 1 + 4},
      {OverlapKind::gemm_reducescatter, "nccl", 1 + 4},
      {OverlapKind::gemm_allreduce, "nccl", 1 + 4},
  };
  for (const Expected& expected : kAll) {
    World world({.devices = 2});
    world.most_threads = 1024;
    FakeProducts products(world);
    INFO(name(expected.kind) << " " << expected.backend);
    const auto library = std::make_shared<CountedLibrary>();
    CHECK(on_fake_gpus(world, &products, gemm_on_gpus(expected.kind, expected.backend),
                       captured_and_eager(world), library) == "");
    // Once at each rank, for runs that are captured and for others, as their buffers will lie.
    const bool in_place = expected.kind == OverlapKind::gemm_allreduce;
    CHECK((in_place ? library->in_place : library->apart) == (expected.collective ? 2 * 2 : 0));
    CHECK((in_place ? library->apart : library->in_place) == 0);
    world.check_clean();  // what the object and its first products took, too
    const auto is_captured = [](cuda::abi::GraphNode node) { return node != nullptr; };
    CHECK(std::ranges::count_if(world.nodes, is_captured) == 2 * expected.kernels);
    // Besides: a product of zeros at each rank, when the object is made.
    CHECK(world.nodes.size() == 2 * (2 * expected.kernels + 1));
    CHECK(products.prepared == 2);
    CHECK(products.multiprocessors == 132 - 8);  // the same products, to the bit
  }
}

/// Two ranks' object by cuBLASMp.
std::string by_fake_cublasmp(World& world, const char* first_uncaptured, const ObjectBody& body) {
  world.make_products = [&world] { return std::make_unique<FakeProducts>(world); };
  const OverlapConfig config{.kind = OverlapKind::gemm_reducescatter,
                             .m = 16,
                             .k = 32,
                             .n = {32},
                             .bias = true,
                             .backend = "cublasmp"};
  const auto biased = [&](Overlap& object, const OverlapCall& call, StreamHandle stream) {
    OverlapCall with = call;
    with.bias = {static_cast<uint8_t*>(call.out[0]) + (1 << 20)};
    return body(object, with, stream);
  };
  std::string said = on_fake_gpus(world, nullptr, config, biased, testing::compiled_in_library(),
                                  fake_cublasmp(world, first_uncaptured));
  world.check_clean();
  return said;
}

TEST_CASE("the first run by cuBLASMp may be captured, where its NCCL permits that") {
  World world({.devices = 2});
  CHECK(by_fake_cublasmp(world, "", captured_and_eager(world)) == "");
  CHECK(world.nodes.size() == 2 * 2 * (2 + 1));  // its own, and the bias of a sum
}

TEST_CASE("else that run is refused before anything is on the stream, and later ones captured") {
  World old({.devices = 2});
  const auto body = [&](Overlap& object, const OverlapCall& call, StreamHandle stream) {
    Diagnostics refused, d;
    old.fake.begin_capture(cuda::abi::kCaptureModeGlobal, stream);
    const bool captured = object.run(call, stream, refused);
    old.fake.end_capture();
    if (captured || refused.all().front().message !=
                        "gemm_reducescatter: an object's first run by 'cublasmp' cannot be "
                        "captured: NCCL is too old") {
      return testing::text(refused) + "no refusal";
    }
    if (!object.run(call, stream, d)) return testing::text(d);
    return captured_and_eager(old)(object, call, stream);
  };
  CHECK(by_fake_cublasmp(old, "NCCL is too old", body) == "");
  CHECK(old.nodes.size() == 2 * 3 * (2 + 1));
}

TEST_CASE("a plan's launches get room before the products: its stream is urgent") {
  const auto urgent_streams = [](const char* backend) {
    World world({.devices = 2});
    world.most_threads = 1024;
    FakeProducts products(world);
    std::barrier together(2);
    std::atomic<int> urgent = 0;
    const auto body = [&](Overlap&, const OverlapCall&, StreamHandle) {
      together.arrive_and_wait();
      urgent = world.fake.urgent_streams();
      together.arrive_and_wait();
      return "";
    };
    CHECK(on_fake_gpus(world, &products, gemm_on_gpus(OverlapKind::allgather_gemm, backend),
                       body) == "");
    return urgent.load();
  };
  CHECK(urgent_streams("mscclc") == urgent_streams("serial") + 2);  // one at each rank
}

TEST_CASE("making an object takes no more memory for its first calls than they need") {
  constexpr uint64_t kSide = 4096, kMatrix = kSide * kSide * 2, kSmall = 8 << 20;
  struct {
    OverlapKind kind;
    const char* backend;
    double most, held;  ///< matrices: while it is made, and of the object
  } constexpr kAll[] = {
      // A product of zeros has its B, and all else there. The library's call has the message and a
      // part, beside the workspace; or the message only, in place. Its plan takes what is last.
      {OverlapKind::allgather_gemm, "mscclc", 1, 1},
      {OverlapKind::allgather_gemm, "serial", 1.5 + 1 + 1, 1},
      {OverlapKind::gemm_reducescatter, "serial", 1.5 + 1 + 1, 1},
      {OverlapKind::alltoall_gemm, "serial", 2 + 1 + 1, 1},
      {OverlapKind::gemm_allreduce, "serial", 1 + 1.5, 0},
      // What others reach, the partial sums, and the library's call, in place.
      {OverlapKind::gemm_allreduce, "copy_engine", 1 + 1 + 1 + 1, 1 + 1},
      // What others write is the plan's scratch: of a chunk of each other rank.
      {OverlapKind::gemm_reducescatter, "mscclc", 1 + 0.5, 1 + 0.5},
  };
  for (const auto& [kind, backend, most, held] : kAll) {
    INFO(name(kind) << " " << backend);
    std::atomic<uint64_t> bytes = 0;  // the same at both ranks
    const auto most_for = [&](uint64_t side) {
      World world({.devices = 2});
      world.most_threads = 1024;
      FakeProducts products(world);
      OverlapConfig config = gemm_on_gpus(kind, backend);
      config.m = config.k = config.n[0] = side;
      const auto body = [&](Overlap& object, const OverlapCall&, StreamHandle) {
        bytes = object.held_bytes();
        return "";
      };
      uint64_t most_bytes = 0;
      CHECK(on_fake_gpus(world, &products, config, body, testing::compiled_in_library(), {},
                         &most_bytes) == "");
      world.check_clean();
      return most_bytes;
    };
    const uint64_t small = most_for(64), large = most_for(kSide) - small;
    CHECK(large <= static_cast<uint64_t>(most * kMatrix));
    CHECK(large + kSmall > static_cast<uint64_t>(most * kMatrix));
    CHECK(bytes >= static_cast<uint64_t>(held * kMatrix));
    CHECK(bytes < static_cast<uint64_t>(held * kMatrix) + 4096);  // flags
  }
}

TEST_CASE("what follows a run that failed half-way comes after all that the run has begun") {
  constexpr Expected kAll[] = {
      // The plan and its end, the first product.
      {OverlapKind::allgather_gemm, "mscclc", 1 + 1 + 1},
      {OverlapKind::alltoall_gemm, "copy_engine", 1 + 1 + 1},
      // The plan, the first product and its flag.
      {OverlapKind::gemm_reducescatter, "mscclc", 1 + 1 + 1},
      {OverlapKind::gemm_allreduce, "copy_engine", 1 + 1 + 1},
  };
  for (const Expected& expected : kAll) {
    World world({.devices = 2});
    world.most_threads = 1024;
    OneProduct products(world);
    std::atomic<size_t> failed = 0;
    INFO(name(expected.kind) << " " << expected.backend);
    // The other rank may learn of it before its own run begins.
    const std::string said =
        on_fake_gpus(world, &products, gemm_on_gpus(expected.kind, expected.backend),
                     [&](Overlap& object, const OverlapCall& call, StreamHandle stream) {
                       Diagnostics d;
                       world.fake.begin_capture(cuda::abi::kCaptureModeRelaxed, stream);
                       const bool ran = object.run(call, stream, d);
                       const auto next = world.fake.launch(stream, 0, 1);
                       world.fake.end_capture();
                       if (ran || !products.has_failed_on(stream)) return ran ? "it ran" : "";
                       ++failed;
                       return launches_before(world, next) == expected.kernels ? "" : "not joined";
                     });
    INFO(said);
    CHECK(failed > 0);
    CHECK(said.find("no second product") != std::string::npos);
    CHECK(said.find("it ran") == std::string::npos);
    CHECK(said.find("not joined") == std::string::npos);
    world.check_clean();
  }
}

TEST_CASE("what was gathered is copied beside the last products, and before what follows the run") {
  constexpr Expected kAll[] = {
      // The plan, its end, four products, and two flags to wait for.
      {OverlapKind::allgather_gemm, "mscclc", 1 + 1 + 4 + 2},
      {OverlapKind::alltoall_gemm, "mscclc", 1 + 1 + 4 + 2},
      {OverlapKind::allgather_gemm, "copy_engine", 1 + 1 + 4 + 2},
      {OverlapKind::alltoall_gemm, "copy_engine", 1 + 1 + 4 + 2},
  };
  for (const Expected& expected : kAll) {
    World world({.devices = 2});
    world.most_threads = 1024;
    FakeProducts products(world);
    INFO(name(expected.kind) << " " << expected.backend);
    const auto body = [&](Overlap& object, const OverlapCall& call,
                          StreamHandle stream) -> std::string {
      Diagnostics d;
      OverlapCall returned = call;
      returned.gathered = static_cast<uint8_t*>(call.out[0]) + (1 << 20);
      world.fake.begin_capture(cuda::abi::kCaptureModeGlobal, stream);
      const bool ran = object.run(returned, stream, d);
      const auto next = world.fake.launch(stream, 0, 1);
      world.fake.end_capture();
      if (!ran) return testing::text(d);
      size_t own = 0, all = 0;
      for (const auto& before : nodes_before(world, next)) {
        const auto copies = world.fake.copy_nodes();
        if (std::ranges::find(copies, before) == copies.end()) continue;
        const size_t launches = launches_before(world, before);
        own += launches == 0;
        all += launches == 2;  // the plan and its end
      }
      const bool copies_own = std::string_view(expected.backend) == "copy_engine";
      return own == (copies_own ? 1 : 0) && all == 1 &&
                     launches_before(world, next) == expected.kernels
                 ? ""
                 : fmt::format("{} copies before the plan, {} after it", own, all);
    };
    CHECK(on_fake_gpus(world, &products, gemm_on_gpus(expected.kind, expected.backend), body) ==
          "");
    world.check_clean();
  }
}

TEST_CASE("what a product of zeros that failed has put on its stream ends before its memory") {
  World world({.devices = 2, .deferred = true});
  FailedProduct products(world);
  const std::string said =
      on_fake_gpus(world, &products, gemm_on_gpus(OverlapKind::allgather_gemm, "serial"),
                   [](Overlap&, const OverlapCall&, StreamHandle) { return "it was made"; });
  INFO(said);
  CHECK(said.find("rank 1: error: no product of zeros") != std::string::npos);
  CHECK(said.find("it was made") == std::string::npos);
  world.check_clean();
}

TEST_CASE("runs of auto are captured as graphs are the fastest, and eager as eager runs are") {
  World world({.devices = 2});
  world.most_threads = 1024;
  FakeProducts products(world);
  // Serial: the gather, one product. By copy engines: the plan and its end, a product for each
  // rank, a flag to wait for; a copy of the own part.
  constexpr uint32_t kEager = 1 + 1, kCaptured = 1 + 1 + 2 + 1;
  const OverlapConfig config{.kind = OverlapKind::allgather_gemm, .m = 1024, .k = 16, .n = {4096}};
  CHECK(on_fake_gpus(world, &products, config, captured_and_eager(world)) == "");
  world.check_clean();
  const auto captured = static_cast<size_t>(std::ranges::count_if(
      world.nodes, [](cuda::abi::GraphNode node) { return node != nullptr; }));
  CHECK(captured == 2 * kCaptured);
  CHECK(world.nodes.size() == 2 * (kCaptured + kEager + 2));  // products of zeros, of both ways
}

/// All that eager runs call of the driver, and kernels: of a run of each rank, once there have been
/// some.
std::string calls_of_a_run(World& world, const OverlapConfig& config) {
  constexpr const char* kCounted[] = {
#define FUNCTION(name, version, need, parameters) #name,
#include "runtime/devices/cuda/driver/functions.def"
#undef FUNCTION
  };
  constexpr uint64_t kFirst = 20, kRanks = 2;  // the first are marked without need
  constexpr uint64_t kRuns = 16;  // a plan whose program lies in memory has a mark every 8
  std::map<std::string, uint64_t> made;
  std::barrier together(kRanks, [&]() noexcept {
    for (const char* name : kCounted) made[name] = world.fake.calls(name) - made[name];
    made["kernels"] = world.nodes.size() - made["kernels"];
  });
  FakeProducts products(world);
  const auto body = [&](Overlap& object, const OverlapCall& call, StreamHandle stream) {
    Diagnostics d;
    bool ran = true;
    for (const uint64_t runs : {kFirst, kRuns}) {
      for (uint64_t i = 0; i < runs; ++i) ran = ran && object.run(call, stream, d);
      together.arrive_and_wait();
    }
    return ran ? "" : testing::text(d);
  };
  std::string text = on_fake_gpus(world, &products, config, body);
  world.check_clean();
  for (const auto& [name, count] : made) {
    if (count != 0)
      text += fmt::format("{} {}, ", name, static_cast<double>(count) / (kRuns * kRanks));
  }
  return text;
}

TEST_CASE("an eager run makes no more calls of the driver than it needs") {
  struct {
    OverlapKind kind;
    const char* backend;
    const char* calls;
  } constexpr kAll[] = {
      {OverlapKind::allgather_gemm, "serial",
       "CtxGetCurrent 5, StreamGetCaptureInfo 2, StreamGetId 2, kernels 3, "},
      {OverlapKind::allgather_gemm, "mscclc",
       "CtxGetCurrent 11.25, EventCreate 0.125, EventRecord 2.125, StreamGetCaptureInfo 2, "
       "StreamGetId 2, StreamIsCapturing 1, StreamWaitEvent 2, ThreadExchangeStreamCaptureMode "
       "0.25, kernels 5, "},
      {OverlapKind::allgather_gemm, "copy_engine",
       "CtxGetCurrent 14, EventQuery 1, EventRecord 3, MemcpyAsync 1, StreamGetCaptureInfo 2, "
       "StreamGetId 2, StreamIsCapturing 1, StreamWaitEvent 2, ThreadExchangeStreamCaptureMode 2, "
       "kernels 5, "},
      {OverlapKind::gemm_reducescatter, "copy_engine",
       "CtxGetCurrent 14, EventQuery 1, EventRecord 3, StreamGetCaptureInfo 2, StreamGetId 2, "
       "StreamIsCapturing 1, StreamWaitEvent 2, ThreadExchangeStreamCaptureMode 2, kernels 6, "},
  };
  for (const auto& [kind, backend, calls] : kAll) {
    World world({.devices = 2});
    world.most_threads = 1024;
    OverlapConfig config = gemm_on_gpus(kind, backend);
    config.chunks = 1;
    INFO(name(kind) << " " << backend);
    CHECK(calls_of_a_run(world, config) == calls);
  }
}

TEST_CASE(
    "the bias of f32 products of 8-bit floats comes after them, as cuBLASLt does not add it") {
  for (const bool after : {true, false}) {
    World world({.devices = 2});
    world.most_threads = 1024;
    FakeProducts products(world);
    OverlapConfig config = gemm_on_gpus(OverlapKind::allgather_gemm, "serial");
    config.a_dtype = config.b_dtype = Dtype::e4m3;
    config.out_dtype = after ? Dtype::f32 : Dtype::bf16;
    config.bias = true;
    const auto body = [](Overlap& object, const OverlapCall& call, StreamHandle stream) {
      Diagnostics d;
      OverlapCall biased = call;
      biased.bias = {static_cast<uint8_t*>(call.out[0]) + (1 << 20)};
      return object.run(biased, stream, d) ? "" : testing::text(d);
    };
    CHECK(on_fake_gpus(world, &products, config, body) == "");
    world.check_clean();
    // The gather, four products, and their biases; besides a product of zeros.
    CHECK(world.nodes.size() == 2 * (1 + 4 + (after ? 4 : 0) + 1));
    CHECK(products.biased == (after ? 0 : 2 * 5));
  }
}

TEST_CASE("without a provider of products an object is refused at all ranks") {
  World world({.devices = 2});
  const std::string said =
      on_fake_gpus(world, nullptr, gemm_on_gpus(OverlapKind::allgather_gemm, "serial"),
                   [](Overlap&, const OverlapCall&, StreamHandle) { return "it was made"; });
  INFO(said);
  CHECK(said ==
        "rank 0: error: the fake driver has no cuBLASLt\n\n"
        "rank 1: error: the fake driver has no cuBLASLt\n\n");
}

TEST_CASE("more blocks than leave room for GEMMs are refused with the numbers") {
  World world({.devices = 2});
  FakeProducts products(world);
  OverlapConfig config = gemm_on_gpus(OverlapKind::allgather_gemm, "mscclc");
  config.budget = 40;
  const std::string said =
      on_fake_gpus(world, &products, config,
                   [](Overlap&, const OverlapCall&, StreamHandle) { return "it was made"; });
  INFO(said);
  CHECK(said.find("the budget must be at most 33 of the 132 multiprocessors") != std::string::npos);
}

}  // namespace
}  // namespace mscclc
