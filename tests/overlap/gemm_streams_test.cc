// Objects on several streams, at once and in turn; and which backend an object gets.
#include <algorithm>
#include <catch2/catch.hpp>

#include "runtime/core/overlap/choice.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/undrained_device.h"
#include "tests/overlap/gemm_rank.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::GemmRank;
using testing::run_threads;

/// Objects of several shapes, each on another stream in each round. What was wrong; "": nothing.
std::string run_on_streams(Communicator& communicator, const char* backend) {
  constexpr size_t kObjects = 5, kRounds = 4;  // more objects than run at once
  constexpr uint64_t kColumns = 4;             // whole pieces of copy engines
  constexpr size_t kPlace = 2048;              // bytes of a round
  GemmRank rank(communicator);
  rank.lend_collectives();
  Diagnostics diagnostics;
  Device& device = communicator.device();
  const auto rows_of = [](size_t object) { return 6 * (object + 1); };
  std::vector<std::unique_ptr<Overlap>> objects;
  std::vector<StreamHandle> streams;
  std::vector<std::unique_ptr<Memory>> memory;
  for (size_t i = 0; i < kObjects; ++i) {
    const OverlapConfig config{
        .kind = i % 2 == 0 ? OverlapKind::gemm_allreduce : OverlapKind::gemm_reducescatter,
        .m = rows_of(i),
        .k = 1,
        .n = {kColumns},
        .a_dtype = Dtype::f32,
        .b_dtype = Dtype::f32,
        .out_dtype = Dtype::f32,
        .backend = backend};
    objects.push_back(rank.make(config, diagnostics));
    streams.push_back(device.create_stream(diagnostics));
    memory.push_back(device.allocate(kRounds * kPlace, "matrices", diagnostics));
    if (objects.back() == nullptr) return testing::text(diagnostics);
  }
  const auto at = [&](size_t object, size_t round) {
    return reinterpret_cast<float*>(memory[object]->data() + round * kPlace);
  };
  for (size_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kObjects; ++i) {
      float *const a = at(i, round), *const b = a + 64, *const out = a + 128;
      for (size_t row = 0; row < rows_of(i); ++row) a[row] = static_cast<float>(row + round * 100);
      std::fill_n(b, kColumns, static_cast<float>(communicator.rank() + 1));
      const StreamHandle stream = streams[(i + round) % kObjects];
      if (!objects[i]->run({.a = a, .b = {b}, .out = {out}}, stream, diagnostics)) {
        return testing::text(diagnostics);
      }
    }
  }
  for (const StreamHandle stream : streams) {
    if (!communicator.synchronize(stream, diagnostics)) return testing::text(diagnostics);
  }
  for (size_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kObjects; ++i) {
      const size_t part = rows_of(i) / 3;
      const size_t first = i % 2 == 0 ? 0 : communicator.rank() * part;
      const size_t count = (i % 2 == 0 ? rows_of(i) : part) * kColumns;
      for (size_t e = 0; e < count; ++e) {
        const size_t row = first + e / kColumns;
        if (at(i, round)[128 + e] != static_cast<float>(6 * (row + round * 100))) {
          return "a wrong sum";
        }
      }
    }
  }
  objects.clear();
  for (const StreamHandle stream : streams) device.destroy_stream(stream);
  return "";
}

TEST_CASE("several shapes are in flight on several streams, and one object on several") {
  for (const char* backend : {"mscclc", "copy_engine", "serial", "nccl"}) {
    INFO(backend);
    CHECK(run_threads(3, [&](Communicator& communicator) {
            return run_on_streams(communicator, backend);
          }) == "");
  }
}

TEST_CASE("objects and streams that are in flight when a run times out can go") {
  constexpr OverlapKind kKinds[] = {OverlapKind::gemm_reducescatter, OverlapKind::gemm_allreduce,
                                    OverlapKind::allgather_gemm, OverlapKind::alltoall_gemm};
  constexpr uint64_t kRows = 8, kColumns = 64;
  // Rank 1 stops before the last run of this object; ranks wait for their streams, or do not.
  const auto said_of = [&](OverlapKind missing, bool waits, int factor) {
    std::string said[2];
    const std::string ran = run_threads(
        2,
        [&](Communicator& communicator) -> std::string {
          GemmRank rank(communicator);
          Diagnostics diagnostics;
          Device& device = communicator.device();
          const auto memory = device.allocate(kColumns * kColumns * 4, "matrices", diagnostics);
          auto* const a = reinterpret_cast<float*>(memory->data());
          std::vector<std::unique_ptr<Overlap>> objects;
          std::vector<StreamHandle> streams;
          std::vector<std::unique_ptr<Memory>> outs;
          for (const OverlapKind kind : kKinds) {
            objects.push_back(rank.make({.kind = kind,
                                         .m = kRows,
                                         .k = kColumns,
                                         .n = {kColumns},
                                         .a_dtype = Dtype::f32,
                                         .b_dtype = Dtype::f32,
                                         .out_dtype = Dtype::f32,
                                         .backend = "mscclc"},
                                        diagnostics));
            streams.push_back(device.create_stream(diagnostics));
            outs.push_back(device.allocate(kRows * kColumns * 4, "out", diagnostics));
            if (objects.back() == nullptr) return testing::text(diagnostics);
          }
          const auto run = [&](size_t i) {
            return objects[i]->run({.a = a, .b = {a}, .out = {outs[i]->data()}}, streams[i],
                                   diagnostics);
          };
          bool ended = true, stopped = false;
          for (size_t round = 0; round < 3; ++round) {
            for (size_t i = 0; i < objects.size(); ++i) {
              stopped |= round == 2 && kKinds[i] == missing && communicator.rank() == 1;
              ended = ended && (stopped || run(i));
            }
          }
          for (size_t i = 0; waits && i < streams.size(); ++i) {
            ended = communicator.synchronize(streams[i], diagnostics) && ended;
          }
          objects.clear();
          for (const StreamHandle stream : streams) device.destroy_stream(stream);
          said[communicator.rank()] = ended ? "it ended" : testing::text(diagnostics);
          return "";
        },
        {testing::kPatience, factor * std::chrono::milliseconds(400)});
    UNSCOPED_INFO(ran << said[0]);
    return ran.empty() ? said[0] : "";
  };
  for (const OverlapKind kind : kKinds) {
    INFO(name(kind));
    const auto is_right = [&](int factor) {  // all that comes is to come within that
      const std::string said = said_of(kind, true, factor);
      return said.find("waited longer than") != said.npos && said_of(kind, false, factor) != "";
    };
    CHECK(testing::right_in_longer_times(is_right));
  }
}

TEST_CASE("what was measured decides where nothing is asked for, and says so") {
  using overlap::RunMode;
  constexpr auto kGather = OverlapKind::allgather_gemm;
  constexpr auto kEager = RunMode::eager;
  const overlap::MeasuredChoice rows[] = {
      {kGather, kEager, 2, Dtype::bf16, 1024, 4096, 100, 1000000000, "mscclc", 4, 16},
      {kGather, RunMode::captured, 2, Dtype::bf16, 1024, 4096, 100, 1000000000, "copy_engine", 1,
       1},
      {kGather, kEager, 2, Dtype::bf16, 0, 1023, 0, 1000000000, "nccl", 0, 0},
      {OverlapKind::gemm_reducescatter, kEager, 2, Dtype::bf16, 0, 4096, 0, 1000000000,
       "copy_engine", 4, 0},
      {kGather, kEager, 2, Dtype::f16, 8192, 8192, 0, 1000000000, "mscclc", 1, 16},
      {kGather, kEager, 2, Dtype::e4m3, 0, 4096, 0, 1000000000, "mscclc", 8, 16}};
  OverlapConfig config{.kind = OverlapKind::allgather_gemm, .m = 2048, .k = 4096, .n = {4096}};
  Diagnostics diagnostics;
  bool one_queue = false;
  RunMode mode = kEager;
  uint32_t multiprocessors = 132;
  const auto chosen = [&](uint32_t ranks) {
    const auto made = overlap::choose(config,
                                      {.ranks = ranks,
                                       .mode = mode,
                                       .multiprocessors = multiprocessors,
                                       .nccl = "it is not",
                                       .one_queue = one_queue,
                                       .rows = rows},
                                      diagnostics);
    REQUIRE(made);
    return made->backend + ", " + std::to_string(made->chunks) + ", " +
           std::to_string(made->budget) + ": " + made->why;
  };
  CHECK(chosen(2) ==
        "mscclc, 4, 16: measured for 2 ranks, bf16, 2048 rows and 4096 flops a byte: 1024 to 4096 "
        "rows, 100 to 1000000000 flops a byte");
  // Types of as many bytes serve where there is no row of A's own.
  config.a_dtype = Dtype::f16;
  CHECK(chosen(2) ==
        "mscclc, 4, 16: measured with bf16 for 2 ranks, f16, 2048 rows and 4096 flops a byte: "
        "1024 to 4096 rows, 100 to 1000000000 flops a byte");
  config.m = 8192;
  CHECK(chosen(2).find("mscclc, 1, 16: measured for 2 ranks, f16, ") == 0);
  config.a_dtype = Dtype::bf16;
  CHECK(chosen(2).find("serial, 0, 0: nothing was measured for 2 ranks, bf16, ") == 0);
  config.m = 2048;
  config.a_dtype = Dtype::e5m2;
  CHECK(chosen(2).find("mscclc, 8, 16: measured with e4m3 for 2 ranks, e5m2, ") == 0);
  config.a_dtype = Dtype::f32;
  CHECK(chosen(2).find("serial, 0, 0: nothing was measured for 2 ranks, f32, ") == 0);
  config.a_dtype = Dtype::bf16;
  mode = RunMode::captured;
  CHECK(chosen(2) ==
        "copy_engine, 1, 1: measured for 2 ranks, bf16, 2048 rows and 4096 flops a byte, in "
        "graphs: 1024 to 4096 rows, 100 to 1000000000 flops a byte");
  mode = kEager;
  CHECK(chosen(3) ==
        "serial, 0, 0: nothing was measured for 3 ranks, bf16, 2048 rows and 4096 flops a byte");
  config.chunks = 16;
  CHECK(chosen(2) ==
        "serial, 16, 32: mscclc was measured for 2 ranks, bf16, 2048 rows and 4096 flops a byte, "
        "but 16 chunks need 32 thread blocks, a multiprocessor each; budget = 16");
  config.chunks = 0;
  multiprocessors = 28;
  CHECK(chosen(2) ==
        "serial, 0, 0: mscclc was measured for 2 ranks, bf16, 2048 rows and 4096 flops a byte, but "
        "the budget must be at most 7 of the 28 multiprocessors, as 3 runs and their GEMMs may "
        "need room at once; budget = 16");
  multiprocessors = 132;
  one_queue = true;
  CHECK(chosen(2) ==
        "serial, 0, 0: mscclc was measured for 2 ranks, bf16, 2048 rows and 4096 flops a byte, but "
        "CUDA_DEVICE_MAX_CONNECTIONS is 1: nothing would overlap");
  config.m = 512;
  CHECK(chosen(2) ==
        "serial, 0, 0: nccl was measured for 2 ranks, bf16, 512 rows and 4096 flops a byte, but it "
        "is not");
  config.backend = "mscclc";
  CHECK(chosen(2) == "mscclc, 2, 16: asked for by name");
  config.kind = OverlapKind::gemm_reducescatter;
  config.backend = "auto";
  CHECK(chosen(2) ==
        "copy_engine, 4, 1: measured for 2 ranks, bf16, 512 rows and 4096 flops a byte: 0 to 4096 "
        "rows, 0 to 1000000000 flops a byte");
  config.n = {1};
  config.m = 12;
  CHECK(chosen(2) ==
        "serial, 0, 0: copy_engine was measured for 2 ranks, bf16, 12 rows and 4096 flops a byte, "
        "but copy engines need m to be a multiple of 2, and the message to be 2 x 4 chunks of a "
        "multiple of 16 bytes; m = 12, and the message has 24 bytes");
  config.kind = OverlapKind::allgather_gemm;
  config.backend = "mscclc";
  config.budget = 34;
  CHECK(!overlap::choose(config, {.ranks = 2, .multiprocessors = 132, .rows = rows}, diagnostics));
  CHECK(diagnostics.all().front().message ==
        "allgather_gemm: the budget must be at most 33 of the 132 multiprocessors, as 3 runs and "
        "their GEMMs may need room at once; budget = 34");
  config.backend = "copy_engine";
  config.chunks = 64;
  Diagnostics of_flags;
  CHECK(!overlap::choose(config, {.ranks = 72, .multiprocessors = 132, .rows = rows}, of_flags));
  CHECK(of_flags.all().front().message ==
        "allgather_gemm: chunks must be at most 56 with 72 ranks, as a plan has 4096 flags at "
        "most, one for each chunk of each rank; chunks = 64");
}

TEST_CASE(
    "one's own rows decide before those that are compiled in, and the choice names their file") {
  using overlap::RunMode;
  OverlapConfig config{.kind = OverlapKind::allgather_gemm, .m = 8192, .k = 4096, .n = {4096}};
  const auto chosen = [&](std::span<const MeasuredTable> own, RunMode mode) {
    Diagnostics diagnostics;
    const auto made = overlap::choose(
        config, {.ranks = 2, .mode = mode, .nccl = "it is not", .own = own}, diagnostics);
    return made ? overlap::text_of(*made) + ": " + made->why : testing::text(diagnostics);
  };
  overlap::MeasuredChoice row{OverlapKind::allgather_gemm,
                              RunMode::captured,
                              2,
                              Dtype::bf16,
                              8192,
                              8192,
                              4096,
                              4096,
                              "mscclc",
                              4,
                              16};
  overlap::MeasuredChoice serial = row, other = row;
  serial.backend = "serial", serial.chunks = serial.budget = 0;
  other.backend = "nccl", other.chunks = other.budget = 0, other.mode = RunMode::eager;
  const MeasuredTable first{"a/overlap.json", {row}}, second{"b/overlap.json", {serial, other}};
  const MeasuredTable both[] = {first, second}, turned[] = {second, first};
  CHECK(chosen({}, RunMode::captured).find("copy_engine, chunks 1, budget 1: measured for") == 0);
  CHECK(chosen({}, RunMode::captured).find("overlap.json") == std::string::npos);
  CHECK(chosen(both, RunMode::captured) ==
        "mscclc, chunks 4, budget 16: measured for 2 ranks, bf16, 8192 rows and 4096 flops a byte, "
        "in graphs: 8192 to 8192 rows, 4096 to 4096 flops a byte, by 'a/overlap.json'");
  CHECK(chosen(turned, RunMode::captured) ==
        "serial: measured for 2 ranks, bf16, 8192 rows and 4096 flops a byte, in graphs: 8192 to "
        "8192 rows, 4096 to 4096 flops a byte, by 'b/overlap.json'");
  CHECK(chosen(both, RunMode::eager) ==
        "serial: nccl was measured for 2 ranks, bf16, 8192 rows and 4096 flops a byte, by "
        "'b/overlap.json', but it is not");
  config.m = 4096;  // of which they have no row
  CHECK(chosen(both, RunMode::captured).find("copy_engine, chunks 1, budget 1: measured for") == 0);
}

TEST_CASE(
    "eager runs of short layers are serial, of longer ones also where the caller multiplies") {
  const auto chosen = [](OverlapKind kind, uint64_t rows, uint64_t flops_a_byte, bool given_gemm) {
    OverlapConfig config{.kind = kind, .m = rows, .k = 4096, .n = {flops_a_byte}};
    if (overlap::info(kind).sums) config.k = flops_a_byte, config.n = {4096};
    Diagnostics diagnostics;
    const auto made = overlap::choose(config, {.ranks = 2, .given_gemm = given_gemm}, diagnostics);
    return made ? made->backend : testing::text(diagnostics);
  };
  constexpr auto kGather = OverlapKind::allgather_gemm, kSum = OverlapKind::gemm_reducescatter;
  for (const bool given_gemm : {false, true}) {
    CHECK(chosen(kGather, 2048, 3072, given_gemm) == "serial");
    CHECK(chosen(kGather, 4096, 3072, given_gemm) == "copy_engine");
    CHECK(chosen(kGather, 2048, 5120, given_gemm) == "copy_engine");
    CHECK(chosen(kSum, 2048, 2048, given_gemm) == "serial");
    CHECK(chosen(kSum, 8192, 2048, given_gemm) == (given_gemm ? "serial" : "copy_engine"));
    CHECK(chosen(kSum, 8192, 4096, given_gemm) == "copy_engine");
    CHECK(chosen(OverlapKind::alltoall_gemm, 2048, 28672, given_gemm) == "copy_engine");
    CHECK(chosen(OverlapKind::alltoall_gemm, 2048, 14336, given_gemm) == "serial");
  }
}

/// The host's, which says that runs are captured when the test wants it.
class CapturingDevice final : public testing::ForwardingDevice {
 public:
  CapturingDevice(std::unique_ptr<Device> device, const std::atomic<bool>& captures)
      : ForwardingDevice(std::move(device)), captures_(captures) {}
  bool is_capturing(StreamHandle) override { return captures_; }

 private:
  const std::atomic<bool>& captures_;
};

TEST_CASE("where graphs are faster by another backend, an object has both, and runs them in turn") {
  // A shape for which the table has serial, and copy_engine in graphs.
  for (const OverlapKind kind : {OverlapKind::allgather_gemm, OverlapKind::gemm_reducescatter}) {
    const bool gathers = kind == OverlapKind::allgather_gemm;
    testing::GemmRuns runs{.config = {.kind = kind, .m = 1024, .k = gathers ? 2u : 4096u}};
    runs.config.n = {gathers ? uint64_t{3072} : 2};
    runs.config.bias = true;
    std::atomic<bool> captures[2] = {};
    const auto open = [&](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
      return std::make_unique<CapturingDevice>(testing::open_host(rank, diagnostics),
                                               captures[rank]);
    };
    const auto body = [&](Communicator& communicator) -> std::string {
      GemmRank rank(communicator);
      Diagnostics diagnostics;
      const auto object = rank.make(runs.config, diagnostics);
      if (object == nullptr) return testing::text(diagnostics);
      const OverlapChoice* const in_graphs = object->choice_in_graphs();
      if (object->choice().backend != "serial") return "serial is not for eager runs";
      if (in_graphs == nullptr || in_graphs->backend != "copy_engine") return "no other for graphs";
      for (uint32_t run = 0; run < 5; ++run) {
        captures[communicator.rank()] = run % 2 != 0;
        const std::string said = rank.run_once(*object, runs, run, nullptr, diagnostics);
        if (!said.empty()) return said + testing::text(diagnostics);
      }
      return "";
    };
    CHECK(run_threads(2, body, {}, open) == "");
  }
}

TEST_CASE("memory of a GEMM stays where the device does not wait for its runs") {
  for (const bool drains : {true, false}) {
    const auto left = std::make_shared<std::atomic<int>>(0);
    const auto open = [&](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
      auto device = testing::open_host(rank, diagnostics);
      if (drains) return device;
      return std::make_unique<testing::UndrainedDevice>(std::move(device), "a GEMM's workspace",
                                                        left);
    };
    const testing::GemmRuns runs{.config = {.kind = OverlapKind::gemm_reducescatter,
                                            .m = 4,
                                            .k = 2,
                                            .n = {2},
                                            .backend = "mscclc"}};
    const auto body = [&](Communicator& communicator) { return GemmRank(communicator).run(runs); };
    CHECK(run_threads(2, body, {}, open) == "");
    CHECK(*left == (drains ? 0 : 2));
  }
}

}  // namespace
}  // namespace mscclc
