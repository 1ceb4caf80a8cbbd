// The programs of plans/rows: proved for 2 to 8 ranks and the rows of real models, fused into as
// few steps as they should be, run on the simulator, and compared with sums and norms in doubles.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "compiler/compile.h"
#include "compiler/rows/library.h"
#include "executor/simulator/cluster.h"
#include "executor/simulator/run.h"
#include "ir/print/print.h"
#include "ir/program/applied.h"
#include "ir/support/read_file.h"
#include "ir/support/sanitized.h"
#include "passes/prove/prove.h"
#include "plans/format/plan_json.h"
#include "plans/format/row_table.h"
#include "tests/rows/row_plans.h"
#include "tests/rows/row_reference.h"

namespace mscclc {
namespace {

const std::string kRowsFolder = "plans/rows/";
constexpr uint32_t kHidden[] = {2048, 2880, 5120, 16384};

std::string errors_of(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::error) text += d.code + ": " + d.message + "\n";
    for (const Note& note : d.notes) text += "- " + note.text + "\n";
  }
  return text;
}

using World = std::vector<std::pair<std::string, std::string>>;

Program row_program(const std::string& name, const World& defines, const std::string& launch = "") {
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.defines = defines;
  options.read_file = [](const std::string& path) { return read_file(path); };
  const std::string path = kRowsFolder + name + ".mscl", threads = "threads: T";
  std::string text = read_file(path).value();
  text.insert(text.rfind(threads) + threads.size(), launch);
  std::optional<Program> program =
      compile(sources, sources.add(path, text), options, {}, diagnostics);
  INFO(name << ": " << errors_of(diagnostics));
  REQUIRE(program.has_value());
  return *std::move(program);
}

World world_of(uint32_t ranks, uint32_t columns) {
  return {{"R", std::to_string(ranks)}, {"N", std::to_string(columns)}};
}

struct RowProgram {
  std::string name;
  uint32_t steps;     ///< of a block that move data, once all are fused
  bool alone = true;  ///< no `apply` stands alone

  /// Is it for so many ranks?
  bool serves(uint32_t ranks) const { return ranks == 2 || !testing::is_of_two_ranks(name); }
  /// In plain memory only scales travel in packets.
  bool has_packets() const {
    return name.find("_push") == name.npos || (name.ends_with("_push") && !alone);
  }
};

/// All of plans/rows, and how few steps they take.
const std::vector<RowProgram> kPrograms = {
    {"allreduce_bias_1shot", 2},
    {"allreduce_bias_owner", 3},
    {"allreduce_bias_push", 2},
    {"allreduce_bias_read", 2},
    {"allreduce_gemma_norm_1shot", 2},
    {"allreduce_gemma_norm_2shot", 0, false},
    {"allreduce_gemma_norm_push_sums", 0, false},
    {"allreduce_gemma_norm_read", 2},
    {"allreduce_layernorm_1shot", 2},
    {"allreduce_layernorm_owner", 3},
    {"allreduce_layernorm_push", 2},
    {"allreduce_layernorm_read", 2},
    {"allreduce_norm_1shot", 2},
    {"allreduce_norm_2shot", 0, false},
    {"allreduce_norm_and_quantize_1shot", 2},
    {"allreduce_norm_and_quantize_push_sums", 0, false},
    {"allreduce_norm_and_quantize_read", 2},
    {"allreduce_norm_owner", 3},
    {"allreduce_norm_push", 2},
    {"allreduce_norm_push_sums", 0, false},
    {"allreduce_norm_quantize_1shot", 2},
    {"allreduce_norm_quantize_groups_1shot", 2},
    {"allreduce_norm_quantize_groups_owner", 0, false},  // a sum of T is no row of e4m3
    {"allreduce_norm_quantize_groups_push", 0, false},
    {"allreduce_norm_quantize_groups_push_sums", 0, false},
    {"allreduce_norm_quantize_groups_read", 2},
    {"allreduce_norm_quantize_mxfp8_1shot", 2},
    {"allreduce_norm_quantize_mxfp8_owner", 0, false},
    {"allreduce_norm_quantize_mxfp8_push", 0, false},
    {"allreduce_norm_quantize_mxfp8_push_sums", 0, false},
    {"allreduce_norm_quantize_mxfp8_read", 2},
    {"allreduce_norm_quantize_owner", 0, false},
    {"allreduce_norm_quantize_push_sums", 0, false},
    {"allreduce_norm_quantize_read", 2},
    {"allreduce_norm_quantize_token_1shot", 2},
    {"allreduce_norm_quantize_token_owner", 0, false},
    {"allreduce_norm_quantize_token_push", 0, false},
    {"allreduce_norm_quantize_token_push_sums", 0, false},
    {"allreduce_norm_quantize_token_read", 2},
    {"allreduce_norm_read", 2},
    {"allreduce_rmsnorm_1shot", 2},
    {"allreduce_rmsnorm_2shot", 0, false},
    {"allreduce_rmsnorm_push_sums", 0, false},
    {"allreduce_rmsnorm_read", 2},
    {"reducescatter_norm", 2},
    {"reducescatter_norm_quantize", 2},
};

uint32_t steps_of_block_0(const Program& program) {
  const std::vector<Op>& ops = program.ranks[0].ops;
  return static_cast<uint32_t>(std::ranges::count_if(
      ops, [](const Op& op) { return op.block == 0 && info(op.kind).moves_data(); }));
}

void check_fused(const RowProgram& row, const Program& program) {
  uint32_t fused = 0, left = 0;
  for (const Op& op : program.ranks[0].ops) {
    fused += applies(op) && info(op.kind).has(kReduces);
    left += info(op.kind).has(kApplies);
  }
  if (!row.alone) return;
  CHECK(fused > 0);
  CHECK(left == 0);
  CHECK(steps_of_block_0(program) == row.steps);
}

void check_row_proof(const Program& program) {
  Diagnostics diagnostics;
  const Proof proof = prove(program, diagnostics);
  INFO(errors_of(diagnostics));
  CHECK(proof.proved);
  CHECK(proof.orders.ranks);
}

TEST_CASE("the test knows every program of rows") {
  std::vector<std::string> known;
  for (const RowProgram& row : kPrograms) known.push_back(row.name);
  CHECK(testing::library_row_programs(2) == known);
}

/// What a caller sees of a program: its externals and contract, apart from chunks.
std::string interface_of(const Program& program) {
  std::string text(program.contract.info().name);
  for (const rows::External& e : program.externals) {
    text += " " + e.name + ":" + std::string(rows::name_of(e.kind)) + "," +
            std::string(rows::name_of(e.use)) + (e.holding == rows::Holding::sharded ? "!" : "");
  }
  return text + " " + std::string(rows::name_of(program.contract.output_type));
}

TEST_CASE("the table's programs are proved, and those of one name are called in one way") {
  std::map<std::string, std::string> of_name;
  std::set<std::string> used;
  for (const RowEntry& entry : builtin_row_table().entries()) {
    const uint32_t ranks = std::min(entry.max_ranks, std::max(entry.min_ranks, 3u));
    const RowCall call{entry.name, ranks, 2880, 1, Dtype::bf16};
    const Program program = row_program(entry.program, entry.defines(call));
    INFO(entry.choice_text(call));
    check_row_proof(program);
    const std::string interface = interface_of(program);
    CHECK(of_name.try_emplace(entry.name, interface).first->second == interface);
    used.insert(entry.program);
  }
  for (const RowProgram& row : kPrograms) CHECK(used.contains(row.name));
}

/// One shot of a function of the library, imported from nowhere: what it gives is y, or else q.
std::string program_of(const rows::Function& function) {
  const bool gives_y = std::ranges::any_of(
      function.outputs, [](const rows::Stored& output) { return output.name == "y"; });
  std::string externals, results, arguments = "sum[0]";
  const auto add = [&](const std::string& name, const rows::Stored& stored, const char* use) {
    const auto form = rows::declared_text(rows::form_of(stored));
    externals += "external " + name + ": " + form + use + "\n";
  };
  const auto chunk = [](const std::string& name, const rows::Stored& stored) {
    const auto kind = stored.kind;
    return kind == rows::Kind::columns || kind == rows::Kind::scalar ? name : name + "[0]";
  };
  for (size_t k = 1; k < function.params.size(); ++k) {
    const rows::Stored& param = function.params[k];
    const bool kept = param.name == "residual" && function.outputs.front().name == "residual_out";
    add(param.name, param, kept ? " inout" : "");
    arguments += ", " + chunk(param.name, param);
  }
  for (const rows::Stored& output : function.outputs) {
    const bool kept = output.name == "residual_out", given = output.name == (gives_y ? "y" : "q");
    if (!kept && !given) add(output.name, output, " out");
    results += std::string(results.empty() ? "" : ", ") + (given  ? "output[0]"
                                                           : kept ? "residual[0]"
                                                                  : chunk(output.name, output));
  }
  return "import \"functions.mscl\"\n" + externals +
         "collective allreduce(ranks: 2, columns: 64, then: " + function.name +
         ", order: ranks)\nrank r in 0..2 {\n  buffer inbox[1] packets: LL16, copies: 2\n"
         "  buffer sum[1]\n  channel ch = memory(1 - r)\n  put_packets ch.inbox[0] <- input[0]\n"
         "  reduce_packets sum[0] <- input[0], inbox[0]\n  apply " +
         function.name + " " + results + " <- " + arguments + "\n}\n";
}

TEST_CASE("a program anywhere can import each function of the library") {
  for (const rows::Function& function : rows::library()) {
    if (function.name.starts_with("keep_")) continue;  // of scales: plans/rows has them
    const std::string text = program_of(function);
    for (const bool files : {true, false}) {
      Sources sources;
      Diagnostics diagnostics;
      FrontEndOptions options;
      if (files) options.read_file = [](const std::string& path) { return read_file(path); };
      const auto program =
          compile(sources, sources.add("nowhere/a.mscl", text), options, {}, diagnostics);
      INFO(text << render_text(diagnostics, sources));
      REQUIRE(program.has_value());
      check_row_proof(*program);
      CHECK(program->files.size() == 1);
    }
  }
}

TEST_CASE("a file of the library's name beside a program goes first") {
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.read_file = [](const std::string& path) {
    return std::optional<std::string>(path == "beside/functions.mscl" ? "let n = 1\n" : "");
  };
  const std::string text = program_of(rows::library_function("add"));
  CHECK_FALSE(compile(sources, sources.add("beside/a.mscl", text), options, {}, diagnostics));
  CHECK(errors_of(diagnostics).find("unknown name 'add'") != std::string::npos);
}

TEST_CASE("programs of rows are fused and proved, whatever the ranks and columns") {
  for (const RowProgram& row : kPrograms) {
    for (uint32_t ranks = 2; ranks <= 8; ranks += testing::if_sanitized(3, 1)) {
      if (!row.serves(ranks)) continue;
      for (const uint32_t columns : kHidden) {
        INFO(row.name << " R=" << ranks << " N=" << columns);
        const Program program = row_program(row.name, world_of(ranks, columns));
        check_fused(row, program);
        check_row_proof(program);
      }
    }
  }
}

TEST_CASE("programs of rows in other packets") {
  for (const RowProgram& row : kPrograms) {
    if (!row.has_packets() || !row.serves(3)) continue;
    for (const auto& [format, columns] : {std::pair{"LL8", 2048u}, {"LL128", 2880u}}) {
      World defines = world_of(3, columns);
      defines.push_back({"F", format});
      const Program program = row_program(row.name, defines);
      check_fused(row, program);
      check_row_proof(program);
    }
  }
}

TEST_CASE("programs of rows give what their functions say, in whatever schedule") {
  const Dtype dtypes[] = {Dtype::bf16, Dtype::f16, Dtype::f32};
  uint32_t i = 0;
  for (const RowProgram& row : kPrograms) {
    for (uint32_t ranks = 2; ranks <= 8; ranks += testing::if_sanitized(3, 1), ++i) {
      if (!row.serves(ranks)) continue;
      const Program program =
          row_program(row.name, world_of(ranks, i % 3 == 0 ? 2880 : 64 * (1 + i % 5)));
      RunSpec spec{.dtype = dtypes[i % 3],
                   .in_place = i % 2 == 1 && program.contract.can_alias(),
                   .iterations = 3,
                   .schedule_seed = i};
      spec.bytes = uint64_t{i * 5 % 13} * program.granule(spec.dtype) *
                   (program.contract.kind == CollectiveKind::reducescatter ? ranks : 1);
      for (const bool adversary : {false, true}) {
        if (adversary) spec.adversary = Adversary{.strands = 2 + i % 2};
        Diagnostics diagnostics;
        const RunResult result = simulate(program, spec, diagnostics);
        INFO(row.name << " of " << ranks << " ranks, " << spec.bytes
                      << " bytes: " << errors_of(diagnostics));
        CHECK(result.status == RunStatus::right);
        CHECK(result.wrong == 0);
      }
    }
  }
}

TEST_CASE("rows are those of sums and norms in doubles") {
  for (const RowProgram& row : kPrograms) {
    for (const uint32_t ranks : {2u, 5u}) {
      if (!row.serves(ranks)) continue;
      const Program program = row_program(row.name, world_of(ranks, 2880));
      INFO(row.name << " of " << ranks << " ranks");
      RowReference reference(program, /*rows=*/testing::if_sanitized<uint32_t>(2, 7) * ranks);
      CHECK(reference.run() == "");
    }
  }
}

TEST_CASE("machines that cannot hand sums over give the same bits") {
  for (const RowProgram& row : kPrograms) {
    const Program program = row_program(row.name, world_of(row.serves(3) ? 3 : 2, 2880));
    INFO(row.name);
    constexpr uint32_t kRows = testing::if_sanitized(6, 21);
    RowReference together(program, kRows), apart(program, kRows, RowSteps::apart);
    CHECK(together.run() == "");
    CHECK(apart.run() == "");
    CHECK(together.outputs() == apart.outputs());
  }
}

TEST_CASE("fused or not, the bits are the same") {
  for (const char* const name : {"allreduce_norm_1shot", "allreduce_norm_owner"}) {
    const Program fused = row_program(name, world_of(3, 2880));
    const Program apart = row_program(name, world_of(3, 2880), ", fuse: false");
    check_row_proof(apart);
    CHECK(steps_of_block_0(apart) > steps_of_block_0(fused));
    RowReference a(fused, 10), b(apart, 10);
    CHECK(a.run() == "");
    CHECK(b.run() == "");
    CHECK(a.outputs() == b.outputs());
  }
}

TEST_CASE("programs that read are proved with one copy of the rows that are read, too") {
  for (const RowProgram& row : kPrograms) {
    if (!testing::is_of_two_ranks(row.name)) continue;
    World one_copy = world_of(2, 2880);
    one_copy.push_back({"C", "1"});
    const Program program = row_program(row.name, one_copy);
    check_row_proof(program);
    const Program two_copies = row_program(row.name, world_of(2, 2880));
    RowReference a(two_copies, 37), b(program, 37);
    CHECK(a.run() == "");
    CHECK(b.run() == "");
    CHECK(a.outputs() == b.outputs());
  }
}

TEST_CASE("slices of a block's rows do not change bits") {
  World in_slices = world_of(3, 2880);
  in_slices.push_back({"S", "4"});
  const Program whole = row_program("allreduce_norm_1shot", world_of(3, 2880));
  const Program sliced = row_program("allreduce_norm_1shot", in_slices);
  check_row_proof(sliced);
  RowReference a(whole, 37), b(sliced, 37);
  CHECK(a.run() == "");
  CHECK(b.run() == "");
  CHECK(a.outputs() == b.outputs());
}

TEST_CASE("fused plans are written and read as they are, and so is their text") {
  for (const char* const name : {"allreduce_norm_1shot", "allreduce_norm_owner",
                                 "allreduce_norm_push", "reducescatter_norm_quantize"}) {
    const Program program = row_program(name, world_of(3, 64));
    Diagnostics diagnostics;
    const auto json = write_plan(program, builtin_targets().front(), diagnostics);
    REQUIRE(json.has_value());
    const auto read = read_plan(*json, "plan.json", diagnostics);
    INFO(errors_of(diagnostics));
    REQUIRE(read.has_value());
    const std::string text = print_ir(program);
    CHECK(text.find(" then ") != text.npos);
    CHECK(print_ir(*read) == text);
    Sources sources;
    const auto again = compile(sources, sources.add("ir.mscl", text), {}, {}, diagnostics);
    INFO(errors_of(diagnostics));
    REQUIRE(again.has_value());
    CHECK(print_ir(*again) == text);
  }
}

}  // namespace
}  // namespace mscclc
