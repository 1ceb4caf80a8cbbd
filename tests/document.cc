#include "tests/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "ir/support/read_file.h"
#include "tests/shell.h"

namespace mscclc::testing {

namespace fs = std::filesystem;

namespace {

using Lines = std::vector<std::string>;
constexpr std::string_view kAnyLines = "…";

Lines lines_of(const std::string& text) {
  Lines lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// A line without what differs from run to run. A row of a table of results
/// (tools/io/result_table.h) has whole numbers for long times, and so has the mean below it:
/// their place says what they are.
std::string bare(const std::string& line) {
  static const std::regex row(R"(^( *\d+ +\d+ +\w+ +\w+ +-?\d+) +[\d.]+ +[\d.]+ +[\d.]+ +(\d+)$)"),
      mean(R"(^(# Avg bus bandwidth +:) \S+$)"), number(R"(\d+\.\d+)"), spaces(" +");
  std::string text = std::regex_replace(line, row, "$1 # # # $2");
  text = std::regex_replace(text, mean, "$1 #");
  return std::regex_replace(std::regex_replace(text, number, "#"), spaces, " ");
}

/// Are `actual` lines from `a` on what is expected from `e` on?
bool matches(const Lines& expected, size_t e, const Lines& actual, size_t a) {
  if (e == expected.size()) return a == actual.size();
  if (expected[e] == kAnyLines) {
    for (; a <= actual.size(); ++a) {
      if (matches(expected, e + 1, actual, a)) return true;
    }
    return false;
  }
  return a < actual.size() && bare(expected[e]) == bare(actual[a]) &&
         matches(expected, e + 1, actual, a + 1);
}

std::string without_head(const std::string& text) {
  size_t at = 0;
  while (at < text.size() && text[at] == '#') at = std::min(text.find('\n', at), text.size()) + 1;
  return text.substr(std::min(at, text.size()));
}

/// One document, in a folder of its own.
class Document {
 public:
  Document(const fs::path& path, const fs::path& scratch, bool update)
      : path_(path), scratch_(scratch), folder_(scratch / path.stem()), update_(update) {
    fs::create_directory(folder_);
    fs::create_directory_symlink(fs::absolute("plans"), folder_ / "plans");
  }

  const DocumentResult& result() const { return result_; }

  /// Goes through the document; returns it as it should be.
  Lines run() {
    Lines made;
    std::string file;  // whose block comes next
    const Lines lines = lines_of(read_file(path_).value());
    for (size_t i = 0; i < lines.size(); ++i) {
      made.push_back(lines[i]);
      if (!lines[i].starts_with("```")) {
        if (!lines[i].empty()) file = file_of(lines[i]);
        continue;
      }
      Lines block;
      while (++i < lines.size() && lines[i] != "```") block.push_back(lines[i]);
      if (!file.empty()) {
        take_file(file, joined(block));
      } else if (!block.empty() && block[0].starts_with("$ ")) {
        block = run_session(block);
      }
      made.insert(made.end(), block.begin(), block.end());
      made.emplace_back("```");
      file.clear();
    }
    return made;
  }

 private:
  static std::string file_of(const std::string& line) {
    static const std::regex named("`([^` ]+)`:");
    std::smatch match;
    return std::regex_match(line, match, named) ? match[1].str() : "";
  }

  void fail(const std::string& why) {
    fmt::print("{}: {}\n", path_.string(), why);
    ++result_.failed;
  }

  void take_file(const std::string& name, const std::string& text) {
    if (!fs::exists(name)) return write_whole(folder_ / name, text);
    if (without_head(read_file(name).value()) == without_head(text)) {
      ++result_.passed;
    } else {
      fail(fmt::format("'{}' is not what it shows", name));
    }
  }

  Lines run_session(const Lines& block) {
    Lines made;
    for (size_t i = 0; i < block.size();) {
      const std::string& command = block[i];
      made.push_back(command);
      Lines expected;
      while (++i < block.size() && !block[i].starts_with("$ ")) expected.push_back(block[i]);
      const Lines printed = run_command(command.substr(2), expected);
      made.insert(made.end(), printed.begin(), printed.end());
    }
    return made;
  }

  /// What stands there if it is right, else what is printed.
  Lines run_command(const std::string& command, const Lines& expected) {
    const fs::path out = scratch_ / "out", err = scratch_ / "err";
    run_shell(command, folder_, out, err);
    const Lines actual = lines_of(read_file(out).value() + read_file(err).value());
    if (matches(expected, 0, actual, 0)) {
      ++result_.passed;
      return expected;
    }
    if (update_) {
      fmt::print("{}: wrote what '{}' prints\n", path_.string(), command);
      ++result_.passed;
      return actual;
    }
    fail(fmt::format("'{}' prints something else:", command));
    write_whole(out, joined(expected));
    write_whole(err, joined(actual));
    show_difference(out, err);
    return expected;
  }

  const fs::path path_, scratch_, folder_;
  const bool update_;
  DocumentResult result_;
};

}  // namespace

DocumentResult check_document(const fs::path& path, const fs::path& scratch, bool update) {
  if (!fs::exists(path)) {
    fmt::print("{}: there is no such document\n", path.string());
    return {0, 1};
  }
  Document document(path, scratch, update);
  const std::string made = joined(document.run());
  if (update && made != read_file(path).value()) write_whole(path, made);
  return document.result();
}

}  // namespace mscclc::testing
