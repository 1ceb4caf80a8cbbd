// No text uses a word that the glossary (docs/design/glossary.md, "Words that are not terms") has
// another for: in its name, in code, comments or messages, or in a document.
#include "tests/structure/words.h"

#include <catch2/catch.hpp>
#include <map>

#include "ir/support/read_file.h"
#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

using Strings = std::vector<std::string>;

constexpr std::string_view kGlossary = "docs/design/glossary.md";

std::vector<UnusedWords> glossary() {
  return unused_words(read_file(std::string(kGlossary)).value());
}

Strings found(std::string_view text) {
  constexpr std::string_view kTable =
      "# Words\n\n| write | not | except in |\n|---|---|---|\n"
      "| shows | tell, tells | |\n"
      "| after | behind | leaves … behind, lag-behind |\n"
      "| forever | for ever | |\n| fake | stand-in | |\n"
      "| compiled | kernels of a plan's own, own kernels | torch's own kernels |\n\n| write | not "
      "|\n|---|---|\n| a | b |\n";
  return find_unused("a.cc", text, unused_words(kTable));
}

TEST_CASE("the glossary has the table of words") {
  const std::vector<UnusedWords> table = glossary();
  REQUIRE(table.size() >= 9);
  for (const UnusedWords& row : table) {
    CHECK(!row.instead.empty());
    CHECK(!row.phrases.empty());
  }
}

/// How many files there were.
size_t check(const std::map<std::string, std::string>& texts, std::string_view except) {
  const std::vector<UnusedWords> table = glossary();
  for (const auto& [path, text] : texts) {
    if (path == except) continue;
    for (const std::string& message : find_unused(path, path, table)) FAIL_CHECK(message);
    for (const std::string& message : find_unused(path, text, table)) FAIL_CHECK(message);
  }
  return texts.size();
}

TEST_CASE("no text has a word that the glossary has another for") {
  CHECK(check(texts(), "tests/structure/words_test.cc") > 1000);
}

TEST_CASE("no document has a word that the glossary has another for") {
  CHECK(check(pages(), kGlossary) > 80);
}

TEST_CASE("a word is found in comments, messages and names, with its line") {
  const Strings tells = {"a.cc:2: 'tells'; write: shows"};
  CHECK(found("int a;\n// It tells.\n") == tells);
  CHECK(found("int a;\nput(\"it Tells\");\n") == tells);
  CHECK(found("int a;\nint it_tells_all;\n") == tells);
  CHECK(found("int a;\nint kTells;\n") == tells);
  CHECK(found("int a;\nint tellsIt;\n") == tells);
  CHECK(found("int a;\nint NCCLTells2;\n") == tells);
  CHECK(found("int a;\n\"x\\ntells\"\n") == tells);
  CHECK(found("tell\ntells\n").size() == 2);
  CHECK(found("tellp(); retells; Tellsb; hotel_ls;").empty());
}

TEST_CASE("words in a row are found across lines and names, and not across punctuation") {
  const Strings ever = {"a.cc:1: 'for ever'; write: forever"};
  CHECK(found("// for\n/// ever\n") == ever);
  CHECK(found("# for\n  # ever\n") == ever);
  CHECK(found("\"for \"\n  \"ever\"") == ever);
  CHECK(found("waits_for_ever") == ever);
  CHECK(found("kForEver") == ever);
  CHECK(found("for, ever; for (ever) forever").empty());
}

TEST_CASE("a word with an apostrophe is two") {
  CHECK(found("kernels of a plan's own").size() == 1);
  CHECK(found("kernels of\n// a plan's own").size() == 1);
  CHECK(found("torch's own kernels").empty());
  CHECK(found("kernels of a plan, 's own").empty());
}

TEST_CASE("a word with a hyphen is joined") {
  CHECK(found("a stand-in").size() == 1);
  CHECK(found("stand_in.cc").size() == 1);
  CHECK(found("kStandIn").size() == 1);
  CHECK(found("both stand in one line").empty());
}

TEST_CASE("a word may stand in the phrases of the third column") {
  CHECK(found("behind").size() == 1);
  CHECK(found("leaves nothing at all behind, lag_behind").empty());
  CHECK(found("leaves it. behind").size() == 1);
  CHECK(found("lag behind").size() == 1);
  CHECK(found("leaves one two three four five behind").size() == 1);
  CHECK(found("it lies behind what leaves").size() == 1);
}

TEST_CASE("a page without the table has no words") {
  CHECK(unused_words("# A\n\n| write | not |\n|---|---|\n| a | b |\n").empty());
}

}  // namespace
}  // namespace mscclc::structure
