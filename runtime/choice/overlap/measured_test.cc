// Tables of what was measured: what they hold, what is refused, and the one that is compiled in.
#include "runtime/choice/overlap/measured.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace mscclc::overlap {
namespace {

/// A right row, with one piece of its text replaced.
std::string row(const std::string& piece = "", const std::string& by = "") {
  std::string text =
      R"({"kind": "gemm_allreduce", "mode": "eager", "ranks": 4, "dtype": "bf16", )"
      R"("rows": [512, 1024], "flops_a_byte": [100, 2000], "backend": "mscclc", "chunks": 2, )"
      R"("budget": 16})";
  const size_t at = text.find(piece);
  REQUIRE(at != std::string::npos);
  return text.replace(at, piece.size(), by);
}

std::string table(const std::string& rows) { return "{\"rows\": [" + rows + "]}"; }

std::vector<MeasuredChoice> rows_of(const std::string& text) {
  Diagnostics diagnostics;
  auto rows = read_measured(text, "t.json", diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(rows);
  return *rows;
}

std::string refusal(const std::string& text) {
  Diagnostics diagnostics;
  CHECK_FALSE(read_measured(text, "t.json", diagnostics));
  REQUIRE(diagnostics.all().size() == 1);
  const Diagnostic& d = diagnostics.all().front();
  return d.code + ": " + d.path + ": " + d.message;
}

}  // namespace

TEST_CASE("a row of what was measured has all that it says, and is written as it was read") {
  const auto rows = rows_of(
      table(row() + "," + row("16}", "16, \"gemm\": \"own\"}").replace(10, 14, "alltoall_gemm")));
  REQUIRE(rows.size() == 2);
  const MeasuredChoice expected{OverlapKind::gemm_allreduce,
                                RunMode::eager,
                                4,
                                Dtype::bf16,
                                512,
                                1024,
                                100,
                                2000,
                                "mscclc",
                                2,
                                16};
  CHECK(rows[0] == expected);
  CHECK(rows[1].kind == OverlapKind::alltoall_gemm);
  CHECK(rows[1].gemm == MeasuredGemm::own);
  CHECK(rows_of(measured_text(rows)) == rows);
  CHECK(rows_of(measured_text({})).empty());
}

TEST_CASE("rows of what was measured that are wrong are refused with what is required") {
  struct Wrong {
    const char *piece, *by, *said;
  };
  const Wrong all[] = {
      {"\"kind\"", "\"kin\"", "unknown-key: t.json: rows[0]: unknown key 'kin'"},
      {", \"budget\": 16", "", "missing-key: t.json: rows[0]: key 'budget' is missing"},
      {"16}", "16, \"comment\": \"\"}", "unknown-key: t.json: rows[0]: unknown key 'comment'"},
      {"\"gemm_allreduce\"", "\"allreduce\"",
       "rows[0].kind: unknown kind 'allreduce'; there are allgather_gemm, gemm_reducescatter, "
       "gemm_allreduce, alltoall_gemm"},
      {"\"gemm_allreduce\"", "3", "rows[0].kind: expected a string, found a number"},
      {"\"eager\"", "\"graph\"", "rows[0].mode: unknown mode 'graph'; there are eager, captured"},
      {"4,", "1,", "rows[0].ranks: ranks must be 2 to 65536; it is 1"},
      {"4,", "4294967298,", "rows[0].ranks: ranks must be 2 to 65536; it is 4294967298"},
      {"4,", "-2,", "rows[0].ranks: expected a number, found a negative number"},
      {"4,", "\"any\",", "rows[0].ranks: expected a number, found a string"},
      {"\"bf16\"", "\"i32\"",
       "rows[0].dtype: unknown data type of A 'i32'; there are f32, f16, bf16, e4m3, e5m2"},
      {"[512, 1024]", "512", "rows[0].rows: expected an array, found a number"},
      {"[512, 1024]", "[512]", "rows[0].rows: expected [smallest, largest], found 1 numbers"},
      {"[512, 1024]", "[1, 2, 3]", "rows[0].rows: expected [smallest, largest], found 3 numbers"},
      {"[512, 1024]", "[1024, 512]",
       "rows[0].rows: expected [smallest, largest]; 1024 is more than 512"},
      {"[100, 2000]", "[100, 99]",
       "rows[0].flops_a_byte: expected [smallest, largest]; 100 is more than 99"},
      {"[100, 2000]", "[0.5, 2000]",
       "rows[0].flops_a_byte[0]: expected a number, found a real number"},
      {"\"mscclc\"", "\"auto\"",
       "rows[0].backend: unknown backend of a row 'auto'; there are mscclc, copy_engine, serial, "
       "nccl"},
      {"\"mscclc\"", "\"cublasmp\"", "rows[0].backend: unknown backend of a row 'cublasmp'"},
      {"\"chunks\": 2", "\"chunks\": 0", "rows[0].chunks: chunks must be 1 to 64; it is 0"},
      {"\"chunks\": 2", "\"chunks\": 65", "rows[0].chunks: chunks must be 1 to 64; it is 65"},
      {"\"ranks\": 4", "\"ranks\": 4097",
       "rows[0].chunks: 'mscclc' is for 4096 ranks at most, as a plan has 4096 flags at most; "
       "ranks is 4097"},
      {"\"mscclc\"", "\"serial\"",
       "rows[0].chunks: chunks of 'serial' must be 0, as no plan runs beside its GEMMs; it is 2"},
      {"\"mscclc\", \"chunks\": 2", "\"nccl\", \"chunks\": 0",
       "rows[0].budget: budget of 'nccl' must be 0, as no plan runs beside its GEMMs; it is 16"},
      {"16}", "5}",
       "rows[0].budget: budget, a multiprocessor for each thread block of the plan, must be 6 to "
       "1024; it is 5"},
      {"16}", "1025}", "must be 6 to 1024; it is 1025"},
      {"16}", "16, \"gemm\": \"torch\"}",
       "rows[0].gemm: unknown gemm 'torch'; there are any, own"}};
  for (const Wrong& wrong : all) {
    INFO(wrong.by);
    const std::string said = refusal(table(row(wrong.piece, wrong.by)));
    INFO(said);
    CHECK(said.find(wrong.said) != std::string::npos);
  }
  CHECK(refusal("{}") == "missing-key: t.json: key 'rows' is missing");
  CHECK(refusal("[]") == "not-a-library: t.json: expected an object, found an array");
  CHECK(refusal("{\"rows\": [1]}") ==
        "not-a-library: t.json: rows[0]: expected an object, found a number");
  CHECK(refusal("{\"rows\": [\n]").find("t.json") != std::string::npos);
}

TEST_CASE("a row of what was measured that another takes all of is refused") {
  const std::string within = row("[512, 1024]", "[600, 700]");
  CHECK(refusal(table(row() + "," + within)) ==
        "not-a-library: t.json: rows[1]: never reached: rows[0] takes all its calls");
  CHECK(refusal(table(row() + "," + row("16}", "16, \"gemm\": \"own\"}"))).find("never reached") !=
        std::string::npos);
  CHECK(rows_of(table(within + "," + row())).size() == 2);
  CHECK(rows_of(table(row("16}", "16, \"gemm\": \"own\"}") + "," + row())).size() == 2);
  for (const auto& [piece, by] :
       {std::pair("eager", "captured"), std::pair("4,", "5,"), std::pair("bf16", "f16"),
        std::pair("[512, ", "[511, "), std::pair(", 2000]", ", 2001]")}) {
    CHECK(rows_of(table(row() + "," + row(piece, by))).size() == 2);
  }
}

TEST_CASE("every row of what was measured that is compiled in is taken for some object") {
  const auto rows = measured_choices();
  CHECK(rows.size() >= 20);
  for (const MeasuredChoice& row : rows) {
    // Where a row begins, or one above it ends: if it is taken anywhere, it is taken at such a
    // place.
    std::vector<uint64_t> m = {row.least_rows}, intensity = {row.least_intensity};
    for (const MeasuredChoice& other : rows) {
      m.push_back(other.most_rows + 1);
      intensity.push_back(other.most_intensity + 1);
    }
    bool taken = false;
    for (const uint64_t a : m) {
      for (const uint64_t b : intensity) {
        MeasuredChoice at = row;
        at.least_rows = at.most_rows = a;
        at.least_intensity = at.most_intensity = b;
        const auto first = std::ranges::find_if(
            rows, [&](const MeasuredChoice& other) { return other.covers(at); });
        taken |= first != rows.end() && &*first == &row;
      }
    }
    INFO(measured_text({&row, 1}));
    CHECK(taken);
  }
}

TEST_CASE("a folder's table of what was measured is named where it is wrong, with a remedy") {
  const std::string folder = "measured_test_folder";
  std::filesystem::create_directory(folder);
  const std::string file = folder + "/" + kMeasuredFile;
  std::filesystem::remove(file);
  const auto said = [&] {
    Diagnostics diagnostics;
    const auto read = read_measured_of(folder, diagnostics);
    return read ? read->file + ": " + measured_text(read->rows)
                : render_text(diagnostics, Sources());
  };
  CHECK_FALSE(has_measured(folder));
  CHECK(said() ==
        "error: cannot read 'measured_test_folder/overlap.json': No such file or directory\n"
        "note: docs/design/overlap.md says what its rows have\n");
  std::ofstream(file) << table(row());
  CHECK(has_measured(folder));
  CHECK(said() == file + ": " + measured_text(rows_of(table(row()))));
  std::ofstream(file) << table(row("mscclc", "fast"));
  CHECK(
      said() ==
      "measured_test_folder/overlap.json: rows[0].backend: error: unknown backend of a row "
      "'fast'; there are mscclc, copy_engine, serial, nccl\n"
      "measured_test_folder/overlap.json: rows[0].backend: note: docs/design/overlap.md says what "
      "its rows have\n");
}

}  // namespace mscclc::overlap
