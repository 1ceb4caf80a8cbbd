#include "tools/lsp/language/parameters.h"

#include <catch2/catch.hpp>

using namespace mscclc::lsp;

namespace {

std::vector<ParameterSet> sets_of(const std::string& text,
                                  const std::map<std::string, std::string>& settings = {}) {
  return parameter_sets(text, read_tree("a.mscl", text, {}).get(), settings);
}

}  // namespace

TEST_CASE("parameters: without comments and settings they are the defaults") {
  const auto sets = sets_of("param R = 4\n");
  REQUIRE(sets.size() == 1);
  CHECK(sets[0].defines.empty());
}

TEST_CASE("parameters: each comment is a set") {
  const auto sets = sets_of("# a\n# mscclc: -D R=4 -D F=LL128\nparam R = 2\n  ## mscclc: -DR=16\n");
  REQUIRE(sets.size() == 2);
  CHECK(sets[0].defines == Defines{{"R", "4"}, {"F", "LL128"}});
  CHECK(sets[0].line == 1);
  CHECK(sets[1].defines == Defines{{"R", "16"}});
  CHECK(sets[1].line == 3);
  CHECK(text_of(sets[0].defines) == "-D R=4 -D F=LL128");
}

TEST_CASE(
    "parameters: settings count where the program has such a parameter, comments before them") {
  const std::map<std::string, std::string> settings = {{"R", "3"}, {"other", "1"}};
  CHECK(sets_of("param R = 4\n", settings)[0].defines == Defines{{"R", "3"}});
  CHECK(sets_of("param N = 4\n", settings)[0].defines.empty());
  CHECK(sets_of("# mscclc: -D R=5\nparam R = 4\n", settings)[0].defines == Defines{{"R", "5"}});
}

TEST_CASE("parameters: what is no -D is kept, for the compiler to report") {
  CHECK(sets_of("# mscclc: R\nparam R = 4\n")[0].defines == Defines{{"R", ""}});
  CHECK(sets_of("# mscclc:\nparam R = 4\n")[0].defines.empty());
  CHECK(sets_of("# mscclc: -D\nparam R = 4\n")[0].defines == Defines{{"", ""}});
  std::string many;
  for (int i = 0; i < 100; ++i) many += "# mscclc: -D R=2\n";
  CHECK(sets_of(many).size() == kMaxSets + 1);
}
