#include "plans/format/row_table.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

std::string entry(const std::string& more, const std::string& params = R"("B": 4, "T": "row")") {
  return fmt::format(R"({{"name": "norm", {}, "params": {{{}}}}})", more, params);
}

const std::string kLast = entry(R"("ranks": "any", "bytes": null, "program": "last")");

std::string table_text(const std::string& entries) { return "{\"rows\": [" + entries + "]}"; }

std::string refusal(const std::string& entries) {
  Diagnostics diagnostics;
  CHECK_FALSE(RowTable::parse(table_text(entries), "t.json", diagnostics));
  return diagnostics.all().at(0).path + ": " + diagnostics.all().at(0).message;
}

std::string refused_call(const RowCall& call) {
  Diagnostics diagnostics;
  CHECK_FALSE(builtin_row_table().check(call, diagnostics));
  return diagnostics.all().at(0).message;
}

}  // namespace

TEST_CASE("the first entry for the ranks, rows and bytes of a call is taken") {
  const std::string text = entry(R"("ranks": 2, "rows": 8, "bytes": 65536, "program": "few")") +
                           "," + entry(R"("ranks": [3, 4], "bytes": 65536, "program": "some")") +
                           "," + kLast;
  Diagnostics diagnostics;
  const auto table = RowTable::parse(table_text(text), "t.json", diagnostics);
  REQUIRE(table);
  const auto picked = [&](uint32_t ranks, uint64_t rows, Dtype dtype = Dtype::bf16) {
    const auto [e, most] = table->choose({"norm", ranks, 6144, rows, dtype});
    return fmt::format("{} {}", e->program, most == ~uint64_t{0} ? 0 : most);
  };
  CHECK(picked(2, 5) == "few 5");  // 12,288 bytes each
  CHECK(picked(2, 6) == "last 0");
  CHECK(picked(2, 3, Dtype::f32) == "last 0");
  CHECK(picked(4, 1) == "some 5");
  CHECK(picked(5, 1) == "last 0");
  const RowEntry& few = table->entries()[0];
  CHECK(few.why_not({"norm", 3, 64, 1, Dtype::f32}) == "it is for 2 ranks");
  CHECK(few.why_not({"norm", 2, 64, 9, Dtype::f32}) == "it is for at most 8 rows");
  CHECK(few.why_not({"norm", 2, 6144, 6, Dtype::bf16}) == "it is for at most 65536 bytes");
  CHECK(table->entries()[1].why_not({"norm", 2, 64, 1, Dtype::f32}) == "it is for 3 to 4 ranks");
}

TEST_CASE("threads come from the row: one for 16 bytes of it, whole warps, 1024 at most") {
  const auto threads = [](uint64_t columns, Dtype dtype) {
    const RowCall call{"allreduce_norm", 2, columns, 1, dtype};
    return builtin_row_table().choose(call).first->choice_text(call);
  };
  CHECK(threads(8, Dtype::f16) == "allreduce_norm_1shot:R=2,N=8,B=1,T=32,F=sentinel");
  CHECK(threads(2880, Dtype::bf16) == "allreduce_norm_1shot:R=2,N=2880,B=1,T=384,F=sentinel");
  CHECK(threads(2880, Dtype::f32) == "allreduce_norm_1shot:R=2,N=2880,B=1,T=736,F=sentinel");
  CHECK(threads(5120, Dtype::bf16) == "allreduce_norm_1shot:R=2,N=5120,B=1,T=640,F=sentinel");
  CHECK(threads(16384, Dtype::bf16) == "allreduce_norm_1shot:R=2,N=16384,B=1,T=1024,F=sentinel");
}

TEST_CASE("tables of rows are refused with their place") {
  CHECK(
      refusal(entry(R"("ranks": 2, "bytes": null, "program": "a")")) ==
      R"(t.json: rows[0]: 'norm' needs an entry for all its calls: "ranks": "any", "bytes": null, no )"
      R"("rows")");
  CHECK(refusal(kLast + "," + kLast) ==
        "t.json: rows[1]: never reached: rows[0] takes all its calls");
  CHECK(refusal(entry(R"("ranks": 1, "bytes": null, "program": "a")")).find("from 2 on") !=
        std::string::npos);
  CHECK(refusal(entry(R"("ranks": [4, 2], "bytes": null, "program": "a")")).find("[smallest") !=
        std::string::npos);
  CHECK(refusal(entry(R"("ranks": 2, "bytes": null, "program": "a.mscl")")).find("a name") !=
        std::string::npos);
  CHECK(refusal(entry(R"("ranks": 2, "bytes": null, "program": "a")", R"("N": 4)")) ==
        "t.json: rows[0].params.N: 'N' is the call's, not the table's");
  CHECK(refusal(R"({"name": "norm"})").find("'ranks'") != std::string::npos);
  CHECK(refusal(kLast + R"(,{"name": "gated", "policy": "norm"})") ==
        "t.json: rows[1].policy: no entry above has programs 'norm…'");
  CHECK(refusal(kLast + R"(,{"name": "gated", "policy": "norm", "ranks": 2})").find("ranks") !=
        std::string::npos);
}

TEST_CASE("a name may be picked as another is, from programs of its own") {
  const std::string few = entry(R"("ranks": 2, "rows": 8, "bytes": null, "program": "norm_few")"),
                    all = entry(R"("ranks": "any", "bytes": null, "program": "norm_all")"),
                    alike = R"({"name": "gated", "policy": "norm"})";
  Diagnostics diagnostics;
  const auto table =
      RowTable::parse(table_text(few + "," + all + "," + alike), "t.json", diagnostics);
  REQUIRE(table);
  CHECK(table->names() == std::vector<std::string>{"norm", "gated"});
  CHECK(table->choose({"gated", 2, 64, 8, Dtype::f32}).first->program == "gated_few");
  CHECK(table->choose({"gated", 2, 64, 9, Dtype::f32}).first->program == "gated_all");
  CHECK(refusal(all + "," + alike + "," + alike) ==
        "t.json: rows[2]: never reached: rows[1] takes all its calls");
}

TEST_CASE("calls that no rows have are refused") {
  CHECK(refused_call({"allreduce_nrom", 2, 64, 1, Dtype::f32})
            .starts_with("'allreduce_nrom' is none of the collectives of rows: allreduce_norm, "));
  CHECK(refused_call({"allreduce_norm", 1, 64, 1, Dtype::f32}) ==
        "one rank has nothing to add up: compute the rows without a collective");
  CHECK(refused_call({"allreduce_norm", 2, 64, 1, Dtype::i32}) ==
        "row functions are computed of f32, f16 and bf16, not of 'i32'");
  CHECK(refused_call({"allreduce_norm", 2, 2883, 1, Dtype::bf16}) ==
        "2883 columns of bf16: rows of 'allreduce_norm' have a multiple of 8 columns, 1048576 at "
        "most, so that all begin at multiples of 16 bytes; 2880 and 2888 are served");
  CHECK(refused_call({"allreduce_norm_quantize_sharded", 2, 72, 1, Dtype::bf16}) ==
        "72 columns of bf16: rows of 'allreduce_norm_quantize_sharded' have a multiple of 16 "
        "columns, 1048576 at most, so that all begin at multiples of 16 bytes; 64 and 80 "
        "are served");
  CHECK(refused_call({"allreduce_norm", 2, 1048580, 1, Dtype::f32})
            .ends_with("; 1048576 are served"));
  CHECK(refused_call({"allreduce_norm", 2, 0, 1, Dtype::f32}).starts_with("0 columns"));
  CHECK(refused_call({"allreduce_norm", 2, ~uint64_t{0}, 1, Dtype::f32}).find("columns") !=
        std::string::npos);
  CHECK(refused_call({"allreduce_norm", 2, 64, 0, Dtype::f32})
            .starts_with("0 rows are no message: it has 1 to "));
  CHECK(refused_call({"allreduce_norm", 2, 64, ~uint64_t{0}, Dtype::f32}).find("no message") !=
        std::string::npos);
}

TEST_CASE(
    "columns are a multiple of what fills 16 bytes of a call's type, and of what a row says") {
  const auto least = [](const std::string& name, Dtype dtype) {
    Diagnostics none;
    uint64_t columns = 1;
    while (!builtin_row_table().check({name, 2, columns, 1, dtype}, none)) ++columns;
    return columns;
  };
  for (const std::string& name : builtin_row_table().names()) {
    INFO(name);
    const bool sends = name.find("quantize") != name.npos && name.ends_with("_sharded");
    CHECK(least(name, Dtype::f32) == (sends ? 16 : 4));
    CHECK(least(name, Dtype::bf16) == (sends ? 16 : 8));
    CHECK(least(name, Dtype::f16) == (sends ? 16 : 8));
  }
  CHECK(refusal(entry(R"("ranks": "any", "bytes": null, "columns": 3, "program": "a")"))
            .find("1, 2, 4, 8 or 16") != std::string::npos);
}

TEST_CASE("every shape of every collective of rows has a program") {
  for (const std::string& name : builtin_row_table().names()) {
    for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
      for (const uint64_t columns : {2048, 2880, 4096, 5120, 7168, 8192, 16384}) {
        for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
          RowCall call{name, ranks, columns, 1, dtype};
          Diagnostics diagnostics;
          CHECK(builtin_row_table().check(call, diagnostics));
          while (call.rows <= 8192) {
            const auto [e, most] = builtin_row_table().choose(call);
            CHECK(most >= call.rows);
            call.rows = most;
            CHECK(builtin_row_table().choose(call).first == e);
            if (most == ~uint64_t{0}) break;
            ++call.rows;
          }
        }
      }
    }
  }
}

TEST_CASE("rows whose sums keep to what they do not keep are refused") {
  const auto refusal_of = [](uint32_t ranks, SumOrder order) {
    const RowCall call{"allreduce_norm", ranks, 4096, 6, Dtype::bf16, order};
    Diagnostics diagnostics;
    if (builtin_row_table().check(call, diagnostics)) return std::string();
    const Diagnostic& error = diagnostics.all().at(0);
    std::string text = error.code + ": " + error.message;
    for (const Note& note : error.notes) text += "\n" + note.text;
    return text;
  };
  for (const SumOrder order : {SumOrder::any, SumOrder::replicated, SumOrder::ranks}) {
    CHECK(refusal_of(8, order).empty());
  }
  for (const SumOrder order : {SumOrder::tree, SumOrder::exact}) {
    CHECK(refusal_of(2, order).empty());  // two ranks have one sum
    CHECK_FALSE(refusal_of(3, order).empty());
  }
  CHECK(refusal_of(4, SumOrder::tree) ==
        "no-plan-in-order: no plan serves allreduce_norm of 4 ranks, 'bf16', under 'tree'\n"
        "'tree' means: a fixed binary tree over the ranks: those of 1, 2, 4 and 8 ranks are parts "
        "of one another\n"
        "the nearest plan is 'allreduce_norm_1shot', which keeps 'ranks'; under that it would "
        "serve the call (MSCCLC_ORDER, or the call's own order)\n"
        "under 'tree': a sum by name, and the function of its rows after it");
}

}  // namespace mscclc
