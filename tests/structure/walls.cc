#include "tests/structure/walls.h"

#include <regex>
#include <sstream>

namespace mscclc::structure {
namespace {

/// Tests, benchmarks, and what tests share: x_test.cc, x_benchmark.cc, x_test_text.h.
bool is_test(std::string_view file) {
  return file.substr(file.rfind('/') + 1).find("_test") != file.npos ||
         file.ends_with("_benchmark.cc");
}

bool names(const std::set<std::string>& folders, const std::string& folder) {
  return folders.count("*") == 1 || folders.count(folder) == 1;
}

}  // namespace

Layers::Layers(std::string_view table) {
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    std::istringstream head(line.substr(0, colon)), rest(line.substr(colon + 1));
    std::string folder, tests;
    head >> folder >> tests;
    Row& row = rows_[folder];
    for (std::string other; rest >> other;) (tests.empty() ? row.all : row.tests).insert(other);
  }
}

std::string Layers::folder_of(std::string_view path) const {
  for (size_t end = path.rfind('/'); end != path.npos && end > 0; end = path.rfind('/', end - 1)) {
    const std::string folder(path.substr(0, end));
    if (rows_.count(folder) == 1) return folder;
  }
  return "";
}

bool Layers::allow(std::string_view file, std::string_view included) const {
  const std::string from = folder_of(file), to = folder_of(included);
  if (from.empty() || to.empty()) return false;
  const Row& row = rows_.at(from);
  return from == to || names(row.all, to) || (is_test(file) && names(row.tests, to));
}

std::vector<std::string> includes(std::string_view source, const Layers& layers) {
  static const std::regex directive(R"(^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">])",
                                    std::regex::ECMAScript | std::regex::multiline);
  const std::string text(source);
  std::vector<std::string> found;
  const std::sregex_iterator end;
  for (std::sregex_iterator i(text.begin(), text.end(), directive); i != end; ++i) {
    const std::string path = (*i)[2];
    if ((*i)[1] == "\"" || !layers.folder_of(path).empty()) found.push_back(path);
  }
  return found;
}

std::vector<std::string> wrong_includes(std::string_view file, std::string_view source,
                                        const Layers& layers) {
  std::vector<std::string> wrong;
  for (const std::string& path : includes(source, layers)) {
    if (layers.allow(file, path)) continue;
    const std::string from = layers.folder_of(file), to = layers.folder_of(path);
    const std::string name(file);
    wrong.push_back(to.empty() ? name + " includes " + path + ", which lies in no folder of ours"
                    : from.empty() ? name + " lies in no folder of layers.bzl"
                                   : name + " includes " + path + ": " + from +
                                         " may not include " + to + " (layers.bzl)");
  }
  return wrong;
}

}  // namespace mscclc::structure
