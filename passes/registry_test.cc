#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {

using testing::fail;
using testing::parse;
using testing::two_ranks;

TEST_CASE("registry: every pass is found by its name") {
  REQUIRE(passes().size() >= 6);
  for (const PassInfo& pass : passes()) {
    REQUIRE(find_pass(pass.name) == &pass);
    REQUIRE_FALSE(pass.summary.empty());
  }
  REQUIRE(find_pass("nothing") == nullptr);
}

TEST_CASE("registry: unknown passes are named before anything runs") {
  Program p = parse(two_ranks("copy s[0] <- input[0]"));
  REQUIRE(fail(p, {"assign", "synch"}) == "\nunknown pass 'synch'; did you mean 'sync'?\n");
  REQUIRE(p.ranks[0].ops[0].block == kNone);
}

TEST_CASE("registry: passes run in the order asked for, and are announced") {
  Program p = parse(two_ranks("copy s[0] <- input[0]"));
  std::string seen;
  PipelineOptions options;
  options.only = {"split", "assign"};
  options.context = &seen;
  options.before = [](const PassInfo& pass, const Program&, void* context) {
    *static_cast<std::string*>(context) += "<" + std::string(pass.name);
  };
  options.after = [](const PassInfo& pass, const Program&, void* context) {
    *static_cast<std::string*>(context) += ">" + std::string(pass.name);
  };
  Diagnostics diagnostics;
  REQUIRE_FALSE(run_passes(p, options, diagnostics));
  REQUIRE(seen == "<split");
  options.only = {"assign", "split"};
  seen.clear();
  REQUIRE(run_passes(p, options, diagnostics));
  REQUIRE(seen == "<assign>assign<split>split");
  options.none = true;
  seen.clear();
  REQUIRE(run_passes(p, options, diagnostics));
  REQUIRE(seen.empty());
}

}  // namespace mscclc
