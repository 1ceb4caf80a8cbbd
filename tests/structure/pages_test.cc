// Limits of the documents: pages that can be read in one sitting, and a README that can be read at
// once.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <sstream>
#include <vector>

#include "ir/program/proof.h"
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

/// A block of a page between fences.
struct Block {
  std::string before;  // the line above the fence
  std::string language;
  std::vector<std::string> lines;
  size_t line = 0;  // of the fence
};

std::vector<Block> blocks(const std::string& page) {
  std::vector<Block> found;
  std::istringstream in(page);
  std::string line, before;
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (line.starts_with("```")) {
      Block block{before, line.substr(3), {}, number};
      while (std::getline(in, line) && ++number && !line.starts_with("```")) {
        block.lines.push_back(line);
      }
      found.push_back(std::move(block));
    }
    before = line;
  }
  return found;
}

/// Does the line call a program of ours, a launcher or a compiler?
bool is_command(const std::string& line) {
  static const std::regex command(
      R"((export |[A-Z][A-Z0-9_]*=\S* )*(\./|mscclc |mscclc-bench |bazel|python3 |python/|tests/|tools/|pip |)"
      R"(torchrun |mpirun |srun |vllm |cmake |make |cc |nvcc |nvidia-|export ).*)");
  return std::regex_match(line, command);
}

/// The blocks of a page whose commands no test runs, and that do not say why: "docs/a.md:7". Run
/// are blocks that begin with '$ ' (//tests:documents, and python/tests/test_document.py), and of
/// pages in `snippets` those that name their language (//tests/nccl:integration_test).
std::vector<std::string> unrun(const std::string& path, const std::string& page, bool snippets) {
  static const std::regex says("<!-- (run by|by hand:) .+ -->");
  std::vector<std::string> found;
  for (const Block& block : blocks(page)) {
    const bool shell = block.language.empty() || block.language == "sh";
    if (!shell || block.lines.empty() || block.lines[0].starts_with("$ ")) continue;
    if (snippets && block.language == "sh") continue;
    if (std::ranges::none_of(block.lines, is_command)) continue;
    if (!std::regex_match(block.before, says))
      found.push_back(path + ":" + std::to_string(block.line));
  }
  return found;
}

// Pages of docs/records say how something was measured: on GPUs, by hand.
TEST_CASE("every command of the pages is run by a test, or says why not") {
  size_t sessions = 0;
  for (const auto& [path, text] : pages()) {
    if (path.starts_with("docs/records/") || path == "CHANGELOG.md") continue;
    const bool snippets = path == "README.md" || path == "docs/integration.md";
    for (const std::string& place : unrun(path, text, snippets)) FAIL_CHECK(place);
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    const bool shown = path == "README.md" || folder == "docs";  // what //tests:documents runs
    for (const Block& block : blocks(text)) {
      if (block.lines.empty() || !block.lines[0].starts_with("$ ")) continue;
      ++sessions;
      INFO(path << ":" << block.line << ": //tests:documents runs no commands of this page");
      CHECK(shown);
    }
  }
  CHECK(sessions > 20);
}

TEST_CASE("a command that no test runs is found") {
  const auto found = [](const std::string& text, bool snippets = false) {
    return unrun("a.md", text, snippets);
  };
  const std::string block = "```\nmscclc run x.json\n```\n";
  CHECK(found("Text:\n\n" + block) == std::vector<std::string>{"a.md:3"});
  CHECK(found("<!-- by hand: it needs a GPU -->\n" + block).empty());
  CHECK(found("<!-- run by //a:b -->\n" + block).empty());
  CHECK(found("<!-- by hand: -->\n" + block).size() == 1);
  CHECK(found("```\n$ mscclc run x.json\n```\n").empty());
  CHECK(found("```sh\nA=1 torchrun x.py\n```\n").size() == 1);
  CHECK(found("```sh\nA=1 torchrun x.py\n```\n", true).empty());
  CHECK(found("```\nerror: it is refused\n```\n```json\n{}\n```\n").empty());
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

TEST_CASE("the changelog says which version the prover's rules have") {
  const std::string said = "the prover's rules have version " + std::to_string(kProverVersion);
  CHECK(pages().at("CHANGELOG.md").find(said + ",") != std::string::npos);
}

TEST_CASE("words are what blanks separate") {
  CHECK(words("") == 0);
  CHECK(words(" one\n\ntwo  `three`\n") == 3);
}

}  // namespace
}  // namespace mscclc::structure
