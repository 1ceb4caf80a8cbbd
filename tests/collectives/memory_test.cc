// How much device memory a communicator takes when it has used the whole library, at all sizes up
// to 1 GiB: what ranks allocate is counted, and nothing is launched. The figures are those of
// docs/design/communicator.md, "Memory".
#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>

#include "runtime/api/builtin_library.h"
#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/host_device.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using Kind = CollectiveKind;
constexpr uint64_t kMiB = uint64_t{1} << 20;

/// What all ranks have allocated at a time.
struct Count {
  std::atomic<uint64_t> bytes{0}, allocations{0};
};

/// As a driver gives it: whole granules. Goes with the memory.
class CountedMemory final : public Memory {
 public:
  CountedMemory(std::unique_ptr<Memory> memory, std::shared_ptr<Count> count)
      : memory_(std::move(memory)), count_(std::move(count)) {
    data_ = memory_->data();
    bytes_ = memory_->bytes();
    count_->bytes += granules();
    ++count_->allocations;
  }
  ~CountedMemory() override {
    count_->bytes -= granules();
    --count_->allocations;
  }

 private:
  uint64_t granules() const { return (bytes_ + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB); }
  const std::unique_ptr<Memory> memory_;
  const std::shared_ptr<Count> count_;
};

/// A host device that counts. What is written to much memory at once is dropped: nothing runs, and
/// so nothing reads it, but the machine would have to have it.
class CountingDevice final : public testing::ForwardingDevice {
 public:
  CountingDevice(std::unique_ptr<Device> device, std::shared_ptr<Count> count)
      : ForwardingDevice(std::move(device)), count_(std::move(count)) {}
  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override {
    auto memory = ForwardingDevice::allocate(bytes, what, diagnostics);
    if (memory == nullptr) return nullptr;
    return std::make_unique<CountedMemory>(std::move(memory), count_);
  }
  bool write(void* to, const void* from, uint64_t bytes, Diagnostics& diagnostics) override {
    return bytes > kMiB / 2 || ForwardingDevice::write(to, from, bytes, diagnostics);
  }

 private:
  const std::shared_ptr<Count> count_;
};

const std::vector<Kind> kUsedKinds = {Kind::allreduce, Kind::allgather, Kind::reducescatter,
                                      Kind::alltoall,  Kind::broadcast, Kind::reduce,
                                      Kind::gather,    Kind::scatter,   Kind::sendrecv};

/// A call of about so many bytes. Pointers are never followed.
CollectiveCall call_of(Kind kind, Dtype dtype, uint64_t bytes, uint32_t ranks, bool in_place) {
  const bool rows = has_rows(kind);
  auto* const base = reinterpret_cast<uint8_t*>(uint64_t{1} << 40);
  return {.kind = kind,
          .count = bytes / (rows ? ranks : 1) / info(dtype).bytes,
          .dtype = dtype,
          .input = base,
          .output = in_place ? base : base + (uint64_t{1} << 39)};
}

struct Use {
  uint64_t bytes = 0, allocations = 0, plans = 0;
};

/// The most that a rank of so many takes.
Use use_of(uint32_t ranks, const std::vector<Kind>& kinds, const std::vector<Dtype>& dtypes,
           uint64_t most) {
  Diagnostics diagnostics;
  const std::shared_ptr<PlanProvider> library = builtin_library({}, diagnostics);
  REQUIRE(library != nullptr);
  std::vector<std::shared_ptr<Count>> counts(ranks);
  for (auto& count : counts) count = std::make_shared<Count>();
  std::vector<Use> uses(ranks);
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics said;
    const auto collectives = Collectives::create(communicator, library, {}, said);
    if (collectives == nullptr) return testing::text(said);
    for (const Kind kind : kinds) {
      for (const Dtype dtype : dtypes) {
        for (uint64_t bytes = 1024; bytes <= most; bytes *= 2) {
          for (const bool in_place : {false, true}) {
            if (in_place && kind != Kind::alltoall) continue;
            const CollectiveCall call = call_of(kind, dtype, bytes, ranks, in_place);
            if (!collectives->prepare(call, nullptr, said)) return testing::text(said);
          }
        }
      }
    }
    const Count& count = *counts[communicator.rank()];
    uses[communicator.rank()] = {count.bytes, count.allocations, collectives->use().plans};
    // Until all have looked: what a rank maps lives as long as it does.
    return communicator.bootstrap().barrier("look", said) ? "" : testing::text(said);
  };
  const auto open = [&](uint32_t rank, Diagnostics& said) -> std::unique_ptr<Device> {
    return std::make_unique<CountingDevice>(make_host_device(said), counts[rank]);
  };
  const testing::Timeouts patience(std::chrono::minutes(10), testing::kPatience);
  CHECK(testing::run_threads(ranks, body, patience, open) == "");
  return *std::max_element(uses.begin(), uses.end(),
                           [](const Use& a, const Use& b) { return a.bytes < b.bytes; });
}

void check(const char* what, const Use& use, uint64_t most) {
  const std::string text = fmt::format("{}: {} plans take {} MiB in {} allocations", what,
                                       use.plans, use.bytes / kMiB, use.allocations);
  WARN(text);
  CHECK(use.bytes <= most * kMiB);
}

TEST_CASE("device memory of the whole library at 8 ranks") {
  check("8 ranks, f32 and i32, up to 1 GiB",
        use_of(8, kUsedKinds, {Dtype::f32, Dtype::i32}, uint64_t{1} << 30), 560);
}

TEST_CASE("device memory of what a job of tensor parallel ranks uses") {
  check("8 ranks, allreduce and allgather of f32 up to 1 GiB",
        use_of(8, {Kind::allreduce, Kind::allgather}, {Dtype::f32}, uint64_t{1} << 30), 200);
}

}  // namespace
}  // namespace mscclc
