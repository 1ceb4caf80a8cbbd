// What objects and runs refuse: each error says what is required and what was given, and where
// ranks differ, all of them get both values.
#include <catch2/catch.hpp>

#include "runtime/choice/overlap/measured.h"
#include "runtime/core/overlap/agree.h"
#include "runtime/core/overlap/choice.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/overlap/gemm_rank.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::GemmRank;
using testing::run_threads;

/// A small product that is right.
OverlapConfig small_gemm(OverlapKind kind = OverlapKind::allgather_gemm) {
  return {.kind = kind, .m = 8, .k = 4, .n = {2}};
}

/// What two ranks say of a config; `change` gets the rank. `gemm`: who multiplies, or nullptr.
using Change = std::function<void(OverlapConfig&, uint32_t rank)>;
std::string said_of(const Change& change, GemmProvider* gemm = nullptr) {
  std::vector<std::string> said(2);
  run_threads(2, [&](Communicator& communicator) -> std::string {
    GemmRank rank(communicator);
    rank.options().gemm = gemm;
    OverlapConfig config = small_gemm();
    change(config, communicator.rank());
    Diagnostics diagnostics;
    const auto made = rank.make(config, diagnostics);
    for (const Diagnostic& d : diagnostics.all()) {
      said[communicator.rank()] += d.code + ": " + d.message + "\n";
    }
    if (made != nullptr) said[communicator.rank()] += "made";
    return "";
  });
  return said[0] == said[1] ? said[0] : "rank 0: " + said[0] + "rank 1: " + said[1];
}

TEST_CASE("sizes that do not fit are refused with the numbers, before anything is launched") {
  CHECK(said_of([](OverlapConfig& c, uint32_t) { c.m = 9; }) ==
        "bad-call: allgather_gemm: m must be a multiple of the 2 ranks, as each has as many rows; "
        "m = 9: pad it to 10\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) {
          c.kind = OverlapKind::gemm_reducescatter;
          c.m = 9;
        }) ==
        "bad-call: gemm_reducescatter: m must be a multiple of the 2 ranks, as each has as many "
        "rows; m = 9: pad it to 10\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) { c.k = 0; }) ==
        "bad-call: allgather_gemm: sizes must not be 0; m = 8, k = 0, n = 2\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) { c.n = {}; }) ==
        "bad-call: allgather_gemm: it takes 1 to 64 B, and was given 0\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) {
          c.kind = OverlapKind::gemm_allreduce;
          c.n = {1, 2};
        }) == "bad-call: gemm_allreduce: it takes one B, and was given 2\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) { c.n = {uint64_t{1} << 44}; }) ==
        "bad-call: allgather_gemm: a matrix must have less than 70368744177664 bytes; m = 8, k = "
        "4, n = 17592186044416\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) { c.chunks = 65; }) ==
        "bad-call: allgather_gemm: chunks must be 0 to 64; chunks = 65\n");
}

/// Asks for a workspace, and makes nothing.
class RoomyGemm final : public GemmProvider {
 public:
  explicit RoomyGemm(uint64_t bytes) : bytes_(bytes) {}
  uint64_t workspace_bytes() const override { return bytes_; }
  bool run(const Gemm& gemm, StreamHandle, Diagnostics&) override {
    workspace = reinterpret_cast<uintptr_t>(gemm.workspace);
    return true;
  }
  uintptr_t workspace = 0;

 private:
  const uint64_t bytes_;
};

TEST_CASE("a workspace of GEMMs that no memory has is refused with the number") {
  for (const uint64_t bytes : {~uint64_t{0}, 0 - uint64_t{0x900}, (uint64_t{1} << 46) + 1}) {
    RoomyGemm gemm(bytes);
    CHECK(said_of([](OverlapConfig& c, uint32_t) { c.kind = OverlapKind::gemm_reducescatter; },
                  &gemm) ==
          "bad-call: gemm_reducescatter: a GEMM's workspace must have at most 70368744177664 "
          "bytes; gemm_workspace_bytes = " +
              std::to_string(bytes) + "\n");
  }
}

TEST_CASE("GEMMs get a workspace at a multiple of 256 bytes, wherever the caller's begins") {
  RoomyGemm gemm(100);
  CHECK(run_threads(1, [&](Communicator& communicator) -> std::string {
          GemmRank rank(communicator);
          rank.options().gemm = &gemm;
          OverlapConfig config = small_gemm();
          config.own_workspace = false;
          Diagnostics diagnostics;
          const auto object = rank.make(config, diagnostics);
          const auto memory = communicator.device().allocate(4096, "matrices", diagnostics);
          uint8_t* const at = memory->data();
          const OverlapCall call{.a = at,
                                 .b = {at + 1024},
                                 .out = {at + 2048},
                                 .workspace = at + 3088,
                                 .workspace_bytes = object->workspace_bytes()};
          const bool ran = object->run(call, rank.stream(), diagnostics) &&
                           communicator.synchronize(rank.stream(), diagnostics);
          const auto begin = reinterpret_cast<uintptr_t>(call.workspace);
          const bool inside =
              gemm.workspace >= begin && gemm.workspace + 256 <= begin + call.workspace_bytes;
          return ran && inside && gemm.workspace % 256 == 0 ? ""
                                                            : testing::text(diagnostics) + "no";
        }) == "");
}

/// The host's, which has no memory for some purpose.
class LackingDevice final : public testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override {
    return lacks(what, diagnostics) ? nullptr
                                    : ForwardingDevice::allocate(bytes, what, diagnostics);
  }
  std::unique_ptr<Memory> allocate_visible(uint64_t bytes, const std::string& what,
                                           Diagnostics& diagnostics) override {
    return lacks(what, diagnostics) ? nullptr
                                    : ForwardingDevice::allocate_visible(bytes, what, diagnostics);
  }
  std::string lacking = "";

 private:
  bool lacks(const std::string& what, Diagnostics& diagnostics) const {
    if (what != lacking) return false;
    diagnostics.error("out-of-memory", {}, "there is none for " + what);
    return true;
  }
};

TEST_CASE("a rank that lacks memory for an object says so to all, and ends nothing else") {
  const OverlapConfig all[] = {
      {.kind = OverlapKind::allgather_gemm, .m = 8, .k = 4, .n = {2}, .backend = "serial"},
      {.kind = OverlapKind::gemm_allreduce, .m = 8, .k = 4, .n = {8}, .backend = "serial"},
      {.kind = OverlapKind::gemm_allreduce, .m = 8, .k = 4, .n = {8}, .backend = "copy_engine"}};
  const auto open = [](uint32_t rank, Diagnostics& diagnostics) {
    return std::make_unique<LackingDevice>(testing::open_host(rank, diagnostics));
  };
  // Before ranks agree, and while the library's plan is loaded.
  for (const char* what : {"a GEMM's first call", "reports of thread blocks"}) {
    for (const OverlapConfig& config : all) {
      INFO(config.backend << " " << name(config.kind) << " without " << what);
      CHECK(run_threads(
                2,
                [&](Communicator& communicator) -> std::string {
                  GemmRank rank(communicator);
                  auto& device = static_cast<LackingDevice&>(communicator.device());
                  if (communicator.rank() == 1) device.lacking = what;
                  Diagnostics said, none;
                  if (rank.make(config, said) != nullptr) return "it was made";
                  if (testing::text(said).find(what) == std::string::npos) return "not said why";
                  device.lacking = "";
                  return rank.make(config, none) != nullptr ? "" : testing::text(none);
                },
                {}, open) == "");
    }
  }
}

TEST_CASE("copy engines are refused chunks that are not whole pieces, with the numbers") {
  CHECK(said_of([](OverlapConfig& c, uint32_t) {
          c.kind = OverlapKind::gemm_reducescatter;
          c.backend = "copy_engine";
        }) ==
        "bad-call: gemm_reducescatter: copy engines need m to be a multiple of 2, and the message "
        "to be 2 x 2 chunks of a multiple of 16 bytes; m = 8, and the message has 32 bytes\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) { c.backend = "copy_engine"; }) == "made");
}

TEST_CASE("types that do not go together are refused with all three") {
  CHECK(
      said_of([](OverlapConfig& c, uint32_t) { c.b_dtype = Dtype::f16; }) ==
      "bad-call: allgather_gemm: A and B must both be f32, f16 or bf16, the same; or each e4m3 or "
      "e5m2; A is bf16, B f16, out bf16\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) { c.out_dtype = Dtype::e4m3; }) ==
        "bad-call: allgather_gemm: out must be f32, f16 or bf16; A is bf16, B bf16, out e4m3\n");
}

TEST_CASE("backends are chosen by name, and a wrong one is refused with a list, or with why") {
  CHECK(said_of([](OverlapConfig& c, uint32_t) { c.backend = "fast"; }) ==
        "bad-call: allgather_gemm: there is no backend 'fast'; there are auto, mscclc, "
        "copy_engine, serial, "
        "nccl, cublasmp\n");
  const std::string none = said_of([](OverlapConfig& c, uint32_t) { c.backend = "cublasmp"; });
  CHECK(none.starts_with("bad-call: allgather_gemm: the backend 'cublasmp' is not "));
  CHECK(
      said_of([](OverlapConfig& c, uint32_t) { c.backend = "nccl"; }) ==
      "bad-call: allgather_gemm: the backend 'nccl' is not there: this program does not say where "
      "it is\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) { c.backend = "auto"; }) == "made");
}

TEST_CASE("a backend that does not keep the order of sums is refused with both") {
  CHECK(said_of([](OverlapConfig& c, uint32_t) {
          c.kind = OverlapKind::gemm_allreduce;
          c.backend = "mscclc";
          c.order = SumOrder::exact;
        }) ==
        "bad-call: gemm_allreduce: the order must be 'exact', which the backend 'mscclc' does not "
        "keep: its own is 'ranks'; 'serial' keeps all\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t) {
          c.kind = OverlapKind::gemm_allreduce;
          c.order = SumOrder::exact;
        }) == "made");
}

TEST_CASE("a budget that has no room for the plan's blocks is refused with both") {
  CHECK(said_of([](OverlapConfig& c, uint32_t) {
          c.backend = "mscclc";
          c.chunks = 4;
          c.budget = 7;
        }) ==
        "bad-call: allgather_gemm: 4 chunks need 8 thread blocks, a multiprocessor each; budget = "
        "7\n");
}

TEST_CASE("a peer that makes another GEMM is an error with both values at every rank") {
  CHECK(said_of([](OverlapConfig& c, uint32_t rank) { c.k = 4 + rank; }) ==
        "options-differ: ranks make different GEMMs: 'k' is 4 at rank 0 and 5 at rank 1\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t rank) {
          c.n = {2 + uint64_t{rank}, 3};
        }) ==
        "options-differ: ranks make different GEMMs: 'n' is 2, 3 at rank 0 and 3, 3 at rank 1\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t rank) {
          if (rank == 1) c.kind = OverlapKind::gemm_allreduce;
        }) ==
        "options-differ: ranks make different GEMMs: 'kind' is allgather_gemm at rank 0 and "
        "gemm_allreduce at rank 1\n");
  CHECK(said_of([](OverlapConfig& c, uint32_t rank) {
          if (rank == 1) c.agreed = "reduce_op=avg";
        }) ==
        "options-differ: ranks make different GEMMs: 'agreed' is '' at rank 0 and 'reduce_op=avg' "
        "at rank 1\n");
  // Wrong here and right there: the rank that is wrong says so as well.
  CHECK(
      said_of([](OverlapConfig& c, uint32_t rank) { c.m = 8 + rank; }) ==
      "rank 0: options-differ: ranks make different GEMMs: 'm' is 8 at rank 0 and 9 at rank 1\n"
      "rank 1: bad-call: allgather_gemm: m must be a multiple of the 2 ranks, as each has as many "
      "rows; m = 9: pad it to 10\n"
      "options-differ: ranks make different GEMMs: 'm' is 8 at rank 0 and 9 at rank 1\n");
}

TEST_CASE("how B lies is each rank's own, except where another library has one product of all") {
  for (const char* backend : {"auto", "serial", "mscclc", "copy_engine"}) {
    CHECK(said_of([&](OverlapConfig& c, uint32_t rank) {
            c.backend = backend;
            c.b_transposed = rank == 1;
          }) == "made");
  }
  CHECK(said_of([](OverlapConfig& c, uint32_t rank) {
          c.backend = "cublasmp";
          c.b_transposed = rank == 1;
        })
            .ends_with("options-differ: ranks make different GEMMs: 'b_transposed' is 0 at rank 0 "
                       "and 1 at rank 1\n"));
}

TEST_CASE("ranks that take different backends are known, and one that has found none says why") {
  const auto said_by_first = [](const std::string& taken, const std::string& why_not) {
    std::string said;
    run_threads(2, [&](Communicator& communicator) -> std::string {
      const bool first = communicator.rank() == 0;
      Diagnostics diagnostics, problems;
      if (!first && !why_not.empty()) problems.error("bad-call", {}, why_not);
      (void)overlap::agree(communicator.bootstrap(), {{"backend", first ? "serial" : taken}},
                           problems, diagnostics);
      if (first) said = testing::text(diagnostics);
      return "";
    });
    return said;
  };
  CHECK(said_by_first("mscclc", "").find("'backend' is serial at rank 0 and mscclc at rank 1") !=
        std::string::npos);
  CHECK(said_by_first("", "no GEMM").find("rank 1 cannot do its part: no GEMM") !=
        std::string::npos);
}

/// What two ranks say of an object of `auto`, each with a table of the row that it has, or none.
std::string said_with_rows(const std::optional<overlap::MeasuredChoice> (&rows)[2]) {
  std::vector<std::string> said(2);
  run_threads(2, [&](Communicator& communicator) -> std::string {
    GemmRank rank(communicator);
    const auto& row = rows[communicator.rank()];
    if (row) {
      rank.options().measured =
          std::make_shared<MeasuredTables>(MeasuredTables{{{"mine/overlap.json", {*row}}}});
    }
    Diagnostics diagnostics;
    const auto made = rank.make(small_gemm(), diagnostics);
    said[communicator.rank()] = made == nullptr
                                    ? testing::text(diagnostics)
                                    : overlap::text_of(made->choice()) + ": " + made->choice().why;
    return "";
  });
  return said[0] == said[1] ? said[0] : "rank 0: " + said[0] + "rank 1: " + said[1];
}

TEST_CASE("ranks whose own rows differ are known to all, with both choices and a remedy") {
  const overlap::MeasuredChoice row{OverlapKind::allgather_gemm,
                                    overlap::RunMode::eager,
                                    2,
                                    Dtype::bf16,
                                    8,
                                    8,
                                    0,
                                    100,
                                    "copy_engine",
                                    2,
                                    1};
  overlap::MeasuredChoice more_chunks = row, more_budget = row, in_graphs = row;
  more_chunks.chunks = 4;
  more_budget.budget = 2;
  in_graphs.mode = overlap::RunMode::captured;
  CHECK(said_with_rows({row, row}) ==
        "copy_engine, chunks 2, budget 1: measured for 2 ranks, bf16, 8 rows and 2 flops a byte: 8 "
        "to 8 rows, 0 to 100 flops a byte, by 'mine/overlap.json'");
  const std::string differ = "ranks make different GEMMs: 'backend that is taken";
  const auto said = [&](const std::string& what) {
    return "error: " + differ + what +
           "\nnote: ranks must have the same overlap.json in the folders of MSCCLC_PLAN_PATH, the "
           "same libraries, and the same CUDA_DEVICE_MAX_CONNECTIONS\n";
  };
  CHECK(said_with_rows({row, std::nullopt}) ==
        said("' is copy_engine, chunks 2, budget 1 at rank 0 and serial at rank 1"));
  CHECK(said_with_rows({row, more_chunks}) ==
        said("' is copy_engine, chunks 2, budget 1 at rank 0 and copy_engine, chunks 4, budget 1 "
             "at rank 1"));
  CHECK(said_with_rows({more_budget, row}) ==
        said("' is copy_engine, chunks 2, budget 2 at rank 0 and copy_engine, chunks 2, budget 1 "
             "at rank 1"));
  CHECK(said_with_rows({std::nullopt, in_graphs}) ==
        said(" in graphs' is serial at rank 0 and copy_engine, chunks 2, budget 1 at rank 1"));
}

TEST_CASE("a rank that cannot do its part is known to all") {
  std::vector<std::string> said(2);
  run_threads(2, [&](Communicator& communicator) -> std::string {
    GemmRank rank(communicator);
    if (communicator.rank() == 1) rank.options().programs = nullptr;
    OverlapConfig config = small_gemm();
    config.backend = "mscclc";
    Diagnostics diagnostics;
    (void)rank.make(config, diagnostics);
    said[communicator.rank()] = testing::text(diagnostics);
    return "";
  });
  CHECK(said[0].find("rank 1 cannot do its part: there are no programs for GEMMs") !=
        std::string::npos);
  CHECK(said[1].find("there are no programs for GEMMs") != std::string::npos);
}

/// A run of one rank that is refused.
std::string said_of_run(const OverlapConfig& config,
                        const std::function<void(OverlapCall&, uint8_t*)>& change) {
  std::string said;
  run_threads(1, [&](Communicator& communicator) -> std::string {
    GemmRank rank(communicator);
    Diagnostics diagnostics;
    const auto object = rank.make(config, diagnostics);
    if (object == nullptr) return said = testing::text(diagnostics);
    const auto memory = communicator.device().allocate(4096, "matrices", diagnostics);
    uint8_t* const at = memory->data();
    OverlapCall call{.a = at, .b = {at + 1024}, .out = {at + 2048}};
    change(call, at);
    const bool ran = object->run(call, rank.stream(), diagnostics) &&
                     communicator.synchronize(rank.stream(), diagnostics);
    if (ran) return said = "it ran";
    said = diagnostics.all().front().message;
    return "";
  });
  return said;
}

TEST_CASE("a run that gives too little is refused with what is required and what was given") {
  const OverlapConfig config = small_gemm();
  CHECK(said_of_run(config, [](OverlapCall& c, uint8_t*) { c.a = nullptr; }) ==
        "allgather_gemm: 'a' is missing");
  CHECK(said_of_run(config, [](OverlapCall& c, uint8_t*) { c.b.push_back(c.a); }) ==
        "allgather_gemm: 'b' must have 1 entries; it has 2");
  CHECK(said_of_run(config, [](OverlapCall& c, uint8_t*) { c.bias = {c.a}; }) ==
        "allgather_gemm: 'bias' must have 0 entries; it has 1");
  CHECK(said_of_run(config, [](OverlapCall& c, uint8_t* at) {
          c.out = {at + 2056};
        }).starts_with("allgather_gemm: 'out[0]' must lie at a multiple of 16 bytes; it is at 0x"));
  CHECK(said_of_run(config, [](OverlapCall& c, uint8_t* at) {
          c.a_scale = reinterpret_cast<const float*>(at);
        }) == "allgather_gemm: scales are for types of 8 bits; A is bf16");
  OverlapConfig narrow = config;
  narrow.a_dtype = narrow.b_dtype = Dtype::e4m3;
  CHECK(said_of_run(narrow, [](OverlapCall& c, uint8_t* at) {
          c.a_scale = reinterpret_cast<const float*>(at + 3073);
        }).starts_with("allgather_gemm: 'a_scale' must lie at a multiple of 4 bytes; it is at 0x"));
  CHECK(said_of_run(narrow, [](OverlapCall& c, uint8_t* at) {
          c.b_scale = {reinterpret_cast<const float*>(at + 3074)};
        }).starts_with("allgather_gemm: 'b_scale[0]' must lie at a multiple of 4 bytes; it is at"));
  CHECK(said_of_run(narrow, [](OverlapCall& c, uint8_t* at) {
          c.a_scale = reinterpret_cast<const float*>(at + 3076);
        }) == "it ran");
  CHECK(said_of_run(small_gemm(OverlapKind::gemm_allreduce), [](OverlapCall& c, uint8_t* at) {
          c.gathered = at;
        }) == "gemm_allreduce: 'gathered' must be NULL: nothing is gathered");
}

TEST_CASE("a workspace that is too small is refused with both sizes") {
  CHECK(run_threads(2, [&](Communicator& communicator) -> std::string {
          GemmRank rank(communicator);
          OverlapConfig config = small_gemm(OverlapKind::gemm_reducescatter);
          config.own_workspace = false;
          Diagnostics diagnostics;
          const auto object = rank.make(config, diagnostics);
          const auto memory = communicator.device().allocate(4096, "matrices", diagnostics);
          uint8_t* const at = memory->data();
          OverlapCall call{.a = at, .b = {at + 1024}, .out = {at + 2048}};
          call.workspace = at + 3072;
          call.workspace_bytes = object->workspace_bytes() - 1;
          if (object->run(call, rank.stream(), diagnostics)) return "it ran";
          const std::string said = diagnostics.all().front().message;
          const char* const wanted =
              "gemm_reducescatter: the workspace must have 272 bytes; it has 271";
          return said == wanted ? "" : said;
        }) == "");
}

TEST_CASE("a workspace is refused where the object has its own") {
  for (const auto kind : {OverlapKind::gemm_reducescatter, OverlapKind::allgather_gemm}) {
    CHECK(said_of_run(small_gemm(kind),
                      [](OverlapCall& c, uint8_t* at) {
                        c.workspace = at + 3072;
                        c.workspace_bytes = 1024;
                      }) ==
          std::string(name(kind)) +
              ": 'workspace' must be NULL: the object has its own, as it was made without "
              "'caller_workspace'");
  }
}

/// What two ranks say of a run that is refused at rank 1 alone, which then does what `next` does
/// with the same run, but right.
using Next = std::function<bool(const std::function<bool()>& run, Communicator&)>;
std::vector<std::string> said_of_refusal(const char* backend, const Next& next) {
  std::vector<std::string> said(2);
  run_threads(2, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics, refusal;
    const auto memory = communicator.device().allocate(4096, "matrices", diagnostics);
    GemmRank rank(communicator);  // whose stream ends before the memory does
    rank.lend_collectives();
    OverlapConfig config = small_gemm();
    config.backend = backend;
    const auto object = rank.make(config, diagnostics);
    if (object == nullptr) return testing::text(diagnostics);
    uint8_t* const at = memory->data();
    OverlapCall call{.a = at, .b = {at + 1024}, .out = {at + 2056}};
    const bool first = communicator.rank() == 0;
    if (!first && object->run(call, rank.stream(), refusal)) return "it was not refused";
    call.out = {at + 2048};
    const auto run = [&] { return object->run(call, rank.stream(), diagnostics); };
    const bool ran = (first ? run() : next(run, communicator)) &&
                     communicator.synchronize(rank.stream(), diagnostics);
    said[communicator.rank()] = ran ? "it ran" : testing::text(diagnostics);
    return "";
  });
  return said;
}

TEST_CASE("a run that is refused at one rank has not begun: it is made again, or all are ended") {
  for (const char* backend : {"mscclc", "copy_engine", "serial", "nccl"}) {
    INFO(backend);
    CHECK(said_of_refusal(backend, [](const auto& run, Communicator&) { return run(); }) ==
          std::vector<std::string>{"it ran", "it ran"});
    const auto said = said_of_refusal(backend, [](const auto&, Communicator& communicator) {
      communicator.abort("a run was refused");
      return true;
    });
    for (const std::string& what : said) {
      INFO(what);
      CHECK(what.find("a run was refused") != std::string::npos);
    }
  }
}

TEST_CASE("ranks that run objects in another order fail with both calls") {
  for (const char* backend : {"mscclc", "copy_engine", "serial"}) {
    std::vector<std::string> said(2);
    run_threads(2, [&](Communicator& communicator) -> std::string {
      Diagnostics diagnostics;
      const auto memory = communicator.device().allocate(4096, "matrices", diagnostics);
      GemmRank rank(communicator);  // whose stream ends before the memory does
      std::vector<std::unique_ptr<Overlap>> objects;
      for (const uint64_t rows : {8, 16}) {
        OverlapConfig config = small_gemm();
        config.m = rows;
        config.backend = backend;
        objects.push_back(rank.make(config, diagnostics));
        if (objects.back() == nullptr) return testing::text(diagnostics);
      }
      uint8_t* const at = memory->data();
      const OverlapCall call{.a = at, .b = {at + 1024}, .out = {at + 2048}};
      const bool ran = objects[communicator.rank()]->run(call, rank.stream(), diagnostics) &&
                       communicator.synchronize(rank.stream(), diagnostics);
      said[communicator.rank()] = ran ? "it ran" : testing::text(diagnostics);
      return "";
    });
    for (const std::string& what : said) {
      INFO(backend << ": " << what);
      CHECK(what.find("ranks launch different calls, which differ in the ") != std::string::npos);
      CHECK(what.find("64 bytes of bf16") != std::string::npos);
      CHECK(what.find("128 bytes of bf16") != std::string::npos);
    }
  }
}

TEST_CASE("each backend that is not there says what it lacks, and if a caller's GEMM would do") {
  const auto said = [](const OverlapMissing& missing) {
    std::string text;
    for (const OverlapBackend& one : overlap_backends(missing)) {
      text += one.name + (one.available ? ": there\n" : ": " + one.why + "\n");
    }
    return text;
  };
  CHECK(said({.nccl = "no NCCL", .gemms = "no GEMMs"}) ==
        "auto: not there, unless 'gemm' is given: no GEMMs\n"
        "mscclc: not there, unless 'gemm' is given: no GEMMs\n"
        "copy_engine: not there, unless 'gemm' is given: no GEMMs\n"
        "serial: not there, unless 'gemm' is given: no GEMMs\n"
        "nccl: not there: no NCCL\n"
        "cublasmp: not there: no GEMMs\n");
  CHECK(said({.device = "no GPU", .cublasmp = "no library", .gemms = "no GEMMs"}) ==
        "auto: not there: no GPU\nmscclc: not there: no GPU\ncopy_engine: not there: no GPU\n"
        "serial: not there: no GPU\nnccl: not there: no GPU\ncublasmp: not there: no GPU\n");
}

/// Fails in its turn on one rank.
class FailingGemm final : public GemmProvider {
 public:
  bool run(const Gemm&, StreamHandle, Diagnostics& diagnostics) override {
    diagnostics.error("gemm-failed", {}, "no product today");
    return false;
  }
};

TEST_CASE("a GEMM that fails ends the run at every rank, and says why") {
  for (const char* backend : {"mscclc", "serial"}) {
    std::vector<std::string> said(2);
    FailingGemm failing;
    run_threads(2, [&](Communicator& communicator) -> std::string {
      GemmRank rank(communicator);
      if (communicator.rank() == 1) rank.options().gemm = &failing;
      OverlapConfig config = small_gemm(OverlapKind::gemm_allreduce);
      config.backend = backend;
      said[communicator.rank()] = rank.run({.config = config});
      return "";
    });
    for (const std::string& text : said) {
      INFO(backend << ": " << text);
      CHECK(text.find("no product today") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace mscclc
