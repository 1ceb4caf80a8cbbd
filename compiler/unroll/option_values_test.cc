#include "compiler/unroll/option_values.h"

#include <catch2/catch.hpp>

#include "compiler/resolve/options.h"
#include "compiler/unroll/unroll_test_parts.h"

using namespace mscclc;

namespace {

/// The options of a `select` line.
struct WithOptions : Unrolling {
  OptionValues values{scope};
  explicit WithOptions(const std::string& options) : Unrolling("select " + options + "\n") {
    diagnostics = {};
  }
  OptionValues::Options list() const { return items[0].stmt->as<ast::Options>().options; }
};

}  // namespace

TEST_CASE("options have numbers, ranges and words") {
  WithOptions w("priority: 3 * 4, sizes: 2..5, tags: [a, \"b c\"]");
  int64_t priority = 0;
  CHECK(w.values.number(w.list(), ast::w_priority, priority));
  CHECK(priority == 12);
  Range sizes;
  w.values.range(w.list(), ast::w_sizes, sizes);
  CHECK(sizes.min == 2);
  CHECK(sizes.max == 4);
  std::vector<std::string> words;
  w.values.words(w.list(), ast::w_tags,
                 [&](std::string_view word, ast::TextRange) { words.emplace_back(word); });
  CHECK(words == std::vector<std::string>{"a", "b c"});
  CHECK(w.message().empty());
}

TEST_CASE("an option that is not written has no value, and that is no mistake") {
  WithOptions w("priority: 1");
  int64_t nodes = 7;
  CHECK_FALSE(w.values.number(w.list(), ast::w_nodes, nodes));
  std::vector<int64_t> dims = {4};
  CHECK(w.values.dims(w.list(), ast::w_chunks, dims));
  CHECK(dims == std::vector<int64_t>{4});
  CHECK(w.message().empty());
}

TEST_CASE("a value that does not do is reported") {
  WithOptions w("priority: -1, sizes: [1, 3]");
  uint32_t small = 0;
  CHECK_FALSE(w.values.small(w.list(), ast::w_priority, small));
  CHECK(w.message() == "'priority' is -1, a negative number");
  Range sizes;
  w.values.range(w.list(), ast::w_sizes, sizes);
  CHECK(w.message() == "expected a number or a range, found a list");
}
