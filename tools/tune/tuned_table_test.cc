// The table that a run ends with: which calls get what was found, and which what the library picks.
#include "tools/tune/tuned_table.h"

#include <algorithm>

#include "tools/tune/small_library_test.h"

namespace mscclc::tune {
namespace {

LibraryRow found(const std::string& format, const std::string& blocks) {
  LibraryRow row;
  row.kind = CollectiveKind::allreduce;
  row.order = SumOrder::ranks;
  row.dtypes = all_dtypes(false);
  row.choice.program = "allreduce_1shot_ordered";
  row.choice.params = {{"F", format}, {"B", blocks}};
  return row;
}

SizeResult result(uint64_t bytes, const LibraryRow& best, double ns, double library_ns = 4000) {
  SizeResult r;
  r.call = two_ranks(bytes);
  r.best = {best, ns};
  r.library = {*std::ranges::find_if(whole_library().rows(),
                                     [&](const LibraryRow& row) { return row.fits(r.call); }),
               library_ns};
  return r;
}

LibraryTable parsed(const std::string& text) {
  Diagnostics diagnostics;
  auto table = LibraryTable::parse(text, "tuned", diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  INFO(text);
  REQUIRE(table);
  return *std::move(table);
}

LibraryTable table_of(const std::vector<std::vector<SizeResult>>& results,
                      const LibraryTable& library = whole_library()) {
  return parsed(library_table_text(tuned_rows(results, library)));
}

}  // namespace

TEST_CASE("calls get what was found up to the largest size, and then what the library picks") {
  const LibraryTable table =
      table_of({{result(1024, found("LL16", "3"), 1000), result(2048, found("LL16", "5"), 1500),
                 result(4096, found("LL16", "5"), 2000)}});
  const auto pick = [&](LibraryCall call) { return text_of(*table.choose(call)); };
  CHECK(pick(two_ranks(16)) == "allreduce_1shot_ordered:F=LL16,B=3");
  CHECK(pick(two_ranks(1024)) == "allreduce_1shot_ordered:F=LL16,B=3");
  CHECK(pick(two_ranks(1025)) == "allreduce_1shot_ordered:F=LL16,B=5");
  CHECK(pick(two_ranks(4096)) == "allreduce_1shot_ordered:F=LL16,B=5");
  const auto as_before = [&](LibraryCall call) {
    CHECK(pick(call) == text_of(*whole_library().choose(call)));
  };
  as_before(two_ranks(4097));
  LibraryCall four = two_ranks(1024);
  four.ranks = 4;
  as_before(four);
  // Sizes with the same plan are one row.
  size_t tuned = 0;
  for (const LibraryRow& row : table.rows()) {
    tuned += row.choice == found("LL16", "5").choice || row.choice == found("LL16", "3").choice;
  }
  CHECK(tuned == 2);
  CHECK(table.collectives() == std::vector<CollectiveKind>{CollectiveKind::allreduce});
}

TEST_CASE("calls under another contract about sums get what the library picks") {
  SizeResult four = result(1024, found("LL16", "3"), 1000);
  four.call.ranks = 4;
  const LibraryTable table = table_of({{four}});
  LibraryCall call = four.call;
  CHECK(text_of(*table.choose(call)) == "allreduce_1shot_ordered:F=LL16,B=3");
  call.order = SumOrder::exact;
  CHECK(text_of(*table.choose(call)) == text_of(*whole_library().choose(call)));
}

TEST_CASE("what was found under a contract serves calls that ask for it, and no others") {
  SizeResult exact = result(1024, found("LL16", "3"), 1000);
  exact.call.ranks = 4;  // of two ranks all sums are exact
  exact.call.order = exact.best.row.order = SumOrder::exact;
  const LibraryTable table = table_of({{exact}});
  LibraryCall call = exact.call;
  CHECK(text_of(*table.choose(call)) == "allreduce_1shot_ordered:F=LL16,B=3");
  for (const SumOrder order : {kDefaultOrder, SumOrder::ranks, SumOrder::tree}) {
    call.order = order;
    CHECK(text_of(*table.choose(call)) == text_of(*whole_library().choose(call)));
  }
}

TEST_CASE("plans that are not for all types and links leave the others to the library") {
  const LibraryTable table = table_of(
      {{result(1024, found("sentinel", "3"), 1000), result(2048, found("LL128", "5"), 1500)}});
  LibraryCall integers = two_ranks(1024);
  integers.dtype = Dtype::i32;
  CHECK(text_of(*table.choose(two_ranks(1024))) == "allreduce_1shot_ordered:F=sentinel,B=3");
  // The next row takes integers too.
  CHECK(text_of(*table.choose(integers)) == "allreduce_1shot_ordered:F=LL128,B=5");
  LibraryCall pcie = two_ranks(2048);
  pcie.links = LinkKind::pcie;
  CHECK(text_of(*table.choose(pcie)) == text_of(*whole_library().choose(pcie)));
}

TEST_CASE("a table of what the library picks anyway is one that can be read") {
  std::vector<SizeResult> results;
  for (uint64_t bytes = 1024; bytes <= uint64_t{1} << 30; bytes *= 2) {
    SizeResult r = result(bytes, found("LL16", "1"), 1000);
    r.best = r.library;
    results.push_back(r);
  }
  const LibraryTable table = table_of({results});
  for (const SizeResult& r : results) {
    CHECK(text_of(*table.choose(r.call)) == text_of(*whole_library().choose(r.call)));
  }
}

TEST_CASE("time that jumps is named with its plan") {
  const std::vector<SizeResult> results = {
      result(1024, found("LL16", "1"), 1000), result(2048, found("LL16", "2"), 1900),
      result(4096, found("LL16", "4"), 6000), result(8192, found("LL16", "8"), 0)};
  const std::vector<Jump> all = jumps(results);
  REQUIRE(all.size() == 1);
  CHECK(all[0].from == 2048);
  CHECK(all[0].plan == "allreduce_1shot_ordered:F=LL16,B=4");
  const std::string text = results_text(results);
  CHECK(text.find("time jumps from 2 KiB to 4 KiB: 1.90 to 6.00 us, by "
                  "allreduce_1shot_ordered:F=LL16,B=4\n") != std::string::npos);
  CHECK(text.find("     1 KiB         4.00         1.00    75 %            -       -  "
                  "allreduce_1shot_ordered:F=LL16,B=1\n") != std::string::npos);
  CHECK(text.find("NCCL at") == std::string::npos);
  CHECK(text.find("none that could be timed") != std::string::npos);
}

TEST_CASE("of two plans that differ by more than a tenth the model should name the faster") {
  SizeResult r = result(1024, found("LL16", "1"), 1000);
  // As timed 1000, 1050, 1500 and 3000; the model takes the last two the other way round.
  r.tried = {{10, 1000}, {9, 1050}, {30, 1500}, {20, 3000}};
  const ModelPairs pairs = count_pairs({r, r});
  CHECK(pairs.all == 2 * 5);
  CHECK(pairs.right == 2 * 4);
}

TEST_CASE("the table has what NCCL takes, and how often it is slower") {
  std::vector<SizeResult> results = {result(1024, found("LL16", "1"), 1000),
                                     result(2048, found("LL16", "2"), 1900)};
  results[0].nccl_ns = 2000;
  results[1].nccl_ns = 1500;
  const std::string text = results_text(results);
  INFO(text);
  CHECK(text.find("     1 KiB         4.00         1.00    75 %         2.00    50 %  ") !=
        std::string::npos);
  CHECK(text.find("     2 KiB         4.00         1.90    52 %         1.50   -27 %  ") !=
        std::string::npos);
  CHECK(text.find("faster than NCCL at 1 of 2 sizes\n") != std::string::npos);
}

TEST_CASE(
    "what the library has for calls that are not captured stays, where captured ones were timed") {
  const LibraryTable library = parsed(R"({"rows": [
    {"collective": "allgather", "ranks": "any", "bytes": 1048576, "dtypes": "any", "program": "allgather_direct", "params": {"B": 64}},
    {"collective": "allgather", "ranks": "any", "bytes": null, "dtypes": "any", "program": "allgather_copy_engine", "params": {"B": 16}, "captured": false},
    {"collective": "allgather", "ranks": "any", "bytes": null, "dtypes": "any", "program": "allgather_direct", "params": {"B": 32}}
  ]})");
  LibraryCall call{.kind = CollectiveKind::allgather, .ranks = 4, .captured = true};
  std::vector<SizeResult> results;
  for (const uint64_t bytes : {uint64_t{1} << 20, uint64_t{1} << 30}) {
    call.bytes = bytes;
    SizeResult r;
    r.call = call;
    const auto rows = library.rows();
    r.library = {*std::ranges::find_if(rows, [&](const LibraryRow& row) { return row.fits(call); }),
                 4000};
    r.best = r.library;
    r.best.ns = 1000;
    r.best.row.choice = {
        .program = "allgather_direct", .params = {{"B", "7"}, {"T", "512"}}, .plan = ""};
    results.push_back(std::move(r));
  }
  const LibraryTable table = table_of({results}, library);
  for (const SizeResult& r : results) {
    CHECK(text_of(*table.choose(r.call)) == "allgather_direct:B=7,T=512");
    LibraryCall eager = r.call;
    eager.captured = false;
    const bool copied = text_of(*library.choose(eager)).starts_with("allgather_copy_engine");
    CHECK(copied == (r.call.bytes == uint64_t{1} << 30));
    CHECK(text_of(*table.choose(eager)) ==
          (copied ? text_of(*library.choose(eager)) : "allgather_direct:B=7,T=512"));
  }
}

}  // namespace mscclc::tune
