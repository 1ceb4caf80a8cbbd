#include "plans/format/library_table.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "ir/support/read_file.h"
#include "plans/format/nearest_plan.h"

namespace mscclc {
namespace {

constexpr CollectiveKind kKind = CollectiveKind::alltoall;

std::string rows_text(const std::string& text) { return "{\"rows\": [" + text + "]}"; }

/// One row of alltoall.
std::string row(const std::string& bytes, const std::string& dtypes, const std::string& program,
                const std::string& more = "", const std::string& ranks = "\"any\"") {
  return R"({"collective": "alltoall", "ranks": )" + ranks + R"(, "bytes": )" + bytes +
         R"(, "dtypes": )" + dtypes + R"(, "program": ")" + program +
         R"(", "params": {"B": 4, "F": "LL16"})" + more + "}";
}

const std::string kRest = row("null", "\"any\"", "rest");

LibraryTable table_of(const std::string& text) {
  Diagnostics diagnostics;
  auto table = LibraryTable::parse(rows_text(text), "t.json", diagnostics);
  REQUIRE(table);
  return *table;
}

std::string refusal(const std::string& text) {
  Diagnostics diagnostics;
  CHECK_FALSE(LibraryTable::parse(text, "t.json", diagnostics));
  const Diagnostic& d = diagnostics.all().at(0);
  return d.path + ": " + d.message;
}

std::string pick(const LibraryTable& table, uint64_t bytes, Dtype dtype = Dtype::f32,
                 uint32_t ranks = 4, bool in_place = false) {
  const LibraryChoice* choice = table.choose({kKind, ranks, bytes, dtype, in_place});
  return choice == nullptr ? "nothing" : choice->program;
}

}  // namespace

TEST_CASE("captured calls pass over rows that are not for them") {
  const std::string engines = R"(, "captured": false)";
  const LibraryTable table = table_of(row("null", "\"any\"", "engines", engines) + "," + kRest);
  LibraryCall call{kKind, 4, 4096, Dtype::f32};
  CHECK(table.choose(call)->program == "engines");
  call.captured = true;
  CHECK(table.choose(call)->program == "rest");
  const auto unfit = table.rows()[0].why_not(call);
  REQUIRE(unfit);
  CHECK_THAT(unfit->text(), Catch::StartsWith("it is not for captured calls"));
  CHECK(library_table_text(table.rows()).find(engines) != std::string::npos);
  CHECK(refusal(rows_text(row("null", "\"any\"", "engines", engines))).find("captured too") !=
        std::string::npos);
}

TEST_CASE("the first row that fits holds") {
  const LibraryTable table = table_of(
      row("1024", "\"float\"", "floats") + "," + row("1024", "[\"i32\", \"u8\"]", "whole") + "," +
      row("2048", "\"any\"", "eight", "", "8") + "," +
      row("4096", "\"any\"", "apart", R"(, "in_place": false)") + "," + kRest);
  CHECK(pick(table, 0) == "floats");
  CHECK(pick(table, 1024) == "floats");
  CHECK(pick(table, 1024, Dtype::i32) == "whole");
  CHECK(pick(table, 1024, Dtype::i64) == "apart");
  CHECK(pick(table, 1025) == "apart");
  CHECK(pick(table, 1025, Dtype::f32, 8) == "eight");
  CHECK(pick(table, 1025, Dtype::f32, 4, true) == "rest");
  CHECK(pick(table, ~uint64_t{0}) == "rest");
  CHECK(table.choose({CollectiveKind::allreduce, 4, 1, Dtype::f32}) == nullptr);
  CHECK(table.collectives() == std::vector{kKind});
  CHECK(table.choose({kKind, 4, 1})->params_text() == "B=4,F=LL16");
}

TEST_CASE("a row may be for calls that add up in some types") {
  const LibraryTable table =
      table_of(row("1024", "\"float\"", "half", R"(, "accumulate": ["f16"])") + "," +
               row("1024", "\"any\"", "single", R"(, "accumulate": ["f32", "f64"])") + "," + kRest);
  const auto picked = [&](Dtype dtype, std::optional<Dtype> accumulate) {
    LibraryCall call{kKind, 4, 1000, dtype};
    call.accumulate = accumulate;
    return table.choose(call)->program;
  };
  CHECK(picked(Dtype::e4m3, Dtype::f16) == "half");
  CHECK(picked(Dtype::e4m3, Dtype::f32) == "single");
  CHECK(picked(Dtype::e4m3, std::nullopt) == "single");
  CHECK(picked(Dtype::e4m3, Dtype::e4m3) == "rest");
  CHECK(picked(Dtype::i8, std::nullopt) == "rest");
  CHECK(picked(Dtype::f64, std::nullopt) == "single");
  LibraryCall call{kKind, 4};
  call.accumulate = Dtype::f16;
  CHECK(table.ranges(call).front().choice->program == "half");
  const std::string text = library_table_text(table.rows());
  Diagnostics diagnostics;
  const auto again = LibraryTable::parse(text, "t.json", diagnostics);
  REQUIRE(again);
  CHECK(library_table_text(again->rows()) == text);
  CHECK(text.find("\"accumulate\": [\"f32\", \"f64\"]") != std::string::npos);
  const auto wrong = [&](const std::string& rest) {
    return refusal(
        rows_text(row("null", "\"any\"", "a", ", \"accumulate\": " + rest) + "," + kRest));
  };
  CHECK(wrong("\"any\"").find("expected a list of data types") != std::string::npos);
  CHECK(wrong("[\"f17\"]").find("unknown data type 'f17'") != std::string::npos);
  // Such rows alone are not enough, and a later one may never be reached.
  CHECK(refusal(rows_text(row("null", "\"any\"", "a", R"(, "accumulate": ["f16"])")))
            .find("must take every call") != std::string::npos);
  CHECK(refusal(rows_text(kRest + "," + row("1", "\"any\"", "a", R"(, "accumulate": ["f16"])")))
            .find("never reached") != std::string::npos);
}

TEST_CASE("a row may be for a range of ranks") {
  const LibraryTable table =
      table_of(row("null", "\"any\"", "few", R"(, "in_place": false)", "[2, 8]") + "," +
               row("null", "\"any\"", "some", "", "[4, 6]") + "," + kRest);
  CHECK(pick(table, 1, Dtype::f32, 1) == "rest");
  CHECK(pick(table, 1, Dtype::f32, 2) == "few");
  CHECK(pick(table, 1, Dtype::f32, 8) == "few");
  CHECK(pick(table, 1, Dtype::f32, 9) == "rest");
  CHECK(pick(table, 1, Dtype::f32, 6, true) == "some");
  CHECK(pick(table, 1, Dtype::f32, 7, true) == "rest");
  CHECK(refusal(rows_text(row("null", "\"any\"", "few", "", "[2, 8]") + "," +
                          row("1024", "\"any\"", "within", "", "[2, 7]") + "," + kRest)) ==
        "t.json: rows[1]: never reached: rows[0] takes all its calls");
}

TEST_CASE("a row may be for several nodes") {
  const auto program = [](const char* nodes, const char* bytes, const char* name) {
    return row(bytes, "\"any\"", name, fmt::format(R"(, "nodes": {})", nodes));
  };
  const LibraryTable table =
      table_of(kRest + "," + program("[2, 3]", "null", "few") + "," +
               program("\"several\"", "null", "many") + "," + program("\"any\"", "null", "spread"));
  const auto over = [&](uint32_t nodes) {
    return table.choose({.kind = kKind, .ranks = 12, .nodes = nodes})->program;
  };
  CHECK(over(1) == "rest");
  CHECK(over(2) == "few");
  CHECK(over(3) == "few");
  CHECK(over(4) == "many");
  CHECK(over(0) == "spread");
  CHECK(table_of(kRest).choose({.kind = kKind, .ranks = 4, .nodes = 2}) == nullptr);
  const std::string text = library_table_text(table.rows());
  for (const char* nodes : {"[2, 3]", "\"several\"", "\"any\""}) {
    CHECK_THAT(text, Catch::Contains(fmt::format("\"nodes\": {}", nodes)));
  }
  Diagnostics diagnostics;
  const auto again = LibraryTable::parse(text, "t.json", diagnostics);
  REQUIRE(again);
  CHECK(library_table_text(again->rows()) == text);

  const auto uneven = table_of(kRest + "," + program("\"uneven\"", "null", "u"));
  CHECK(uneven.choose({.kind = kKind, .ranks = 12, .nodes = 0})->program == "u");
  CHECK(uneven.choose({.kind = kKind, .ranks = 12, .nodes = 2}) == nullptr);
  CHECK(uneven.rows()[1].why_not({.kind = kKind, .ranks = 12, .nodes = 2}) ==
        "it is for ranks that are spread unevenly over nodes");
  CHECK_THAT(library_table_text(uneven.rows()), Catch::Contains("\"nodes\": \"uneven\""));

  CHECK(refusal(rows_text(kRest + "," + program("0", "null", "x"))) ==
        "t.json: rows[1].nodes: expected a number of nodes, [smallest, largest], \"several\", "
        "\"uneven\" or \"any\"");
  CHECK(
      refusal(rows_text(kRest + "," + program("[3, 2]", "null", "x"))).find("expected a number") !=
      std::string::npos);
  CHECK_THAT(refusal(rows_text(kRest + "," + program("\"several\"", "1024", "x"))),
             Catch::StartsWith("t.json: rows[1]: the last row of alltoall must take every call"));
  CHECK(refusal(rows_text(program("\"any\"", "null", "x") + "," + kRest)) ==
        "t.json: rows[1]: never reached: rows[0] takes all its calls");
}

TEST_CASE("what sums keep to depends on their type, where they are rounded on the way") {
  const Proof once{.proved = true,
                   .orders = {.replicated = true, .ranks = true, .tree = true},
                   .rounding = Rounding::once};
  Proof each = once, apart = once;
  each.rounding = Rounding::each_op;
  apart.orders.replicated = false;
  const LibraryCall f32{.kind = CollectiveKind::allreduce, .ranks = 4};
  const auto of = [](LibraryCall call, Dtype dtype) {
    call.dtype = dtype;
    return call;
  };
  const auto order = [](const Proof& proof, const LibraryCall& call) {
    return std::string(name(strongest_order(proof, call)));
  };
  CHECK(order(once, of(f32, Dtype::bf16)) == "tree");
  CHECK(order(each, f32) == "tree");
  LibraryCall asks = f32;
  asks.order = SumOrder::ranks;  // is named if it is kept
  CHECK(order(once, asks) == "ranks");
  asks.order = SumOrder::exact;
  CHECK(order(once, asks) == "tree");
  CHECK(order(each, of(f32, Dtype::bf16)) == "replicated");
  CHECK(order(each, of(f32, Dtype::e4m3)) == "replicated");
  LibraryCall wide = f32;
  wide.accumulate = Dtype::f64;
  CHECK(order(each, wide) == "replicated");
  CHECK(order(apart, f32) == "any");
  // What is exact in every order.
  CHECK(order(apart, of(f32, Dtype::i32)) == "exact");
  LibraryCall two = f32, least = f32;
  two.ranks = 2;
  least.op = ReduceOp::min;
  Proof pair = each;  // what is proved of two ranks without a switch
  pair.orders.exact = true;
  CHECK(order(pair, of(two, Dtype::bf16)) == "exact");
  CHECK(order(apart, two) == "any");
  CHECK(order(apart, least) == "exact");
}

TEST_CASE("the nearest plan is served by another type to add up in, or the next weaker order") {
  LibraryCall call{.kind = CollectiveKind::allreduce, .ranks = 4, .order = SumOrder::tree};
  const auto said = [&](const PickPlan& pick) {
    std::string text;
    for (const Note& note : nearest_plan_notes(call, pick)) text += note.text + "\n";
    return text.substr(std::min(text.size(), text.find('\n') + 1));
  };
  const auto under = [](SumOrder kept) {
    return [kept](const LibraryCall& c) {
      return serves(kept, c.order) ? std::optional(ServingPlan{"x", kept}) : std::nullopt;
    };
  };
  const std::string by = "it would serve the call (MSCCLC_ORDER, or the call's own order)\n";
  CHECK(said(under(SumOrder::ranks)) ==
        "the nearest plan is 'x', which keeps 'ranks'; under that " + by);
  CHECK(said(under(SumOrder::any)) ==
        "the nearest plan is 'x', which keeps 'any'; under that " + by);
  CHECK(said([](const LibraryCall&) { return std::nullopt; }).empty());
  call.accumulate = Dtype::f64;
  CHECK(said([](const LibraryCall& c) {
          return c.accumulate == Dtype::f32 ? std::optional(ServingPlan{"x"}) : std::nullopt;
        }) ==
        "the nearest plan is 'x', which keeps 'tree' of sums in f32; the call adds up in f64\n");
}

TEST_CASE("a program's parameters for a call") {
  LibraryChoice choice{.program = "x", .params = {{"B", "4"}, {"F", "LL16"}}, .plan = ""};
  const auto text = [&](const LibraryCall& call) {
    std::string list;
    for (const auto& [key, value] : choice.defines(call)) list += key + "=" + value + " ";
    return list;
  };
  CHECK(text({kKind, 4}) == "R=4 B=4 F=LL16 ");
  CHECK(text({CollectiveKind::reduce, 4, 0, Dtype::f32, false, 3}) == "R=4 root=3 B=4 F=LL16 ");
  CHECK(text({CollectiveKind::sendrecv, 4, 0, Dtype::f32, false, 0, 2}) ==
        "R=4 shift=2 B=4 F=LL16 ");
  choice.params = {{"world", "ranks"}, {"gpus", "ranks_per_node"}, {"T", "2"}};
  CHECK(text({.kind = kKind, .ranks = 16, .nodes = 2}) == "world=16 gpus=8 T=2 ");
}

TEST_CASE("the name of a call's plan") {
  LibraryChoice choice{.program = "x", .params = {{"B", "4"}, {"F", "LL16"}}, .plan = ""};
  CHECK(choice.name({kKind, 4}) == "x:R=4,B=4,F=LL16");
  CHECK(choice.name({.kind = CollectiveKind::sendrecv, .ranks = 4, .shift = 3}) ==
        "x:R=4,shift=3,B=4,F=LL16");
}

TEST_CASE("the file of a call's plan") {
  LibraryChoice choice{.program = "x", .params = {{"B", "4"}, {"F", "LL16"}}, .plan = ""};
  CHECK(choice.plan_file({kKind, 4}) == "x-R4-B4-FLL16.json");
  CHECK(choice.plan_file({.kind = CollectiveKind::reduce, .ranks = 4, .root = 3}) ==
        "x-R4-root3-B4-FLL16.json");
  for (const int64_t shift : {-1, 3, 7}) {
    CHECK(choice.plan_file({.kind = CollectiveKind::sendrecv, .ranks = 4, .shift = shift}) ==
          "x-R4-shift3-B4-FLL16.json");
  }
  choice.params = {{"world", "ranks"}, {"gpus", "ranks_per_node"}, {"T", "2"}};
  CHECK(choice.plan_file({.kind = kKind, .ranks = 16, .nodes = 2}) == "x-R16-N2-T2.json");
}

TEST_CASE("blocks are lowered in proportion") {
  LibraryChoice choice{
      .program = "x", .params = {{"B", "128"}, {"own", "3"}, {"T", "512"}}, .plan = ""};
  CHECK_FALSE(choice.lower_blocks(128, 0));
  CHECK_FALSE(choice.lower_blocks(128, 128));
  CHECK(choice.lower_blocks(128, 64));
  CHECK(choice.params_text() == "B=64,own=1,T=512");
  choice.params = {{"T", "512"}};
  CHECK_FALSE(choice.lower_blocks(128, 64));
}

TEST_CASE("why a row does not fit, in words") {
  const LibraryTable table = table_of(
      row("1024", "[\"f16\"]", "a", R"(, "in_place": false, "links": "nvlink")", "[2, 8]") + "," +
      row("null", "\"float\"", "b", R"(, "accumulate": ["f16"])", "2") + "," + kRest);
  const auto why = [&](size_t i, const LibraryCall& call) { return table.rows()[i].why_not(call); };
  LibraryCall call{kKind, 2, 1024, Dtype::f16};
  CHECK(why(0, call) == std::nullopt);
  CHECK(why(1, call) == "it is not for sums in f32");
  call.links = LinkKind::pcie;
  CHECK(why(0, call) == "it is for nvlink");
  call.in_place = true;
  CHECK(why(0, call) == "it is not for calls in place");
  call.dtype = Dtype::i8;
  CHECK(why(0, call) == "it is not for i8");
  call.bytes = 1025;
  CHECK(why(0, call) == "it is for 1024 bytes at most");
  call.nodes = 2;
  CHECK(why(0, call) == "it is for 1 node");
  call.ranks = 9;
  CHECK(why(0, call) == "it is for 2 to 8 ranks");
  CHECK(why(1, call) == "it is for 2 ranks");
  call.kind = CollectiveKind::reduce;
  CHECK(why(0, call) == "it is for alltoall");
}

TEST_CASE("a row may be for one kind of link") {
  const std::string nvlink = R"(, "links": "nvlink")", pcie = R"(, "links": "pcie")";
  const LibraryTable table = table_of(row("1024", "\"any\"", "lines", nvlink) + "," +
                                      row("512", "\"any\"", "packets", pcie) + "," + kRest);
  const auto over = [&](LinkKind links, uint64_t bytes) {
    return table.choose({.kind = kKind, .ranks = 4, .bytes = bytes, .links = links})->program;
  };
  CHECK(pick(table, 1) == "lines");
  CHECK(over(LinkKind::own, 1024) == "lines");
  CHECK(over(LinkKind::nvlink, 1024) == "lines");
  CHECK(over(LinkKind::pcie, 512) == "packets");
  CHECK(over(LinkKind::pcie, 513) == "rest");
  const auto ranges = table.ranges({.kind = kKind, .ranks = 4, .links = LinkKind::pcie});
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].choice->program == "packets");
  CHECK(ranges[0].max == 512);
  const std::string text = library_table_text(table.rows());
  CHECK(text.find(R"("links": "pcie"})") != std::string::npos);
  Diagnostics diagnostics;
  const auto again = LibraryTable::parse(text, "t.json", diagnostics);
  REQUIRE(again);
  CHECK(library_table_text(again->rows()) == text);

  CHECK(refusal(rows_text(row("null", "\"any\"", "x", R"(, "links": "ib")"))) ==
        "t.json: rows[0].links: expected \"nvlink\" or \"pcie\"");
  CHECK(refusal(rows_text(row("null", "\"any\"", "x", nvlink))) ==
        "t.json: rows[0]: the last row of alltoall must take every call: \"ranks\": \"any\", "
        "\"bytes\": null, \"dtypes\": \"any\", no \"accumulate\", in place and captured too, over "
        "any links, "
        "no \"order\" \"any\"");
  CHECK(refusal(rows_text(row("1024", "\"any\"", "x") + "," + row("512", "\"any\"", "y", pcie) +
                          "," + kRest)) ==
        "t.json: rows[1]: never reached: rows[0] takes all its calls");
}

TEST_CASE("a table of plans") {
  const auto plan = [](const char* kind, const char* key, const char* bytes, const char* file) {
    return fmt::format(
        R"({{"collective": "{}", "ranks": 4, {}"bytes": {}, "dtypes": "any", "plan": "{}"}})", kind,
        key, bytes, file);
  };
  const std::string text = rows_text(plan("broadcast", "\"root\": 1, ", "64", "small.json") + "," +
                                     plan("broadcast", "\"root\": 1, ", "null", "b1.json") + "," +
                                     plan("broadcast", "\"root\": 3, ", "null", "b3.json") + "," +
                                     plan("sendrecv", "\"shift\": 3, ", "null", "s3.json"));
  Diagnostics diagnostics;
  const auto table = LibraryTable::parse(text, "t.json", diagnostics);
  REQUIRE(table);
  const auto file = [&](const LibraryCall& call) {
    const LibraryChoice* choice = table->choose(call);
    return choice == nullptr ? "nothing" : choice->plan;
  };
  const LibraryCall broadcast{CollectiveKind::broadcast, 4, 64, Dtype::u8, true, 1};
  CHECK(file(broadcast) == "small.json");
  CHECK(table->ranges(broadcast).size() == 2);
  CHECK(file({CollectiveKind::broadcast, 4, 65, Dtype::u8, true, 1}) == "b1.json");
  CHECK(file({CollectiveKind::broadcast, 4, 1, Dtype::u8, true, 3}) == "b3.json");
  CHECK(file({CollectiveKind::broadcast, 4, 1, Dtype::u8, true, 0}) == "nothing");
  CHECK(file({CollectiveKind::broadcast, 2, 1, Dtype::u8, true, 1}) == "nothing");
  CHECK(file({CollectiveKind::sendrecv, 4, 1, Dtype::u8, false, 0, 3}) == "s3.json");
  CHECK(file({CollectiveKind::sendrecv, 4, 1, Dtype::u8, false, 0, -1}) == "s3.json");
  CHECK(file({CollectiveKind::sendrecv, 4, 1, Dtype::u8, false, 0, 1}) == "nothing");
  CHECK(refusal(rows_text(plan("broadcast", "\"root\": 1, ", "null", "b1.json") + "," +
                          plan("broadcast", "\"root\": 2, ", "64", "b2.json"))) ==
        "t.json: rows[1]: the last row of broadcast must take every call: \"bytes\": null, "
        "\"dtypes\": \"any\", no \"accumulate\", in place and captured too, over any links, "
        "no \"order\" \"any\"");
  CHECK(refusal(rows_text(plan("broadcast", "", "null", "b1.js"))) ==
        "t.json: rows[0].plan: a plan's name ends in '.json'");
}

TEST_CASE("a row may be for calls alone that ask for its order") {
  const char* const kRow =
      R"({"collective": "allreduce", "ranks": "any", "bytes": null, "dtypes": "any", "program": )";
  const std::string text = kRow +
                           std::string(R"("a", "params": {}, "order": "exact", "asked": true},)") +
                           kRow + std::string(R"("b", "params": {}, "order": "exact"})");
  const LibraryTable table = table_of(text);
  LibraryCall call{CollectiveKind::allreduce, 4, 1024, Dtype::f32};
  CHECK(table.choose(call)->program == "b");
  CHECK(table.rows()[0].why_not(call) == "it is for calls that ask for 'exact'");
  call.order = SumOrder::exact;
  CHECK(table.choose(call)->program == "a");
  CHECK(library_table_text(table.rows()).find("\"asked\": true") != std::string::npos);
}

TEST_CASE("a table's text is the table again") {
  const auto again = [](const LibraryTable& table) {
    const std::string text = library_table_text(table.rows());
    Diagnostics diagnostics;
    const auto read = LibraryTable::parse(text, "again.json", diagnostics);
    return read && library_table_text(read->rows()) == text ? text : "differs";
  };
  CHECK(again(table_of(row("1024", "\"float\"", "floats", R"(, "in_place": false)") + "," +
                       row("8", "[\"i32\", \"u8\"]", "whole", "", "[2, 3]") + "," + kRest)) ==
        R"({
  "rows": [
    {"collective": "alltoall", "ranks": "any", "bytes": 1024, "dtypes": "float", "program": "floats", "params": {"B": "4", "F": "LL16"}, "in_place": false},
    {"collective": "alltoall", "ranks": [2, 3], "bytes": 8, "dtypes": ["i32", "u8"], "program": "whole", "params": {"B": "4", "F": "LL16"}},
    {"collective": "alltoall", "ranks": "any", "bytes": null, "dtypes": "any", "program": "rest", "params": {"B": "4", "F": "LL16"}}
  ]
}
)");
  CHECK(again(table_of(R"({"collective": "reduce", "ranks": 4, "root": 2, "bytes": null, )"
                       R"("dtypes": "any", "plan": "p.json"})")) != "differs");
}

TEST_CASE("ranges are the stretches of sizes with one choice") {
  const LibraryTable table =
      table_of(row("1024", "\"float\"", "floats") + "," + row("2048", "\"any\"", "middle") + "," +
               row("4096", "\"any\"", "apart", R"(, "in_place": false)") + "," +
               row("8192", "\"any\"", "rest") + "," + kRest);
  std::string text;
  for (const LibraryRange& r : table.ranges({kKind, 4})) {
    text += r.choice->program + " " + std::to_string(r.min) + ".." + std::to_string(r.max) +
            (r.in_place == InPlace::either ? ""
             : r.in_place == InPlace::yes  ? " in"
                                           : " out") +
            (r.dtypes.size() == dtype_table().size()                     ? " all\n"
             : std::ranges::find(r.dtypes, Dtype::f32) != r.dtypes.end() ? " floats\n"
                                                                         : " others\n");
  }
  CHECK(text ==
        "floats 0..1024 floats\n"
        "middle 0..2048 others\n"
        "middle 1025..2048 floats\n"
        "apart 2049..4096 out all\n"
        "rest 2049..18446744073709551615 in all\n"
        "rest 4097..18446744073709551615 out all\n");
}

TEST_CASE("what is no table is refused") {
  CHECK(refusal("{}") == "t.json: key 'rows' is missing");
  CHECK(refusal(rows_text("7")) == "t.json: rows[0]: expected an object, found a number");
  const auto bad = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return refusal(rows_text(text));
  };
  CHECK(bad(kRest, "alltoall", "alltoal") ==
        "t.json: rows[0].collective: unknown collective 'alltoal'");
  CHECK(bad(kRest, "\"any\"", "0") ==
        "t.json: rows[0].ranks: expected a number of ranks, [smallest, largest], or \"any\"");
  CHECK(bad(kRest, "\"any\"", "[4, 2]") ==
        "t.json: rows[0].ranks: expected a number of ranks, [smallest, largest], or \"any\"");
  CHECK(bad(kRest, "null", "-1") ==
        "t.json: rows[0].bytes: expected a number, found a negative number");
  CHECK(bad(kRest, "\"dtypes\": \"any\"", "\"dtypes\": \"floats\"") ==
        "t.json: rows[0].dtypes: expected \"any\", \"float\" or a list of data types");
  CHECK(bad(kRest, "\"dtypes\": \"any\"", "\"dtypes\": [\"f31\"]") ==
        "t.json: rows[0].dtypes[0]: unknown data type 'f31'");
  CHECK(bad(kRest, "rest", "../rest") ==
        "t.json: rows[0].program: expected the name of a file beside the table");
  CHECK(bad(kRest, "\"B\"", "\"R\"") ==
        "t.json: rows[0].params.R: 'R' is the call's, not the table's");
  CHECK(bad(kRest, "\"B\"", "\"shift\"") ==
        "t.json: rows[0].params.shift: 'shift' is the call's, not the table's");
  CHECK(bad(kRest, "rest", "rest.mscl") ==
        "t.json: rows[0].program: expected the name of a program, without '.mscl'");
  CHECK(bad(kRest, "\"program\"", "\"porgram\"") == "t.json: rows[0]: unknown key 'porgram'");
  CHECK(bad(kRest, "\"params\"", "\"plan\"") ==
        "t.json: rows[0]: expected either 'plan', or 'program' and 'params'");
  CHECK(refusal(rows_text(row("null", "\"any\"", "rest", R"(, "shift": 1)"))) ==
        "t.json: rows[0].shift: only a plan of such a collective has one");
}

TEST_CASE("a row that is never reached, and a call without a row, are mistakes") {
  CHECK(refusal(rows_text(kRest + "," + row("1024", "\"any\"", "late"))) ==
        "t.json: rows[1]: never reached: rows[0] takes all its calls");
  const std::string last =
      "the last row of alltoall must take every call: \"ranks\": \"any\", \"bytes\": null, "
      "\"dtypes\": \"any\", no \"accumulate\", in place and captured too, over any links, "
      "no \"order\" \"any\"";
  CHECK(refusal(rows_text(row("1024", "\"any\"", "some"))) == "t.json: rows[0]: " + last);
  CHECK(refusal(rows_text(row("null", "\"float\"", "some"))) == "t.json: rows[0]: " + last);
  CHECK(refusal(rows_text(row("null", "\"any\"", "some", "", "4"))) == "t.json: rows[0]: " + last);
  CHECK(refusal(rows_text(row("null", "\"any\"", "some", R"(, "in_place": false)"))) ==
        "t.json: rows[0]: " + last);
}

TEST_CASE("what a plan's proof says decides which calls it keeps the order of") {
  Proof proof{.proved = true, .orders = {.replicated = true, .ranks = true}};
  proof.rounding = Rounding::each_op;
  LibraryCall call{.kind = CollectiveKind::allreduce, .ranks = 4, .dtype = Dtype::f32};
  call.order = SumOrder::ranks;
  CHECK(keeps_order(proof, call));
  call.dtype = Dtype::bf16;  // is rounded on the way
  CHECK_FALSE(keeps_order(proof, call));
  call.dtype = Dtype::i8;  // wraps on the way as at the end
  CHECK(keeps_order(proof, call));
  call.op = ReduceOp::avg;
  CHECK(keeps_order(proof, call));
  call.accumulate = Dtype::i32;  // an average of what has wrapped is another
  CHECK_FALSE(keeps_order(proof, call));
  proof.rounding = Rounding::once;
  CHECK(keeps_order(proof, call));
  proof.orders = {};  // a switch's sum, of two ranks too
  CHECK(keeps_order(proof, call));
  CHECK_FALSE(keeps_order(proof, {.kind = CollectiveKind::allreduce,
                                  .ranks = 2,
                                  .dtype = Dtype::f32,
                                  .order = SumOrder::ranks}));
  LibraryCall moves{.kind = CollectiveKind::allgather, .ranks = 2, .dtype = Dtype::f32};
  CHECK_FALSE(keeps_order(proof, moves));  // -0.0 is lost on its way to some ranks
  moves.dtype = Dtype::i32;
  CHECK(keeps_order(proof, moves));
  moves.dtype = Dtype::f32, moves.order = SumOrder::any;
  CHECK(keeps_order(proof, moves));
}

// A launch that waits for room keeps copy engines from their orders (docs/design/devices.md).
TEST_CASE("no row of one node has port channels") {
  Diagnostics diagnostics;
  const auto table =
      LibraryTable::parse(read_file("plans/library.json").value(), "library.json", diagnostics);
  REQUIRE(table);
  size_t far = 0;
  for (const LibraryRow& row : table->rows()) {
    const std::string text = read_file("plans/" + row.choice.program + ".mscl").value();
    const bool has_port = text.find("= port(") != std::string::npos;
    INFO(row.choice.program);
    if (row.for_nodes(1) && row.min_nodes == 1) CHECK(!has_port);
    far += has_port ? 1 : 0;
  }
  CHECK(far >= 5);
}

// docs/integration.md says so: -0.0 would arrive as +0.0.
TEST_CASE("rows that only move data have no sentinel packets") {
  Diagnostics diagnostics;
  const auto table =
      LibraryTable::parse(read_file("plans/library.json").value(), "library.json", diagnostics);
  REQUIRE(table);
  size_t moves = 0, sentinels = 0;
  for (const LibraryRow& row : table->rows()) {
    const bool reduces = info(row.kind).source == Source::everyone;
    if (!reduces) ++moves;
    for (const auto& [name, value] : row.choice.params) {
      if (value != "sentinel") continue;
      ++sentinels;
      INFO(info(row.kind).name << ", " << row.choice.program);
      CHECK(reduces);
    }
  }
  CHECK(moves > 50);
  CHECK(sentinels > 0);
}

}  // namespace mscclc
