// Every kind of GEMM that overlaps, with every backend that runs without GPUs, against the product
// and the collective one after the other, computed by plain loops.
#include <catch2/catch.hpp>

#include "ir/support/sanitized.h"
#include "tests/overlap/gemm_rank.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::GemmRank;
using testing::GemmRuns;
using testing::MatrixBytes;
using testing::MatrixValues;
using testing::run_threads;

constexpr OverlapKind kKindsOfGemm[] = {OverlapKind::allgather_gemm,
                                        OverlapKind::gemm_reducescatter,
                                        OverlapKind::gemm_allreduce, OverlapKind::alltoall_gemm};
constexpr const char* kBackends[] = {"serial", "mscclc", "copy_engine", "nccl"};
constexpr const char* kOurs[] = {"serial", "mscclc", "copy_engine"};

bool makes_sums(OverlapKind kind) {
  return kind == OverlapKind::gemm_reducescatter || kind == OverlapKind::gemm_allreduce;
}

/// Rows that ranks have alike, but chunks not.
OverlapConfig odd_shape(OverlapKind kind, uint32_t ranks) {
  return {.kind = kind,
          .m = kind == OverlapKind::gemm_allreduce ? 23 : uint64_t{7} * ranks,
          .k = 13,
          .n = makes_sums(kind) ? std::vector<uint64_t>{11} : std::vector<uint64_t>{11, 5}};
}

/// Copy engines take chunks of up to 3 that are whole pieces of 16 bytes, except of AllGather.
OverlapConfig shape_for(const std::string& backend, OverlapKind kind, uint32_t ranks) {
  OverlapConfig shape = odd_shape(kind, ranks);
  shape.backend = backend;
  if (backend != "copy_engine" || kind == OverlapKind::allgather_gemm) return shape;
  shape.m = uint64_t{6} * ranks;
  shape.k = 16;
  shape.n.front() = 8;
  return shape;
}

TEST_CASE("every kind and backend gives the unfused chain's result, for ranks and chunks") {
  for (const uint32_t ranks : {1u, 2u, 3u, 4u}) {
    CHECK(run_threads(ranks, [&](Communicator& communicator) -> std::string {
            GemmRank rank(communicator);
            rank.lend_collectives();
            std::string said;
            for (const OverlapKind kind : kKindsOfGemm) {
              for (const char* backend : kBackends) {
                for (const uint32_t chunks : {0u, 1u, 3u}) {
                  GemmRuns runs{.config = shape_for(backend, kind, ranks)};
                  runs.config.chunks = chunks;
                  runs.config.bias = chunks == 1;
                  runs.config.own_workspace = chunks != 3;
                  runs.gives_gathered = chunks != 1 && !makes_sums(kind);
                  said += rank.run(runs);
                }
              }
            }
            return said;
          }) == "");
  }
}

struct Types {
  Dtype a, b, out;
};

TEST_CASE("types, scales and layouts") {
  constexpr Types kTypes[] = {
      {Dtype::f32, Dtype::f32, Dtype::f32},   {Dtype::f16, Dtype::f16, Dtype::f16},
      {Dtype::bf16, Dtype::bf16, Dtype::f32}, {Dtype::e4m3, Dtype::e4m3, Dtype::bf16},
      {Dtype::e4m3, Dtype::e4m3, Dtype::f32}, {Dtype::e4m3, Dtype::e5m2, Dtype::f16}};
  CHECK(run_threads(2, [&](Communicator& communicator) -> std::string {
          GemmRank rank(communicator);
          rank.lend_collectives();
          std::string said;
          for (const OverlapKind kind : kKindsOfGemm) {
            for (const char* backend : kBackends) {
              for (const Types& types : kTypes) {
                GemmRuns runs{.config = shape_for(backend, kind, 2)};
                runs.config.a_dtype = types.a;
                runs.config.b_dtype = types.b;
                runs.config.out_dtype = types.out;
                runs.config.b_transposed = types.out != Dtype::f16;
                runs.config.bias = true;
                runs.config.chunks = 2;
                said += rank.run(runs);
              }
            }
          }
          return said;
        }) == "");
}

TEST_CASE("an activation is of what is complete, which runs may ask for, too") {
  for (const uint32_t ranks : {1u, 2u, 3u}) {
    CHECK(run_threads(ranks, [&](Communicator& communicator) -> std::string {
            GemmRank rank(communicator);
            rank.lend_collectives();
            std::string said;
            for (const OverlapKind kind : kKindsOfGemm) {
              for (const char* backend : kBackends) {
                for (const bool more : {false, true}) {
                  GemmRuns runs{.config = shape_for(backend, kind, ranks)};
                  runs.config.activation = Activation::gelu;
                  runs.config.chunks = 2;
                  runs.config.bias = runs.gives_before = more;
                  said += rank.run(runs);
                }
              }
            }
            return said;
          }) == "");
  }
}

TEST_CASE("fewer rows than chunks, one row, and instances of the plan") {
  CHECK(run_threads(3, [&](Communicator& communicator) -> std::string {
          GemmRank rank(communicator);
          std::string said;
          for (const OverlapKind kind : kKindsOfGemm) {
            for (const uint32_t budget : {0u, 24u}) {
              GemmRuns runs{.config = {.kind = kind, .m = 3, .k = 5, .n = {1}}};
              runs.config.backend = "mscclc";
              runs.config.chunks = 4;
              runs.config.budget = budget;
              said += rank.run(runs);
            }
          }
          return said;
        }) == "");
}

TEST_CASE("all backends of ours give the same bits for the same chunks, where sums are rounded") {
  for (const uint32_t ranks : {2u, 4u}) {
    CHECK(run_threads(ranks, [&](Communicator& communicator) -> std::string {
            GemmRank rank(communicator);
            std::string said;
            for (const OverlapKind kind : kKindsOfGemm) {
              for (const Dtype type : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
                GemmRuns runs{.config = shape_for("copy_engine", kind, ranks),
                              .values = MatrixValues::real};
                runs.config.a_dtype = runs.config.b_dtype = runs.config.out_dtype = type;
                runs.config.k = 208;
                runs.config.chunks = 2;
                runs.config.bias = true;
                std::vector<MatrixBytes> first;
                for (const char* backend : kOurs) {
                  std::vector<MatrixBytes> outputs;
                  runs.config.backend = backend;
                  said += rank.run(runs, &outputs);
                  if (first.empty()) first = outputs;
                  if (outputs != first)
                    said += std::string(backend) + ": other bits of " + std::string(name(kind));
                }
              }
            }
            return said;
          }) == "");
  }
}

}  // namespace
}  // namespace mscclc
