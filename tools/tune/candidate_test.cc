// Candidates: changed parameters, what they are for, and their plans.
#include "tools/tune/candidate.h"

#include <set>

#include "tools/tune/small_library_test.h"

namespace mscclc::tune {
namespace {

LibraryRow row_with(std::vector<std::pair<std::string, std::string>> params) {
  LibraryRow row;
  row.kind = CollectiveKind::allreduce;
  row.dtypes = all_dtypes(false);
  row.choice.program = "allreduce_1shot_ordered";
  row.choice.params = std::move(params);
  return row;
}

std::set<std::string> texts(const std::vector<LibraryRow>& rows) {
  std::set<std::string> all;
  for (const LibraryRow& row : rows) all.insert(row.choice.params_text());
  return all;
}

Plans plans_with(const Limits& limits) {
  Diagnostics diagnostics;
  return Plans(program_of_library, find_machine("2xH200", diagnostics).value(), limits);
}

}  // namespace

TEST_CASE("neighbours differ in one parameter") {
  const LibraryRow row = row_with({{"F", "LL16"}, {"B", "4"}, {"T", "128"}});
  CHECK(texts(neighbours(row, two_ranks(4096), {})) ==
        std::set<std::string>{"F=LL8,B=4,T=128", "F=LL128,B=4,T=128", "F=sentinel,B=4,T=128",
                              "F=LL16,B=2,T=128", "F=LL16,B=6,T=128", "F=LL16,B=8,T=128",
                              "F=LL16,B=4,T=64", "F=LL16,B=4,T=192", "F=LL16,B=4,T=256"});
}

TEST_CASE("neighbours keep to what the machine and the type can do") {
  const LibraryRow row = row_with({{"F", "LL16"}, {"B", "8"}});
  LibraryCall call = two_ranks(4096);
  call.dtype = Dtype::i32;
  CHECK(texts(neighbours(row, call, {.max_blocks = 9, .lines = false})) ==
        std::set<std::string>{"F=LL8,B=8", "F=LL16,B=4", "F=LL16,B=5"});
  // What is no number or has no other value stays.
  CHECK(neighbours(row_with({{"world", "ranks"}, {"tree", "true"}}), call, {}).empty());
}

TEST_CASE("a row may get parameters that it does not name, and numbers that are near") {
  const LibraryRow row = row_with({{"B", "64"}, {"S", "2"}});
  CHECK(texts(extended(row)) == std::set<std::string>{"B=64,S=2,own=16", "B=64,S=2,own=64",
                                                      "B=64,S=2,apart=true", "B=64,S=2,leaves=true",
                                                      "B=64,S=2,spread=true"});
  const std::set<std::string> fine = texts(neighbours(row, two_ranks(4096), {}, true));
  CHECK((fine.contains("B=56,S=2") && fine.contains("B=72,S=2")));
  CHECK_FALSE(texts(neighbours(row, two_ranks(4096), {})).contains("B=56,S=2"));
}

TEST_CASE("a plan that does not keep the call's order is no candidate") {
  Plans plans = plans_with({});
  LibraryCall call = two_ranks(4096);
  call.ranks = 4;
  call.order = SumOrder::tree;
  LibraryRow row = row_with({{"F", "LL16"}, {"B", "4"}, {"T", "128"}});
  CHECK(plans.of(row.choice, call).program == nullptr);
  row.choice.params.emplace_back("tree", "true");
  CHECK(plans.of(row.choice, call).program != nullptr);
  call.ranks = 2;  // every sum of two is both
  row.choice.params.pop_back();
  CHECK(plans.of(row.choice, call).program != nullptr);
}

TEST_CASE("a format says what a row is for") {
  LibraryRow row = row_with({{"F", "sentinel"}});
  restrict_by_format(row);
  CHECK(row.dtypes == all_dtypes(true));
  CHECK_FALSE(row.links);
  row.choice.params[0].second = "LL128";
  restrict_by_format(row);
  CHECK(row.dtypes == all_dtypes(false));
  CHECK(row.links == LinkKind::nvlink);
  row.choice.params[0].second = "LL16";
  restrict_by_format(row);
  CHECK_FALSE(row.links);
  LibraryRow without = row_with({{"B", "4"}});
  without.dtypes = {Dtype::f16};
  restrict_by_format(without);
  CHECK(without.dtypes == std::vector<Dtype>{Dtype::f16});
}

TEST_CASE("plans are compiled once, and predicted where they can serve the call") {
  Plans plans = plans_with({.max_blocks = 8});
  const LibraryChoice choice = row_with({{"F", "LL16"}, {"B", "4"}}).choice;
  const Plans::Plan& plan = plans.of(choice, two_ranks(4096));
  REQUIRE(plan.program != nullptr);
  CHECK(&plans.of(choice, two_ranks(65536)) == &plan);
  const auto small = plans.predict(choice, two_ranks(4096));
  const auto large = plans.predict(choice, two_ranks(1 << 20));
  REQUIRE(small);
  REQUIRE(large);
  CHECK(*small < *large);
  // Too many blocks, what does not compile, what is no program.
  CHECK_FALSE(plans.predict(row_with({{"B", "16"}}).choice, two_ranks(4096)));
  CHECK_FALSE(plans.predict(row_with({{"B", "0"}}).choice, two_ranks(4096)));
  LibraryChoice none = choice;
  none.program = "no_such_program";
  CHECK_FALSE(plans.predict(none, two_ranks(4096)));
}

}  // namespace mscclc::tune
