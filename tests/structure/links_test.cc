// Every link of every document leads somewhere.
#include "tests/structure/links.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

using Strings = std::vector<std::string>;

Strings broken(const std::map<std::string, std::string>& some) {
  return broken_links(some, [](const std::string& path) { return path == "plans/ring.mscl"; });
}

TEST_CASE("every link of the documents leads to a file and a heading") {
  const auto all = pages();
  REQUIRE(all.size() > 30);
  REQUIRE(all.contains("docs/README.md"));
  for (const std::string& message :
       broken_links(all, [](const std::string& path) { return std::filesystem::exists(path); })) {
    FAIL_CHECK(message);
  }
}

TEST_CASE("the index of each folder of documents has every page of it") {
  const auto all = pages();
  const std::string& index = all.at("docs/README.md");
  for (const auto& [path, text] : all) {
    const std::filesystem::path page(path);
    if (!path.starts_with("docs/") || page == "docs/README.md") continue;
    INFO(path);
    if (page.filename() == "README.md") {
      CHECK(index.find("](" + path.substr(5) + ")") != std::string::npos);
    } else {
      const std::string& own = all.at(page.parent_path() / "README.md");
      CHECK(own.find("](" + page.filename().string() + ")") != std::string::npos);
    }
  }
}

TEST_CASE("headings have GitHub's names") {
  CHECK(heading_names("# What it's `for`\n\ntext\n## A_b: [c d](e.md), f\n") ==
        Strings{"what-its-for", "a_b-c-d-f"});
  CHECK(heading_names("## Again\n## Again\n```\n# a comment\n```\n#5 is no heading\n") ==
        Strings{"again", "again-1"});
}

TEST_CASE("a link that leads nowhere is found, with its line") {
  CHECK(broken({{"docs/a.md", "# One\n\n[x](b.md#two) and [y](../c.md#one)\n"},
                {"docs/b.md", "# Two\n"},
                {"c.md", "# Other\n"}}) == Strings{"docs/a.md:3: ../c.md#one: no such heading"});
  CHECK(
      broken({{"docs/a.md", "[x](b.md), [y](../plans/ring.mscl)\n[z](../plans/tree.mscl)\n"}}) ==
      Strings{"docs/a.md:1: b.md: no such file", "docs/a.md:2: ../plans/tree.mscl: no such file"});
  CHECK(broken({{"a.md", "# Here\n[up](#here), [down](#there)\n"}}) ==
        Strings{"a.md:2: #there: no such heading"});
}

TEST_CASE("code and addresses elsewhere are no links") {
  CHECK(broken({{"a.md", "`f[i](x)` [w](https://example.org/none)\n```\nv[0](y)\n```\n"}}).empty());
}

}  // namespace
}  // namespace mscclc::structure
