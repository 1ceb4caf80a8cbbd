// Limits of the documents: pages that can be read in one sitting, and a README that can be read at
// once.
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

constexpr size_t kPage = 40 * 1024;         // bytes of a page
constexpr size_t kUsersPages = 300 * 1024;  // bytes of docs/*.md together
constexpr size_t kReadmeWords = 700;        // with those of its commands and programs

size_t words(const std::string& text) {
  std::istringstream in(text);
  size_t count = 0;
  for (std::string word; in >> word;) ++count;
  return count;
}

TEST_CASE("a page of the documents has at most 40 KiB") {
  size_t pages_seen = 0;
  for (const auto& [path, text] : pages()) {
    if (!path.starts_with("docs/")) continue;
    ++pages_seen;
    INFO(path << ": split it by subject");
    CHECK(text.size() <= kPage);
  }
  CHECK(pages_seen > 40);
}

TEST_CASE("the pages for users have at most 300 KiB together") {
  size_t bytes = 0;
  for (const auto& [path, text] : pages()) {
    if (std::filesystem::path(path).parent_path() == "docs") bytes += text.size();
  }
  INFO("what only maintainers need belongs into docs/design, measurements into docs/records");
  CHECK(bytes > 0);
  CHECK(bytes <= kUsersPages);
}

TEST_CASE("the README has at most 700 words") {
  const std::string readme = pages().at("README.md");
  CHECK(words(readme) > 0);
  CHECK(words(readme) <= kReadmeWords);
}

TEST_CASE("words are what blanks separate") {
  CHECK(words("") == 0);
  CHECK(words(" one\n\ntwo  `three`\n") == 3);
}

}  // namespace
}  // namespace mscclc::structure
