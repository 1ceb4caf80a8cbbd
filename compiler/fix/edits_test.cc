#include "compiler/fix/edits.h"

#include <catch2/catch.hpp>

namespace mscclc::fix {
namespace {

TEST_CASE("the difference of two texts makes one of the other") {
  const std::string texts[] = {"",
                               "a\n",
                               "a\nb\nc\n",
                               "a\nx\nc\n",
                               "a\nb\nc",
                               "b\nb\nb\nc\n",
                               "a\nbc\nc\nd\ne\nf\ng\nh\ni\n",
                               "a\nbd\nc\nd\ne\nf\ng\ni\n"};
  for (const std::string& before : texts) {
    for (const std::string& after : texts) {
      INFO(before << "---\n" << after);
      const std::vector<TextEdit> edits = difference(before, after, 0);
      CHECK(patched(before, edits) == after);
      CHECK(edits.empty() == (before == after));
    }
  }
}

TEST_CASE("edits are as short as they can be") {
  const auto edits = difference("a\nput x\nc\nd\n", "a\nput yx\nc\nd2\n", 7);
  REQUIRE(edits.size() == 2);
  CHECK(edits[0].file == 7);
  CHECK(edits[0].begin == 6);
  CHECK(edits[0].end == 6);
  CHECK(edits[0].text == "y");
  CHECK(edits[1].begin == 11);
  CHECK(edits[1].text == "2");
}

TEST_CASE("edits are of whole characters") {
  const std::string before = "a \xc3\xa9 b\n", after = "a \xc3\xb6 b\n";  // é, ö
  const std::vector<TextEdit> edits = difference(before, after, 0);
  REQUIRE(edits.size() == 1);
  CHECK(edits[0].text == "\xc3\xb6");
  CHECK(patched(before, edits) == after);
  const std::string tail = "\xc5\xa9\n", other = "\xc3\xa9\n";  // characters that end alike
  REQUIRE(difference(tail, other, 0).size() == 1);
  CHECK(difference(tail, other, 0)[0].text == "\xc3\xa9");
}

TEST_CASE("a unified diff") {
  CHECK(unified_diff("f", "a\nb\n", "a\nb\n").empty());
  CHECK(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n") ==
        "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
  CHECK(unified_diff("f", "1\n2", "1\n2\n") ==
        "--- f\n+++ f\n@@ -1,2 +1,2 @@\n 1\n-2\n\\ No newline at end of file\n+2\n");
  CHECK(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n2\n3\n4\n5\n6\n7\n8\n") ==
        "--- f\n+++ f\n@@ -1,4 +1,4 @@\n-1\n+0\n 2\n 3\n 4\n@@ -6,4 +6,3 @@\n 6\n 7\n 8\n-9\n");
  CHECK(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n", "0\n2\n3\n4\n5\n6\n") ==
        "--- f\n+++ f\n@@ -1,7 +1,6 @@\n-1\n+0\n 2\n 3\n 4\n 5\n 6\n-7\n");
}

}  // namespace
}  // namespace mscclc::fix
