// Buffers whose rows are of another type than the call's, and rows of any multiple of some columns:
// a quantised gather beside one shot, in plain memory and on the host device, and what is refused.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "compiler/compile.h"
#include "executor/simulator/run.h"
#include "ir/print/print.h"
#include "ir/support/read_file.h"
#include "ir/support/sanitized.h"
#include "ir/verify/row_faults.h"
#include "passes/prove/prove.h"
#include "plans/format/plan_json.h"
#include "tests/helpers/plans/rehash.h"
#include "tests/rows/row_plans.h"
#include "tests/rows/row_reference.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using Json = nlohmann::ordered_json;
using testing::RowDefines;

Program library_text_rows(const std::string& text, uint32_t ranks, uint32_t columns) {
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.defines = {{"R", std::to_string(ranks)}, {"N", std::to_string(columns)}};
  options.read_file = [](const std::string& path) { return read_file(path); };
  auto program = compile(sources, sources.add("plans/rows/a.mscl", text), options, {}, diagnostics);
  INFO(testing::text(diagnostics));
  REQUIRE(program.has_value());
  return *std::move(program);
}

Program library_rows(const std::string& name, uint32_t ranks, uint32_t columns) {
  return library_text_rows(read_file("plans/rows/" + name + ".mscl").value(), ranks, columns);
}

/// A program of plain memory, of so many columns.
Program plain_rows(const RowDefines& defines, uint32_t columns, const std::string& more = "",
                   const std::string& name = "allreduce_quantized") {
  Program program = testing::row_plan(name, defines, more);
  CHECK(program.contract.any_columns);
  REQUIRE(!fix_columns(program, columns));
  return program;
}

void check_typed_proof(const Program& program) {
  Diagnostics diagnostics;
  const Proof proof = prove(program, diagnostics);
  INFO(testing::text(diagnostics));
  CHECK(proof.proved);
  CHECK(proof.orders.ranks);
}

TEST_CASE("a quantised gather gives the bits that one shot has") {
  for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
    for (const uint32_t columns : {2048u, 2880u, 5120u, 16384u}) {
      if (testing::kSanitized && (ranks > 3 || columns > 2880)) continue;
      if (!testing::kThorough && (columns == 5120 || ranks == 5 || ranks == 7)) continue;
      INFO(ranks << " ranks, " << columns << " columns");
      const Program owner = library_rows("allreduce_norm_quantize_owner", ranks, columns);
      const Program one = library_rows("allreduce_norm_quantize_1shot", ranks, columns);
      RowReference by_owner(owner, /*rows=*/ranks + 2), at_once(one, ranks + 2);
      CHECK(by_owner.run() == "");
      CHECK(at_once.run() == "");
      // Rank 0 of the one has the residual that all of the other share.
      const std::vector<uint8_t>& q = at_once.written("q")[0];
      CHECK(q.size() == size_t{ranks + 2} * columns);
      for (uint32_t r = 0; r < ranks; ++r) CHECK(by_owner.outputs()[r] == q);
    }
  }
}

/// In one shot, by a scale a row; or in groups, or MXFP8, which no program of the library does so.
Program scaled_one_shot(const std::string& kind, uint32_t ranks, uint32_t columns) {
  std::string text = read_file("plans/rows/allreduce_norm_quantize_token_1shot.mscl").value();
  const auto put = [&](std::string_view from, std::string_view to) {
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  if (kind != "token") {
    put(", least: scalar f32", "");
    put(", eps, least", ", eps");
    put("quantize_per_token", kind == "groups" ? "quantize_per_group" : "quantize_mxfp8");
    put("scale: token f32", kind == "groups" ? "scale: groups(128) f32" : "scale: groups(32) e8m0");
  }
  return library_text_rows(text, ranks, columns);
}

TEST_CASE("a gather of scales gives the bits that one shot has") {
  for (const char* const kind : {"token", "groups", "mxfp8"}) {
    for (const uint32_t ranks : {2u, 3u, 5u, 8u}) {
      for (const uint32_t columns : {64u, 2880u, 5120u}) {
        if (testing::kSanitized && (ranks > 3 || columns > 2880)) continue;
        if (!testing::kThorough && ranks == 5) continue;
        const std::string name = std::string("allreduce_norm_quantize_") + kind;
        const Program owner = library_rows(name + "_owner", ranks, columns);
        const Program pushed = library_rows(name + "_push", ranks, columns);
        const Program one = scaled_one_shot(kind, ranks, columns);
        check_typed_proof(owner);
        check_typed_proof(pushed);
        for (const uint32_t rows : {1u, ranks - 1, ranks + 2, 7 * ranks + 3}) {
          INFO(name << ", " << ranks << " ranks, " << rows << " rows of " << columns);
          RowReference by_owner(owner, rows), by_push(pushed, rows), at_once(one, rows);
          CHECK(by_owner.run() == "");
          CHECK(by_push.run() == "");
          CHECK(at_once.run() == "");
          // Rank 0 of the one has the residual that all of the other share.
          const std::vector<uint8_t>&q = at_once.written("q")[0], &s = at_once.written("scale")[0];
          CHECK(q.size() == size_t{rows} * columns);
          CHECK(!s.empty());
          for (uint32_t r = 0; r < ranks; ++r) {
            CHECK(by_owner.outputs()[r] == q);
            CHECK(by_owner.written("scale")[r] == s);
            CHECK(by_push.outputs()[r] == q);
            CHECK(by_push.written("scale")[r] == s);
          }
        }
      }
    }
  }
}

/// A program by owner with one thing changed, and what the prover says first.
std::string said_first(const std::string& from, const std::string& to) {
  std::string text = read_file("plans/rows/allreduce_norm_quantize_token_owner.mscl").value();
  text.replace(text.find(from), from.size(), to);
  const Program program = library_text_rows(text, 3, 64);
  Diagnostics diagnostics;
  CHECK(simulate(program, {.bytes = 5 * program.granule(Dtype::f32)}, diagnostics).status !=
        RunStatus::right);
  Diagnostics said;
  CHECK(!prove(program, said).proved);
  return said.all().empty() ? "" : said.all()[0].message;
}

TEST_CASE("scales of other rows are refused") {
  const std::string wrong =
      "chunk 0 of the external 'scale' of rank 1 does not hold what the collective promises at the "
      "end of a call";
  CHECK(said_first("apply keep_token scale[p, b], kept[p, b] <- kept[p, b]",
                   "apply keep_token scale[p, b], kept[r, b] <- kept[r, b]") == wrong);
  CHECK(said_first("put_packets ch[p].scales[r, b] <- kept[r, b]",
                   "put_packets ch[p].scales[r, b] <- kept[p, b]") == wrong);
}

/// Bytes of data that rank 0 moves into buffers of a name.
uint64_t moved_into(const Program& program, std::string_view name, Dtype dtype, uint64_t rows) {
  Diagnostics diagnostics;
  DeviceProgram device;
  REQUIRE(lower(program, device, diagnostics));
  const Call call{.part_bytes = rows * program.granule(dtype), .dtype = dtype};
  REQUIRE(fit_to_size(device, program, call, diagnostics));
  const RankProgram& rank = device.ranks[0];
  uint64_t bytes = 0;
  for (const device::Move& move : rank.moves) {
    const device::Base& base = rank.bases[rank.operands[move.operands].base];
    if (program.name_of(program.ranks[base.rank].buffers[base.buffer].name) != name) continue;
    for (uint32_t i = 0; i < move.run_count; ++i) bytes += rank.runs[move.runs + i].length;
  }
  return bytes;
}

TEST_CASE("what comes back has the bytes of its type") {
  const Program owner = library_rows("allreduce_norm_quantize_owner", 4, 2880);
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const uint64_t rows = 8, mine = 2, others = 3;
    CHECK(moved_into(owner, "parts", dtype, rows) == others * mine * 2880 * info(dtype).bytes);
    CHECK(moved_into(owner, "rows", dtype, rows) == others * mine * 2880);
    const Chunking chunking(owner.contract, rows * owner.granule(dtype), owner.granule(dtype));
    CHECK(chunking.message_bytes() == rows * 2880 * info(dtype).bytes);
    CHECK(chunking.buffer_bytes(Side::output, 1) == rows * 2880);
    CHECK(chunking.most_buffer_bytes(Side::output, 1) >= rows * 2880);
  }
}

TEST_CASE("rows of a type of their own in plain memory, in groups and instances") {
  const Dtype dtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};
  uint64_t seed = 0;
  for (const std::string more :
       {"", "launch instances: 2, policy: blocked\n", "launch fuse: false\n"}) {
    for (const auto& [name, ranks] : {std::pair{"allreduce_quantized", 2u},
                                      {"allreduce_quantized", 3u},
                                      {"allreduce_scales", 2u},
                                      {"allreduce_scales", 3u}}) {
      const Program program =
          plain_rows({{"R", std::to_string(ranks)}, {"B", "3"}}, 80, more, name);
      check_typed_proof(program);
      for (int i = 0; i < 6; ++i, ++seed) {
        const Dtype dtype = dtypes[seed % 3];
        RunSpec spec{.bytes = seed * 5 % 23 * program.granule(dtype),
                     .dtype = dtype,
                     .iterations = 3,
                     .schedule_seed = seed,
                     .capacity = seed % 2 == 0 ? 0 : 29 * uint64_t{program.granule(dtype)}};
        if (i % 2 == 1) spec.adversary = Adversary{.strands = 2};
        Diagnostics diagnostics;
        const RunResult result = simulate(program, spec, diagnostics);
        INFO(more << ranks << " ranks, seed " << seed << ": " << testing::text(diagnostics));
        CHECK(result.status == RunStatus::right);
        CHECK(result.wrong == 0);
      }
    }
  }
}

/// Sizes that go up and down, in turn with types.
std::string typed_calls(Communicator& communicator, const std::shared_ptr<const Program>& plan,
                        bool zero_copy) {
  constexpr uint64_t kMaxRows = 23;
  Diagnostics diagnostics;
  RankRunner runner(communicator, plan,
                    {.load = {.max_bytes = kMaxRows * plan->granule(Dtype::f32),
                              .zero_copy = zero_copy,
                              .proof = ProofPolicy::skip}});
  if (!runner.load(diagnostics)) return testing::text(diagnostics);
  const Dtype dtypes[] = {Dtype::bf16, Dtype::f32, Dtype::f16};
  constexpr uint64_t kTimes = testing::if_sanitized(3, 9);
  for (uint64_t i = 0; i < kTimes; ++i) {
    const Dtype dtype = dtypes[i % 3];
    const uint64_t most = kMaxRows * sizeof(float) / info(dtype).bytes;  // of the largest message
    const RunSpec spec{.bytes = (i == 0 ? most : i * 7 % kMaxRows) * plan->granule(dtype),
                       .dtype = dtype,
                       .iterations = 3};
    const RankResult result = runner.run(spec, diagnostics);
    if (result.run.status != RunStatus::right) return testing::text(diagnostics);
  }
  return "";
}

TEST_CASE("rows of a type of their own on the host device") {
  for (const uint32_t ranks : {2u, 3u, 5u}) {
    const std::string R = std::to_string(ranks);
    for (const std::string name :
         {"allreduce_quantized", "allreduce_scales", "allreduce_norm_quantize_owner",
          "allreduce_norm_quantize_token_owner", "allreduce_norm_quantize_mxfp8_owner"}) {
      const auto plan = std::make_shared<const Program>(
          name.ends_with("owner") ? library_rows(name, ranks, 2880)
                                  : plain_rows({{"R", R}}, ranks == 3 ? 48 : 2880, "", name));
      INFO(plan->name << " of " << R << " ranks");
      for (const bool zero_copy : {false, true}) {
        CHECK(testing::run_threads(ranks, [&](Communicator& communicator) {
                return typed_calls(communicator, plan, zero_copy);
              }) == "");
      }
      if (ranks != 3) continue;
      CHECK(testing::run_processes(ranks, [&](Communicator& communicator) {
              return typed_calls(communicator, plan, false);
            }) == "");
    }
  }
}

std::string plan_of(const Program& program) {
  Diagnostics diagnostics;
  return write_plan(program, builtin_targets().front(), diagnostics).value();
}

TEST_CASE("types and columns are written and read as they are") {
  for (const Program& program : {testing::row_plan("allreduce_quantized", {}),
                                 library_rows("allreduce_norm_quantize_owner", 3, 64),
                                 library_rows("allreduce_norm_quantize_mxfp8_owner", 3, 64)}) {
    Diagnostics diagnostics;
    const auto read = read_plan(plan_of(program), "plan.json", diagnostics);
    INFO(testing::text(diagnostics));
    REQUIRE(read.has_value());
    const std::string text = print_ir(program);
    CHECK(text.find("type: e4m3") != text.npos);
    CHECK(print_ir(*read) == text);
    CHECK(read->contract.output_type == rows::Type::e4m3);
    Sources sources;
    const auto again = compile(sources, sources.add("ir.mscl", text), {}, {}, diagnostics);
    INFO(testing::text(diagnostics));
    REQUIRE(again.has_value());
    CHECK(print_ir(*again) == text);
  }
}

TEST_CASE("plans with wrong types are refused") {
  const Json plan = Json::parse(plan_of(testing::row_plan("allreduce_quantized", {})));
  const auto said = [&](const auto& change) {
    Json copy = plan;
    change(copy["mscclc"]);
    Diagnostics diagnostics;
    const auto read = read_plan(testing::rehash(copy.dump()), "plan.json", diagnostics);
    return read ? "" : diagnostics.all()[0].code + ": " + diagnostics.all()[0].message;
  };
  const auto typed = [](Json& m) -> Json& {
    for (Json& buffer : m["ranks"][0]["buffers"]) {
      if (buffer.contains("type")) return buffer;
    }
    return m;
  };
  CHECK(said([](Json&) {}) == "");
  CHECK(said([&](Json& m) { typed(m)["type"] = "e5m2"; }) ==
        "op-rows: 'q' of 'add_rmsnorm_e4m3' is 'row e4m3', and 'mine' holds rows of e5m2; declare "
        "it 'type: e4m3'");
  CHECK(said([&](Json& m) { typed(m).erase("type"); }) ==
        "op-rows: 'q' of 'add_rmsnorm_e4m3' is 'row e4m3', and 'mine' holds rows of T; declare it "
        "'type: e4m3'");
  CHECK(said([&](Json& m) { typed(m)["type"] = "f64"; }).find("unknown type 'f64'") !=
        std::string::npos);
  CHECK(said([&](Json& m) { m["ranks"][0]["buffers"][0]["type"] = "bf16"; }) ==
        "op-rows: 'reduce' adds up rows of T, and 'partial' holds rows of bf16; 'apply' makes one "
        "of the other");
  CHECK(said([&](Json& m) { m["contract"]["in_place"] = "yes"; }) ==
        "row-contract: the output is rows of e4m3, which do not lie where rows of T lie; leave "
        "'inplace: true' out");
  CHECK(said([&](Json& m) { m["contract"]["any_columns"] = 3; }) != "");
}

TEST_CASE("columns are fixed before a plan runs") {
  Program program = testing::row_plan("allreduce_quantized", {});
  check_typed_proof(program);
  Diagnostics diagnostics;
  CHECK(simulate(program, {.bytes = 1 << 12}, diagnostics).status == RunStatus::refused);
  const std::string wanted =
      "the plan takes rows of any multiple of 16 columns; say how many before it is loaded: "
      "'mscclc run --columns 16', mscclc_plan_columns() in C, Plan.with_columns() in Python, or "
      "'columns: 16' in its program";
  CHECK(diagnostics.all().back().message == wanted);
  const auto fault = [&](uint64_t columns) { return fix_columns(program, columns)->message; };
  CHECK(fault(40) ==
        "the program takes rows of any multiple of 16 columns, and 40 is none: 32 is the last, and "
        "48 is the next");
  CHECK(fault(8) ==
        "the program takes rows of any multiple of 16 columns, and 8 is none: 16 is the next");
  CHECK(fault(0) == "rows of 0 columns; a row has 1 to 1048576");
  CHECK(fault(uint64_t{1} << 40) == "rows of 1099511627776 columns; a row has 1 to 1048576");
  const auto open = std::make_shared<const Program>(program);
  CHECK(testing::run_threads(2, [&](Communicator& communicator) {
          Diagnostics refused;
          const auto loaded =
              communicator.load(open, {.max_bytes = 1 << 16, .proof = ProofPolicy::skip}, refused);
          return loaded != nullptr ? "it is loaded" : refused.all()[0].message;
        }).find(wanted) != std::string::npos);
  CHECK(!fix_columns(program, 80));
  CHECK(fault(96) == "the program's rows have 80 columns");
  CHECK(simulate(program, {.bytes = 80 * 4 * 5}, diagnostics).status == RunStatus::right);
}

TEST_CASE("rows of e4m3 begin at multiples of 16 bytes, whenever columns are fixed") {
  const std::string why =
      "rows of 40 e4m3 are no multiple of 16 bytes; 32 columns are served, and 48";
  Program program = library_rows("allreduce_norm_quantize_owner", 2, 48);
  program.contract.columns = 40;
  CHECK(rows_fault(program).value().message == "the output cannot hold its result: " + why);
  Diagnostics diagnostics;
  CHECK(simulate(program, {.bytes = 160 * 4}, diagnostics).status == RunStatus::refused);
  program.contract.columns = 8;
  program.contract.any_columns = true;
  CHECK(fix_columns(program, 40).value().message == why);
  CHECK(!fix_columns(program, 48));
}

TEST_CASE("columns of which no type has a multiple of 16 bytes cannot be fixed") {
  Program program = testing::row_plan("allreduce_norm", {{"N", "8"}});
  program.contract.columns = 2;
  program.contract.any_columns = true;
  CHECK(!rows_fault(program));
  CHECK(fix_columns(program, 6).value().message ==
        "'columns' is 6: then a row is no multiple of 16 bytes in any type; of f32 4 columns are "
        "served, and 8");
  CHECK(!fix_columns(program, 12));
}

}  // namespace
}  // namespace mscclc
