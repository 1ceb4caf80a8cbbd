// Every link of every document leads somewhere, and every file, folder and member that a document
// names is there.
#include "tests/structure/links.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string_view>

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

/// Pages about the tree as it is: those of docs/records are about what it was.
std::map<std::string, std::string> pages_of_today() {
  auto all = pages();
  std::erase_if(all, [](const auto& page) { return page.first.starts_with("docs/records/"); });
  return all;
}

TEST_CASE("every file and folder that a document names is there") {
  // What is built, or another project's.
  constexpr std::string_view kElsewhere[] = {
      ": docs/playground: ", ": docs/playground/index.html: ", ": trtllm_allreduce_fusion.cuh: "};
  const auto all = files();
  REQUIRE(all.contains("tools/playground/build"));
  for (const std::string& message : missing_files(pages_of_today(), all)) {
    if (std::ranges::none_of(kElsewhere, [&](std::string_view name) {
          return message.find(name) != std::string::npos;
        })) {
      FAIL_CHECK(message);
    }
  }
}

TEST_CASE("every member that a document names is there") {
  constexpr std::string_view kElsewhere[] = {": cutlass::arch: ", ": Executor::reset: "};
  const auto all = texts();
  REQUIRE(all.size() > 1000);
  for (const std::string& message : missing_members(pages_of_today(), all)) {
    if (std::ranges::none_of(kElsewhere, [&](std::string_view name) {
          return message.find(name) != std::string::npos;
        })) {
      FAIL_CHECK(message);
    }
  }
}

TEST_CASE("a file that is not there is found where it stands in code, with its line") {
  const std::set<std::string> there = {"ir/ops/ops.h", "ir/ops/run", "tests/a/b_test.cc"};
  const auto missing = [&there](const std::string& page) {
    return missing_files({{"a.md", page}}, there);
  };
  CHECK(missing("`ir/ops`, `ir/ops/`, `ir/ops/ops`, `ir/ops/run`, `ops.h`, `tests/a/b_test.cc`")
            .empty());
  CHECK(missing("\n`ir/opps/`") == Strings{"a.md:2: ir/opps/: no such file"});
  CHECK(missing("`ir/ops.h`, `opps.h`") ==
        Strings{"a.md:1: ir/ops.h: no such file", "a.md:1: opps.h: no such file"});
  CHECK(missing("`tests/a/c`, `tests/a/b.json`").size() == 2);
  CHECK(missing("```\n`opps.h`\n```\nir/opps, `other/opps.h`, `mine.py`, `x.h`").empty());
}

TEST_CASE("a member that no source names beside its type is found") {
  const auto missing = [](const std::string& page) {
    return missing_members({{"a.md", page}}, {{"a.h", "struct A { int b; };"}, {"c.h", "int cc;"}});
  };
  CHECK(missing("`A::b`, `A::b()`, `const A::b&`").empty());
  CHECK(missing("`A::c`, `B::b`, A::d") ==
        Strings{"a.md:1: A::c: no such member", "a.md:1: B::b: no such member"});
  CHECK(missing("`A::cc`").size() == 1);
}

}  // namespace
}  // namespace mscclc::structure
